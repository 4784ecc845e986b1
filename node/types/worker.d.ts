import type { Database } from './database.js';
/** @internal Makes it the server that tests with this global object and environment find. */
export declare function lead(global: object, environment: Record<string, string | undefined>, database: Database): void;
/** @internal Test runners print the message of an error, and not its hint. */
export declare function withHint<T>(work: Promise<T>): Promise<T>;
/** The database server of this file of tests. It begins as its template is; `reset()` puts it back in between. */
export declare function database(): Database;
