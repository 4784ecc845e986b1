import type * as fsPromises from 'node:fs/promises';
/** Everything that `node:fs/promises` has; `cp`, `rm` and `copyFile` are faster. */
export * from 'node:fs/promises';
export declare const cp: typeof fsPromises.cp;
export declare const rm: typeof fsPromises.rm;
export declare const copyFile: typeof fsPromises.copyFile;
