import { constants } from 'node:os';
import { REMEDIES } from './remedies.js';
import type { ReceiptPath, Refusal } from './receipts.js';

/** What kind of error it is. `ABORT_ERR` is what Node's own functions have when a signal ends them. */
export type Code =
  | 'ABORT_ERR' | 'ERR_CALVE_DB' | 'ERR_CALVE_DESTINATION_EXISTS' | 'ERR_CALVE_DESTINATION_INSIDE_SOURCE' | 'ERR_CALVE_EXISTS' | 'ERR_CALVE_INTERNAL'
  | 'ERR_CALVE_IO' | 'ERR_CALVE_IS_A_DIRECTORY' | 'ERR_CALVE_MISSING' | 'ERR_CALVE_NOT_A_DIRECTORY' | 'ERR_CALVE_NOT_A_FILE'
  | 'ERR_CALVE_NOT_CLONABLE' | 'ERR_CALVE_NO_PACKAGE' | 'ERR_CALVE_NO_ROOM' | 'ERR_CALVE_OTHER' | 'ERR_CALVE_OTHER_VERSION' | 'ERR_CALVE_OUTSIDE_ROOT'
  | 'ERR_CALVE_PARENT_MISSING' | 'ERR_CALVE_PATTERN' | 'ERR_CALVE_PERMISSION' | 'ERR_CALVE_PROTECTED'
  | 'ERR_CALVE_REPLACE_UNSUPPORTED' | 'ERR_CALVE_REQUIREMENT_REFUSED' | 'ERR_CALVE_SAME' | 'ERR_CALVE_SOURCE_INSIDE_DESTINATION'
  | 'ERR_CALVE_STAGING_LOST' | 'ERR_CALVE_TEMPLATE' | 'ERR_CALVE_UNSUPPORTED' | 'ERR_CALVE_USAGE' | 'ERR_CALVE_VERIFY_FAILED';

/** @internal As `calve-receipt` makes it. */
export interface Document {
  code: Code | 'ERR_CALVE_ABORTED';
  message: string;
  errno?: number | null;
  errno_name?: string | null;
  path?: ReceiptPath | null;
  operation?: string | null;
  hint?: string | null;
  /** What to do next, as a name that `REMEDIES` has words for. */
  remedy?: string | null;
  refused?: Refusal[] | null;
}

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
    const hint = document.hint ?? (document.remedy == null ? undefined : REMEDIES[document.remedy]);
    if (hint !== undefined) this.hint = hint;
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
