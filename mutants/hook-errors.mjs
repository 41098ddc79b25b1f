/**
 * Reports a hook that fails, and a file that cannot be loaded, as an error of the run. The tests behind them are skipped. Without
 * this report a mutant would survive those tests, and a part whose tests do not load would pass its first run.
 */
export default class HookErrors {
  onInit(vitest) {
    this.vitest = vitest;
  }

  onTestModuleEnd(module) {
    this.#note(module);
  }

  onTestSuiteResult(suite) {
    this.#note(suite);
  }

  #note(suite) {
    for (const error of suite.errors()) this.vitest.state.catchError(error, 'Error outside of a test');
  }
}
