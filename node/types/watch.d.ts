import { type Failure, type Handle } from './native.js';
/** How far it is. */
export interface Progress {
    entries: number;
    bytes: number;
}
/** @internal */
export interface Watch {
    signal?: AbortSignal | undefined;
    onProgress?: ((progress: Progress) => void | Promise<void>) | undefined;
}
/**
 * @internal Runs `work` with a handle that the signal ends, and reports how far it is. `ask`, if `work` has somebody who calls it,
 * makes the last report before it is too late to end the work; otherwise that is made after it.
 */
export declare function watched<T>(options: Watch, work: (handle: Handle, ask: (() => void) | undefined) => Promise<T | Failure>): Promise<T>;
