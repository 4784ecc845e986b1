import type { CalveError } from './errors.js';
/** A path; where it is not UTF-8, its bytes. */
export type ReceiptPath = string | {
    bytes_base64: string;
};
/** A strategy that was not used, and why. */
export interface Refusal {
    strategy: string;
    reason: string;
}
/** Something that should be known and is not an error. */
export interface Warning {
    /** A stable word for programs. */
    code: string;
    /** The first path concerned. */
    path?: ReceiptPath;
    message: string;
}
/** What `cloneTree` did: the same as `calve cp --json` prints. */
export interface CloneReceipt {
    schema: 'calve.clone/1';
    src: ReceiptPath;
    dst: ReceiptPath;
    /** The strategy that was used. */
    strategy: string;
    /** The better ones, and why they were not. */
    refused: Refusal[];
    /** `null` when the strategy did not walk the tree. */
    entries: {
        directories: number;
        files: number;
        symlinks: number;
        fifos: number;
        devices: number;
        hard_links: number;
    } | null;
    /** `null` when the strategy did not walk the tree. */
    bytes: {
        apparent: number;
        shared: number;
        written: number;
        inlined: number | null;
    } | null;
    /** Files that got another treatment than the strategy's own. */
    fell_back: {
        from: string;
        to: string;
        errno: string;
        files: number;
        first_path: ReceiptPath;
    }[];
    /** Entries that are not in the clone. */
    skipped: {
        path: ReceiptPath;
        reason: string;
    }[];
    /** Entries of the source that changed meanwhile. */
    changed: ReceiptPath[];
    warnings: Warning[];
    elapsed_ms: number;
}
/** What `removeTree` did. */
export interface RemoveReceipt {
    path: ReceiptPath;
    /** Where it waits to be deleted; `null` when it is gone. */
    trash: ReceiptPath | null;
    deleted_entries: number;
    warnings: Warning[];
    elapsed_ms: number;
}
/** A place and the file system that it is on. */
export interface Place {
    path: ReceiptPath;
    file_system: string;
    device: string;
}
/** What a pair of places can do: the same as `calve probe --json` prints. */
export interface ProbeReceipt {
    schema: 'calve.probe/1';
    src: Place;
    dst: Place;
    /** What `cloneTree` would use; `null` where nothing can be made. */
    chosen: string | null;
    /** In order of preference. */
    strategies: {
        strategy: string;
        available: boolean;
        reason: string | null;
        remedy: string | null;
    }[];
}
/** What `writeFiles` did. */
export interface WriteReceipt {
    schema: 'calve.write/1';
    /** Files written. */
    files: number;
    /** Their contents, in bytes. */
    bytes: number;
    /** Directories made. */
    directories: number;
    /** The most threads that worked at a time. */
    threads: number;
    /** With `onError: 'collect'`: which entries were not written, counted from 0, and why. */
    failures: {
        index: number;
        error: CalveError;
    }[];
    elapsed_ms: number;
}
