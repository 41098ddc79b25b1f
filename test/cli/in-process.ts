import { vi } from 'vitest';
import { program as sandboxProgram } from '../../sandbox/src/cli/commands.js';
import { program } from '../../src/cli/commands.js';
import { run as runCommandLine, type Program } from '../../src/cli/program.js';

/** Runs a command in the process of the test. One at a time: it takes what is written to the streams of the process. */
const inProcess =
  (program: Program) =>
  async (...args: string[]) => {
    const written = { out: '', err: '' };
    const take = (stream: NodeJS.WriteStream, name: keyof typeof written) =>
      vi.spyOn(stream, 'write').mockImplementation((text) => {
        written[name] += String(text);
        return true;
      });
    const streams = [take(process.stdout, 'out'), take(process.stderr, 'err')];
    try {
      const code = await runCommandLine(program, args, {
        print: (text) => (written.out += text),
        fail: (sentence) => (written.err += sentence),
      });
      return { code, ...written };
    } finally {
      for (const stream of streams) stream.mockRestore();
    }
  };
export const runInProcess = inProcess(program);
export const runSandboxInProcess = inProcess(sandboxProgram);
