/**
 * Instant, isolated, writable copies of files and directories, by the fastest method that the machine really offers, and many
 * small files written or read at once. Nothing here blocks the event loop or occupies libuv's threads, but what ends in `Sync`.
 */
export { CalveError } from './errors.js';
export type { Code } from './errors.js';
export { cloneFile, cloneFileSync, cloneTree, cloneTreeSync, probe } from './clone.js';
export type { CloneOptions, CloneOptionsSync } from './clone.js';
export { Database, startDatabase } from './database.js';
export type { StartOptions } from './database.js';
export { database } from './worker.js';
export { isSupported } from './platform.js';
export { removeTree, removeTreeSync } from './remove.js';
export type { RemoveOptions, RemoveOptionsSync } from './remove.js';
export type { Progress } from './watch.js';
export { writeFiles, writeFilesSync } from './write.js';
export type { Contents, Entries, EntriesSync, Entry, WriteOptions, WriteOptionsSync } from './write.js';
export { readFiles } from './read.js';
export type { ReadOptions } from './read.js';
export type { PathLike } from './arguments.js';
export type * from './receipts.js';
