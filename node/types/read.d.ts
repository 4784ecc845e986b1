import { type PathLike } from './arguments.js';
import { type CalveError } from './errors.js';
/** How to read. */
export interface ReadOptions {
    /** Worker threads, 1 to 64. By default as many as processors, at most 8, and one for every 16 files. */
    concurrency?: number | undefined;
    /** `collect`: the error takes the place of the contents, and reading goes on. */
    onError?: 'throw' | 'collect' | undefined;
    /** Ends it. */
    signal?: AbortSignal | undefined;
}
/**
 * Reads files with several threads, in the order of `paths`: `for await (const [path, contents] of readFiles(paths))`. While one
 * batch (512 files or 16 MiB) is being used the next is read, and no more, so that there may be more than fits into memory.
 */
export declare function readFiles<P extends PathLike>(paths: Iterable<P> | AsyncIterable<P>, options: ReadOptions & {
    onError: 'collect';
}): AsyncGenerator<[path: P, contents: Buffer | CalveError], void, undefined>;
export declare function readFiles<P extends PathLike>(paths: Iterable<P> | AsyncIterable<P>, options?: ReadOptions): AsyncGenerator<[path: P, contents: Buffer], void, undefined>;
