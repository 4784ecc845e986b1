/** Everything that `node:fs/promises` has; `cp`, `rm` and `copyFile` are faster. */
export * from 'node:fs/promises';
export declare const cp: typeof import("fs/promises").cp;
export declare const rm: typeof import("fs/promises").rm;
export declare const copyFile: typeof import("fs/promises").copyFile;
