// Compiled, never run: what the types permit, and what they do not.
import fs from 'node:fs';
import { CalveError, cloneTree, cloneTreeSync, readFiles, removeTree, writeFiles, writeFilesSync } from 'calve';
import type { CloneReceipt, Entry, WriteReceipt } from 'calve';

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
void [shared, failure, await removeTree('a', { wait: true })];

// @ts-expect-error a strategy that does not exist
await cloneTree('a', 'b', { strategy: 'magic' });
// @ts-expect-error nothing can be aborted while everything waits
cloneTreeSync('a', 'b', { signal: AbortSignal.timeout(1) });
// @ts-expect-error contents are text or bytes
writeFilesSync('root', { a: 1 });
