import bundled from '@sparticuz/chromium';
import { chromium, type Browser, type LaunchOptions } from 'playwright-core';
import { findOnPath } from './programs.js';

const howToGetOne =
  'These tests need a Chromium: install Chrome or Edge, put a `chromium` on the PATH (apt install chromium), or set CHROMIUM_BIN.';

/**
 * Finds browsers, the one to try first in front: CHROMIUM_BIN, a `chromium` on the PATH, the one that comes with `npm ci` on
 * Linux, which is unpacked first, or else a Chrome or an Edge where its installer puts it.
 */
export async function findBrowsers(): Promise<LaunchOptions[]> {
  const binary = process.env.CHROMIUM_BIN ?? (await findOnPath('chromium'));
  if (binary !== undefined) return [{ executablePath: binary }];
  if (process.platform === 'linux' && process.arch === 'x64')
    return [{ executablePath: await bundled.executablePath() }];
  return [{ channel: 'chrome' }, { channel: 'msedge' }];
}

export async function startBrowser(): Promise<Browser> {
  // Chromium refuses to run as root with its own sandbox.
  const args = process.getuid?.() === 0 ? ['--no-sandbox'] : [];
  let failure: unknown;
  for (const browser of await findBrowsers()) {
    try {
      return await chromium.launch({ ...browser, args, timeout: 60_000 });
    } catch (error) {
      failure = error;
    }
  }
  throw new Error(`No browser starts. ${howToGetOne}`, { cause: failure });
}
