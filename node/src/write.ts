import { abortSignal, checkText, flag, object, oneOf, pathBytes, whole, wrong, type PathLike } from './arguments.js';
import { fromDocument, fromNative, type CalveError } from './errors.js';
import { bulk, native, type Handle, type WriteSession, type WriteWish } from './native.js';
import type { WriteReceipt } from './receipts.js';
import { watched } from './clone.js';

/** What will be in a file; a string is written as UTF-8. */
export type Contents = string | Uint8Array;
/** A path relative to the root, and what will be in the file. */
export type Entry = readonly [path: string | Uint8Array, contents: Contents];
/** What to write: an iterable of entries (a `Map`, say), or an object whose keys are paths. */
export type EntriesSync = Iterable<Entry> | Readonly<Record<string, Contents>>;
/** The same; the iterable may also be asynchronous. It is asked for more only as fast as files are written. */
export type Entries = EntriesSync | AsyncIterable<Entry>;

/** How to write. */
export interface WriteOptionsSync {
  /** Worker threads, 1 to 64. By default as many as processors, at most 8, two for each directory, and one for every 16 files; fewer where more gain nothing. */
  concurrency?: number;
  /** Permission bits of new files, less the umask: 0o666. */
  mode?: number;
  /** `w`: what is there is overwritten. `wx`: it is an error. */
  flag?: 'w' | 'wx';
  /** Make directories that are missing, the root too. */
  mkdir?: boolean;
  /** `end`: everything is on the disk when this is done. `each`: each file before its thread goes on. */
  fsync?: 'none' | 'end' | 'each';
  /** Each file appears under its name only when it is complete. */
  atomic?: boolean;
  /** `collect`: go on after an error with one file; the receipt has them all. */
  onError?: 'throw' | 'collect';
}

/** How to write. */
export interface WriteOptions extends WriteOptionsSync {
  /** Ends it. Files that were written stay. */
  signal?: AbortSignal;
}

/** So many entries, or bytes of memory, cross at a time. */
const BATCH_ENTRIES = 1024;
const BATCH_BYTES = 8 << 20;
/**
 * So many of those that all exist beforehand, once the first few batches have shown how many threads are worth it: files of one
 * directory that are far apart get into one batch, and their directory is opened once.
 */
const BATCH_ENTRIES_AT_HAND = 8 * BATCH_ENTRIES;
/** Contents from this size on cross without being copied. What an iterable gives is written before it is asked for more then. */
const ALONE_BYTES = 64 << 10;
/** The same, of entries that all exist beforehand. An iterable may use one buffer again and again. */
const ALONE_BYTES_AT_HAND = 2 << 10;
const ALONE = 0xffffffff;

/** A batch that is being filled. Two take turns: one is written while the other is filled. */
class Batch {
  private contents: Buffer = Buffer.allocUnsafeSlow(256 << 10);
  private paths: Buffer = Buffer.allocUnsafeSlow(64 << 10);
  private lengths = new Uint32Array(2 * BATCH_ENTRIES);
  private most = BATCH_ENTRIES;
  private alone: Uint8Array[] = [];
  private used = 0;
  private pathsUsed = 0;
  private aloneBytes = 0;
  private count = 0;

  private readonly aloneFrom: number;

  constructor(private readonly atHand: boolean) {
    this.aloneFrom = atHand ? ALONE_BYTES_AT_HAND : ALONE_BYTES;
  }

  get isEmpty(): boolean {
    return this.count === 0;
  }

  get isFull(): boolean {
    return this.count === this.most || this.used + this.aloneBytes >= BATCH_BYTES || this.mustBeWritten;
  }

  /** It refers to bytes that may change when the iterable is asked for more. */
  get mustBeWritten(): boolean {
    return !this.atHand && this.alone.length > 0;
  }

  add(entry: Entry, index: number): void {
    if (!Array.isArray(entry) || entry.length !== 2) throw wrong(`entries[${index}]`, 'an array of a path and contents', entry);
    if (this.count === 0) this.beginAt(index);
    const [path, contents] = entry as [unknown, unknown];
    const pathLength = this.addPath(path, index);
    this.lengths[2 * this.count] = pathLength;
    this.lengths[2 * this.count + 1] = this.addContents(contents, index);
    this.pathsUsed += pathLength;
    this.count += 1;
  }

