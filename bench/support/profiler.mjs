// A sampled profile of this process, by the layer that its time is spent in.
import { Session } from 'node:inspector/promises';

/** Layers by the package that a function belongs to. What else is in `node_modules` is called by Express. */
const packages = [
  [
    'Redis client',
    /node_modules\/(@?ioredis|redis|@redis|redis-errors|redis-parser|denque|standard-as-callback|cluster-key-slot)\//,
  ],
  ['zod', /node_modules\/zod\//],
  ['Express', /node_modules\//],
  ['load', /in-process-server\.mjs|support\/profiler\.mjs|request\.mjs|callback\.mjs|node:inspector/],
  ['Node', /^node:/],
  ['route', /./],
];
/** `Node` is node:http, streams and the event loop; `route` is the route by hand, or the package. */
export const layers = [
  'writes to Redis',
  'Redis client',
  'Express',
  'Node',
  'zod',
  'route',
  'garbage',
  'load',
  'other',
];

/** Resolves with the share of each layer in the time that `work` takes, from 0 to 1. */
export async function profile(work) {
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.setSamplingInterval', { interval: 200 });
  await session.post('Profiler.start');
  await work();
  const { profile: taken } = await session.post('Profiler.stop');
  session.disconnect();
  return toShares(taken);
}

function toShares({ nodes, samples, timeDeltas }) {
  const layerOf = new Map();
  const visit = (id, above) => {
    const { callFrame, children = [] } = byId.get(id);
    const layer = toLayer(callFrame, above);
    layerOf.set(id, layer);
    for (const child of children) visit(child, layer);
  };
  const byId = new Map(nodes.map((node) => [node.id, node]));
  visit(nodes[0].id, 'other');
  const shares = Object.fromEntries(layers.map((layer) => [layer, 0]));
  let total = 0;
  samples.forEach((id, index) => {
    const layer = layerOf.get(id);
    if (layer === 'idle') return;
    shares[layer] += timeDeltas[index];
    total += timeDeltas[index];
  });
  for (const layer of layers) shares[layer] /= total;
  return shares;
}

/** A function of V8 or of Node's own C++ belongs to the one that called it. */
function toLayer({ functionName, url }, above) {
  if (functionName === '(idle)') return 'idle';
  // The connections of the load are no sockets, so what is written goes to Redis.
  if (url === '' && /^write(v|Buffer|\w*String)$/.test(functionName)) return 'writes to Redis';
  if (url !== '') return packages.find(([, pattern]) => pattern.test(url))[0];
  if (functionName === '(garbage collector)') return 'garbage';
  return functionName.startsWith('(') ? 'other' : above;
}
