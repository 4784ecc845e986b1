/** @internal The one of `names` that `name` was probably meant to be: `one_file_system`, `Replace`, `thread`. */
export declare function nearest(name: string, names: readonly string[]): string | undefined;
