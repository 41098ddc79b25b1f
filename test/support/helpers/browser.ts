import { chmod, mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import bundled from '@sparticuz/chromium';
import { chromium, type Browser, type LaunchOptions } from 'playwright-core';
import { cache, findOnPath, isExecutable } from '../servers/programs.js';

const howToGetOne =
  'These tests need a Chromium: install Chrome or Edge, put a `chromium` on the PATH (apt install chromium), or set CHROMIUM_BIN.';

/**
 * Finds browsers, the one to try first in front: CHROMIUM_BIN, a `chromium` on the PATH, the one that comes with `npm
 * ci` on Linux, which is unpacked first, or else a Chrome or an Edge where its installer puts it.
 */
export async function findBrowsers(): Promise<LaunchOptions[]> {
  const binary = process.env.CHROMIUM_BIN ?? (await findOnPath('chromium'));
  if (binary !== undefined) return [{ executablePath: binary }];
  if (process.platform === 'linux' && process.arch === 'x64') return [{ executablePath: await findBundled() }];
  return [{ channel: 'chrome' }, { channel: 'msedge' }];
}

/** Resolves with the path of the browser that comes with `npm ci`. Unpacks it when it is first called in this clone. */
async function findBundled(): Promise<string> {
  const folder = join(cache, 'chromium');
  const path = join(folder, 'chromium');
  if (await isExecutable(path)) return path;
  await mkdir(cache, { recursive: true });
  const workshop = await mkdtemp(join(cache, 'unpacking-'));
  try {
    const unpacked = join(workshop, 'unpacked');
    await mkdir(unpacked);
    await chmod(await unpackInto(unpacked), 0o755);
    await rename(unpacked, folder).catch(async (error: unknown) => {
      // Another run may have put it there meanwhile.
      if (!(await isExecutable(path))) throw error;
    });
  } finally {
    await rm(workshop, { recursive: true, force: true });
  }
  return path;
}

/**
 * By itself it unpacks into the temporary folder, and starts whatever is there: the browser of another user, or half of
 * one.
 */
function unpackInto(folder: string): Promise<string> {
  const { TMPDIR } = process.env;
  process.env.TMPDIR = folder;
  try {
    // It reads the path of the temporary folder before it first waits for something.
    return bundled.executablePath();
  } finally {
    if (TMPDIR === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = TMPDIR;
  }
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
