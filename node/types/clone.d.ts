import { type PathLike } from './arguments.js';
import { type Handle } from './native.js';
import type { CloneReceipt, ProbeReceipt, RemoveReceipt } from './receipts.js';
/** A way to clone. */
export type Strategy = 'snapshot' | 'clonefile' | 'reflink' | 'copy' | 'hardlink';
/** A property without which no clone is made. */
export type Requirement = 'instant' | 'cow' | 'stable';
/** How far it is. */
export interface Progress {
    entries: number;
    bytes: number;
}
/** As the options of `calve cp`. */
export interface CloneOptionsSync {
    /** This one or none. `hardlink` does not make independent trees. */
    strategy?: Strategy;
    /** Fail unless these hold. */
    require?: Requirement | Requirement[];
    /** Globs of entries to leave out, as in .gitignore. */
    exclude?: string | string[];
    /** Exchange an existing target for the clone in one step. */
    replace?: boolean;
    /** Leave other file systems below `src` out. */
    oneFileSystem?: boolean;
    /** Worker threads, 1 to 64; by default as many as processors, at most 8. */
    threads?: number;
    /** Write everything to the disk before the clone gets its name. */
    sync?: boolean;
    /** Compare contents and metadata before the clone gets its name. */
    verify?: boolean;
}
/** As the options of `calve cp`, and what only makes sense while something else goes on. */
export interface CloneOptions extends CloneOptionsSync {
    /** Ends it: nothing is left, and the promise is rejected when that is so. */
    signal?: AbortSignal;
    /** Called about twenty times a second, and once at the end, when the clone is there. What it throws ends the clone and rejects the promise. */
    onProgress?: (progress: Progress) => void;
}
/** How to remove. */
export interface RemoveOptions {
    /** Wait until everything is deleted. By default it is only out of sight, and a background process deletes it. */
    wait?: boolean;
    signal?: AbortSignal;
    onProgress?: (progress: Progress) => void;
}
/**
 * Makes `dst` an independent, writable copy of `src`, which may be a directory, a file, a symlink or a FIFO. `dst` is exactly what
 * will be there; its parent must exist. It is absent or complete at any time.
 */
export declare function cloneTree(src: PathLike, dst: PathLike, options?: CloneOptions): Promise<CloneReceipt>;
/** The same for one file: a directory is refused. */
export declare function cloneFile(src: PathLike, dst: PathLike, options?: CloneOptions): Promise<CloneReceipt>;
/** The same as `cloneTree`, and blocks until it is done. */
export declare function cloneTreeSync(src: PathLike, dst: PathLike, options?: CloneOptionsSync): CloneReceipt;
/** Removes a tree at once, whatever its size; a background process deletes it. A missing `path` is an error. */
export declare function removeTree(path: PathLike, options?: RemoveOptions): Promise<RemoveReceipt>;
/** What a place, or a pair of places, can do, found out by trying. */
export declare function probe(src: PathLike, dst?: PathLike): Promise<ProbeReceipt>;
/** @internal Runs `work` with a handle that the signal ends, and reports how far it is. */
export declare function watched<T>(options: {
    signal?: AbortSignal;
    onProgress?: (progress: Progress) => void;
}, work: (handle: Handle) => Promise<T>): Promise<T>;
