import type { RequestListener } from 'node:http';
import { onTestFinished } from 'vitest';
import { serve } from './serve.js';

/** Serves a listener or an Express app until the test ends. Resolves with its address. */
export async function serveForTest(listenerOrApp: RequestListener): Promise<string> {
  const { url, close } = await serve(listenerOrApp);
  onTestFinished(close);
  return url;
}
