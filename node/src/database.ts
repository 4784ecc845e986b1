import { spawn } from 'node:child_process';
import type { Socket } from 'node:net';
import { checkText, flag, invalid, object, wrong } from './arguments.js';
import { CalveError, fromDocument, type Document } from './errors.js';
import { program } from './native.js';
import type { DbServer } from './receipts.js';

/** How to start a server. */
export interface StartOptions {
  /** What `calve db list` calls it. By default the template's name, and some letters. */
  name?: string | undefined;
  /** Whether it also listens on 127.0.0.1, with a password; a number is the port. */
  tcp?: boolean | number | undefined;
  /** The server ends when this process ends, however it does. By default this one. Of several, the first that ends counts. */
  ownerPid?: number | readonly number[] | undefined;
}

/** A running database server, and how it is reached. It ends by `stop()`, with its `await using` block, or with its owner. */
export class Database {
  /** What `calve db list` calls it. */
  readonly name: string;
  /** `postgres`, `mariadb`, `mysql`, `redis` or `valkey`. */
  readonly engine: string;
  /** The address by the private socket. */
  readonly url: string;
  /** The address by TCP, with the password. Null without `tcp`. */
  readonly tcpUrl: string | null;
  /** For PostgreSQL the directory of the socket, which drivers take for a host; for MariaDB and MySQL `localhost`. */
  readonly host: string;
  /** The port, which for PostgreSQL is part of the socket's name. */
  readonly port: number;
  /** The socket. */
  readonly socket: string;
  /** The superuser. */
  readonly user: string;
  /** For TCP; the socket needs none. */
  readonly password: string | null;
  /** A database that always exists. */
  readonly database: string;
  /** The port on 127.0.0.1. Null without `tcp`. */
  readonly tcpPort: number | null;
  /** The variables by which programs find this server and no other. Null: the variable must not be set. */
  readonly environment: Readonly<Record<string, string | null>>;

  /** @internal */
  constructor(document: DbServer) {
    this.name = document.name;
    this.engine = document.engine;
    this.url = document.url;
    this.tcpUrl = document.tcp_url;
    this.host = document.host;
    this.port = document.port;
    this.socket = typeof document.socket === 'string' ? document.socket : Buffer.from(document.socket.bytes_base64, 'base64').toString('latin1');
    this.user = document.user;
    this.password = document.password;
    this.database = document.database;
    this.tcpPort = document.tcp_port;
    this.environment = document.environment ?? {};
  }

  /** Puts it back to its template, or to a mark. The address stays; sessions are cut off. */
  async reset(options?: { to?: string | undefined }): Promise<void> {
    const { to } = object<{ to?: string | undefined }>(options, ['to']);
    const mark = to === undefined ? [] : ['--to', text(to, 'options.to')];
    await printed(['reset', '--quiet', '--json', ...mark, '--', this.name]);
  }

  /** Keeps the present state as a mark, to which `reset` goes back. */
  async mark(name: string): Promise<void> {
    await printed(['mark', '--quiet', '--json', '--', this.name, text(name, 'name')]);
  }

  /** Ends it. Its files are gone. */
  async stop(): Promise<void> {
    const done = await run(['stop', '--quiet', '--json', '--', this.name]);
    // It may have ended by itself, or with its owner.
    if (done.code !== 0 && (await run(['url', '--', this.name])).code === 0) throw await failure(done);
  }

