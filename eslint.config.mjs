// The rules are in .eslintrc.cjs.
export { default } from './.eslintrc.cjs';
