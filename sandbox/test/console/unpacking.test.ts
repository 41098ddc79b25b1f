import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';

/** The browser has 60 MB, packed. */
const timeout = 180_000;

test.runIf(process.platform === 'linux' && process.arch === 'x64')(
  'the browser of `npm ci` is unpacked into the clone, whatever is in the temporary folder',
  { timeout },
  async () => {
    const folder = await mkdtemp(join(tmpdir(), 'transfer-callbacks-browser-'));
    const [temporary, programs] = [join(folder, 'temporary'), join(folder, 'programs')];
    await mkdir(temporary);
    await writeFile(join(temporary, 'chromium'), "another user's", { mode: 0o600 });
    for (const [name, value] of Object.entries({ TMPDIR: temporary, TEST_PROGRAMS: programs, PATH: '' })) {
      vi.stubEnv(name, value);
    }
    vi.stubEnv('CHROMIUM_BIN', undefined);
    onTestFinished(async () => {
      vi.unstubAllEnvs();
      await rm(folder, { recursive: true, force: true });
    });

    const { findBrowsers } = await import('../../../test/support/helpers/browser.js');
    const found = [{ executablePath: join(programs, 'chromium', 'chromium') }];
    expect(await Promise.all([findBrowsers(), findBrowsers()])).toEqual([found, found]);
    expect(await readdir(programs)).toEqual(['chromium']);
    expect(await readdir(temporary)).toEqual(['chromium']);
    expect(tmpdir()).toBe(temporary);
  },
);