  /** The same as `stop()`, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}

const SERVER = 'calve.db.server/1';

/** Starts a database server on a clone of a template. Resolves when the server answers. */
export async function startDatabase(template: string, options?: StartOptions): Promise<Database> {
  const { name, tcp, ownerPid } = object<StartOptions>(options, ['name', 'tcp', 'ownerPid']);
  const owners = Array.isArray(ownerPid) ? ownerPid as readonly unknown[] : [ownerPid === undefined ? process.pid : ownerPid];
  const given = owners.map((pid) => `--owner-pid=${whole(pid, 'options.ownerPid')}`);
  if (name !== undefined) given.push('--name', text(name, 'options.name'));
  if (typeof tcp === 'number') given.push(`--tcp=${whole(tcp, 'options.tcp')}`);
  else if (flag(tcp, 'tcp')) given.push('--tcp');
  return new Database(await printed(['start', '--quiet', '--json', ...given, '--', text(template, 'template')]) as DbServer);
}

function text(value: unknown, name: string): string {
  if (typeof value !== 'string') throw wrong(name, 'a string', value);
  checkText(value, name);
  return value;
}

function whole(value: unknown, name: string): number {
  if (typeof value !== 'number') throw wrong(name, 'a number', value);
  if (!Number.isInteger(value) || value < 1) throw invalid(name, 'must be a positive whole number');
  return value;
}

interface Done {
  program: string;
  code: number | null;
  stdout: string;
  stderr: string;
}

/** @internal Runs `calve db` and returns the document that it prints. */
export async function printed(words: string[]): Promise<unknown> {
  const done = await run(words);
  const document = parsed(done.stdout);
  // What earlier versions print of a server lacks its environment.
  const isWhole = document.schema !== SERVER || 'environment' in document;
  if (done.code === 0 && document.schema?.startsWith('calve.db.') && isWhole) return document;
  throw await failure(done);
}

/** @internal Removes marks of a server, for which `calve db` prints no document. */
export async function unmark(server: string, marks: string[]): Promise<void> {
  const done = await run(['unmark', '--quiet', '--', server, ...marks]);
  if (done.code !== 0) throw await failure(done);
}

async function run(words: string[]): Promise<Done> {
  const file = program();
  // A start has its answer before it looks after the pool.
  const answer = words[0] === 'start' ? `{\n  "schema": "${SERVER}"` : undefined;
  return ended(file, ['db', ...words], answer);
}

/** Resolves when the program has ended, or has printed a JSON document that begins with `answer`: then nothing waits for its end. */
function ended(file: string, words: string[], answer?: string): Promise<Done> {
  const child = spawn(file, words, { stdio: ['ignore', 'pipe', 'pipe'] });
  return new Promise((resolve, reject) => {
    const done: Done = { program: file, code: null, stdout: '', stderr: '' };
    child.stdout.setEncoding('utf8').on('data', (data: string) => {
      done.stdout += data;
      if (answer === undefined || !done.stdout.startsWith(answer) || !done.stdout.endsWith('\n}\n')) return;
      child.unref();
      for (const stream of [child.stdout, child.stderr] as unknown as Socket[]) stream.unref();
      resolve({ ...done, code: 0 });
    });
    child.stderr.setEncoding('utf8').on('data', (data: string) => { done.stderr += data; });
    child.on('error', (error) => reject(new CalveError({
      code: 'ERR_CALVE_IO', message: `cannot start \`${file}\`: ${error.message}`, hint: 'install the package again, with its optional dependencies',
    }, error)));
    child.on('close', (code) => resolve({ ...done, code }));
  });
}

async function failure(done: Done): Promise<CalveError> {
  const document = parsed(done.stdout);
  if (document.schema === 'calve.error/1') return fromDocument(document as unknown as Document);
  const told = done.stderr.trim();
  const version = (await ended(done.program, ['--version'])).stdout.trim();
  const own = (require('../package.json') as { version: string }).version;
  if (version !== `calve ${own}`) {
    const message = `\`${done.program}\` is ${version || 'not calve'}, and the package is calve ${own}${told && `: ${told}`}`;
    return new CalveError({ code: 'ERR_CALVE_OTHER_VERSION', message, hint: 'install the package again, with its optional dependencies' });
  }
  return new CalveError({ code: 'ERR_CALVE_DB', message: told || `\`calve db\` ended with ${done.code}` });
}

function parsed(text: string): { schema?: string } {
  try {
    return Object(JSON.parse(text)) as { schema?: string };
  } catch {
    return {};
  }
}
