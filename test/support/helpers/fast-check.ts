import fc from 'fast-check';

// Every run tries the same cases. FAST_CHECK_SEED tries others.
fc.configureGlobal({ seed: Number(process.env.FAST_CHECK_SEED ?? 1) });

export { default } from 'fast-check';
