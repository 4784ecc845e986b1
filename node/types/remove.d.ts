import { type PathLike } from './arguments.js';
import type { RemoveReceipt } from './receipts.js';
import { type Progress } from './watch.js';
/** How to remove. */
export interface RemoveOptionsSync {
    /** Wait until everything is deleted. By default it is only out of sight, and a background process deletes it. */
    wait?: boolean | undefined;
    /** A missing `path` is no error. */
    force?: boolean | undefined;
}
/** How to remove. */
export interface RemoveOptions extends RemoveOptionsSync {
    /** Ends the waiting: what is out of sight already is deleted in the background. */
    signal?: AbortSignal | undefined;
    /** Called about twenty times a second with `wait`, and once at the end. What it throws ends the waiting and rejects the promise. */
    onProgress?: ((progress: Progress) => void | Promise<void>) | undefined;
}
/** Removes a tree at once, whatever its size; a background process deletes it. */
export declare function removeTree(path: PathLike, options?: RemoveOptions): Promise<RemoveReceipt>;
/** The same as `removeTree`, and blocks until it is done. */
export declare function removeTreeSync(path: PathLike, options?: RemoveOptionsSync): RemoveReceipt;
/** @internal */
export declare function parent(path: Buffer): Buffer;
/** @internal Starts a process that deletes the trash of `directory`; where none can be started, a thread does. */
export declare function reap(directory: Buffer): void;
/** @internal Starts a process that builds the spares that are missing. Where none can be started, a later one builds them. */
export declare function refill(): void;
