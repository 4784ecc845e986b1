/** @internal The engine's remedies, by their names: what to do next, in the words of this package. */
export declare const REMEDIES: Readonly<Record<string, string>>;
/** @internal The remedies of databases that the program words with its own options. For all others the package has the words of the program. */
export declare const DATABASE_REMEDIES: Readonly<Record<string, string>>;
