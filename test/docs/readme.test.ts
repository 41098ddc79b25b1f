import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { describe, expect, onTestFinished, test } from 'vitest';
import { startSandboxCli } from '../cli/support.js';
import { kill, tied } from '../support/programs/child.js';
import { freePort } from '../support/servers/port.js';
import { post } from '../support/helpers/post.js';
import { findBlocks, findPage, readText, root } from './pages.js';

const readme = findPage('README.md');

describe('the quick start', () => {
  const [{ code: quickStart } = expect.fail('The README shows no code.')] = findBlocks(readme, 'ts');

  test('the quick start is examples/quick-start.ts', () => {
    expect(readText('examples/quick-start.ts')).toBe(quickStart);
  });

  test('the quick start and the command that sends it a callback print what the README shows', async () => {
    const [{ code: session } = expect.fail('The README shows no session.')] = findBlocks(readme, 'text');
    const [command = '', ...output] = session.trimEnd().split('\n');
    const args = command.replace('$ npx transfer-sandbox ', '').split(' ');
    const { port, printed } = await startServer(['examples/quick-start.ts']);
    const paid = once(printed, 'line') as Promise<[string]>;

    const { code, out } = await startSandboxCli(args.map((each) => each.replace(':3000/', `:${port}/`))).ended;

    expect(code).toBe(0);
    expect(withoutChance(out.trimEnd().split('\n'))).toEqual(withoutChance(output));
    const [, said = ''] = /The server prints `([^`]+)`/.exec(readme.text) ?? [];
    expect(withoutChance(await paid)).toEqual(withoutChance([said]));
  }, 120_000);

  test('the quick start with its comments for production takes callbacks with the token only', async () => {
    const inProduction = quickStart
      .replace('memoryStore,', 'memoryStore, urlToken,')
      .replace(/\/\/ in production: (verify: .*)/, '$1')
      .replace(/.*\/\/ in production: (app\.post.*)/, '$1');
    expect(inProduction).not.toContain('in production');
    const env = { CALLBACK_SECRET: 'the-secret-of-the-callback-url' };
    const { port } = await startServer(['--input-type=module', '--eval', inProduction], env);
    const url = `http://localhost:${port}/callbacks/transfers`;
    const trigger = (to: string) => startSandboxCli(['trigger', 'success', '--to', to, '--speed', '10000']).ended;

    const sent = await trigger(`${url}/${env.CALLBACK_SECRET}`);
    const withoutToken = await trigger(url);

    expect([sent.code, sent.out]).toEqual([0, expect.stringContaining('← 200')]);
    expect([withoutToken.code, withoutToken.out]).toEqual([1, expect.stringContaining('← 404')]);
    expect(withoutToken.out.replaceAll('\n', ' ')).toContain('the path of app.post ends in /:token');
    expect((await post(`${url}/a-guess`, transferSucceeded())).status).toBe(401);
  }, 120_000);

  /** Starts the server of a program for Node, when it listens. */
  async function startServer(program: readonly string[], env: Record<string, string> = {}) {
    const port = await freePort();
    const server = tied(
      spawn(process.execPath, ['--import', 'tsx', ...program], {
        cwd: root,
        env: { ...process.env, PORT: String(port), ...env },
        stdio: ['ignore', 'pipe', 'ignore'],
      }),
    );
    onTestFinished(() => kill(server));
    const printed = createInterface(server.stdout);
    const [greeting] = (await once(printed, 'line')) as [string];
    expect(greeting).toBe(`Callbacks are received at http://localhost:${port}/callbacks/transfers`);
    return { port, printed };
  }

  /** Ids and durations differ from run to run. */
  function withoutChance(text: readonly string[]): string[] {
    return text.map((line) => line.replace(/payout-[0-9a-f]{16}/, 'payout-…').replace(/\d+ ms/, '… ms'));
  }
});
