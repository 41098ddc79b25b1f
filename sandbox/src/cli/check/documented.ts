import { transferFailed, transferSucceeded } from '../../../../src/testing/fixtures.js';
import { invalidCallbacks } from '../../../../src/testing/invalid.js';
import { startSandbox } from '../../service/sandbox.js';
import { createTransfer } from '../create-transfer.js';
import { defineService, type TransferSandbox } from '../../index.js';
import { Sample } from './sample.js';
import { Service, type InvalidBody, type Traits } from './service.js';

/** The event and the status say the same (service §6). */
const definition = defineService({
  read({ event, data }: { event: unknown; data: Readonly<Record<string, string>> }) {
    const { status, id, externalId, amount, currency } = data;
    return { state: `${String(event)} ${String(status)}`, id, externalId, amount, currency };
  },
  states: { 'transfer.success SUCCESS': 'SUCCESS', 'transfer.failed FAILED': 'FAILED' },
});

const names = { event: [], transfer: ['data.reference', 'data.externalReference'] };

/** Starts the documented service. It sends nothing by itself: its time stands still, and it has no callback URL. */
export async function startDocumented(port = 0) {
  let advice: string | undefined;
  const { SANDBOX_API_KEY: apiKey, SANDBOX_API_SECRET: apiSecret } = process.env;
  const sandbox = await startSandbox(
    { port, apiKey, apiSecret, clock: 'manual', finalAfterMs: 0, console: false },
    (reason) => {
      // It names no key, because it may be the key of production.
      advice ??=
        `Your app asked the service at ${sandbox.baseUrl}, which refused its key (${reason}). Set SANDBOX_API_KEY and ` +
        'SANDBOX_API_SECRET to the key and the secret that your app sends.';
    },
  );
  return {
    service: documentedService(sandbox),
    /** Where an app may ask it. */
    url: sandbox.baseUrl,
    /** Returns what to set if it has refused the key of the app; `undefined` if it has not. */
    adviseKey: () => advice,
    close: () => sandbox.close(),
  };
}

/** Returns the documented service, whose transfers are transfers of the sandbox. */
function documentedService(sandbox: TransferSandbox): Service {
  const toSample = (status: 'SUCCESS' | 'FAILED', payload: unknown): Sample =>
    new Sample('the documented sample', payload, { service: definition, status, names });
  const samples = {
    SUCCESS: toSample('SUCCESS', transferSucceeded()),
    FAILED: toSample('FAILED', transferFailed()),
  };
  const traits: Traits = {
    ...{ isForm: false, signWith: {}, names, isDocumented: true },
    async register(externalId, status) {
      sandbox.setScenario(externalId, status === 'FAILED' ? 'failed' : 'success');
      await createTransfer(sandbox, { externalId, amount: 15_000, currency: 'XAF' });
      await sandbox.advance(0);
      return sandbox.transfers().find((each) => each.externalId === externalId)?.id ?? '';
    },
    undocumented: () => undocumentedBodies(service),
  };
  const service = new Service(definition, samples, traits);
  return service;
}

/** What the definition above refuses itself. */
const unbookable =
  /^(?:an empty body|a body that is not JSON|null|no event|no data|data\.(?:id|externalId|status) is missing)$/;

/** Returns the bodies with one field that is not as documented (service §2.1, §6), each of another transfer. */
function undocumentedBodies(service: Service): InvalidBody[] {
  const whole = invalidCallbacks.find(({ title }) => title === 'an event that is not documented')?.callback;
  const { data: known } = whole as { readonly data: Readonly<Record<string, string>> };
  return invalidCallbacks
    .filter(({ title }) => !unbookable.test(title))
    .map(({ title, callback }) => {
      const transfer = service.invent('undocumented');
      const text = typeof callback === 'string' ? callback : JSON.stringify(callback);
      const body = ['id', 'externalId'].reduce((changed, name) => {
        return changed.replaceAll(String(known[name]), transfer[name as 'id' | 'externalId']);
      }, text);
      return { title, isBookable: false, transfer: { ...transfer, body } };
    });
}
