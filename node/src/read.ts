import { abortSignal, object, oneOf, pathBytes, whole, wrong, type PathLike } from './arguments.js';
import { fromDocument, type CalveError } from './errors.js';
import { native } from './native.js';
import { Source } from './source.js';
import { watched } from './watch.js';

/** How to read. */
export interface ReadOptions {
  /** Worker threads, 1 to 64. By default as many as processors, at most 8, and one for every 16 files. */
  concurrency?: number | undefined;
  /** `collect`: the error takes the place of the contents, and reading goes on. */
  onError?: 'throw' | 'collect' | undefined;
  /** Ends it. */
  signal?: AbortSignal | undefined;
}

const BATCH_PATHS = 512;
const ENOUGH_BYTES = 16 << 20;

/**
 * Reads files with several threads, in the order of `paths`: `for await (const [path, contents] of readFiles(paths))`. While one
 * batch (512 files or 16 MiB) is being used the next is read, and no more, so that there may be more than fits into memory.
 */
export function readFiles<P extends PathLike>(
  paths: Iterable<P> | AsyncIterable<P>, options: ReadOptions & { onError: 'collect' },
): AsyncGenerator<[path: P, contents: Buffer | CalveError], void, undefined>;
export function readFiles<P extends PathLike>(
  paths: Iterable<P> | AsyncIterable<P>, options?: ReadOptions,
): AsyncGenerator<[path: P, contents: Buffer], void, undefined>;
export function readFiles<P extends PathLike>(
  paths: Iterable<P> | AsyncIterable<P>, options?: ReadOptions,
): AsyncGenerator<[path: P, contents: Buffer | CalveError], void, undefined> {
  const given = object<ReadOptions>(options, ['concurrency', 'onError', 'signal']);
  const concurrency = whole(given.concurrency, 'concurrency', 1, 64);
  const collect = oneOf(given.onError, 'onError', ['throw', 'collect'] as const, 'throw') === 'collect';
  const signal = abortSignal(given.signal);
  if (typeof paths !== 'object' || paths === null || ArrayBuffer.isView(paths)) throw wrong('paths', 'an (async) iterable of paths', paths);
  if (!(Symbol.iterator in paths) && !(Symbol.asyncIterator in paths)) throw wrong('paths', 'an (async) iterable of paths', paths);
  return read(paths, concurrency, collect, signal);
}

async function* read<P extends PathLike>(
  paths: Iterable<P> | AsyncIterable<P>, concurrency: number | undefined, collect: boolean, signal: AbortSignal | undefined,
): AsyncGenerator<[P, Buffer | CalveError], void, undefined> {
  type Wanted = { path: P; bytes: Buffer };
  type Some = { done: Wanted[]; rest: Wanted[]; contents: (Buffer | string)[] };
  const start = async (wanted: Wanted[]): Promise<Some> => {
    const bytes = wanted.map((one) => one.bytes);
    const contents = await watched({ signal }, (handle) => native().startRead(bytes, concurrency, ENOUGH_BYTES, handle));
    return { done: wanted.slice(0, contents.length), rest: wanted.slice(contents.length), contents };
  };
  const source = new Source(paths, signal);
  let [index, ended] = [0, false];
  const more = async (wanted: Wanted[]): Promise<Wanted[]> => {
    while (!ended && wanted.length < BATCH_PATHS) {
      const next = await source.next();
      if (next.done) ended = true;
      else wanted.push({ path: next.value, bytes: pathBytes(next.value, `paths[${index}]`) });
      index += 1;
    }
    return wanted;
  };
  try {
    let wanted = await more([]);
    let reading = wanted.length > 0 ? start(wanted) : undefined;
    while (reading !== undefined) {
      const some: Some = await reading;
      wanted = await more(some.rest);
      reading = wanted.length > 0 ? start(wanted) : undefined;
      // Thrown when it is its turn.
      reading?.catch(() => {});
      for (const [position, one] of some.done.entries()) {
        const contents = some.contents[position] as Buffer | string;
        if (typeof contents !== 'string') yield [one.path, contents];
        else if (collect) yield [one.path, fromDocument(contents)];
        else throw fromDocument(contents);
      }
    }
  } finally {
    source.leave();
    if (!ended) await source.close();
  }
}
