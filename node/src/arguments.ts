import { homedir } from 'node:os';
import { fileURLToPath } from 'node:url';
import { types } from 'node:util';
import { nearest } from './nearest.js';

/*
 * Nothing here asks `instanceof` of what the language or the platform brings along. Where code runs in a realm of its own (Jest,
 * Vitest's vmThreads, jsdom) those are other classes than the ones that a value was made by.
 */

/** A path as `fs` takes it. A name that is not UTF-8 can only be given as bytes. */
export type PathLike = string | Uint8Array | URL;

/** @internal A wrong argument: says which one. */
export function wrong(name: string, must: string, value: unknown): TypeError {
  return Object.assign(new TypeError(`The argument \`${name}\` must be ${must}; it is ${shown(value)}`), { code: 'ERR_INVALID_ARG_TYPE' });
}

function shown(value: unknown): string {
  if (value === null) return 'null';
  if (types.isPromise(value)) return 'a Promise (is an `await` missing?)';
  return typeof value === 'object' ? `an instance of ${value.constructor?.name || 'Object'}` : typeof value;
}

/** @internal An argument whose value is wrong: says which one. */
export function invalid(name: string, what: string): TypeError {
  return Object.assign(new TypeError(`The argument \`${name}\` ${what}`), { code: 'ERR_INVALID_ARG_VALUE' });
}

const LONE_SURROGATE = /\p{Surrogate}/u;

/** @internal The bytes of a path. */
export function pathBytes(value: unknown, name: string): Buffer {
  const path = isUrl(value) ? urlPath(value, name) : value;
  if (typeof path === 'string') {
    checkText(path, name);
    return Buffer.from(path);
  }
  if (!types.isUint8Array(path)) throw wrong(name, 'a string, a Buffer, a Uint8Array or a file: URL', path);
  const bytes = Buffer.from(path);
  if (bytes.includes(0)) throw invalid(name, 'contains a NUL byte');
  if (bytes.length === 0) throw invalid(name, 'is empty');
  return bytes;
}

const isUrl = (value: unknown): value is URL => Object.prototype.toString.call(value) === '[object URL]';

function urlPath(url: URL, name: string): string {
  try {
    // Its text, for jsdom's URL is not Node's.
    return fileURLToPath(String(url.href));
  } catch (error) {
    throw Object.assign(new TypeError(`The argument \`${name}\` must be a file: URL of this system: ${(error as Error).message}`),
      { code: (error as { code?: string }).code, cause: error });
  }
}

/** @internal */
export function checkText(text: string, name: string): void {
  if (text === '') throw invalid(name, 'is empty');
  if (text.includes('\0')) throw invalid(name, 'contains a NUL byte');
  if (LONE_SURROGATE.test(text)) throw invalid(name, 'has a lone surrogate, which no file name can have; give the bytes as a Buffer');
}

/** @internal The bytes that a view or an array buffer shows; `undefined` for anything else. */
export function bytesOf(value: unknown, name: () => string): Uint8Array | undefined {
  if (!ArrayBuffer.isView(value) && !types.isAnyArrayBuffer(value)) return undefined;
  let bytes: Uint8Array;
  try {
    if (types.isUint8Array(value)) bytes = value;
    else bytes = ArrayBuffer.isView(value) ? new Uint8Array(value.buffer, value.byteOffset, value.byteLength) : new Uint8Array(value);
    // It throws where there is no memory any more; otherwise its length would be 0.
    if (bytes.byteLength === 0) Uint8Array.prototype.values.call(bytes);
  } catch {
    throw invalid(name(), 'has no memory any more: its buffer was transferred or shrunk');
  }
  return bytes;
}

/** @internal The options that were given. What is `undefined` is not. */
export function object<T extends object>(value: unknown, names: readonly string[], never: readonly string[] = []): T {
  if (value === undefined) return {} as T;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw wrong('options', 'an object', value);
  for (const name in value) {
    const given: unknown = value[name as keyof typeof value];
    if (given === undefined || names.includes(name)) continue;
    if (never.includes(name)) throw wrong(`options.${name}`, 'absent: nothing else happens meanwhile', given);
    const meant = nearest(name, names);
    const known = meant === undefined ? `the options are ${names.map((one) => `\`${one}\``).join(', ')}` : `did you mean \`${meant}\`?`;
    throw invalid(`options.${name}`, `is unknown; ${known}`);
  }
  return value as T;
}

/** @internal */
export function flag(value: unknown, name: string): boolean {
  if (value === undefined) return false;
  if (typeof value !== 'boolean') throw wrong(`options.${name}`, 'a boolean', value);
  return value;
}

/** @internal */
export function oneOf<T extends string>(value: unknown, name: string, choices: readonly T[], otherwise: T): T {
  if (value === undefined) return otherwise;
  if (!choices.includes(value as T)) {
    const must = `one of ${choices.map((choice) => `'${choice}'`).join(', ')}`;
    throw typeof value === 'string' ? invalid(`options.${name}`, `must be ${must}; it is '${value}'`) : wrong(`options.${name}`, must, value);
  }
  return value as T;
}

/** @internal */
export function whole(value: unknown, name: string, least: number, most: number): number | undefined {
  if (value === undefined) return undefined;
  const must = `a whole number from ${least} to ${most}`;
  if (typeof value !== 'number') throw wrong(`options.${name}`, must, value);
  if (!Number.isInteger(value) || value < least || value > most) {
    throw Object.assign(new RangeError(`The argument \`options.${name}\` must be ${must}; it is ${value}`), { code: 'ERR_OUT_OF_RANGE' });
  }
  return value;
}

/** @internal */
export function texts(value: unknown, name: string): string[] {
  if (value === undefined) return [];
  const list = typeof value === 'string' ? [value] : value;
  if (!Array.isArray(list) || list.some((one) => typeof one !== 'string')) {
    throw wrong(`options.${name}`, 'a string or an array of strings', value);
  }
  return list as string[];
}

/** @internal A signal of any realm, jsdom's too. */
export function abortSignal(value: unknown): AbortSignal | undefined {
  if (value === undefined) return undefined;
  const signal = value as Partial<AbortSignal> | null;
  const isSignal = typeof signal === 'object' && typeof signal?.aborted === 'boolean' && typeof signal.addEventListener === 'function';
  if (!isSignal) throw wrong('options.signal', 'an AbortSignal', value);
  return value as AbortSignal;
}

/** @internal */
export function callback<T>(value: unknown, name: string): T | undefined {
  if (value !== undefined && typeof value !== 'function') throw wrong(`options.${name}`, 'a function', value);
  return value as T | undefined;
}

/** The user's home directory, which is not removed; empty for a user who has none, as in some containers. */
export function home(): string {
  try {
    return homedir();
  } catch {
    return '';
  }
}