  private beginAt(index: number): void {
    if (!this.atHand || index < BATCH_ENTRIES_AT_HAND || this.most === BATCH_ENTRIES_AT_HAND) return;
    this.most = BATCH_ENTRIES_AT_HAND;
    this.lengths = new Uint32Array(2 * this.most);
  }

  private addPath(path: unknown, index: number): number {
    if (typeof path === 'string') {
      checkText(path, `entries[${index}][0]`);
      this.paths = roomy(this.paths, this.pathsUsed, 3 * path.length);
      return this.paths.write(path, this.pathsUsed);
    }
    if (!(path instanceof Uint8Array)) throw wrong(`entries[${index}][0]`, 'a string or a Uint8Array', path);
    this.paths = roomy(this.paths, this.pathsUsed, path.length);
    this.paths.set(path, this.pathsUsed);
    return path.length;
  }

  private addContents(contents: unknown, index: number): number {
    if (typeof contents === 'string') {
      if (contents.length >= ALONE_BYTES) return this.addAlone(Buffer.from(contents), true);
      this.contents = roomy(this.contents, this.used, 3 * contents.length);
      const length = this.contents.write(contents, this.used);
      this.used += length;
      return length;
    }
    if (!(contents instanceof Uint8Array)) throw wrong(`entries[${index}][1]`, 'a string or a Uint8Array', contents);
    // What exists beforehand takes no more memory for being in a batch.
    if (contents.length >= this.aloneFrom) return this.addAlone(contents, !this.atHand);
    this.contents = roomy(this.contents, this.used, contents.length);
    this.contents.set(contents, this.used);
    this.used += contents.length;
    return contents.length;
  }

  private addAlone(contents: Uint8Array, counts: boolean): number {
    this.alone.push(contents);
    if (counts) this.aloneBytes += contents.length;
    return ALONE;
  }

  private crossing(): [Buffer, Uint32Array, Buffer, Uint8Array[]] {
    const lengths = this.lengths.subarray(0, 2 * this.count);
    return [this.paths.subarray(0, this.pathsUsed), lengths, this.contents.subarray(0, this.used), this.alone];
  }

  async write(session: WriteSession): Promise<void> {
    try {
      await session.write(...this.crossing());
    } finally {
      this.clear();
    }
  }

  writeSync(session: WriteSession): void {
    session.writeSync(...this.crossing());
    this.clear();
  }

  private clear(): void {
    this.alone = [];
    this.used = this.pathsUsed = this.aloneBytes = this.count = 0;
  }
}

/** `buffer`, or a larger one with the same beginning, with room for `more` bytes after `used`. */
function roomy(buffer: Buffer, used: number, more: number): Buffer {
  if (used + more <= buffer.length) return buffer;
  const larger = Buffer.allocUnsafeSlow(Math.max(2 * buffer.length, used + more));
  buffer.copy(larger, 0, 0, used);
  return larger;
}

/**
 * Writes files below the directory `root`, with several threads, and never outside of it: absolute paths, `..` and symlinks on the
 * way are refused. Of two entries with one path the later wins, as in a loop. The bytes of an array, a `Map` or an object are not
 * copied first: leave them alone until the promise is settled. An iterable may use one buffer again and again.
 */
export async function writeFiles(root: PathLike, entries: Entries, options?: WriteOptions): Promise<WriteReceipt> {
  const directory = pathBytes(root, 'root');
  const given = object<WriteOptions>(options);
  const wish = writeWish(given);
  const signal = abortSignal(given.signal);
  const all = iterable(entries, true);
  return watched(signal === undefined ? {} : { signal }, async (handle) => {
    const session = new (bulk().WriteSession)(directory, wish, handle);
    try {
      await writeAll(all, session, handle);
      return receipt(await session.finish());
    } finally {
      session.close();
    }
  });
}

