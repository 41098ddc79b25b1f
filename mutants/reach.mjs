import { writeFileSync } from 'node:fs';
import { declareClassPlugin, PluginKind } from '@stryker-mutator/api/plugin';

/** Returns a path within the repository. The tests run in a copy of it, in `.test/reach-…/sandbox-…`. */
const toPath = (path) => path.slice(process.cwd().length + 1).replace(/^\.test\/[^/]+\/[^/]+\//, '');

/** Writes which tests reach which mutant, as a report without results, and ends before the first mutant is tried. */
class ReachReporter {
  #tests = [];

  onDryRunCompleted({ result }) {
    this.#tests = result.tests;
  }

  onMutationTestingPlanReady({ mutantPlans }) {
    const files = {};
    for (const { mutant } of mutantPlans) {
      const { fileName, location, coveredBy } = mutant;
      const file = toPath(fileName);
      // Its lines count from 0.
      const [start, end] = [location.start, location.end].map(({ line }) => ({ line: line + 1 }));
      (files[file] ??= { mutants: [] }).mutants.push({ location: { start, end }, coveredBy });
    }
    const testFiles = {};
    for (const { id, name, fileName } of this.#tests) {
      (testFiles[toPath(fileName)] ??= { tests: [] }).tests.push({ id, name });
    }
    writeFileSync(`${process.env.MUTANTS_REACH}/reach.json`, JSON.stringify({ files, testFiles }));
    process.exit();
  }
}

export const strykerPlugins = [declareClassPlugin(PluginKind.Reporter, 'reach', ReachReporter)];
