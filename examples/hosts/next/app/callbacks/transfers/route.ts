import { transferCallbackHandler } from 'transfer-callbacks/web';
import { options, token } from '../../../../options.ts';

// Next.js tells a route no address: `ipAllowList` would refuse every sender.
export const POST = transferCallbackHandler({ ...options, verify: token });
