import { type PathLike } from './arguments.js';
import type { WriteReceipt } from './receipts.js';
/** What will be in a file; a string is written as UTF-8. */
export type Contents = string | Uint8Array;
/** A path relative to the root, and what will be in the file. */
export type Entry = readonly [path: string | Uint8Array, contents: Contents];
/** What to write: an iterable of entries (a `Map`, say), or an object whose keys are paths. */
export type EntriesSync = Iterable<Entry> | Readonly<Record<string, Contents>>;
/** The same; the iterable may also be asynchronous. It is asked for more only as fast as files are written. */
export type Entries = EntriesSync | AsyncIterable<Entry>;
/** How to write. */
export interface WriteOptionsSync {
    /** Worker threads, 1 to 64. By default as many as processors, at most 8, two for each directory, and one for every 16 files; fewer where more gain nothing. */
    concurrency?: number;
    /** Permission bits of new files, less the umask: 0o666. */
    mode?: number;
    /** `w`: what is there is overwritten. `wx`: it is an error. */
    flag?: 'w' | 'wx';
    /** Make directories that are missing, the root too. */
    mkdir?: boolean;
    /** `end`: everything is on the disk when this is done. `each`: each file before its thread goes on. */
    fsync?: 'none' | 'end' | 'each';
    /** Each file appears under its name only when it is complete. */
    atomic?: boolean;
    /** `collect`: go on after an error with one file; the receipt has them all. */
    onError?: 'throw' | 'collect';
}
/** How to write. */
export interface WriteOptions extends WriteOptionsSync {
    /** Ends it. Files that were written stay. */
    signal?: AbortSignal;
}
/**
 * Writes files below the directory `root`, with several threads, and never outside of it: absolute paths, `..` and symlinks on the
 * way are refused. Of two entries with one path the later wins, as in a loop. The bytes of an array, a `Map` or an object are not
 * copied first: leave them alone until the promise is settled. An iterable may use one buffer again and again.
 */
export declare function writeFiles(root: PathLike, entries: Entries, options?: WriteOptions): Promise<WriteReceipt>;
/** The same as `writeFiles`, and blocks until it is done. */
export declare function writeFilesSync(root: PathLike, entries: EntriesSync, options?: WriteOptionsSync): WriteReceipt;
