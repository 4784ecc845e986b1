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
/** @internal The path of the program `calve`. */
export declare function program(): string;
/** @internal Loaded when it is first needed. */
export declare function native(): Native;
/** @internal */
export declare function bulk(): Native & Bulk;
