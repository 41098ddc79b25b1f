// `npm run typecheck` compares this folder with the types of Express 5, and this test with those of Express 4.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { expect, test } from 'vitest';

const here = dirname(fileURLToPath(import.meta.url));
const root = dirname(dirname(here));
/** `clients.ts` takes most of the time and does not use Express. */
const files = readdirSync(here)
  .filter((file) => !file.endsWith('.test.ts') && file !== 'clients.ts')
  .map((file) => join(here, file));

const { config } = ts.readConfigFile(join(root, 'tsconfig.json'), (path) => readFileSync(path, 'utf8')) as {
  config: { compilerOptions: { paths: Record<string, string[]> } };
};

test('with the types of Express 4, too, the types accept and refuse what test/types shows', () => {
  const { compilerOptions } = config;
  const paths = { ...compilerOptions.paths, express: ['./node_modules/@types/express4/index.d.ts'] };
  const changed = { ...config, compilerOptions: { ...compilerOptions, paths } };
  const program = ts.createProgram(files, ts.parseJsonConfigFileContent(changed, ts.sys, root).options);
  const sources = program.getSourceFiles();
  const expressTypes = sources.filter(({ fileName }) => /\/@types\/express\d?\/index\.d\.ts$/.test(fileName));
  expect(expressTypes.map(({ fileName }) => fileName)).toEqual([expect.stringContaining('/@types/express4/')]);
  // The rest of the project does not use Express.
  const checked = sources.filter(
    ({ fileName }) => files.includes(fileName) || fileName.startsWith(join(root, 'src/http/')),
  );
  expect(checked.map(({ fileName }) => fileName)).toEqual(expect.arrayContaining([join(root, 'src/http/router.ts')]));
  const diagnostics = checked.flatMap((file) => ts.getPreEmitDiagnostics(program, file));
  const faults = diagnostics.map(({ file, start = 0, messageText }) => ({
    file: file?.fileName.slice(root.length + 1),
    line: file && file.getLineAndCharacterOfPosition(start).line + 1,
    message: ts.flattenDiagnosticMessageText(messageText, '\n'),
  }));
  expect(faults).toEqual([]);
}, 120_000);
