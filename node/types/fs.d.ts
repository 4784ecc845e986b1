import * as promises from './fs-promises.js';
/** Everything that `node:fs` has; `cp`, `rm` and `copyFile` are faster, and so are their other forms. */
export * from 'node:fs';
export { promises };
export declare const cp: typeof import("fs").cp;
export declare const cpSync: typeof import("fs").cpSync;
export declare const rm: typeof import("fs").rm;
export declare const rmSync: typeof import("fs").rmSync;
export declare const copyFile: typeof import("fs").copyFile;
export declare const copyFileSync: typeof import("fs").copyFileSync;
