import { isUtf8 } from 'node:buffer';
import { fileURLToPath } from 'node:url';

/** A path as `fs` takes it. A name that is not UTF-8 can only be given as bytes. */
export type PathLike = string | Uint8Array | URL;

/** @internal A wrong argument: says which one. */
export function wrong(name: string, must: string, value: unknown): TypeError {
  const shown = value === null ? 'null' : typeof value === 'object' ? `an instance of ${value.constructor?.name || 'Object'}` : typeof value;
  return Object.assign(new TypeError(`The argument \`${name}\` must be ${must}; it is ${shown}`), { code: 'ERR_INVALID_ARG_TYPE' });
}

const LONE_SURROGATE = /\p{Surrogate}/u;

/** @internal The bytes of a path. */
export function pathBytes(value: unknown, name: string): Buffer {
  if (value instanceof URL) value = urlPath(value, name);
  if (typeof value === 'string') {
    checkText(value, name);
    return Buffer.from(value);
  }
  if (!(value instanceof Uint8Array)) throw wrong(name, 'a string, a Buffer, a Uint8Array or a file: URL', value);
  const bytes = Buffer.from(value);
  if (bytes.includes(0)) throw invalid(name, 'contains a NUL byte');
  if (bytes.length === 0) throw invalid(name, 'is empty');
  if (process.platform === 'win32' && !isUtf8(bytes)) throw invalid(name, 'is not UTF-8, which every path on Windows can be given as');
  return bytes;
}

function urlPath(url: URL, name: string): string {
  try {
    return fileURLToPath(url);
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

function invalid(name: string, what: string): TypeError {
  return Object.assign(new TypeError(`The argument \`${name}\` ${what}`), { code: 'ERR_INVALID_ARG_VALUE' });
}

/** @internal The options that were given. */
export function object<T extends object>(value: unknown): T {
  if (value === undefined) return {} as T;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw wrong('options', 'an object', value);
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

/** @internal */
export function abortSignal(value: unknown): AbortSignal | undefined {
  if (value !== undefined && !(value instanceof AbortSignal)) throw wrong('options.signal', 'an AbortSignal', value);
  return value;
}
