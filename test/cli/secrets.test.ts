import { expect, test, vi } from 'vitest';
import { runInProcess, runSandboxInProcess } from './in-process.js';
import { start, startSandboxCli } from './support.js';

// Each command is a separate process, which takes seconds on a busy machine.
vi.setConfig({ testTimeout: 300_000 });

const password = 'hunter2';
const url = `http://payouts:${password}@127.0.0.1:1/`;

const ofSandbox = ['sandbox', 'trigger'];

/** The options of a command that take a value, as its help lists them. */
async function optionsOf(command: string): Promise<string[]> {
  const { out } = await (ofSandbox.includes(command) ? runSandboxInProcess : runInProcess)('help', command);
  return [...new Set([...out.matchAll(/^ {2}(--[\w-]+) (?:[A-Z]|'NAME)/gm)].map(([, option = '']) => option))];
}

/** What a command needs beside the option that is tried. */
const needed: Record<string, string[]> = {
  trigger: ['success', '--speed', '100000'],
  inspect: ['any'],
};

test.each([...ofSandbox, 'reconcile', 'inspect'])(
  'no option of %s prints a URL with a password that it is given',
  async (command) => {
    const options = (await optionsOf(command)).filter((option) => option !== '--api-key'); // It is shown to be copied.
    const tried = [...options.map((option) => [option, url]), [url], [`--${url}`], [`-${url}`]];
    for (const args of tried) {
      const { child, said, ended } = (ofSandbox.includes(command) ? startSandboxCli : start)(
        [command, ...(needed[command] ?? []), ...args],
        { stdin: 'any\n' },
      );
      // A sandbox runs until it is stopped.
      await Promise.race([ended, vi.waitUntil(() => said.out.includes('Base URL'), { timeout: 120_000 })]);
      child.kill();
      await ended;
      expect([args, said.out + said.err]).toEqual([args, expect.not.stringContaining(password)]);
    }
    expect(tried.length).toBeGreaterThan(2);
  },
);
