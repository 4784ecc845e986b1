import { createRequire } from 'node:module';
import { sep } from 'node:path';
import { CalveError, fromDocument } from './errors.js';
import { isSupported, platformPackage } from './platform.js';

/** @internal */
export interface Handle {
  cancel(): void;
  goOn(): void;
  readonly entries: number;
  readonly bytes: number;
}

/** @internal Why something failed, as JSON: plain data, whatever realm this code runs in. */
export interface Failure {
  failure: string;
}

/** @internal */
export interface CloneRequest {
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

/** @internal A recursive `fs.cp` without a filter. */
export interface CopyRequest {
  verbatimSymlinks: boolean;
  dereference: boolean;
  preserveTimestamps: boolean;
  force: boolean;
  mustBeNew: boolean;
}

/** @internal */
export interface WriteRequest {
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
  /** The buffers must be the package's own: they are read while other code runs. */
  write(paths: Buffer, lengths: Uint32Array, contents: Buffer, alone: Uint8Array[]): Promise<void | Failure>;
  writeSync(paths: Buffer, lengths: Uint32Array, contents: Buffer, alone: Uint8Array[]): void | null | Failure;
  finish(): Promise<string | Failure>;
  finishSync(): string | Failure;
  close(): void;
}

/** @internal */
export interface Native {
  Handle: new () => Handle;
  startClone(src: Buffer, dst: Buffer, request: CloneRequest, handle: Handle, ask?: () => void): Promise<string | Failure>;
  cloneSync(src: Buffer, dst: Buffer, request: CloneRequest): string | Failure;
  startRemove(path: Buffer, wait: boolean, home: string, handle: Handle): Promise<string | Failure>;
  removeSync(path: Buffer, wait: boolean, home: string): string | Failure;
  startProbe(src: Buffer, dst: Buffer): Promise<string | Failure>;
  startReap(parent: Buffer): Promise<void | Failure>;
  watchExit(): void;
  startReaper(program: Buffer, parent: Buffer): void;
  startRefill(program: Buffer): void;
  /** Whether a process that was started still runs. */
  collect(): boolean;
  /** Many files at once. */
  openSession(root: Buffer, request: WriteRequest, handle: Handle): WriteSession | Failure;
  startRead(
    paths: Buffer[], concurrency: number | undefined, enoughBytes: number | undefined, handle: Handle,
  ): Promise<(Buffer | string)[] | Failure>;
  /** What stands in for functions of `fs`. A failure has changed nothing. */
  startCopy(src: Buffer, dst: Buffer, base: Buffer, request: CopyRequest, handle: Handle): Promise<void | Failure>;
  copySync(src: Buffer, dst: Buffer, base: Buffer, request: CopyRequest): void | null | Failure;
  startDiscard(path: Buffer, home: string, handle: Handle): Promise<void | Failure>;
  discardSync(path: Buffer, home: string): void | null | Failure;
}

/** @internal Returns the value, or throws the failure. */
export function done<T>(answer: T | Failure): T {
  if (typeof answer === 'object' && answer !== null && 'failure' in answer) throw fromDocument(answer.failure);
  return answer;
}

let packageName: string | undefined;

/** From where this file is, or the bundle that it has become part of. Not from the current directory, which may be anybody's. */
const load = createRequire(__filename);

function find(file: string): string {
  if (!isSupported()) {
    throw new CalveError({
      code: 'ERR_CALVE_UNSUPPORTED',
      message: `calve does not run on ${process.platform}-${process.arch}`,
      hint: 'it runs on Linux and macOS, x64 and arm64; on Windows, use WSL2',
    });
  }
  packageName ??= platformPackage();
  try {
    return load.resolve(`${packageName}/${file}`);
  } catch (cause) {
    const isBundled = !__filename.endsWith(['calve', 'lib', 'native.js'].join(sep));
    throw new CalveError({
      code: 'ERR_CALVE_NO_PACKAGE',
      message: `the package \`${packageName}\` with the binaries for this platform is not installed${isBundled ? `, as seen from the bundle \`${__filename}\`` : ''}`,
      hint: isBundled
        ? "leave calve out of the bundle (`external: ['calve']`), so that it is loaded from node_modules, where its binaries are"
        : 'it is an optional dependency of `calve`: have optional dependencies installed, on the platform that runs this',
    }, cause);
  }
}

/** @internal Returns the path of the program `calve`. */
export function program(): string {
  return find('bin/calve');
}

let loaded: Native | undefined;

/** @internal Loaded when it is first needed. */
export function native(): Native {
  if (loaded === undefined) {
    const found = load(find('calve.node')) as Native;
    // Whatever is being made is taken away first.
    found.watchExit();
    loaded = found;
  }
  return loaded;
}

let isMissing = false;

/** @internal `undefined` where the binaries cannot be loaded, which is warned of once. */
export function loadable(): Native | undefined {
  if (isMissing) return undefined;
  try {
    return native();
  } catch (error) {
    isMissing = true;
    process.emitWarning(`calve/fs is no faster than node:fs here: ${(error as Error).message}`, 'CalveWarning');
    return undefined;
  }
}
