import { hasMethods, invalidArgument, notSynchronous } from './checks.js';
import { toPrintable } from './text.js';

/**
 * A schema that produces `T`, of zod, valibot, ArkType or another library that implements Standard Schema. It must be
 * synchronous.
 */
export interface StandardSchema<T> {
  readonly '~standard': {
    readonly validate: (value: unknown) => StandardResult<T> | Promise<StandardResult<T>>;
    readonly types?: { readonly input: unknown; readonly output: T } | undefined;
  };
}

type StandardResult<T> =
  | { readonly value: T; readonly issues?: undefined }
  | { readonly issues: readonly { readonly path?: StandardPath | undefined }[] };

type StandardPath = readonly (PropertyKey | { readonly key: PropertyKey })[];

/** What does not fit, and where. Never contains a value of the input. The receiver makes its strings printable. */
export interface Issue {
  readonly path: readonly PropertyKey[];
  readonly message: string;
}

export function describeIssues(issues: readonly Issue[]): string {
  return issues
    .map(({ path, message }) => toPrintable(path.length === 0 ? message : `${path.map(String).join('.')}: ${message}`))
    .join('; ');
}

/** The method of every zod schema, even of zod/mini. */
interface SafeParser<T> {
  safeParse(
    input: unknown,
  ): { success: true; data: T } | { success: false; error: { readonly issues: readonly ZodIssue[] } };
}

interface ZodIssue extends Issue {
  /** For a union that nothing fits: the issues of each branch, with their paths from the union on. */
  readonly errors?: readonly (readonly ZodIssue[])[];
}

/** Throws INVALID_ARGUMENT if `schema`, the value of `option`, does not have what `parseWith` calls. */
export function requireSchema(option: string, schema: unknown, example?: string): void {
  if (hasMethods((schema as Partial<StandardSchema<unknown>> | null)?.['~standard'], 'validate')) return;
  const expected = 'a schema of zod 3.24 or later, or of another library with Standard Schema';
  throw invalidArgument(option, expected, schema, example);
}

const message = 'Does not fit the schema';

/**
 * Returns what the schema makes from `input`, or the issues. Throws what the schema throws. `option` has the schema.
 */
export function parseWith<T>(
  schema: StandardSchema<T>,
  input: unknown,
  option: 'schema' | 'payload' = 'schema',
): { readonly value: T } | { readonly issues: readonly Issue[] } {
  // By Standard Schema, zod would run a schema that throws once more, and hide the error in a promise.
  if ('safeParse' in schema) {
    const parsed = (schema as unknown as SafeParser<T>).safeParse(input);
    return parsed.success ? { value: parsed.data } : { issues: parsed.error.issues.flatMap(findNearest) };
  }
  const result = schema['~standard'].validate(input);
  if (result instanceof Promise) throw notSynchronous(result, `Expected \`${option}\` to be synchronous.`);
  if (result.issues === undefined) return { value: result.value };
  // valibot and ArkType quote the value in their messages, which could be a phone number. The lists of ArkType are of a
  // class whose `map` returns another one of it.
  return {
    issues: Array.from(result.issues, ({ path = [] }) => ({
      path: Array.from(path, (part) => (typeof part === 'object' ? part.key : part)),
      message,
    })),
  };
}

/**
 * Returns the issues of the branch of a union that fits best: the one whose faults are deepest, because the others
 * mostly lack the event itself. The union's own issue names no field.
 */
function findNearest(issue: ZodIssue): readonly Issue[] {
  const [nearest] = [...(issue.errors ?? [])].sort((one, other) => findDepth(other) - findDepth(one));
  if (nearest === undefined) return [issue];
  return nearest.flatMap(findNearest).map(({ path, message }) => ({ path: [...issue.path, ...path], message }));
}

const findDepth = (issues: readonly ZodIssue[]): number =>
  Math.min(...issues.map(({ path, errors = [] }) => path.length + Math.max(0, ...errors.map(findDepth))));
