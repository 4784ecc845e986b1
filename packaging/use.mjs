// What the installed npm package must do on every platform. Run in a directory of its own with `calve` in node_modules.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import { cloneTree, cloneTreeSync, probe, readFiles, removeTree, removeTreeSync, writeFiles, writeFilesSync } from 'calve';

const before = fs.readdirSync('.').sort();
fs.mkdirSync('tree/a', { recursive: true });
fs.writeFileSync('tree/a/b', 'one');
fs.writeFileSync('tree/c', Buffer.alloc(9000));
const clone = await cloneTree('tree', 'clone');
assert.equal(clone.entries.files, 2);
assert.equal(cloneTreeSync('tree', 'clone2').schema, 'calve.clone/1');
fs.writeFileSync('clone/a/b', 'two');
assert.equal(fs.readFileSync('tree/a/b', 'utf8'), 'one');
await assert.rejects(cloneTree('none', 'clone3'), { code: 'ERR_CALVE_MISSING' });
assert.ok((await probe('tree', '.')).strategies.some((one) => one.available));
assert.equal((await writeFiles('clone', { 'd/e': 'three', f: new Uint8Array(9000) }, { mkdir: true })).files, 2);
writeFilesSync('clone', [['a/b', 'four']]);
for await (const [, contents] of readFiles(['clone/a/b'])) assert.equal(contents.toString(), 'four');
// The program, by the script that npm links to.
const calve = (...given) => spawnSync(process.execPath, ['node_modules/calve/bin/calve.js', ...given], { encoding: 'utf8' });
const copied = calve('cp', '--json', 'tree', 'clone4');
assert.equal(copied.status, 0, copied.stderr);
assert.equal(JSON.parse(copied.stdout).schema, 'calve.clone/1');
assert.equal(calve('cp', 'none', 'clone5').status, 1);
assert.equal(removeTreeSync('none', { force: true }).trash, null);
for (const name of ['clone', 'clone2', 'clone4', 'tree']) await removeTree(name, { wait: true });
assert.deepEqual(fs.readdirSync('.').sort(), before);
console.log(`npm: ${process.platform} ${process.arch}, Node ${process.version}, cloned by ${clone.strategy}`);
