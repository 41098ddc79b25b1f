import { DefaultReporter, type TestModule } from 'vitest/node';

/** Leaves a line of a file only if it has failed. A terminal also shows how far the run is, and lists the tests of a single file. */
export default class QuietReporter extends DefaultReporter {
  constructor() {
    // What a test prints is shown if it fails.
    super({ silent: 'passed-only' });
  }

  protected override printTestModule(file: TestModule): void {
    if (this.renderSucceed || file.state() === 'failed') super.printTestModule(file);
  }
}
