import { aborted } from './errors.js';

/** @internal What somebody else's iterable gives, as long as a signal permits waiting for it. */
export class Source<T> {
  private readonly iterator: AsyncIterator<T> | Iterator<T>;
  private giveUp: (() => void) | undefined;
  private readonly stop = () => this.giveUp?.();

  constructor(all: Iterable<T> | AsyncIterable<T>, private readonly signal: AbortSignal | undefined) {
    this.iterator = Symbol.asyncIterator in all ? all[Symbol.asyncIterator]() : all[Symbol.iterator]();
    signal?.addEventListener('abort', this.stop);
  }

  /** Asks for one more. Rejects when the signal is aborted meanwhile; what is asked for then is not waited for. */
  async next(): Promise<IteratorResult<T, unknown>> {
    const { iterator, signal } = this;
    if (signal === undefined) return iterator.next();
    try {
      return await new Promise<IteratorResult<T, unknown>>((resolve, reject) => {
        this.giveUp = () => reject(aborted(signal));
        if (signal.aborted) this.giveUp();
        else Promise.resolve(iterator.next()).then(resolve, reject);
      });
    } finally {
      this.giveUp = undefined;
    }
  }

  /** Tells the iterable that no more is wanted. After an abort it is not waited for: it may never answer. */
  async close(): Promise<void> {
    const closing = Promise.resolve(this.iterator.return?.());
    if (this.signal?.aborted) closing.catch(() => {});
    else await closing;
  }

  /** Listens to the signal no more. */
  leave(): void {
    this.signal?.removeEventListener('abort', this.stop);
  }

  /** Calls `use` with each, and closes the iterable when that throws, as a loop does. */
  async each(use: (one: T) => Promise<void> | undefined): Promise<void> {
    let inUse = false;
    try {
      for (let next = await this.next(); !next.done; next = await this.next()) {
        inUse = true;
        const waiting = use(next.value as T);
        if (waiting !== undefined) await waiting;
        inUse = false;
      }
    } catch (error) {
      if (inUse || this.signal?.aborted) await this.close().catch(() => {});
      throw error;
    } finally {
      this.leave();
    }
  }
}
