import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import ts from 'typescript';
import { describe, expect, onTestFinished, test } from 'vitest';
import { start } from '../cli/support.js';
import { kill, tied } from '../support/child.js';
import { freePort } from '../support/port.js';
import { findBlocks, findPage, readText, root } from './pages.js';

const readme = findPage('README.md');

test('the README shows the two commands "From a clone", which are scripts of the package', () => {
  const { scripts } = JSON.parse(readText('package.json')) as { scripts: object };
  const [, section = ''] = readme.text.split('\n## From a clone\n');
  const [, commands = ''] = /^\n```sh\n(.*?)^```$/ms.exec(section) ?? [];
  expect(commands.split('\n').map((line) => line.replace(/ *#.*/, ''))).toEqual([
    'npm ci && npm run demo',
    'npm ci && npm test',
    '',
  ]);
  expect(scripts).toMatchObject({ demo: expect.any(String) as string, test: expect.any(String) as string });
});

test('the README is short enough to be read', () => {
  expect(readme.text.split('\n').length).toBeLessThan(150);
});

describe('the quick start', () => {
  const [{ code: quickStart } = expect.fail('The README shows no code.')] = findBlocks(readme, 'ts');

  test('the quick start is examples/quick-start.ts', () => {
    expect(readText('examples/quick-start.ts')).toBe(quickStart);
  });

  test('the quick start is JavaScript, as the name of its file shows', () => {
    const diagnosticsOf = (code: string): number =>
      ts.transpileModule(code, { fileName: 'server.mjs', reportDiagnostics: true, compilerOptions: { allowJs: true } })
        .diagnostics?.length ?? 0;
    expect(diagnosticsOf('const typed: number = 1;')).toBe(1);
    expect(diagnosticsOf(quickStart)).toBe(0);
  });

  test('the quick start and the command that sends it a callback print what the README shows', async () => {
    const [{ code: session } = expect.fail('The README shows no session.')] = findBlocks(readme, 'text');
    const [command = '', ...output] = session.trimEnd().split('\n');
    const args = command.replace('$ npx transfer-callbacks ', '').split(' ');
    const port = await freePort();
    const server = tied(
      spawn(process.execPath, ['--import', 'tsx', 'examples/quick-start.ts'], {
        cwd: root,
        env: { ...process.env, PORT: String(port) },
        stdio: ['ignore', 'pipe', 'inherit'],
      }),
    );
    onTestFinished(() => kill(server));
    const printed = createInterface(server.stdout);
    const [greeting] = (await once(printed, 'line')) as [string];
    expect(greeting).toBe(`Callbacks are received at http://localhost:${port}/callbacks/transfers`);
    const paid = once(printed, 'line') as Promise<[string]>;

    const { code, out } = await start(args.map((each) => each.replace(':3000/', `:${port}/`))).ended;

    expect(code).toBe(0);
    expect(withoutChance(out.trimEnd().split('\n'))).toEqual(withoutChance(output));
    const [, said = ''] = /The server prints `([^`]+)`/.exec(readme.text) ?? [];
    expect(withoutChance(await paid)).toEqual(withoutChance([said]));
  }, 120_000);

  /** Ids and durations differ from run to run. */
  function withoutChance(text: readonly string[]): string[] {
    return text.map((line) => line.replace(/payout-[0-9a-f]{16}/, 'payout-…').replace(/\d+ ms/, '… ms'));
  }
});
