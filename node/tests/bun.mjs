// What a tool would do with the package, for other programs than Node. `node --test` has the rest.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { inTime } from './moment.mjs';
import { cloneTree, cloneTreeSync, probe, readFiles, removeTree, writeFiles, writeFilesSync, CalveError } from 'calve';
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'calve-bun-'));
process.chdir(folder);
const receipt = await writeFiles('tree', Object.fromEntries(Array.from({length:3000},(_, n)=>[`d${n%10}/f${n}`, n % 2 ? `x${n}` : new Uint8Array(3000)])), { mkdir: true });
assert.equal(receipt.files, 3000);
let seen = 0;
const clone = await cloneTree('tree', 'clone', { onProgress: (p) => { seen = p.entries; } });
assert.equal(clone.entries.files, 3000); assert.ok(seen >= 3000, String(seen));
assert.equal(cloneTreeSync('tree', 'clone2').schema, 'calve.clone/1');
writeFilesSync('clone', [['a', 'two']]);
for await (const [, contents] of readFiles(['clone/a'])) assert.equal(contents.toString(), 'two');
await inTime(async () => {
  const during = new AbortController();
  setTimeout(() => during.abort(), 3);
  const cloning = cloneTree('tree', 'c3', { signal: during.signal, strategy: 'copy', threads: 1, verify: true });
  const error = await cloning.then(() => undefined, (reason) => reason);
  if (error === undefined) return void fs.rmSync('c3', { recursive: true });
  assert.ok(error instanceof CalveError && error.code === 'ABORT_ERR', String(error));
  return true;
});
await assert.rejects(cloneTree('none', 'c4'), (e) => e.code === 'ERR_CALVE_MISSING' && e.errnoName === 'ENOENT');
assert.throws(() => cloneTreeSync(1, 'b'), TypeError);
async function* gen() { for (let i = 0; i < 2000; i++) yield [`g${i}`, 'x']; }
await writeFiles('clone', gen());
await removeTree('clone', { wait: true });
await removeTree('clone2');
assert.ok((await probe('.')).strategies.length > 0);
process.chdir('/');
fs.rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
console.log('ok', process.versions.bun ?? process.version);
