import { BlockList, isIP, isIPv6 } from 'node:net';
import { invalidArgument } from '../../lib/checks.js';
import { TransferCallbackError } from '../../lib/errors.js';
import { makeVerifier, type SenderRequest, type SenderVerifier } from '../request.js';

const example = "ipAllowList(['203.0.113.7', '198.51.100.0/24'])";

/** Express adds the app to a request. */
interface AppRequest extends SenderRequest {
  readonly app?: { get(setting: string): unknown };
}

/**
 * Accepts senders whose address is on the list of IPv4 and IPv6 addresses and CIDR ranges. The address is `request.ip`,
 * which Express sets by the app's `trust proxy` setting, and your app on a web request. Without it, it is the socket's
 * remote address. Refuses all senders while `trust proxy` trusts every address, because a sender could then claim any
 * address. Called before the body is read. Throws INVALID_ARGUMENT.
 *
 * @example
 * const router = transferCallbackRouter({ ...options, verify: ipAllowList(['203.0.113.0/24']) });
 */
export function ipAllowList(addresses: readonly string[]): SenderVerifier {
  if (!Array.isArray(addresses) || addresses.length === 0) {
    throw invalidArgument('addresses', 'a list of at least one address or range', addresses, example);
  }
  const list = new BlockList();
  for (const [index, entry] of addresses.entries()) allow(list, `addresses[${index}]`, entry);

  function accepts(request: AppRequest): boolean {
    if (trustsEverybody(request.app?.get('trust proxy fn'))) {
      throw new TransferCallbackError(
        'INVALID_ARGUMENT',
        'ipAllowList needs `trust proxy` to name your proxies: with the present setting a sender can claim any address. ' +
          "Write `app.set('trust proxy', ['10.0.0.7'])`, with the address of each proxy.",
      );
    }
    if (request.ip === undefined && request.socket === undefined) {
      throw new TransferCallbackError(
        'INVALID_ARGUMENT',
        'ipAllowList needs the address of the sender: a web request has none until your app sets `request.ip`.',
      );
    }
    const address = request.ip ?? request.socket?.remoteAddress ?? '';
    // `BlockList` applies IPv4 rules to `::ffff:203.0.113.7` (dual-stack sockets) only if told it is IPv6.
    return isIP(address) !== 0 && list.check(address, isIPv6(address) ? 'ipv6' : 'ipv4');
  }
  return makeVerifier('ipAllowList', accepts, { readsCallback: false as const });
}

function allow(list: BlockList, option: string, entry: unknown): void {
  const [address = '', prefix, ...rest] = typeof entry === 'string' ? entry.split('/') : [];
  const bits = isIPv6(address) ? 128 : 32;
  const length = prefix === undefined ? bits : /^\d{1,3}$/.test(prefix) ? Number(prefix) : NaN;
  if (isIP(address) === 0 || !(length <= bits) || rest.length > 0) {
    throw invalidArgument(option, 'an IP address or a CIDR range', entry, example);
  }
  list.addSubnet(address, length, bits === 128 ? 'ipv6' : 'ipv4');
}

/** An address that is reserved for documentation (RFC 5737), so no proxy has it. */
const noProxy = '192.0.2.1';

/**
 * Returns whether Express's compiled `trust proxy` setting trusts any address, at the first hop and at a distant one. A
 * setting that is a number of hops trusts any address at the first hops only.
 */
function trustsEverybody(trust: unknown): boolean {
  if (typeof trust !== 'function') return false;
  const trusts = trust as (address: string, hop: number) => unknown;
  return [0, 99].every((hop) => Boolean(trusts(noProxy, hop)));
}
