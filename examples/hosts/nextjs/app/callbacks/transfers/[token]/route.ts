import { after } from 'next/server';
import { transferCallbackHandler, urlToken } from 'transfer-callbacks/web';
import { receiver } from '../../../../lib/payouts';

const handle = transferCallbackHandler({ receiver, verify: urlToken(process.env.CALLBACK_SECRET) });
export const POST = (request: Request) => handle(request, { waitUntil: after });
