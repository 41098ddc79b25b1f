import { hasSubscribers } from 'node:diagnostics_channel';
import { Counter, Gauge, Histogram, register, Registry } from 'prom-client';
import { prometheusMetrics } from 'transfer-callbacks/metrics';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { describe, expect, test, vi } from 'vitest';
import { receiverOf } from '../core/support.js';
import { deliveries, registerMetrics } from './support.js';
import { containing } from '../support/helpers/containing.js';

const http = { source: 'http' };

describe('the registration', () => {
  test('ends with `stop`: nothing is subscribed, and nothing is left in the registry', async () => {
    const { registry, stop } = registerMetrics();
    expect(hasSubscribers('transfer-callbacks:outcome')).toBe(true);
    stop();
    expect(hasSubscribers('transfer-callbacks:outcome')).toBe(false);
    expect(hasSubscribers('transfer-callbacks:reconciled')).toBe(false);
    expect((await registry.metrics()).trim()).toBe('');
    const again = prometheusMetrics({ Counter, Gauge, Histogram, registers: [registry] });
    stop();
    expect(registry.getMetricsAsArray()).toHaveLength(11);
    again();
  });

  test('is refused by the client where the names are taken', () => {
    const { registry } = registerMetrics();
    expect(() => prometheusMetrics({ Counter, Gauge, Histogram, registers: [registry] })).toThrow(
      'A metric with the name transfer_callbacks_deliveries_total has already been registered.',
    );
  });

  test('goes to every registry given, and not to the global one', () => {
    const registers = [new Registry(), new Registry()];
    const stop = prometheusMetrics({ Counter, Gauge, Histogram, registers });
    for (const registry of registers) expect(registry.getMetricsAsArray()).toHaveLength(11);
    expect(register.getMetricsAsArray()).toEqual([]);
    stop();
    for (const registry of registers) expect(registry.getMetricsAsArray()).toEqual([]);
  });

  test.each([
    [undefined, 'Expected `client` to be an object, got undefined.'],
    [{ Counter, Gauge, Histogram }, 'Expected `registers` to be an array of registries, got undefined.'],
    [{ Counter, Gauge, Histogram, registers: [] }, 'Expected `registers` to be an array of registries, got an array.'],
    [{ Counter, Gauge, registers: [register] }, 'Expected `Histogram` to be a class of prom-client, got undefined.'],
  ])('is refused without what it needs', (client, message) => {
    const fault = expect.objectContaining({ code: 'INVALID_ARGUMENT', message: containing(message) }) as Error;
    expect(() => prometheusMetrics(client as never)).toThrow(fault);
  });
});

test('another copy of the package feeds the same metrics', async () => {
  const { series } = registerMetrics();
  vi.resetModules();
  const copy = await import('transfer-callbacks');
  const receiver = copy.transferCallbackReceiver({
    store: copy.memoryStore(),
    onSuccess: () => undefined,
    onFailed: () => undefined,
    logger: false,
  });
  await receiver.receive(transferSucceeded(), http);
  await receiverOf().receive(transferSucceeded(), http);
  expect((await series()).get(deliveries('processed', 'http'))).toBe(2);
});
