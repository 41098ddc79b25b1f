import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { expect, test } from 'vitest';

const here = dirname(fileURLToPath(import.meta.url));
const root = dirname(dirname(here));
const sources = readdirSync(here)
  .filter((file) => !file.endsWith('.test.ts'))
  .map((file) => join(here, file));

const { config } = ts.readConfigFile(join(root, 'tsconfig.json'), (path) => readFileSync(path, 'utf8')) as {
  config: { compilerOptions: { paths: Record<string, string[]> } };
};

/** `clients.ts` takes most of the time and does not use Express. */
const withoutClients = sources.filter((path) => !path.endsWith('/clients.ts'));

test.each([
  ['5', '@types/express', sources],
  ['4', '@types/express4', withoutClients],
])(
  'the types accept and refuse what test/types shows, with the types of Express %s',
  (major, types, files) => {
    const { compilerOptions } = config;
    const paths = { ...compilerOptions.paths, express: [`./node_modules/${types}/index.d.ts`] };
    const { options } = ts.parseJsonConfigFileContent(
      { ...config, compilerOptions: { ...compilerOptions, paths } },
      ts.sys,
      root,
    );
    const program = ts.createProgram(files, options);
    const read = program.getSourceFiles().map(({ fileName }) => fileName);
    const expressTypes = read.filter((path) => /\/@types\/express\d?\/index\.d\.ts$/.test(path));
    expect(expressTypes).toEqual([expect.stringContaining(`/${types}/index.d.ts`)]);
    expect(majorOf(types)).toBe(major);
    // The rest of the project does not use Express.
    const folders = [`${here}/`, join(root, 'src/http/')];
    const checked = program
      .getSourceFiles()
      .filter(({ fileName }) => folders.some((each) => fileName.startsWith(each)));
    const diagnostics = checked.flatMap((file) => ts.getPreEmitDiagnostics(program, file));
    const faults = diagnostics.map(({ file, start = 0, messageText }) => ({
      file: file?.fileName.slice(root.length + 1),
      line: file && file.getLineAndCharacterOfPosition(start).line + 1,
      message: ts.flattenDiagnosticMessageText(messageText, '\n'),
    }));
    expect(faults).toEqual([]);
    expect(checked.map(({ fileName }) => fileName)).toEqual(
      expect.arrayContaining([...files, join(root, 'src/http/router.ts')]),
    );
  },
  120_000,
);

function majorOf(types: string): string | undefined {
  const { version } = JSON.parse(readFileSync(join(root, 'node_modules', types, 'package.json'), 'utf8')) as {
    version: string;
  };
  return version.split('.')[0];
}
