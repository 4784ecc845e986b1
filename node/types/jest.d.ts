/** What is used of Jest's configuration. */
interface Config {
    projectConfig: {
        rootDir: string;
        testEnvironmentOptions: {
            template?: unknown;
            environment?: unknown;
        };
    };
}
/**
 * Jest's environment with a database server for each file of tests, on a clone of `testEnvironmentOptions.template`.
 * `testEnvironmentOptions.environment` is the environment that it extends, by default `jest-environment-node`.
 */
declare class CalveEnvironment {
    constructor(config: Config, context: unknown);
}
export = CalveEnvironment;