async function writeAll(all: Iterable<Entry> | AsyncIterable<Entry>, session: WriteSession, handle: Handle): Promise<void> {
  let [filling, other] = [new Batch(isAtHand(all)), new Batch(isAtHand(all))];
  let writing: Promise<void> = Promise.resolve();
  const begin = async () => {
    await writing;
    const batch = filling;
    const wait = batch.mustBeWritten;
    [filling, other] = [other, filling];
    writing = batch.write(session);
    // It is waited for before the next begins, and at the end.
    writing.catch(() => {});
    if (wait) await writing;
  };
  let index = 0;
  const take = (entry: Entry): boolean => {
    filling.add(entry, index);
    index += 1;
    return filling.isFull;
  };
  try {
    if (Symbol.asyncIterator in all) {
      for await (const entry of all) {
        if (take(entry)) await begin();
      }
    } else {
      // Without a turn of the microtask queue for each entry.
      for (const entry of all) {
        if (take(entry)) await begin();
      }
    }
    if (!filling.isEmpty) await begin();
    await writing;
  } catch (error) {
    // Also the iterable's own, or a wrong entry: nothing is being written any more when it is thrown.
    handle.cancel();
    await writing.catch(() => {});
    throw error;
  }
}

/** Whether all entries exist already, each with bytes of its own. */
const isAtHand = (all: unknown) => Array.isArray(all) || all instanceof Map;

/** The same as `writeFiles`, and blocks until it is done. */
export function writeFilesSync(root: PathLike, entries: EntriesSync, options?: WriteOptionsSync): WriteReceipt {
  const directory = pathBytes(root, 'root');
  const given = object<WriteOptionsSync>(options);
  if ('signal' in given) throw wrong('options.signal', 'absent: nothing else happens meanwhile', given.signal);
  const wish = writeWish(given);
  const all = iterable(entries, false) as Iterable<Entry>;
  let session: WriteSession | undefined;
  try {
    session = new (bulk().WriteSession)(directory, wish, new (native().Handle)());
    const batch = new Batch(isAtHand(all));
    let index = 0;
    for (const entry of all) {
      batch.add(entry, index);
      index += 1;
      if (batch.isFull) batch.writeSync(session);
    }
    if (!batch.isEmpty) batch.writeSync(session);
    return receipt(session.finishSync());
  } catch (error) {
    throw fromNative(error);
  } finally {
    session?.close();
  }
}

function writeWish(options: WriteOptionsSync): WriteWish {
  const concurrency = whole(options.concurrency, 'concurrency', 1, 64);
  return {
    ...(concurrency === undefined ? {} : { concurrency }),
    mode: whole(options.mode, 'mode', 0, 0o7777) ?? 0o666,
    exclusive: oneOf(options.flag, 'flag', ['w', 'wx'] as const, 'w') === 'wx',
    mkdir: flag(options.mkdir, 'mkdir'),
    fsync: oneOf(options.fsync, 'fsync', ['none', 'end', 'each'] as const, 'none'),
    atomic: flag(options.atomic, 'atomic'),
    collect: oneOf(options.onError, 'onError', ['throw', 'collect'] as const, 'throw') === 'collect',
  };
}

function iterable(entries: unknown, asyncToo: boolean): Iterable<Entry> | AsyncIterable<Entry> {
  const must = asyncToo ? 'an (async) iterable of entries, or an object' : 'an iterable of entries, or an object';
  if (typeof entries !== 'object' || entries === null || entries instanceof Uint8Array) throw wrong('entries', must, entries);
  if (Symbol.iterator in entries) return entries as Iterable<Entry>;
  if (Symbol.asyncIterator in entries) {
    if (!asyncToo) throw wrong('entries', `${must}; only \`writeFiles\` takes an async one`, entries);
    return entries as AsyncIterable<Entry>;
  }
  return Object.entries(entries as Record<string, Contents>);
}

function receipt(answer: string): WriteReceipt {
  const parsed = JSON.parse(answer) as Omit<WriteReceipt, 'failures'> & { failures: { index: number; error: string }[] };
  const failures: { index: number; error: CalveError }[] = parsed.failures.map(({ index, error }) => ({ index, error: fromDocument(error) }));
  return { ...parsed, failures };
}
