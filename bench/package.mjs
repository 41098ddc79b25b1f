/** The package as it was built; `PACKAGE` names another build, to compare two. */
export const packageUnderTest = await import(process.env.PACKAGE ?? '../dist/index.js');
