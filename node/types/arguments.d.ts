/** A path as `fs` takes it. A name that is not UTF-8 can only be given as bytes. */
export type PathLike = string | Uint8Array | URL;
/** @internal A wrong argument: says which one. */
export declare function wrong(name: string, must: string, value: unknown): TypeError;
/** @internal An argument whose value is wrong: says which one. */
export declare function invalid(name: string, what: string): TypeError;
/** @internal The bytes of a path. */
export declare function pathBytes(value: unknown, name: string): Buffer;
/** @internal */
export declare function checkText(text: string, name: string): void;
/** @internal The bytes that a view or an array buffer shows; `undefined` for anything else. */
export declare function bytesOf(value: unknown, name: () => string): Uint8Array | undefined;
/** @internal The options that were given. What is `undefined` is not. */
export declare function object<T extends object>(value: unknown, names: readonly string[], never?: readonly string[]): T;
/** @internal */
export declare function flag(value: unknown, name: string): boolean;
/** @internal */
export declare function oneOf<T extends string>(value: unknown, name: string, choices: readonly T[], otherwise: T): T;
/** @internal */
export declare function whole(value: unknown, name: string, least: number, most: number): number | undefined;
/** @internal */
export declare function texts(value: unknown, name: string): string[];
/** @internal A signal of any realm, jsdom's too. */
export declare function abortSignal(value: unknown): AbortSignal | undefined;
/** @internal */
export declare function callback<T>(value: unknown, name: string): T | undefined;
/** The user's home directory, which is not removed; empty for a user who has none, as in some containers. */
export declare function home(): string;
