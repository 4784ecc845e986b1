import { clearTimeout, setTimeout } from 'node:timers';
import { flag, home, object, pathBytes, type PathLike } from './arguments.js';
import { done, native, program, type Failure } from './native.js';
import type { RemoveReceipt } from './receipts.js';
import { watched, type Progress } from './watch.js';

/** How to remove. */
export interface RemoveOptionsSync {
  /** Wait until everything is deleted. By default it is only out of sight, and a background process deletes it. */
  wait?: boolean | undefined;
  /** A missing `path` is no error. */
  force?: boolean | undefined;
}

/** How to remove. */
export interface RemoveOptions extends RemoveOptionsSync {
  /** Ends the waiting: what is out of sight already is deleted in the background. */
  signal?: AbortSignal | undefined;
  /** Called about twenty times a second with `wait`, and once at the end. What it throws ends the waiting and rejects the promise. */
  onProgress?: ((progress: Progress) => void | Promise<void>) | undefined;
}

const NAMES_SYNC = ['wait', 'force'] as const;
const NAMES_ASYNC = ['signal', 'onProgress'] as const;

/** Removes a tree at once, whatever its size; a background process deletes it. */
export async function removeTree(path: PathLike, options?: RemoveOptions): Promise<RemoveReceipt> {
  const what = pathBytes(path, 'path');
  const given = object<RemoveOptions>(options, [...NAMES_SYNC, ...NAMES_ASYNC]);
  const wait = flag(given.wait, 'wait');
  const force = flag(given.force, 'force');
  return watched(given, async (handle) => removed(await native().startRemove(what, wait, home(), handle), what, wait, force));
}

/** The same as `removeTree`, and blocks until it is done. */
export function removeTreeSync(path: PathLike, options?: RemoveOptionsSync): RemoveReceipt {
  const what = pathBytes(path, 'path');
  const given = object<RemoveOptionsSync>(options, NAMES_SYNC, NAMES_ASYNC);
  const wait = flag(given.wait, 'wait');
  const force = flag(given.force, 'force');
  return removed(native().removeSync(what, wait, home()), what, wait, force);
}

function removed(answer: string | Failure, what: Buffer, wait: boolean, force: boolean): RemoveReceipt {
  try {
    const [receipt, trashed] = JSON.parse(done(answer)) as [RemoveReceipt, boolean];
    if (trashed) reap(parent(what));
    return receipt;
  } catch (error) {
    const isMissing = (error as { code?: unknown }).code === 'ERR_CALVE_MISSING';
    if (isMissing && force) return nothing(what);
    // It may be out of sight, and deleted in part.
    if (!isMissing && wait) reap(parent(what));
    throw error;
  }
}

function nothing(what: Buffer): RemoveReceipt {
  const text = what.toString();
  const path = Buffer.from(text).equals(what) ? text : { bytes_base64: what.toString('base64') };
  return { path, trash: null, deleted_entries: 0, warnings: [], elapsed_ms: 0 };
}

/** @internal */
export function parent(path: Buffer): Buffer {
  let end = path.length;
  while (end > 1 && path[end - 1] === 47) end -= 1;
  const slash = path.lastIndexOf(47, end - 1);
  return slash < 0 ? Buffer.from('.') : path.subarray(0, Math.max(slash, 1));
}

/** @internal Starts a process that deletes the trash of `directory`; where none can be started, a thread does. */
export function reap(directory: Buffer): void {
  try {
    native().startReaper(Buffer.from(program()), directory);
    collectLater();
  } catch {
    void native().startReap(directory);
  }
}

/** @internal Starts a process that builds the spares that are missing. Where none can be started, a later one builds them. */
export function refill(): void {
  try {
    native().startRefill(Buffer.from(program()));
    collectLater();
  } catch {
    // As above.
  }
}

let collecting: NodeJS.Timeout | undefined;

/** Leaves no zombies behind in a process that runs for long. It may exit at any time. */
function collectLater(delay = 100): void {
  clearTimeout(collecting);
  const collect = () => {
    if (native().collect()) collectLater(Math.min(delay * 2, 10_000));
  };
  collecting = setTimeout(collect, delay).unref();
}
