import { abortSignal, callback } from './arguments.js';
import { aborted } from './errors.js';
import { done, native, type Failure, type Handle } from './native.js';

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

/** What `onProgress` has thrown, or what a promise of its has been rejected with. */
class Reports {
  thrown: { error: unknown } | undefined;
  private readonly unsettled = new Set<Promise<void>>();

  constructor(private readonly handle: Handle, private readonly onProgress: Exclude<Watch['onProgress'], undefined>) {}

  make(): void {
    if (this.thrown !== undefined) return;
    try {
      const answer: unknown = this.onProgress({ entries: this.handle.entries, bytes: this.handle.bytes });
      if (typeof (answer as { then?: unknown } | null | undefined)?.then === 'function') this.await(answer);
    } catch (error) {
      this.end(error);
    }
  }

  private await(answer: unknown): void {
    const settled: Promise<void> = Promise.resolve(answer).then(() => {}, (error) => this.end(error)).then(() => {
      this.unsettled.delete(settled);
    });
    this.unsettled.add(settled);
  }

  private end(error: unknown): void {
    this.thrown ??= { error };
    this.handle.cancel();
  }

  /** The last one, and what earlier ones still do. */
  async last(): Promise<void> {
    this.make();
    await Promise.all(this.unsettled);
  }
}

/**
 * @internal Runs `work` with a handle that the signal ends, and reports how far it is. `ask`, if `work` has somebody who calls it,
 * makes the last report before it is too late to end the work; otherwise that is made after it.
 */
export async function watched<T>(
  options: Watch, work: (handle: Handle, ask: (() => void) | undefined) => Promise<T | Failure>,
): Promise<T> {
  const signal = abortSignal(options.signal);
  const onProgress = callback<Exclude<Watch['onProgress'], undefined>>(options.onProgress, 'onProgress');
  if (signal?.aborted) throw aborted(signal);
  const handle = new (native().Handle)();
  const reports = onProgress && new Reports(handle, onProgress);
  let asked = false;
  const ask = reports && (() => {
    asked = true;
    void reports.last().then(() => handle.goOn());
  });
  const timer = reports && setInterval(() => reports.make(), 50);
  const stop = () => handle.cancel();
  signal?.addEventListener('abort', stop, { once: true });
  try {
    const result = done(await work(handle, ask));
    // It is done all the same, but an error must not vanish.
    if (!asked) await reports?.last();
    if (reports?.thrown !== undefined) throw reports.thrown.error;
    return result;
  } catch (error) {
    if (reports?.thrown !== undefined) throw reports.thrown.error;
    const code = (error as { code?: unknown } | null | undefined)?.code;
    throw signal?.aborted && code === 'ABORT_ERR' ? aborted(signal) : error;
  } finally {
    clearInterval(timer);
    signal?.removeEventListener('abort', stop);
  }
}
