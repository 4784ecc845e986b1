import * as fs from 'node:fs';
/** @internal Node's functions, as they were when this was loaded: others may be put in their places. */
export declare const original: {
    copyFile: typeof fs.copyFile;
    copyFileSync: typeof fs.copyFileSync;
    cp: typeof fs.cp;
    cpSync: typeof fs.cpSync;
    mkdirSync: typeof fs.mkdirSync;
    rm: typeof fs.rm;
    rmSync: typeof fs.rmSync;
    promises: {
        copyFile: typeof fs.promises.copyFile;
        cp: typeof fs.promises.cp;
        mkdir: typeof fs.promises.mkdir;
        rm: typeof fs.promises.rm;
    };
};
/** @internal Returns `faster`, or Node's own function where Calve does not run. */
export declare function standIn<T>(own: T, faster: (...given: never[]) => unknown): T;
/** @internal The mode of a copy that shares what it can. What is no mode that Node knows is left as it is. */
export declare function sharing(mode: unknown): unknown;
/** The options of `cp`, all of them. */
interface Given {
    dereference: boolean;
    errorOnExist: boolean;
    filter: unknown;
    force: boolean;
    mode: unknown;
    preserveTimestamps: boolean;
    recursive: boolean;
    verbatimSymlinks: boolean;
}
/** A call of `cp` that Calve carries out. */
declare class Copying {
    private readonly src;
    private readonly dst;
    private readonly base;
    private readonly given;
    private constructor();
    /** `undefined` for what is left to Node. */
    static of(src: unknown, dst: unknown, given: Given): Copying | undefined;
    private get request();
    /** Whether it has been done. */
    run(): Promise<boolean>;
    runSync(): boolean;
}
/** @internal A call of `cp`: what Calve can do, and the options for Node, where it does not. */
export declare function copying(src: unknown, dst: unknown, options: unknown): {
    fast: Copying | undefined;
    options: unknown;
};
/** A call of `rm` that Calve carries out. */
declare class Removing {
    private readonly path;
    private constructor();
    /** `undefined` for what is left to Node. */
    static of(path: unknown, options: unknown): Removing | undefined;
    /** Whether it has been done. */
    run(): Promise<boolean>;
    runSync(): boolean;
    private finish;
}
/** @internal A call of `rm`: what Calve can do. */
export declare function removing(path: unknown, options: unknown): Removing | undefined;
export {};
