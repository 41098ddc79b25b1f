import { http } from '@google-cloud/functions-framework';
import { transferCallbackListener } from 'transfer-callbacks/node';
import { options, token } from './options.ts';

// The framework trusts every proxy, so that a sender can claim any address: `ipAllowList` would refuse every sender.
http('transferCallbacks', transferCallbackListener({ ...options, verify: token }));
