import { join } from 'node:path';
import { Database, printed, startDatabase, unmark } from './database.js';
import type { DbServer } from './receipts.js';
import { lead, withHint } from './worker.js';

/** A plugin for Vite, with the members that this one has. */
export interface CalvePlugin {
  name: string;
  config(): { test: { globalSetup: string[]; setupFiles: string[]; provide: Record<string, unknown> } };
}

/** The plugin for Vitest: each worker has a database server on a clone of `template`, put back before each file of tests. */
export function calve(template: string): CalvePlugin {
  const file = (name: string) => join(__dirname, '..', 'vitest', name);
  return {
    name: 'calve',
    config: () => ({ test: { globalSetup: [file('global.mjs')], setupFiles: [file('setup.mjs')], provide: { calveTemplate: template } } }),
  };
}

/** @internal What workers are told. */
export interface Provided {
  template: string;
  /** What the names of the servers begin with. */
  prefix: string;
  ownerPid: number;
}

let projects = 0;

/** @internal In the process that starts the workers. A template that is not there is one error, and not one of each file. */
export async function prepared(template: string): Promise<Provided> {
  const { templates } = await withHint(printed(['template', 'list', '--json'])) as { templates: { name: string }[] };
  if (!templates.some(({ name }) => name === template)) {
    throw new Error(`there is no template \`${template}\`\nhint: see \`calve db template list\`, or create it: calve db template create ${template} --engine …`);
  }
  projects += 1;
  return { template, prefix: `vitest-${process.pid}-${projects}-`, ownerPid: process.pid };
}

/** @internal At the end. Where this is not reached, the servers end with their owner. */
export async function end({ prefix }: Provided): Promise<void> {
  const { servers } = await printed(['list', '--json']) as { servers: DbServer[] };
  const own = servers.filter(({ name }) => name.startsWith(prefix));
  await Promise.all(own.map((document) => new Database(document).stop()));
}

/** Ends this process at once. Vitest lets no worker call `process.exit`. */
function endAlone(): void {
  process.kill(process.pid, 'SIGKILL');
}

/** @internal In a worker, before each file. A worker is often a new process, with the number of an earlier one. */
export async function enter({ template, prefix, ownerPid }: Provided): Promise<void> {
  // In Vitest 3 a process whose runner was killed computes for ever: each report that fails makes another one.
  process.removeListener('disconnect', endAlone).on('disconnect', endAlone);
  const name = `${prefix}${process.env['VITEST_POOL_ID']}`;
  lead(globalThis, process.env, await putBack(name) ?? await withHint(startDatabase(template, { name, ownerPid })));
}

/** The server of that name, as its template is and without marks; nothing if there is none that can be. */
async function putBack(name: string): Promise<Database | undefined> {
  try {
    const documents = ['reset', 'marks'].map((command) => printed([command, '--quiet', '--json', '--', name]));
    const [{ servers }, { marks }] = await Promise.all(documents) as [{ servers: [DbServer] }, { marks: { name: string }[] }];
    if (marks.length > 0) await unmark(name, marks.map((mark) => mark.name));
    return new Database(servers[0]);
  } catch {
    await printed(['stop', '--quiet', '--json', '--', name]).catch(() => undefined);
    return undefined;
  }
}
