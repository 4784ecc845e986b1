import { setImmediate } from 'node:timers/promises';
import { types } from 'node:util';
import { abortSignal, bytesOf, checkText, flag, invalid, object, oneOf, pathBytes, whole, wrong, type PathLike } from './arguments.js';
import { fromDocument, type CalveError, type Document } from './errors.js';
import { done, native, type Handle, type WriteSession, type WriteRequest } from './native.js';
import { Source } from './source.js';
import type { WriteReceipt } from './receipts.js';
import { watched } from './watch.js';

/** What will be in a file; a string is written as UTF-8. */
export type Contents = string | ArrayBufferView | ArrayBufferLike;
/** A path relative to the root, and what will be in the file. */
export type Entry = readonly [path: string | Uint8Array, contents: Contents];
/** What to write: an iterable of entries (a `Map`, say), or an object whose keys are paths. */
export type EntriesSync = Iterable<Entry> | Readonly<Record<string, Contents>>;
/** The same; the iterable may also be asynchronous. It is asked for more only as fast as files are written. */
export type Entries = EntriesSync | AsyncIterable<Entry>;

/** How to write. */
export interface WriteOptionsSync {
  /** Worker threads, 1 to 64. By default as many as processors, at most 8, two for each directory, and one for every 16 files; fewer where more gain nothing. */
  concurrency?: number | undefined;
  /** Permission bits of new files, less the umask: 0o666. A string is octal. */
  mode?: number | string | undefined;
  /** `w`: what is there is overwritten. `wx`: it is an error. */
  flag?: 'w' | 'wx' | undefined;
  /** Make directories that are missing, the root too. */
  mkdir?: boolean | undefined;
  /** `end`: everything is on the disk when this is done. `each`: each file before its thread goes on. */
  fsync?: 'none' | 'end' | 'each' | undefined;
  /** Each file appears under its name only when it is complete. */
  atomic?: boolean | undefined;
  /** `collect`: go on after an error with one file; the receipt has them all. */
  onError?: 'throw' | 'collect' | undefined;
}

/** How to write. */
export interface WriteOptions extends WriteOptionsSync {
  /** Ends it. Files that were written stay. */
  signal?: AbortSignal | undefined;
}

const NAMES = ['concurrency', 'mode', 'flag', 'mkdir', 'fsync', 'atomic', 'onError'] as const;

/** So many entries, or bytes of memory, cross at a time. */
const BATCH_ENTRIES = 1024;
const BATCH_BYTES = 8 << 20;
/**
 * So many of those that all exist beforehand, once the first few batches have shown how many threads are worth it: files of one
 * directory that are far apart get into one batch, and their directory is opened once.
 */
const BATCH_ENTRIES_AT_HAND = 8 * BATCH_ENTRIES;
/** Contents from this size on are copied into a buffer of their own, strings from a smaller one on. */
const ALONE_BYTES_OWNED = 1 << 20;
const ALONE_BYTES = 64 << 10;
/**
 * While everything waits, contents from this size on cross without being copied; those of an iterable only from `ALONE_BYTES` on,
 * and they are written before it is asked for more, for it may use one buffer again and again.
 */
const ALONE_BYTES_AT_HAND = 2 << 10;
const ALONE = 0xffffffff;
/** Room for a whole batch, at once: memory that is touched for the first time costs more than what is copied into it. */
const CONTENTS_BYTES = BATCH_BYTES + ALONE_BYTES_OWNED;
/** The event loop turns after so much has been copied. */
const PIECE_BYTES = 4 << 20;

/** Where contents of a batch are: somebody else's memory, or a copy of it. */
interface Alone {
  index: number;
  /** Of the caller. */
  given: Uint8Array;
  length: number;
  /** Of the package, still to be filled; `undefined` where `given` itself crosses. */
  copy: Buffer | undefined;
}

/**
 * A batch that is being filled. Two take turns: one is written while the other is filled.
 *
 * What crosses while other code runs (`owns`) is the package's own memory. A buffer of the caller's may be transferred, shrunk or
 * changed at any time, and Node-API has nothing that would keep its memory.
 */
class Batch {
  private contents: Buffer = Buffer.allocUnsafeSlow(256 << 10);
  private paths: Buffer = Buffer.allocUnsafeSlow(64 << 10);
  private lengths = new Uint32Array(2 * BATCH_ENTRIES);
  private most = BATCH_ENTRIES;
  private alone: Alone[] = [];
  private used = 0;
  private pathsUsed = 0;
  private aloneBytes = 0;
  private count = 0;

  private readonly aloneFrom: number;

  constructor(private readonly atHand: boolean, private readonly owns: boolean) {
    if (owns) this.aloneFrom = ALONE_BYTES_OWNED;
    else this.aloneFrom = atHand ? ALONE_BYTES_AT_HAND : ALONE_BYTES;
  }

