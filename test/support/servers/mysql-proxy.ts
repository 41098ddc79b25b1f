import { onTestFinished } from 'vitest';
import { startProxy } from './lossy-proxy.js';

/**
 * What becomes of a statement:
 * - `pass`: the server gets it;
 * - `cut`: the server gets nothing, and keeps its connection, and the client loses its own;
 * - `refuse`: the client gets an error, and the server gets nothing.
 */
type Fate = 'pass' | 'cut' | 'refuse';

/** The codes of the commands of MySQL that have a statement. */
const statementCodes = [0x03, 0x16];

/** Error 1317, as a KILL QUERY would cause it. */
const refusal = Buffer.from('\xff\x25\x05#70100Query execution was interrupted', 'latin1');

/**
 * Starts a proxy before a MySQL or MariaDB on the loopback, which reads the statements, and closes it after the test.
 * `judge` decides about each statement, and `rewrite` may change it. Resolves with the address of the proxy.
 */
export async function startMysqlProxyForTest(
  url: string,
  judge: (statement: string) => Fate,
  rewrite = (statement: string): string => statement,
): Promise<string> {
  const own = new URL(url);
  const target = Number(own.port);
  const { port, close } = await startProxy(
    () => target,
    (client, upstream) => {
      let isCut = false;
      let unread = Buffer.alloc(0);
      const forward = (packet: Buffer): void => {
        const isStatement = packet[3] === 0 && statementCodes.includes(packet[4] ?? 0);
        const fate = isStatement ? judge(packet.subarray(5).toString()) : 'pass';
        if (fate === 'pass') upstream.write(isStatement ? rewritePacket(packet, rewrite) : packet);
        else if (fate === 'refuse') client.write(Buffer.concat([Buffer.from([refusal.length, 0, 0, 1]), refusal]));
        else {
          isCut = true;
          client.destroy();
        }
      };
      client.on('data', (bytes) => {
        unread = Buffer.concat([unread, bytes]);
        while (!isCut && unread.length >= 4 && unread.length >= 4 + unread.readUIntLE(0, 3)) {
          const length = 4 + unread.readUIntLE(0, 3);
          forward(unread.subarray(0, length));
          unread = unread.subarray(length);
        }
      });
      upstream.on('data', (bytes) => {
        if (!isCut) client.write(bytes);
      });
      client.on('close', () => {
        if (!isCut) upstream.destroy();
      });
      upstream.on('close', () => client.destroy());
    },
  );
  onTestFinished(close);
  own.port = String(port);
  return own.href;
}

function rewritePacket(packet: Buffer, rewrite: (statement: string) => string): Buffer {
  const statement = Buffer.from(rewrite(packet.subarray(5).toString()));
  const head = Buffer.from(packet.subarray(0, 5));
  head.writeUIntLE(statement.length + 1, 0, 3);
  return Buffer.concat([head, statement]);
}
