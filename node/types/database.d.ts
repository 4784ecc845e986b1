import type { DbServer } from './receipts.js';
/** How to start a server. */
export interface StartOptions {
    /** What `calve db list` calls it. By default the template's name, and some letters. */
    name?: string | undefined;
    /** Whether it also listens on 127.0.0.1, with a password; a number is the port. */
    tcp?: boolean | number | undefined;
    /** The server ends when this process ends, however it does. By default this one. Of several, the first that ends counts. */
    ownerPid?: number | readonly number[] | undefined;
}
/** A running database server, and how it is reached. It ends by `stop()`, with its `await using` block, or with its owner. */
export declare class Database {
    /** What `calve db list` calls it. */
    readonly name: string;
    /** `postgres`, `mariadb`, `mysql`, `redis` or `valkey`. */
    readonly engine: string;
    /** The address by the private socket. */
    readonly url: string;
    /** The address by TCP, with the password. Null without `tcp`. */
    readonly tcpUrl: string | null;
    /** For PostgreSQL the directory of the socket, which drivers take for a host; for MariaDB and MySQL `localhost`. */
    readonly host: string;
    /** The port, which for PostgreSQL is part of the socket's name. */
    readonly port: number;
    /** The socket. */
    readonly socket: string;
    /** The superuser. */
    readonly user: string;
    /** For TCP; the socket needs none. */
    readonly password: string | null;
    /** A database that always exists. */
    readonly database: string;
    /** The port on 127.0.0.1. Null without `tcp`. */
    readonly tcpPort: number | null;
    /** The variables by which programs find this server and no other. Null: the variable must not be set. */
    readonly environment: Readonly<Record<string, string | null>>;
    /** @internal */
    constructor(document: DbServer);
    /** Puts it back to its template, or to a mark. The address stays; sessions are cut off. */
    reset(options?: {
        to?: string | undefined;
    }): Promise<void>;
    /** Keeps the present state as a mark, to which `reset` goes back. */
    mark(name: string): Promise<void>;
    /** Ends it. Its files are gone. */
    stop(): Promise<void>;
    /** The same as `stop()`, for `await using`. */
    [Symbol.asyncDispose](): Promise<void>;
}
/** Starts a database server on a clone of a template. Resolves when the server answers. */
export declare function startDatabase(template: string, options?: StartOptions): Promise<Database>;
/** @internal Runs `calve db` and returns the document that it prints. */
export declare function printed(words: string[]): Promise<unknown>;
/** @internal Removes marks of a server, for which `calve db` prints no document. */
export declare function unmark(server: string, marks: string[]): Promise<void>;
