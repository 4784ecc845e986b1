/** Returns whether Calve has binaries for this system: Linux and macOS, x64 and arm64. Elsewhere `calve/fs` is `node:fs`, and all else fails. */
export declare function isSupported(): boolean;
/** @internal The name of the package with this platform's binaries. */
export declare function platformPackage(): string;
