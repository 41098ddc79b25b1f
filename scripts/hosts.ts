// Starts every host of examples/hosts and writes a part of docs/hosts.md from what they respond.
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Reply } from '../test/hosts/cases.js';
import { hosts } from '../test/hosts/hosts.js';
import { installHosts } from '../test/hosts/programs.js';
import { pagePath, renderHost, renderPage } from '../test/hosts/page.js';
import { tryHost } from '../test/hosts/start.js';
import { findPacked, pack } from '../test/support/helpers/pack.js';
import { root } from './entries.js';

const folder = await mkdtemp(join(tmpdir(), 'transfer-callbacks-hosts-'));
try {
  const { PACKED } = process.env;
  const { tarball } = await (PACKED === undefined ? pack(folder) : findPacked(PACKED));
  await installHosts(tarball);
  const rendered: string[] = [];
  let listener: Reply[] | undefined;
  for (const host of hosts) {
    const replies = await tryHost(host);
    listener ??= replies;
    rendered.push(renderHost(host, replies, listener));
    console.log(`${host.name} responds as expected.`);
  }
  const path = join(root, pagePath);
  await writeFile(path, renderPage(await readFile(path, 'utf8'), rendered, listener ?? []));
} catch (error) {
  console.error((error as Error).message);
  process.exitCode = 1;
} finally {
  await rm(folder, { recursive: true, force: true });
}
