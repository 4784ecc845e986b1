/** @internal The engine's remedies, by their names: what to do next, in the words of this package. */
export declare const REMEDIES: Readonly<Record<string, string>>;
/** @internal The remedies of `calve db`, in the words of this package. The others cannot occur here, or name a command with its arguments. */
export declare const DATABASE_REMEDIES: Readonly<Record<string, string>>;
