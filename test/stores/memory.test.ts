import { describe, test } from 'vitest';
import { memoryStore } from 'transfer-callbacks';
import { storePromises } from 'transfer-callbacks/testing';

describe('memoryStore', () => {
  const store = memoryStore();
  for (const { title, check } of storePromises) test.concurrent(title, () => check(store));
});
