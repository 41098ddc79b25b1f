// `npm run pictures` draws the pictures of the documents, each in light and dark.
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { drawAttemptsPicture } from './attempts-picture.js';
import { root } from './entries.js';
import { themes } from './pen.js';

const folder = join(root, 'docs/images');
await mkdir(folder, { recursive: true });
for (const [name, theme] of Object.entries(themes)) {
  await writeFile(join(folder, `attempts-${name}.svg`), drawAttemptsPicture(theme));
}
