import { type PathLike } from './arguments.js';
import { type CloneReceipt, type ProbeReceipt, type Requirement, type Strategy } from './receipts.js';
import { type Progress } from './watch.js';
/** As the options of `calve cp`. */
export interface CloneOptionsSync {
    /** This one or none. `hardlink` does not make independent trees. */
    strategy?: Strategy | undefined;
    /** Fail unless these hold. */
    require?: Requirement | Requirement[] | undefined;
    /** Patterns of entries to leave out, as the lines of a .gitignore: the last that matches decides, and `!keep` takes back. */
    exclude?: string | string[] | undefined;
    /** Exchange an existing target for the clone in one step. */
    replace?: boolean | undefined;
    /** Leave other file systems below `src` out. */
    oneFileSystem?: boolean | undefined;
    /** Worker threads, 1 to 64; by default as many as processors, at most 8. */
    threads?: number | undefined;
    /** Write everything to the disk before the clone gets its name. */
    sync?: boolean | undefined;
    /** Compare contents and metadata before the clone gets its name. */
    verify?: boolean | undefined;
}
/** As the options of `calve cp`, and what only makes sense while something else goes on. */
export interface CloneOptions extends CloneOptionsSync {
    /** Ends it: nothing is left, and the promise is rejected with an `AbortError` when that is so. */
    signal?: AbortSignal | undefined;
    /**
     * Called about twenty times a second, and once at the end, right before the clone gets its name. What it throws ends the clone:
     * nothing is left, and the promise is rejected with it. So does a promise of its that is rejected; the clone gets its name when
     * the promises that it has returned are settled.
     */
    onProgress?: ((progress: Progress) => void | Promise<void>) | undefined;
}
/**
 * Makes `dst` an independent, writable copy of `src`, which may be a directory, a file, a symlink or a FIFO. `dst` is exactly what
 * will be there; its parent must exist. It is absent or complete at any time.
 *
 * `src` may be `@NAME`, a template that `calve template create` has made; a path that begins with @ is written `./@NAME`.
 */
export declare function cloneTree(src: PathLike, dst: PathLike, options?: CloneOptions): Promise<CloneReceipt>;
/** Clones one file. Refuses a directory. */
export declare function cloneFile(src: PathLike, dst: PathLike, options?: CloneOptions): Promise<CloneReceipt>;
/** Clones as `cloneTree` does, and blocks until it is done. */
export declare function cloneTreeSync(src: PathLike, dst: PathLike, options?: CloneOptionsSync): CloneReceipt;
/** Clones as `cloneFile` does, and blocks until it is done. */
export declare function cloneFileSync(src: PathLike, dst: PathLike, options?: CloneOptionsSync): CloneReceipt;
/** Tries what a place, or a pair of places, can do. */
export declare function probe(src: PathLike, dst?: PathLike): Promise<ProbeReceipt>;
