import { fileURLToPath } from 'node:url';

/** @type {import('next').NextConfig} */
export default {
  // This example shares its packages and `options.ts` with the others. An app with its own needs none of this.
  turbopack: { root: fileURLToPath(new URL('..', import.meta.url)) },
};
