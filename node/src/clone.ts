import { spawn } from 'node:child_process';
import { closeSync, constants, openSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname } from 'node:path';
import { abortSignal, flag, object, oneOf, pathBytes, texts, whole, wrong, type PathLike } from './arguments.js';
import { aborted, fromNative } from './errors.js';
import { native, program, type CloneWish, type Handle } from './native.js';
import type { CloneReceipt, ProbeReceipt, RemoveReceipt } from './receipts.js';

/** A way to clone. */
export type Strategy = 'snapshot' | 'clonefile' | 'reflink' | 'copy' | 'hardlink';
/** A property without which no clone is made. */
export type Requirement = 'instant' | 'cow' | 'stable';

/** How far it is. */
export interface Progress {
  entries: number;
  bytes: number;
}

/** As the options of `calve cp`. */
export interface CloneOptionsSync {
  /** This one or none. `hardlink` does not make independent trees. */
  strategy?: Strategy;
  /** Fail unless these hold. */
  require?: Requirement | Requirement[];
  /** Globs of entries to leave out, as in .gitignore. */
  exclude?: string | string[];
  /** Exchange an existing target for the clone in one step. */
  replace?: boolean;
  /** Leave other file systems below `src` out. */
  oneFileSystem?: boolean;
  /** Worker threads, 1 to 64; by default as many as processors, at most 8. */
  threads?: number;
  /** Write everything to the disk before the clone gets its name. */
  sync?: boolean;
  /** Compare contents and metadata before the clone gets its name. */
  verify?: boolean;
}

/** As the options of `calve cp`, and what only makes sense while something else goes on. */
export interface CloneOptions extends CloneOptionsSync {
  /** Ends it: nothing is left, and the promise is rejected when that is so. */
  signal?: AbortSignal;
  /** Called about twenty times a second, and once at the end, when the clone is there. What it throws ends the clone and rejects the promise. */
  onProgress?: (progress: Progress) => void;
}

/** How to remove. */
export interface RemoveOptions {
  /** Wait until everything is deleted. By default it is only out of sight, and a background process deletes it. */
  wait?: boolean;
  signal?: AbortSignal;
  onProgress?: (progress: Progress) => void;
}

/**
 * Makes `dst` an independent, writable copy of `src`, which may be a directory, a file, a symlink or a FIFO. `dst` is exactly what
 * will be there; its parent must exist. It is absent or complete at any time.
 */
export async function cloneTree(src: PathLike, dst: PathLike, options?: CloneOptions): Promise<CloneReceipt> {
  return clone(src, dst, false, options);
}

/** The same for one file: a directory is refused. */
export async function cloneFile(src: PathLike, dst: PathLike, options?: CloneOptions): Promise<CloneReceipt> {
  return clone(src, dst, true, options);
}

/** The same as `cloneTree`, and blocks until it is done. */
export function cloneTreeSync(src: PathLike, dst: PathLike, options?: CloneOptionsSync): CloneReceipt {
  const [from, to] = [pathBytes(src, 'src'), pathBytes(dst, 'dst')];
  const wish = cloneWish(object(options), false);
  for (const name of ['signal', 'onProgress']) {
    if (name in object<object>(options)) throw wrong(`options.${name}`, 'absent: nothing else happens meanwhile', 'given');
  }
  let answer;
  try {
    answer = native().cloneSync(from, to, wish);
  } catch (error) {
    throw fromNative(error);
  }
  return cloned(answer, to);
}

/** Removes a tree at once, whatever its size; a background process deletes it. A missing `path` is an error. */
export async function removeTree(path: PathLike, options?: RemoveOptions): Promise<RemoveReceipt> {
  const what = pathBytes(path, 'path');
  const given = object<RemoveOptions>(options);
  const wait = flag(given.wait, 'wait');
  const answer = await watched(given, (handle) => native().startRemove(what, wait, homedir(), handle));
  const [receipt, trashed] = JSON.parse(answer) as [RemoveReceipt, boolean];
  if (trashed) reap(parent(what));
  return receipt;
}

/** What a place, or a pair of places, can do, found out by trying. */
export async function probe(src: PathLike, dst: PathLike = src): Promise<ProbeReceipt> {
  const [from, to] = [pathBytes(src, 'src'), pathBytes(dst, 'dst')];
  return JSON.parse(await watched({}, () => native().startProbe(from, to))) as ProbeReceipt;
}

