// The sections of docs/errors.md, to which the messages of errors lead.
import { expect, test } from 'vitest';
import { TransferCallbackError } from 'transfer-callbacks';
import { TransferClientError } from 'transfer-callbacks/client';
import { findAnchors, findPage } from './pages.js';

test('the message of an error leads to the section of its own code, not to that of its cause', () => {
  const page = findPage('docs/errors.md');
  const anchors = findAnchors(page);
  const codes = [...page.text.matchAll(/^### (.+)$/gm)].map(([, code = '']) => code);
  expect(codes.length).toBeGreaterThan(20);
  for (const code of codes) {
    for (const error of [
      new TransferCallbackError(code as 'CLOSING', 'It failed.'),
      new TransferClientError(code as 'BUSY', 'It failed.'),
    ]) {
      const section = code.toLowerCase();
      expect(anchors).toContain(section);
      const isPlain = code === 'INVALID_ARGUMENT' || code === 'RETRY_LATER';
      const end = isPlain ? '' : ` See node_modules/transfer-callbacks/docs/errors.md#${section}.`;
      expect(error.message).toBe(`It failed.${end}`);
      const outer = new TransferClientError('NOT_HANDLED', `The receiver ended: ${error.message}.`);
      expect(outer.message).toMatch(/^The receiver ended: It failed\. See [^ ]+#not_handled\.$/);
    }
  }
});
