import type { Database } from './database.js';
import { CalveError } from './errors.js';

const KEY = Symbol.for('calve.database');

/** @internal Makes it the server that tests with this global object and environment find. */
export function lead(global: object, environment: Record<string, string | undefined>, database: Database): void {
  Object.defineProperty(global, KEY, { value: database, configurable: true });
  for (const [name, value] of Object.entries(database.environment)) {
    if (value === null) delete environment[name];
    else environment[name] = value;
  }
}

/** @internal Test runners print the message of an error, and not its hint. */
export async function withHint<T>(work: Promise<T>): Promise<T> {
  return work.catch((error: unknown) => {
    if (error instanceof CalveError && error.hint !== undefined) error.message += `\nhint: ${error.hint}`;
    throw error;
  });
}

/** The database server of this file of tests. It begins as its template is; `reset()` puts it back in between. */
export function database(): Database {
  const found = (globalThis as { [KEY]?: Database })[KEY];
  if (found === undefined) throw new Error("no database server was started for these tests: add calve to the test runner's configuration");
  return found;
}
