// Makes the example of Express run on Express 4, and the package with it: `express` is then the package `express4`.
import { register } from 'node:module';

const hooks = `export const resolve = (name, context, next) => next(name === 'express' ? 'express4' : name, context);`;
register(`data:text/javascript,${encodeURIComponent(hooks)}`);
