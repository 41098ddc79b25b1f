/** A host of examples/hosts, started as its users start it. */
export interface Host {
  readonly name: string;
  /** The file in examples/hosts that a reader copies. */
  readonly file: string;
  /** The package whose version the page shows: the key in the `packages` of package-lock.json. */
  readonly versionOf?: string;
  /** Starts what the host needs beside it, with the variables that tell where it is. */
  readonly startServers?: () => Promise<{ readonly env: NodeJS.ProcessEnv; stop(): Promise<void> }>;
  /** What runs before the host starts. */
  readonly build?: () => readonly string[];
  /** The program and its arguments. It serves on the port of the variable PORT. */
  readonly command: (port: number) => readonly string[];
  /** Why a response differs from that of the listener, by the name of the case. */
  readonly differs?: Readonly<Record<string, string>>;
}
