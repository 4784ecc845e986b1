/** @internal What somebody else's iterable gives, as long as a signal permits waiting for it. */
export declare class Source<T> {
    private readonly signal;
    private readonly iterator;
    private giveUp;
    private readonly stop;
    constructor(all: Iterable<T> | AsyncIterable<T>, signal: AbortSignal | undefined);
    /** Asks for one more. Rejects when the signal is aborted meanwhile; what is asked for then is not waited for. */
    next(): Promise<IteratorResult<T, unknown>>;
    /** Tells the iterable that no more is wanted. After an abort it is not waited for: it may never answer. */
    close(): Promise<void>;
    /** Listens to the signal no more. */
    leave(): void;
    /** Calls `use` with each, and closes the iterable when that throws, as a loop does. */
    each(use: (one: T) => Promise<void> | undefined): Promise<void>;
}
