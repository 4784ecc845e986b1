import * as fs from 'node:fs';
import { dirname, isAbsolute, resolve } from 'node:path';
import { types } from 'node:util';
import { home, pathBytes } from './arguments.js';
import { loadable, type CopyRequest, type Failure } from './native.js';
import { isSupported } from './platform.js';
import { parent, reap } from './remove.js';

/*
 * What can be done faster than `fs` does it, with the same result. Everything else is left to `fs`: arguments that it would refuse, what
 * Calve declines, and whatever fails, so that errors, and what is there after them, are Node's own.
 */

/** @internal Node's functions, as they were when this was loaded: others may be put in their places. */
export const original = {
  copyFile: fs.copyFile, copyFileSync: fs.copyFileSync, cp: fs.cp, cpSync: fs.cpSync, mkdirSync: fs.mkdirSync, rm: fs.rm, rmSync: fs.rmSync,
  promises: { copyFile: fs.promises.copyFile, cp: fs.promises.cp, mkdir: fs.promises.mkdir, rm: fs.promises.rm },
};

/** @internal Returns `faster`, or Node's own function where Calve does not run. */
export function standIn<T>(own: T, faster: (...given: never[]) => unknown): T {
  return isSupported() ? faster as T : own;
}

/** Elsewhere a copy takes over other things: ACLs that are inherited, and on macOS all that `clonefile` keeps. */
const copies = process.platform === 'linux';

const { COPYFILE_EXCL, COPYFILE_FICLONE } = fs.constants;

/** @internal The mode of a copy that shares what it can. What is no mode that Node knows is left as it is. */
export function sharing(mode: unknown): unknown {
  if (!copies) return mode;
  if (mode === undefined) return COPYFILE_FICLONE;
  return mode === 0 || mode === COPYFILE_EXCL ? mode | COPYFILE_FICLONE : mode;
}

/** The options of `cp`, all of them. */
interface Given {
  dereference: boolean;
  errorOnExist: boolean;
  filter: unknown;
  force: boolean;
  mode: unknown;
  preserveTimestamps: boolean;
  recursive: boolean;
  verbatimSymlinks: boolean;
}

const CP = {
  dereference: false, errorOnExist: false, filter: undefined, force: true, mode: 0, preserveTimestamps: false, recursive: false,
  verbatimSymlinks: false,
};
const CP_FLAGS = ['dereference', 'errorOnExist', 'force', 'preserveTimestamps', 'recursive', 'verbatimSymlinks'] as const;

/** The options as Node takes them: an explicit `undefined` is not the default. `undefined` unless it is an object. */
function withDefaults<T extends object>(options: unknown, defaults: T): T | undefined {
  if (options === undefined) return { ...defaults };
  return typeof options === 'object' && options !== null && !Array.isArray(options) ? { ...defaults, ...options } : undefined;
}

/** A call of `cp` that Calve carries out. */
class Copying {
  private constructor(private readonly src: Buffer, private readonly dst: string, private readonly base: string, private readonly given: Given) {}

  /** `undefined` for what is left to Node. */
  static of(src: unknown, dst: unknown, given: Given): Copying | undefined {
    const known = CP_FLAGS.every((name) => typeof given[name] === 'boolean') && [0, 1, 2, 3, null, undefined].includes(given.mode as number);
    if (!copies || !known || !given.recursive || given.filter !== undefined || (given.dereference && given.verbatimSymlinks)) return undefined;
    const [from, to] = [pathText(src), pathText(dst)];
    if (from === undefined || to === undefined) return undefined;
    const base = resolve(from);
    const target = resolve(to);
    if (target === base || target.startsWith(base === '/' ? base : `${base}/`)) return undefined;
    // With a slash at the end a link is what it leads to.
    return new Copying(Buffer.from(from.endsWith('/') ? `${base}/` : base), target, base, given);
  }

  private get request(): CopyRequest {
    const { verbatimSymlinks, dereference, preserveTimestamps, force, errorOnExist } = this.given;
    return { verbatimSymlinks, dereference, preserveTimestamps, force, mustBeNew: errorOnExist && !force };
  }

  /** Whether it has been done. */
  async run(): Promise<boolean> {
    const found = loadable();
    if (found === undefined) return false;
    const start = () => found.startCopy(this.src, Buffer.from(this.dst), Buffer.from(this.base), this.request, new found.Handle());
    let answer = await start();
    if (isParentMissing(answer)) {
      if (!(await original.promises.mkdir(dirname(this.dst), { recursive: true }).then(() => true, () => false))) return false;
      answer = await start();
    }
    return isDone(answer);
  }

  runSync(): boolean {
    const found = loadable();
    if (found === undefined) return false;
    const start = () => found.copySync(this.src, Buffer.from(this.dst), Buffer.from(this.base), this.request);
    let answer = start();
    if (isParentMissing(answer)) {
      try {
        original.mkdirSync(dirname(this.dst), { recursive: true });
      } catch {
        return false;
      }
      answer = start();
    }
    return isDone(answer);
  }
}

const isDone = (answer: unknown) => typeof (answer as Partial<Failure> | null | undefined)?.failure !== 'string';

function isParentMissing(answer: unknown): boolean {
  const { failure } = (answer ?? {}) as Partial<Failure>;
  return failure !== undefined && (JSON.parse(failure) as { code: unknown }).code === 'ERR_CALVE_PARENT_MISSING';
}

/** @internal A call of `cp`: what Calve can do, and the options for Node, where it does not. */
export function copying(src: unknown, dst: unknown, options: unknown): { fast: Copying | undefined; options: unknown } {
  const given = withDefaults<Given>(options, CP);
  if (given === undefined) return { fast: undefined, options };
  return { fast: Copying.of(src, dst, given), options: { ...given, mode: sharing(given.mode) } };
}

/** The text of a path that means the same to Node, which goes by names in places, and to the system. */
function pathText(value: unknown): string | undefined {
  if (types.isUint8Array(value)) return undefined;
  let text: string;
  try {
    text = pathBytes(value, 'path').toString();
  } catch {
    return undefined;
  }
  const names = text.split('/').filter((name) => name !== '' && name !== '.');
  // Behind a link `..` is somewhere else.
  const upwards = names.slice(isAbsolute(text) ? 0 : names.findIndex((name) => name !== '..'));
  return upwards.includes('..') ? undefined : text;
}

const RM = { recursive: false, force: false, maxRetries: 0, retryDelay: 100 };

/** A call of `rm` that Calve carries out. */
class Removing {
  private constructor(private readonly path: Buffer) {}

  /** `undefined` for what is left to Node. */
  static of(path: unknown, options: unknown): Removing | undefined {
    const given = withDefaults(options, RM);
    if (given?.recursive !== true || typeof given.force !== 'boolean') return undefined;
    if (![given.maxRetries, given.retryDelay].every((number) => Number.isInteger(number) && number >= 0 && number < 2 ** 31)) return undefined;
    try {
      return new Removing(pathBytes(path, 'path'));
    } catch {
      return undefined;
    }
  }

  /** Whether it has been done. */
  async run(): Promise<boolean> {
    const found = loadable();
    return found !== undefined && this.finish(await found.startDiscard(this.path, home(), new found.Handle()));
  }

  runSync(): boolean {
    const found = loadable();
    return found !== undefined && this.finish(found.discardSync(this.path, home()));
  }

  private finish(answer: unknown): boolean {
    if (!isDone(answer)) return false;
    reap(parent(this.path));
    return true;
  }
}

/** @internal A call of `rm`: what Calve can do. */
export function removing(path: unknown, options: unknown): Removing | undefined {
  return Removing.of(path, options);
}
