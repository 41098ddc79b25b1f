import express, { type Express } from 'express';
import { afterEach } from 'vitest';

/** A list of what is called after each test, to close what the test has opened. */
export function closedAfterEach(): (() => unknown)[] {
  const closing: (() => unknown)[] = [];
  afterEach(async () => {
    for (const close of closing.splice(0)) await close();
  });
  return closing;
}

/** An app that responds with these statuses in turn, and the bodies it was sent. */
export function appResponding(...statuses: number[]): { app: Express; bodies: string[] } {
  const bodies: string[] = [];
  const app = express();
  app.use(express.text({ type: () => true }), (request, response) => {
    bodies.push(`${request.method} ${request.path} ${request.get('content-type') ?? ''} ${String(request.body)}`);
    response.sendStatus(statuses[Math.min(bodies.length, statuses.length) - 1] ?? 200);
  });
  return { app, bodies };
}
