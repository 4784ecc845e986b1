import type { ReceiptPath, Refusal } from './receipts.js';
/** What kind of error it is. `ABORT_ERR` is what Node's own functions have when a signal ends them. */
export type Code = 'ABORT_ERR' | 'ERR_CALVE_DB' | 'ERR_CALVE_DESTINATION_EXISTS' | 'ERR_CALVE_DESTINATION_INSIDE_SOURCE' | 'ERR_CALVE_EXISTS' | 'ERR_CALVE_INTERNAL' | 'ERR_CALVE_IO' | 'ERR_CALVE_IS_A_DIRECTORY' | 'ERR_CALVE_MISSING' | 'ERR_CALVE_NOT_A_DIRECTORY' | 'ERR_CALVE_NOT_A_FILE' | 'ERR_CALVE_NOT_CLONABLE' | 'ERR_CALVE_NO_PACKAGE' | 'ERR_CALVE_NO_ROOM' | 'ERR_CALVE_OTHER' | 'ERR_CALVE_OTHER_VERSION' | 'ERR_CALVE_OUTSIDE_ROOT' | 'ERR_CALVE_PARENT_MISSING' | 'ERR_CALVE_PATTERN' | 'ERR_CALVE_PERMISSION' | 'ERR_CALVE_PROTECTED' | 'ERR_CALVE_REPLACE_UNSUPPORTED' | 'ERR_CALVE_REQUIREMENT_REFUSED' | 'ERR_CALVE_SAME' | 'ERR_CALVE_SOURCE_INSIDE_DESTINATION' | 'ERR_CALVE_STAGING_LOST' | 'ERR_CALVE_TEMPLATE' | 'ERR_CALVE_UNSUPPORTED' | 'ERR_CALVE_USAGE' | 'ERR_CALVE_VERIFY_FAILED';
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
