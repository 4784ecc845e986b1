import { type PathLike } from './arguments.js';
import type { WriteReceipt } from './receipts.js';
/** What will be in a file; a string is written as UTF-8. */
export type Contents = string | ArrayBufferView | ArrayBufferLike;
/** A path relative to the root, and what will be in the file. */
export type Entry = readonly [path: string | Uint8Array, contents: Contents];
/** What to write: an iterable of entries (a `Map`, say), or an object whose keys are paths. */
export type EntriesSync = Iterable<Entry> | Readonly<Record<string, Contents>>;
/** The same; the iterable may also be asynchronous. It is asked for more only as fast as files are written. */
export type Entries = EntriesSync | AsyncIterable<Entry>;
/** How to write. */
export interface WriteOptionsSync {
    /** Worker threads, 1 to 64. By default as many as processors, at most 8, two for each directory, and one for every 16 files; fewer where more gain nothing. */
    concurrency?: number | undefined;
    /** Permission bits of new files, less the umask: 0o666. A string is octal. */
    mode?: number | string | undefined;
    /** `w`: what is there is overwritten. `wx`: it is an error. */
    flag?: 'w' | 'wx' | undefined;
    /** Make directories that are missing, the root too. */
    mkdir?: boolean | undefined;
    /** `end`: everything is on the disk when this is done. `each`: each file before its thread goes on. */
    fsync?: 'none' | 'end' | 'each' | undefined;
    /** Each file appears under its name only when it is complete. */
    atomic?: boolean | undefined;
    /** `collect`: go on after an error with one file; the receipt has them all. */
    onError?: 'throw' | 'collect' | undefined;
}
/** How to write. */
export interface WriteOptions extends WriteOptionsSync {
    /** Ends it. Files that were written stay. */
    signal?: AbortSignal | undefined;
}
/**
 * Writes files below the directory `root`, with several threads, and never outside of it: absolute paths, `..` and symlinks on the
 * way are refused. Of two entries with one path the later wins, as in a loop. Bytes are copied before they are written, but only as
 * far ahead as that takes place: what a buffer of an array, a `Map` or an object holds until its turn comes is what is written.
 * An iterable may use one buffer again and again.
 */
export declare function writeFiles(root: PathLike, entries: Entries, options?: WriteOptions): Promise<WriteReceipt>;
/** The same as `writeFiles`, and blocks until it is done. Nothing is copied that need not be. */
export declare function writeFilesSync(root: PathLike, entries: EntriesSync, options?: WriteOptionsSync): WriteReceipt;
