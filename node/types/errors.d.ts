import type { ErrorCode, ErrorReceipt, Refusal } from './receipts.js';
/** What kind of error it is. `ABORT_ERR` is what Node's own functions have when a signal ends them. */
export type Code = Exclude<ErrorCode, 'ERR_CALVE_ABORTED'> | 'ABORT_ERR' | 'ERR_CALVE_NO_PACKAGE' | 'ERR_CALVE_OTHER_VERSION' | 'ERR_CALVE_UNSUPPORTED';
/** @internal The receipt of an error, or as much of one as this package has for an error of its own. */
export type Document = Partial<Omit<ErrorReceipt, 'code'>> & {
    code: Code | ErrorCode;
    message: string;
};
/** Why something could not be done. Wrong arguments are `TypeError`s. */
export declare class CalveError extends Error {
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
    constructor(document: Document, cause?: unknown);
}
/** @internal */
export declare function fromDocument(document: string | Document): CalveError;
/** @internal */
export declare function aborted(signal: AbortSignal): CalveError;
