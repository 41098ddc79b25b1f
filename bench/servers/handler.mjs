// The handler of every server: empty in a benchmark; in guarantees.mjs it waits until it is told how to end.
import { EventEmitter, once } from 'node:events';

// `once` listens for errors too: as many listeners as there are handlers running.
const tellings = new EventEmitter().setMaxListeners(0);
process.on('message', ({ id, how }) => {
  if (id !== undefined) tellings.emit(id, how);
});

async function handleAsTold({ id }) {
  const told = once(tellings, id);
  process.send({ handling: id });
  const [how] = await told;
  if (how === 'fail') throw new Error('The handler was told to fail.');
}

/** Handles the `data` of a callback. */
export const handle = process.env.HANDLER === 'told' ? handleAsTold : async () => {};