  get isEmpty(): boolean {
    return this.count === 0;
  }

  get isFull(): boolean {
    return this.count === this.most || this.used + this.aloneBytes >= BATCH_BYTES || this.mustBeWritten;
  }

  /** It refers to bytes that may change when the iterable is asked for more. */
  private get mustBeWritten(): boolean {
    return this.owns ? this.alone.some(isLarge) : !this.atHand && this.alone.length > 0;
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
    if (!types.isUint8Array(path)) throw wrong(`entries[${index}][0]`, 'a string or a Uint8Array', path);
    const bytes = bytesOf(path, () => `entries[${index}][0]`) as Uint8Array;
    this.paths = roomy(this.paths, this.pathsUsed, bytes.byteLength);
    this.paths.set(bytes, this.pathsUsed);
    return bytes.byteLength;
  }

  private addContents(contents: unknown, index: number): number {
    if (typeof contents === 'string') {
      if (contents.length >= ALONE_BYTES) return this.addAlone(Buffer.from(contents), index, undefined);
      this.contents = roomy(this.contents, this.used, 3 * contents.length, CONTENTS_BYTES);
      const length = this.contents.write(contents, this.used);
      this.used += length;
      return length;
    }
    const name = () => `entries[${index}][1]`;
    const bytes = bytesOf(contents, name);
    if (bytes === undefined) throw wrong(name(), 'a string, a Buffer, a typed array, a DataView or an ArrayBuffer', contents);
    const length = bytes.byteLength;
    if (length >= this.aloneFrom) return this.addAlone(bytes, index, this.owns ? Buffer.allocUnsafeSlow(length) : undefined);
    this.contents = roomy(this.contents, this.used, length, CONTENTS_BYTES);
    this.contents.set(bytes, this.used);
    this.used += length;
    return length;
  }

  private addAlone(given: Uint8Array, index: number, copy: Buffer | undefined): number {
    const one = { index, given, length: given.byteLength, copy };
    this.alone.push(one);
    // What exists beforehand takes no more memory for being in a batch.
    if (this.owns || !this.atHand) this.aloneBytes += one.length;
    // Now, unless it takes long.
    if (!isLarge(one)) copy?.set(given);
    return ALONE;
  }

  /** Copies what takes long, piece by piece, before the iterable is asked for more. */
  async copyLarge(): Promise<void> {
    for (const one of this.alone) {
      if (one.copy === undefined || !isLarge(one)) continue;
      for (let at = 0; at < one.length; at += PIECE_BYTES) {
        if (at > 0) await setImmediate();
        checkStill(one);
        one.copy.set(one.given.subarray(at, at + PIECE_BYTES), at);
      }
    }
  }

  private crossing(): [Buffer, Uint32Array, Buffer, Uint8Array[]] {
    const lengths = this.lengths.subarray(0, 2 * this.count);
    const alone = this.alone.map((one) => one.copy ?? one.given);
    return [this.paths.subarray(0, this.pathsUsed), lengths, this.contents.subarray(0, this.used), alone];
  }

  async write(session: WriteSession): Promise<void> {
    try {
      done(await session.write(...this.crossing()));
    } finally {
      this.clear();
    }
  }

  writeSync(session: WriteSession): void {
    this.alone.forEach(checkStill);
    done(session.writeSync(...this.crossing()));
    this.clear();
  }

  private clear(): void {
    this.alone = [];
    this.used = this.pathsUsed = this.aloneBytes = this.count = 0;
  }
}

const isLarge = (one: Alone) => one.length > PIECE_BYTES;

/** An iterator or another entry may have given its memory away. */
function checkStill({ index, given, length }: Alone): void {
  if (given.byteLength !== length) throw invalid(`entries[${index}][1]`, 'was transferred, or its length has changed, before it was written');
}

/** `buffer`, or one of at least `least` bytes with the same beginning, with room for `more` bytes after `used`. */
function roomy(buffer: Buffer, used: number, more: number, least = 0): Buffer {
  if (used + more <= buffer.length) return buffer;
  const larger = Buffer.allocUnsafeSlow(Math.max(2 * buffer.length, used + more, least));
  buffer.copy(larger, 0, 0, used);
  return larger;
}

/**
 * Writes files below the directory `root`, with several threads, and never outside of it: absolute paths, `..` and symlinks on the
 * way are refused. Of two entries with one path the later wins, as in a loop. Bytes are copied before they are written, but only as
 * far ahead as that takes place: what a buffer of an array, a `Map` or an object holds until its turn comes is what is written.
 * An iterable may use one buffer again and again.
 */
