// The handler of every server: empty in a benchmark; in guarantees.mjs it waits until it is told how to end,
// and in a herd of copies it takes HANDLER_MS.
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

async function handleSlowly() {
  await new Promise((resolve) => setTimeout(resolve, Number(process.env.HANDLER_MS)));
}

function chooseHandler() {
  if (process.env.HANDLER === 'told') return handleAsTold;
  return process.env.HANDLER_MS === undefined ? async () => {} : handleSlowly;
}

/** Handles the `data` of a callback. */
export const handle = chooseHandler();
