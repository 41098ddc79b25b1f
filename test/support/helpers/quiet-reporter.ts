import type { SerializedError } from 'vitest';
import { DefaultReporter, type TestModule } from 'vitest/node';

/**
 * Prints a line for a file only if it has failed, and the names of the tests that are red last. A terminal also shows
 * how far the run is, and lists the tests of a single file.
 */
export default class QuietReporter extends DefaultReporter {
  constructor() {
    // What a test prints is shown if it fails.
    super({ silent: 'passed-only' });
  }

  protected override printTestModule(file: TestModule): void {
    if (this.renderSucceed || file.state() === 'failed') super.printTestModule(file);
  }

  override onTestRunEnd(
    files: readonly TestModule[],
    errors: readonly SerializedError[],
    reason: 'passed' | 'interrupted' | 'failed',
  ): void {
    super.onTestRunEnd(files, errors, reason);
    const red = files.flatMap((file) =>
      [...file.children.allTests('failed')].map(({ fullName }) => `  ${file.relativeModuleId} > ${fullName}`),
    );
    const broken = files.filter((file) => file.state() === 'failed' && file.errors().length > 0);
    const lines = [...broken.map((file) => `  ${file.relativeModuleId}`), ...red];
    if (lines.length > 0) this.log(`Red:\n${lines.join('\n')}\n`);
  }
}