async function clone(src: PathLike, dst: PathLike, onlyFile: boolean, options?: CloneOptions): Promise<CloneReceipt> {
  const [from, to] = [pathBytes(src, 'src'), pathBytes(dst, 'dst')];
  const given = object<CloneOptions>(options);
  const wish = cloneWish(given, onlyFile);
  return cloned(await watched(given, (handle) => native().startClone(from, to, wish, handle)), to);
}

function cloneWish(options: CloneOptionsSync, onlyFile: boolean): CloneWish {
  const requirements = ['instant', 'cow', 'stable'] as const;
  const strategies = ['snapshot', 'clonefile', 'reflink', 'copy', 'hardlink'] as const;
  const { strategy } = options;
  const threads = whole(options.threads, 'threads', 1, 64);
  return {
    ...(strategy === undefined ? {} : { strategy: oneOf(strategy, 'strategy', strategies, strategy) }),
    require: texts(options.require, 'require').map((one) => oneOf(one, 'require', requirements, 'cow')),
    exclude: texts(options.exclude, 'exclude'),
    replace: flag(options.replace, 'replace'),
    oneFileSystem: flag(options.oneFileSystem, 'oneFileSystem'),
    ...(threads === undefined ? {} : { threads }),
    sync: flag(options.sync, 'sync'),
    verify: flag(options.verify, 'verify'),
    onlyFile,
    home: homedir(),
  };
}

function cloned(answer: string, dst: Buffer): CloneReceipt {
  const [receipt, trashWaits] = JSON.parse(answer) as [CloneReceipt, boolean];
  if (trashWaits) reap(parent(dst));
  return receipt;
}

/** @internal Runs `work` with a handle that the signal ends, and reports how far it is. */
export async function watched<T>(
  options: { signal?: AbortSignal; onProgress?: (progress: Progress) => void },
  work: (handle: Handle) => Promise<T>,
): Promise<T> {
  const signal = abortSignal(options.signal);
  const { onProgress } = options;
  if (onProgress !== undefined && typeof onProgress !== 'function') throw wrong('options.onProgress', 'a function', onProgress);
  if (signal?.aborted) throw aborted(signal);
  const handle = new (native().Handle)();
  let thrown: { error: unknown } | undefined;
  const report = () => {
    if (thrown !== undefined || onProgress === undefined) return;
    try {
      onProgress({ entries: handle.entries, bytes: handle.bytes });
    } catch (error) {
      thrown = { error };
      handle.cancel();
    }
  };
  const timer = onProgress === undefined ? undefined : setInterval(report, 50);
  const stop = () => handle.cancel();
  signal?.addEventListener('abort', stop, { once: true });
  try {
    const result = await work(handle);
    report();
    // It is done all the same, but an error must not vanish.
    if (thrown !== undefined) throw thrown.error;
    return result;
  } catch (error) {
    if (thrown !== undefined) throw thrown.error;
    const known = fromNative(error);
    throw signal?.aborted && (known as { code?: string }).code === 'ERR_CALVE_ABORTED' ? aborted(signal) : known;
  } finally {
    clearInterval(timer);
    signal?.removeEventListener('abort', stop);
  }
}

function parent(path: Buffer): Buffer {
  if (process.platform === 'win32') return Buffer.from(dirname(path.toString()));
  let end = path.length;
  while (end > 1 && path[end - 1] === 47) end -= 1;
  const slash = path.lastIndexOf(47, end - 1);
  return slash < 0 ? Buffer.from('.') : path.subarray(0, Math.max(slash, 1));
}

/** Starts a process that deletes the trash of `directory`. Should it not start, the next clone or removal there tries again. */
function reap(directory: Buffer): void {
  let stdin: number | undefined;
  try {
    const { startReaper } = native();
    if (startReaper !== undefined) {
      startReaper(Buffer.from(program()), directory);
      return;
    }
    stdin = openSync(directory, constants.O_RDONLY | constants.O_DIRECTORY);
    const child = spawn(program(), ['__reap'], { cwd: '/', detached: true, stdio: [stdin, 'ignore', 'ignore'] });
    child.on('error', () => {});
    child.unref();
  } catch {
    // Nothing is lost: the trash stays where it is.
  } finally {
    if (stdin !== undefined) closeSync(stdin);
  }
}

