import { CalveError } from './errors.js';

/** @internal */
export interface Handle {
  cancel(): void;
  readonly entries: number;
  readonly bytes: number;
}

/** @internal */
export interface CloneWish {
  strategy?: string;
  require: string[];
  exclude: string[];
  replace: boolean;
  oneFileSystem: boolean;
  threads?: number;
  sync: boolean;
  verify: boolean;
  onlyFile: boolean;
  home: string;
}

/** @internal */
export interface WriteWish {
  concurrency?: number;
  mode: number;
  exclusive: boolean;
  mkdir: boolean;
  fsync: string;
  atomic: boolean;
  collect: boolean;
}

/** @internal */
export interface WriteSession {
  write(paths: Buffer, lengths: Uint32Array, contents: Buffer, alone: Uint8Array[]): Promise<void>;
  writeSync(paths: Buffer, lengths: Uint32Array, contents: Buffer, alone: Uint8Array[]): void;
  finish(): Promise<string>;
  finishSync(): string;
  close(): void;
}

/** @internal */
export interface Native {
  Handle: new () => Handle;
  startClone(src: Buffer, dst: Buffer, wish: CloneWish, handle: Handle): Promise<string>;
  cloneSync(src: Buffer, dst: Buffer, wish: CloneWish): string;
  startRemove(path: Buffer, wait: boolean, home: string, handle: Handle): Promise<string>;
  startProbe(src: Buffer, dst: Buffer): Promise<string>;
  endAll(): void;
  /** On Windows. */
  startReaper?(program: Buffer, parent: Buffer): void;
}

/** @internal Many files at once: not on Windows. */
export interface Bulk {
  WriteSession: new (root: Buffer, wish: WriteWish, handle: Handle) => WriteSession;
  startRead(paths: Buffer[], concurrency: number | undefined, enoughBytes: number | undefined, handle: Handle): Promise<(Buffer | string)[]>;
}

/** The name of the package with this platform's binaries. */
function platformPackage(): string {
  const base = `calve-${process.platform}-${process.arch}`;
  if (process.platform !== 'linux') return base;
  const report = process.report?.getReport() as { header?: { glibcVersionRuntime?: string } } | undefined;
  return report?.header?.glibcVersionRuntime === undefined ? `${base}-musl` : `${base}-gnu`;
}

function find(file: string): string {
  const name = platformPackage();
  try {
    return require.resolve(`${name}/${file}`);
  } catch (cause) {
    throw new CalveError({
      code: 'ERR_CALVE_NO_PACKAGE',
      message: `the package \`${name}\` with the binaries for this platform is not installed`,
      hint: 'install without --omit=optional; where there is no such package, build calve from source',
    }, cause);
  }
}

/** @internal The path of the program `calve`. */
export function program(): string {
  return find(process.platform === 'win32' ? 'bin/calve.exe' : 'bin/calve');
}

let loaded: Native | undefined;

/** @internal Loaded when it is first needed. */
export function native(): Native {
  if (loaded === undefined) {
    const found = require(find('calve.node')) as Native;
    // Whatever is being made is taken away first.
    process.on('exit', () => found.endAll());
    loaded = found;
  }
  return loaded;
}

/** @internal */
export function bulk(): Native & Bulk {
  const found = native() as Native & Partial<Bulk>;
  if (found.WriteSession !== undefined) return found as Native & Bulk;
  throw new CalveError({
    code: 'ERR_CALVE_UNSUPPORTED',
    message: 'many files at once are not written and read by calve on this system',
    hint: 'use node:fs there',
  });
}
