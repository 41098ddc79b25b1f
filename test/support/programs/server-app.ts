import { startPostgres } from '../servers/postgres.js';

/** A test process: it starts a server, sends its port, and does not stop it. */
const { port } = await startPostgres();
process.send?.(port);
