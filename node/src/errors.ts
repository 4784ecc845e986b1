import { constants } from 'node:os';
import type { ErrorCode, ErrorReceipt, Refusal } from './receipts.js';

/** What kind of error it is. `ABORT_ERR` is what Node's own functions have when a signal ends them. */
export type Code =
  | Exclude<ErrorCode, 'ERR_CALVE_ABORTED'> | 'ABORT_ERR' | 'ERR_CALVE_NO_PACKAGE' | 'ERR_CALVE_OTHER_VERSION' | 'ERR_CALVE_UNSUPPORTED';

/** @internal The receipt of an error, or as much of one as this package has for an error of its own. */
export type Document = Partial<Omit<ErrorReceipt, 'code'>> & { code: Code | ErrorCode; message: string };

/** Why something could not be done. Wrong arguments are `TypeError`s. */
export class CalveError extends Error {
  /** What kind of error it is. */
  readonly code: Code;
  /** The system's error number, negative as in `fs`; for an error without one, the closest. */
  readonly errno?: number;
  /** Its name, such as `ENOSPC`. */
  readonly errnoName?: string;
  /** What it is about; a Buffer where the path is not UTF-8. */
  readonly path?: string | Buffer;
  /** What was being done, in words: `open directory`. */
  readonly syscall?: string;
  /** What to do next. */
  readonly hint?: string;
  /** With `ERR_CALVE_REQUIREMENT_REFUSED`: the strategies, and why each was refused. */
  readonly refused?: Refusal[];

  /** @internal */
  constructor(document: Document, cause?: unknown) {
    super(document.message, cause === undefined ? undefined : { cause });
    // As Node's own functions have it.
    const isAborted = document.code === 'ERR_CALVE_ABORTED';
    this.name = isAborted ? 'AbortError' : 'CalveError';
    this.code = isAborted ? 'ABORT_ERR' : (document.code as Code);
    if (document.errno != null) this.errno = -document.errno;
    if (document.errno_name != null) this.errnoName = document.errno_name;
    if (document.operation != null) this.syscall = document.operation;
    if (document.hint != null) this.hint = document.hint;
    if (document.refused != null) this.refused = document.refused;
    const path = document.path;
    if (path != null) this.path = typeof path === 'string' ? path : Buffer.from(path.bytes_base64, 'base64');
  }
}

/** @internal */
export function fromDocument(document: string | Document): CalveError {
  return new CalveError(typeof document === 'string' ? (JSON.parse(document) as Document) : document);
}

/** @internal */
export function aborted(signal: AbortSignal): CalveError {
  const number = { errno: constants.errno.ECANCELED, errno_name: 'ECANCELED' };
  return new CalveError({ code: 'ERR_CALVE_ABORTED', message: 'interrupted', ...number }, signal.reason);
}
