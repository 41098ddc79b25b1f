// ESLint 10 reads flat configuration only: this feeds it .eslintrc.cjs, where the rules are.
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { FlatCompat } from '@eslint/eslintrc';

const compat = new FlatCompat({ baseDirectory: fileURLToPath(new URL('.', import.meta.url)) });

export default [
  // The scripts of the console are checked by tsc and in a browser; the rules are for TypeScript. The types of
  // `examples/hosts` are in packages that this repository does not install.
  {
    ignores: [
      ...['dist/', '.test/', 'coverage/', 'bench/', 'examples/hosts/'],
      ...['test/package/projects/', 'src/sandbox/console/'],
    ],
  },
  ...compat.config(createRequire(import.meta.url)('./.eslintrc.cjs')),
];
