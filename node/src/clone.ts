import { flag, home, object, oneOf, pathBytes, texts, whole, type PathLike } from './arguments.js';
import { done, native, type CloneRequest, type Failure } from './native.js';
import { REQUIREMENTS, STRATEGIES, type CloneReceipt, type ProbeReceipt, type Requirement, type Strategy } from './receipts.js';
import { parent, reap, refill } from './remove.js';
import { watched, type Progress } from './watch.js';

/** As the options of `calve cp`. */
export interface CloneOptionsSync {
  /** This one or none. `hardlink` does not make independent trees. */
  strategy?: Strategy | undefined;
  /** Fail unless these hold. */
  require?: Requirement | Requirement[] | undefined;
  /** Patterns of entries to leave out, as the lines of a .gitignore: the last that matches decides, and `!keep` takes back. */
  exclude?: string | string[] | undefined;
  /** Exchange an existing target for the clone in one step. */
  replace?: boolean | undefined;
  /** Leave other file systems below `src` out. */
  oneFileSystem?: boolean | undefined;
  /** Worker threads, 1 to 64; by default as many as processors, at most 8. */
  threads?: number | undefined;
  /** Write everything to the disk before the clone gets its name. */
  sync?: boolean | undefined;
  /** Compare contents and metadata before the clone gets its name. */
  verify?: boolean | undefined;
}

/** As the options of `calve cp`, and what only makes sense while something else goes on. */
export interface CloneOptions extends CloneOptionsSync {
  /** Ends it: nothing is left, and the promise is rejected with an `AbortError` when that is so. */
  signal?: AbortSignal | undefined;
  /**
   * Called about twenty times a second, and once at the end, right before the clone gets its name. What it throws ends the clone:
   * nothing is left, and the promise is rejected with it. So does a promise of its that is rejected; the clone gets its name when
   * the promises that it has returned are settled.
   */
  onProgress?: ((progress: Progress) => void | Promise<void>) | undefined;
}

const NAMES_SYNC = ['strategy', 'require', 'exclude', 'replace', 'oneFileSystem', 'threads', 'sync', 'verify'] as const;
const NAMES_ASYNC = ['signal', 'onProgress'] as const;
const NAMES = [...NAMES_SYNC, ...NAMES_ASYNC];

/**
 * Makes `dst` an independent, writable copy of `src`, which may be a directory, a file, a symlink or a FIFO. `dst` is exactly what
 * will be there; its parent must exist. It is absent or complete at any time.
 *
 * `src` may be `@NAME`, a template that `calve template create` has made; a path that begins with @ is written `./@NAME`.
 */
export async function cloneTree(src: PathLike, dst: PathLike, options?: CloneOptions): Promise<CloneReceipt> {
  return clone(src, dst, false, options);
}

/** Clones one file. Refuses a directory. */
export async function cloneFile(src: PathLike, dst: PathLike, options?: CloneOptions): Promise<CloneReceipt> {
  return clone(src, dst, true, options);
}

/** Clones as `cloneTree` does, and blocks until it is done. */
export function cloneTreeSync(src: PathLike, dst: PathLike, options?: CloneOptionsSync): CloneReceipt {
  return cloneSync(src, dst, false, options);
}

/** Clones as `cloneFile` does, and blocks until it is done. */
export function cloneFileSync(src: PathLike, dst: PathLike, options?: CloneOptionsSync): CloneReceipt {
  return cloneSync(src, dst, true, options);
}

/** Tries what a place, or a pair of places, can do. */
export async function probe(src: PathLike, dst: PathLike = src): Promise<ProbeReceipt> {
  const [from, to] = [pathBytes(src, 'src'), pathBytes(dst, 'dst')];
  return JSON.parse(await watched({}, () => native().startProbe(from, to))) as ProbeReceipt;
}

async function clone(src: PathLike, dst: PathLike, onlyFile: boolean, options?: CloneOptions): Promise<CloneReceipt> {
  const [from, to] = [pathBytes(src, 'src'), pathBytes(dst, 'dst')];
  const given = object<CloneOptions>(options, NAMES);
  const request = cloneRequest(given, onlyFile);
  return watched(given, async (handle, ask) => cloned(await native().startClone(from, to, request, handle, ask), to));
}

function cloneSync(src: PathLike, dst: PathLike, onlyFile: boolean, options?: CloneOptionsSync): CloneReceipt {
  const [from, to] = [pathBytes(src, 'src'), pathBytes(dst, 'dst')];
  const request = cloneRequest(object<CloneOptionsSync>(options, NAMES_SYNC, NAMES_ASYNC), onlyFile);
  return cloned(native().cloneSync(from, to, request), to);
}

function cloneRequest(options: CloneOptionsSync, onlyFile: boolean): CloneRequest {
  const { strategy } = options;
  const threads = whole(options.threads, 'threads', 1, 64);
  return {
    ...(strategy === undefined ? {} : { strategy: oneOf(strategy, 'strategy', STRATEGIES, strategy) }),
    require: texts(options.require, 'require').map((one) => oneOf(one, 'require', REQUIREMENTS, 'cow')),
    exclude: texts(options.exclude, 'exclude'),
    replace: flag(options.replace, 'replace'),
    oneFileSystem: flag(options.oneFileSystem, 'oneFileSystem'),
    ...(threads === undefined ? {} : { threads }),
    sync: flag(options.sync, 'sync'),
    verify: flag(options.verify, 'verify'),
    onlyFile,
    home: home(),
  };
}

function cloned(answer: string | Failure, dst: Buffer): CloneReceipt {
  const [receipt, trashWaits, sparesWanted] = JSON.parse(done(answer)) as [CloneReceipt, boolean, boolean];
  if (trashWaits) reap(parent(dst));
  if (sparesWanted) refill();
  return receipt;
}
