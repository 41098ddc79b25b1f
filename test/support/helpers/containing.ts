import { expect } from 'vitest';

/** Matches a message that contains this text. Messages of errors end in what to write, or in where to read on. */
export const containing = (text: string): string => expect.stringContaining(text) as string;
