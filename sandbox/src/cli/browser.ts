import { spawn } from 'node:child_process';
import { platform } from 'node:os';

/**
 * The programs that open a page in the browser of the user. Each takes the address as an argument, not through a shell.
 */
const openers: Partial<Record<NodeJS.Platform, string>> = { darwin: 'open', win32: 'explorer' };

/** Opens a page in the browser, or reports that this machine has no program for that. */
export function openInBrowser(url: string): void {
  const opener = spawn(openers[platform()] ?? 'xdg-open', [url], { stdio: 'ignore', detached: true });
  opener.on('error', ({ message }) => {
    // Standard output may be JSON.
    process.stderr.write(`No browser was opened (${message}). Open the address by hand.\n`);
  });
  opener.unref();
}
