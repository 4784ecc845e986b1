/** A plugin for Vite, with the members that this one has. */
export interface CalvePlugin {
    name: string;
    config(): {
        test: {
            globalSetup: string[];
            setupFiles: string[];
            provide: Record<string, unknown>;
        };
    };
}
/** The plugin for Vitest: each worker has a database server on a clone of `template`, put back before each file of tests. */
export declare function calve(template: string): CalvePlugin;
/** @internal What workers are told. */
export interface Provided {
    template: string;
    /** What the names of the servers begin with. */
    prefix: string;
    ownerPid: number;
}
/** @internal In the process that starts the workers. A template that is not there is one error, and not one of each file. */
export declare function prepared(template: string): Promise<Provided>;
/** @internal At the end. Where this is not reached, the servers end with their owner. */
export declare function end({ prefix }: Provided): Promise<void>;
/** @internal In a worker, before each file. A worker is often a new process, with the number of an earlier one. */
export declare function enter({ template, prefix, ownerPid }: Provided): Promise<void>;
