// Compiled, never run: what the types permit, and what they do not.
import fs from 'node:fs';
import calve, { CalveError, cloneFileSync, cloneTree, cloneTreeSync, readFiles, removeTree, removeTreeSync, writeFiles, writeFilesSync } from 'calve';
import type { CloneReceipt, Entry, WriteReceipt } from 'calve';
import calveFs, { cp, readFileSync, type Stats } from 'calve/fs';
import { cp as cpLater, readFile } from 'calve/fs/promises';

const receipt: CloneReceipt = await cloneTree('a', new URL('file:///b'), {
  require: ['cow'], onProgress: ({ entries }) => void entries, signal: AbortSignal.timeout(1),
});
const shared: number | undefined = receipt.bytes?.shared;
const written: WriteReceipt = await writeFiles(Buffer.from('root'), { a: 'x' }, { flag: 'wx', fsync: 'end' });
const failure: CalveError | undefined = written.failures[0]?.error;
const entries: Entry[] = [['a', fs.readFileSync('b')]];
writeFilesSync('root', new Map(entries));
for await (const [path, contents] of readFiles(['a', 'b'])) void (path.length + contents.length);
for await (const [, contents] of readFiles(['a'], { onError: 'collect' })) if (contents instanceof CalveError) void contents.hint;
void [shared, failure, await removeTree('a', { wait: true, force: true })];
void [removeTreeSync('a', { force: true }), cloneFileSync('a', 'b', { verify: true }), calve.probe('a')];
writeFilesSync('root', { a: new ArrayBuffer(1), b: new DataView(new ArrayBuffer(1)), c: new Float32Array(1) });

// The same types as of `node:fs`.
cp('a', new URL('file:///b'), { recursive: true, filter: async (from) => from !== 'a' }, (error) => void error?.code);
const stats: Stats = calveFs.statSync('a');
void [stats, readFileSync('a'), calveFs.cpSync('a', 'b', { verbatimSymlinks: true }), calveFs.promises.rm('a', { recursive: true })];
void [await cpLater('a', 'b', { recursive: true }), await readFile('a'), calveFs.copyFileSync('a', Buffer.from('b'), calveFs.constants.COPYFILE_EXCL)];
// @ts-expect-error options are an object
calveFs.cpSync('a', 'b', 'recursive');

// What may be undefined may be passed on, also where a property that is there must not be (exactOptionalPropertyTypes).
const signal: AbortSignal | undefined = undefined;
const onProgress: (() => Promise<void>) | undefined = undefined;
await cloneTree('a', 'b', { signal, onProgress, strategy: undefined, threads: undefined });
await removeTree('a', { signal, onProgress, wait: undefined });
await writeFiles('root', {}, { signal, mode: undefined, flag: undefined });
void readFiles(['a'], { signal, concurrency: undefined });
await cloneTree('a', 'b', { onProgress: async ({ bytes }) => void bytes });
if (failure?.code === 'ABORT_ERR') void failure.hint;

// @ts-expect-error a strategy that does not exist
await cloneTree('a', 'b', { strategy: 'magic' });
// @ts-expect-error nothing can be aborted while everything waits
cloneTreeSync('a', 'b', { signal: AbortSignal.timeout(1) });
// @ts-expect-error contents are text or bytes
writeFilesSync('root', { a: 1 });
// @ts-expect-error an option that does not exist
removeTreeSync('a', { forced: true });
// @ts-expect-error a promise has no entries
writeFilesSync('root', Promise.resolve({ a: 'x' }));

// A database server, for its block or until it is stopped.
import type { Database } from 'calve';
import { calve as forVitest } from 'calve/vitest';
import Environment from 'calve/jest';
{
  await using server: Database = await calve.startDatabase('shop', { tcp: true, name: undefined });
  await server.mark('filled');
  await server.reset({ to: 'filled' });
  const url: string | null = server.tcpUrl;
  void [url, server.environment['PGHOST'], calve.database().url, forVitest('shop').config().test.setupFiles, Environment];
}
// @ts-expect-error a template has a name
await calve.startDatabase();