export async function writeFiles(root: PathLike, entries: Entries, options?: WriteOptions): Promise<WriteReceipt> {
  const directory = pathBytes(root, 'root');
  const given = object<WriteOptions>(options, [...NAMES, 'signal']);
  const request = writeRequest(given);
  const signal = abortSignal(given.signal);
  const all = iterable(entries, true);
  return watched({ signal }, async (handle) => {
    const session = done(native().openSession(directory, request, handle));
    try {
      await writeAll(all, session, handle, signal);
      return receipt(done(await session.finish()));
    } finally {
      session.close();
    }
  });
}

async function writeAll(
  all: Iterable<Entry> | AsyncIterable<Entry>, session: WriteSession, handle: Handle, signal: AbortSignal | undefined,
): Promise<void> {
  let [filling, other] = [new Batch(isAtHand(all), true), new Batch(isAtHand(all), true)];
  let writing: Promise<void> = Promise.resolve();
  const begin = async () => {
    await filling.copyLarge();
    await writing;
    writing = filling.write(session);
    [filling, other] = [other, filling];
    // It is waited for before the next begins, and at the end.
    writing.catch(() => {});
  };
  let index = 0;
  const take = (entry: Entry): boolean => {
    filling.add(entry, index);
    index += 1;
    return filling.isFull;
  };
  try {
    if (Symbol.asyncIterator in all) {
      const source = new Source(all, signal);
      await source.each((entry) => (take(entry) ? begin() : undefined));
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
const isAtHand = (all: unknown) => Array.isArray(all) || types.isMap(all);

/** The same as `writeFiles`, and blocks until it is done. Nothing is copied that need not be. */
export function writeFilesSync(root: PathLike, entries: EntriesSync, options?: WriteOptionsSync): WriteReceipt {
  const directory = pathBytes(root, 'root');
  const request = writeRequest(object<WriteOptionsSync>(options, NAMES, ['signal']));
  const all = iterable(entries, false) as Iterable<Entry>;
  const session = done(native().openSession(directory, request, new (native().Handle)()));
  try {
    const batch = new Batch(isAtHand(all), false);
    let index = 0;
    for (const entry of all) {
      batch.add(entry, index);
      index += 1;
      if (batch.isFull) batch.writeSync(session);
    }
    if (!batch.isEmpty) batch.writeSync(session);
    return receipt(done(session.finishSync()));
  } finally {
    session.close();
  }
}

function writeRequest(options: WriteOptionsSync): WriteRequest {
  const concurrency = whole(options.concurrency, 'concurrency', 1, 64);
  return {
    ...(concurrency === undefined ? {} : { concurrency }),
    mode: permissions(options.mode) ?? 0o666,
    exclusive: oneOf(options.flag, 'flag', ['w', 'wx'] as const, 'w') === 'wx',
    mkdir: flag(options.mkdir, 'mkdir'),
    fsync: oneOf(options.fsync, 'fsync', ['none', 'end', 'each'] as const, 'none'),
    atomic: flag(options.atomic, 'atomic'),
    collect: oneOf(options.onError, 'onError', ['throw', 'collect'] as const, 'throw') === 'collect',
  };
}

/** As in `fs`: a number, or its octal digits. */
function permissions(mode: unknown): number | undefined {
  if (typeof mode === 'string' && !/^[0-7]+$/.test(mode)) throw invalid('options.mode', 'must be a number or its octal digits');
  return whole(typeof mode === 'string' ? parseInt(mode, 8) : mode, 'mode', 0, 0o7777);
}

function iterable(entries: unknown, asyncToo: boolean): Iterable<Entry> | AsyncIterable<Entry> {
  const must = asyncToo ? 'an (async) iterable of entries, or a plain object' : 'an iterable of entries, or a plain object';
  if (typeof entries !== 'object' || entries === null || ArrayBuffer.isView(entries)) throw wrong('entries', must, entries);
  if (Symbol.iterator in entries) return entries as Iterable<Entry>;
  if (Symbol.asyncIterator in entries) {
    if (!asyncToo) throw wrong('entries', `${must}; only \`writeFiles\` takes an async one`, entries);
    return entries as AsyncIterable<Entry>;
  }
  if (!isPlain(entries)) throw wrong('entries', must, entries);
  return Object.entries(entries as Record<string, Contents>);
}

/** Made by `{}`, of whatever realm, or without a prototype: its keys are meant. A promise or a date has none, and nothing would be written. */
function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

function receipt(answer: string): WriteReceipt {
  const parsed = JSON.parse(answer) as Omit<WriteReceipt, 'failures'> & { failures: { index: number; error: Document }[] };
  const failures: { index: number; error: CalveError }[] = parsed.failures.map(({ index, error }) => ({ index, error: fromDocument(error) }));
  return { ...parsed, failures };
}
