/** @internal The name of the package with this platform's binaries. */
export declare function platformPackage(): string;
