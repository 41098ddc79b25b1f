// `redisStore` takes any client that sends a command as it is given. These adapters give it that `call`.
import type { GlideClient, GlideClusterClient } from '@valkey/valkey-glide';
import type { IoredisClient } from 'transfer-callbacks';

/** The commands of Valkey Glide: `redisStore(glideCommands(await GlideClient.createClient({ … })))`. */
export function glideCommands(client: GlideClient | GlideClusterClient): IoredisClient {
  return { call: (...command) => client.customCommand(command.map(String)) };
}

/** The commands of Upstash's REST API, for hosts without connections: `redisStore(upstashCommands(url, token))`. */
export function upstashCommands(url: string, token: string): IoredisClient {
  return {
    async call(...command) {
      const response = await fetch(url, {
        method: 'POST',
        headers: { Authorization: `Bearer ${token}` },
        body: JSON.stringify(command),
        signal: AbortSignal.timeout(5_000),
      });
      const { result, error } = (await response.json()) as { result?: unknown; error?: string };
      if (!response.ok || error !== undefined) throw new Error(error ?? `HTTP ${response.status}`);
      return result;
    },
  };
}
