import { createRequire } from 'node:module';
import { join } from 'node:path';
import { startDatabase, type Database } from './database.js';
import { lead, withHint } from './worker.js';

/** What is used of Jest's configuration. */
interface Config {
  projectConfig: { rootDir: string; testEnvironmentOptions: { template?: unknown; environment?: unknown } };
}

interface Environment {
  global: { process: { env: Record<string, string | undefined> } };
  setup(): Promise<void>;
  teardown(): Promise<void>;
}

type EnvironmentClass = new (config: Config, context: unknown) => Environment;

/**
 * Jest's environment with a database server for each file of tests, on a clone of `testEnvironmentOptions.template`.
 * `testEnvironmentOptions.environment` is the environment that it extends, by default `jest-environment-node`.
 */
class CalveEnvironment {
  constructor(config: Config, context: unknown) {
    const { template, environment = 'jest-environment-node' } = config.projectConfig.testEnvironmentOptions;
    if (typeof template !== 'string' || typeof environment !== 'string') {
      throw new TypeError("calve/jest: name the template in Jest's configuration: testEnvironmentOptions: { template: 'NAME' }");
    }
    return withDatabase(template, environmentClass(environment, config.projectConfig.rootDir), config, context) as unknown as CalveEnvironment;
  }
}

function withDatabase(template: string, Base: EnvironmentClass, config: Config, context: unknown): Environment {
  class WithDatabase extends Base {
    private server: Database | undefined;

    override async setup(): Promise<void> {
      await super.setup();
      // In a worker that is a process, and not a thread, the runner is its parent.
      const ownerPid = /processChild\.js$/.test(process.argv[1] ?? '') ? [process.ppid, process.pid] : process.pid;
      this.server = await withHint(startDatabase(template, { ownerPid }));
      lead(this.global, this.global.process.env, this.server);
    }

    override async teardown(): Promise<void> {
      await this.server?.stop();
      await super.teardown();
    }
  }
  return new WithDatabase(config, context);
}

export = CalveEnvironment;

/** What leads from a project to the environment that Jest brings along, where a project only finds what it depends on itself. */
const WAYS = [[], ['jest', '@jest/core', 'jest-config']];

function environmentClass(name: string, rootDir: string): EnvironmentClass {
  let missing: unknown;
  for (const way of WAYS) {
    try {
      const from = way.reduce((at, next) => createRequire(at.resolve(next)), createRequire(join(rootDir, 'package.json')));
      const found = from(name) as EnvironmentClass | { default?: EnvironmentClass; TestEnvironment?: EnvironmentClass };
      const Class = typeof found === 'function' ? found : found.TestEnvironment ?? found.default;
      if (Class !== undefined) return Class;
    } catch (error) {
      missing = error;
    }
  }
  throw new TypeError(`calve/jest: the environment \`${name}\` is not installed`, { cause: missing });
}
