/** @internal The engine's remedies, by their names: what to do next, in the words of this package. */
export declare const REMEDIES: Readonly<Record<string, string>>;
