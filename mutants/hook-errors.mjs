/**
 * Makes an error of a run of what fails outside of its tests: a hook, or a file that cannot be loaded. The tests behind it are
 * skipped, and without this a mutant would survive them, and a part whose tests do not load would pass its first run.
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
