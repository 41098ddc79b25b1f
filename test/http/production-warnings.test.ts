import { describe, expect, onTestFinished, test, vi } from 'vitest';
import {
  memoryStore,
  transferCallbackListener,
  transferCallbackReceiver,
  urlToken,
  type CallbackStore,
} from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { httpServers } from '../support/http-servers.js';
import { post } from '../support/post.js';
import { recordingOptions } from '../support/recording-options.js';
import { start } from './support.js';

describe('in production', () => {
  const open = 'Every sender of transfer callbacks is trusted: set `verify` or `confirm`.';
  const local = 'Transfer callbacks are deduplicated within this process only: use a shared store.';
  const memory = memoryStore();
  const shared: CallbackStore = { claim: (key, request) => memory.claim(key, request) };
  const { onSuccess, onFailed } = recordingOptions().options;
  const verify = urlToken('a-secret-long-enough');
  const confirm = <C>(callback: C): C => callback;

  const cases: [string, object, string[]][] = [
    ['neither verify nor confirm, on the memory store', { store: memoryStore() }, [local, open]],
    ['neither verify nor confirm', { store: shared }, [open]],
    ['verify', { store: shared, verify }, []],
    ['confirm', { store: shared, confirm }, []],
    ['verify, on the memory store', { store: memoryStore(), verify }, [local]],
  ];

  describe.each(httpServers)('on $name', (server) => {
    test.each(cases)(
      'the warnings in production for %s are logged once, when the server is made',
      async (_what, given, warnings) => {
        vi.stubEnv('NODE_ENV', 'production');
        onTestFinished(() => {
          vi.unstubAllEnvs();
        });
        const { options, logged } = recordingOptions();
        const { url } = await start(server, { ...options, ...given });
        const expected = warnings.map((message) => ({ level: 'warn', message, details: {} }));
        expect(logged).toEqual(expected);
        if (!('verify' in given)) {
          await post(url, transferSucceeded());
          await post(url, transferSucceeded());
        }
        expect(logged).toEqual(expected);
      },
    );
  });

  test('a receiver that was made before is asked for its own confirm', () => {
    vi.stubEnv('NODE_ENV', 'production');
    onTestFinished(() => {
      vi.unstubAllEnvs();
    });
    const { logged, options } = recordingOptions();
    transferCallbackListener({
      receiver: transferCallbackReceiver({ onSuccess, onFailed, store: shared, confirm, logger: options.logger }),
    });
    expect(logged).toEqual([]);
  });

  test.each([undefined, 'development', 'test', 'Production'])('NODE_ENV %s logs no warning', (environment) => {
    vi.stubEnv('NODE_ENV', environment);
    onTestFinished(() => {
      vi.unstubAllEnvs();
    });
    const { options, logged } = recordingOptions();
    transferCallbackListener(options);
    expect(logged).toEqual([]);
  });
});
