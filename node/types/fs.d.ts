import type * as fs from 'node:fs';
import * as promises from './fs-promises.js';
/** Everything that `node:fs` has; `cp`, `rm` and `copyFile` are faster, and so are their other forms. */
export * from 'node:fs';
export { promises };
export declare const cp: typeof fs.cp;
export declare const cpSync: typeof fs.cpSync;
export declare const rm: typeof fs.rm;
export declare const rmSync: typeof fs.rmSync;
export declare const copyFile: typeof fs.copyFile;
export declare const copyFileSync: typeof fs.copyFileSync;
