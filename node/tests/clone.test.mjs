// Against the installed package: trees.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, afterEach, beforeEach, test } from 'node:test';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';
import { onSmallDisk } from './machine.mjs';
import { inTime, until } from './moment.mjs';
import { CalveError, cloneFile, cloneTree, cloneTreeSync, probe, removeTree } from 'calve';

let folder;
beforeEach(() => { folder = fs.mkdtempSync(path.join(os.tmpdir(), 'calve-')); });
afterEach(() => fs.rmSync(folder, { recursive: true, force: true }));
const at = (...names) => path.join(folder, ...names);

function tree(name, directories, files) {
  for (let d = 0; d < directories; d += 1) {
    fs.mkdirSync(at(name, `d${d}`), { recursive: true });
    for (let f = 0; f < files; f += 1) fs.writeFileSync(at(name, `d${d}`, `f${f}`), `contents ${d} ${f}`);
  }
  return at(name);
}

/** What takes long enough to be in the middle of, with the tree below: 6,000 files, made once, for that can take long too. */
const SLOW = { strategy: 'copy', verify: true, threads: 1 };
let large;
after(() => large && fs.rmSync(path.dirname(large), { recursive: true, force: true }));

function largeTree() {
  if (large === undefined) {
    const own = folder;
    folder = fs.mkdtempSync(path.join(os.tmpdir(), 'calve-large-'));
    large = tree('src', 60, 100);
    folder = own;
  }
  return large;
}

/** Whether nothing is in the folder. Otherwise the clone was complete before something could end it, and is taken away. */
function nothingLeft() {
  if (fs.readdirSync(folder).length === 0) return true;
  assert.deepEqual(fs.readdirSync(folder), ['dst']);
  execFileSync('diff', ['-r', largeTree(), at('dst')]);
  fs.rmSync(at('dst'), { recursive: true });
  return false;
}

const rejects = async (promise, code) => {
  const error = await promise.then(() => assert.fail('it was not rejected'), (reason) => reason);
  assert.ok(error instanceof CalveError, String(error));
  assert.equal(error.code, code);
  return error;
};

test('a tree is cloned, with a receipt, and is independent', async () => {
  const src = tree('src', 3, 4);
  fs.symlinkSync('d0', at('src', 'link'));
  const receipt = await cloneTree(src, at('dst'));
  assert.equal(receipt.schema, 'calve.clone/1');
  assert.equal(receipt.entries.files, 12);
  execFileSync('diff', ['-r', '--no-dereference', src, at('dst')]);
  fs.writeFileSync(at('dst', 'd0', 'f0'), 'changed');
  assert.equal(fs.readFileSync(at('src', 'd0', 'f0'), 'utf8'), 'contents 0 0');
  assert.equal(cloneTreeSync(src, at('dst2'), { strategy: 'copy', exclude: 'd1', verify: true, threads: 2 }).strategy, 'copy');
  assert.deepEqual(fs.readdirSync(at('dst2')).sort(), ['d0', 'd2', 'link']);
  assert.deepEqual(fs.readdirSync(folder).sort(), ['dst', 'dst2', 'src']);
});

test('required from CommonJS it is the same', () => {
  const required = createRequire(import.meta.url)('calve');
  assert.equal(required.cloneTree, cloneTree);
  assert.deepEqual(Object.keys(required).sort(),
    ['CalveError', 'cloneFile', 'cloneTree', 'cloneTreeSync', 'probe', 'readFiles', 'removeTree', 'writeFiles', 'writeFilesSync']);
});

test('paths are strings, buffers and URLs, and need not be UTF-8', async () => {
  const src = Buffer.concat([Buffer.from(folder), Buffer.from('/a\xff', 'latin1')]);
  fs.mkdirSync(src);
  await cloneTree(src, pathToFileURL(at('b c')));
  assert.ok(fs.existsSync(at('b c')));
  const receipt = await cloneTree(pathToFileURL(at('b c')), Buffer.concat([src, Buffer.from('2')]));
  assert.equal(Buffer.from(receipt.dst.bytes_base64, 'base64').compare(Buffer.concat([src, Buffer.from('2')])), 0);
  const error = await rejects(cloneTree(at('none'), src), 'ERR_CALVE_MISSING');
  assert.equal(error.errno, -os.constants.errno.ENOENT);
  assert.deepEqual((await rejects(cloneTree(at('b c'), src), 'ERR_CALVE_DESTINATION_EXISTS')).path, src);
});

test('wrong arguments are TypeErrors that name them', async () => {
  const typeError = async (call, name) => {
    const error = await Promise.resolve().then(call).then(() => assert.fail(name), (reason) => reason);
    assert.ok(error instanceof TypeError || error instanceof RangeError, `${error}`);
    assert.ok(error.message.includes(`\`${name}\``), error.message);
  };
  await typeError(() => cloneTree(1, 'b'), 'src');
  await typeError(() => cloneTree('a', null), 'dst');
  await typeError(() => cloneTree('a', ''), 'dst');
  await typeError(() => cloneTree('a\0', 'b'), 'src');
  await typeError(() => cloneTree('a\ud800', 'b'), 'src');
  await typeError(() => cloneTree('a', 'b', 'fast'), 'options');
  await typeError(() => cloneTree('a', 'b', { threads: 'two' }), 'options.threads');
  await typeError(() => cloneTree('a', 'b', { threads: 0 }), 'options.threads');
  await typeError(() => cloneTree('a', 'b', { strategy: 'magic' }), 'options.strategy');
  await typeError(() => cloneTree('a', 'b', { require: ['fast'] }), 'options.require');
  await typeError(() => cloneTree('a', 'b', { signal: {} }), 'options.signal');
  await typeError(() => cloneTree('a', 'b', { onProgress: 1 }), 'options.onProgress');
  await typeError(() => cloneTreeSync('a', 'b', { signal: new AbortController().signal }), 'options.signal');
  await typeError(() => cloneTree('a', 'b', { exclude: [1] }), 'options.exclude');
  for (const name of ['replace', 'oneFileSystem', 'sync', 'verify']) await typeError(() => cloneTree('a', 'b', { [name]: 'yes' }), `options.${name}`);
  await typeError(() => cloneFile('a', {}), 'dst');
  await typeError(() => cloneFile(new URL('http://a/b'), 'dst'), 'src');
  await typeError(() => cloneTreeSync(undefined, 'b'), 'src');
  await typeError(() => cloneTreeSync('a', 'b', { onProgress: () => {} }), 'options.onProgress');
  await typeError(() => removeTree('a', { wait: 1 }), 'options.wait');
  await typeError(() => removeTree('a', { onProgress: 'x' }), 'options.onProgress');
  await typeError(() => removeTree('a\udfff'), 'path');
  await typeError(() => removeTree(), 'path');
  await typeError(() => probe(true), 'src');
});

test('errors say what, where and what to do', async () => {
  const src = tree('src', 1, 1);
  const exists = await rejects(cloneTree(src, src), 'ERR_CALVE_SAME');
  assert.ok(exists.hint.length > 0);
  const directory = await rejects(cloneFile(src, at('dst')), 'ERR_CALVE_IO');
  assert.deepEqual([directory.syscall, directory.errnoName, directory.errno], ['clone the file', 'EISDIR', -os.constants.errno.EISDIR]);
  assert.match(directory.hint, /needs a file/);
  fs.mkdirSync(at('there'));
  fs.writeFileSync(at('there', 'x'), '');
  // The program's options by the names that they have here.
  assert.match((await rejects(cloneTree(src, at('there')), 'ERR_CALVE_DESTINATION_EXISTS')).hint, /pass `replace` to swap/);
  const instant = await rejects(cloneFile(at('src', 'd0', 'f0'), at('dst'), { require: 'instant' }), 'ERR_CALVE_REQUIREMENT_REFUSED');
  assert.match(instant.message, /`require: 'instant'` cannot be met/);
  assert.match(instant.hint, /call `probe\(src, dst\)`/);
  assert.equal((await cloneFile(at('src', 'd0', 'f0'), at('file'))).entries.files, 1);
  const refused = await rejects(cloneTree(src, at('dst'), { strategy: 'snapshot' }), 'ERR_CALVE_REQUIREMENT_REFUSED');
  assert.equal(refused.refused[0].strategy, 'snapshot');
  assert.throws(() => cloneTreeSync(at('none'), at('dst')), (error) => error instanceof CalveError && error.errnoName === 'ENOENT');
  assert.ok(!fs.existsSync(at('dst')));
});

test('an existing target is exchanged, and its old contents deleted in the background', async () => {
  const src = tree('src', 1, 2);
  tree('dst', 4, 1);
  await cloneTree(src, at('dst'), { replace: true });
  assert.deepEqual(fs.readdirSync(at('dst')), ['d0']);
  await until(() => fs.readdirSync(folder).length === 2);
});

test('removing is immediate, or waits', async () => {
  tree('a', 2, 3);
  const receipt = await removeTree(at('a'));
  assert.ok(!fs.existsSync(at('a')) && receipt.trash !== undefined);
  await until(() => fs.readdirSync(folder).length === 0);
  tree('a', 2, 3);
  assert.equal((await removeTree(at('a'), { wait: true })).deleted_entries, 9);
  assert.deepEqual(fs.readdirSync(folder), []);
  await rejects(removeTree(at('a')), 'ERR_CALVE_MISSING');
  await rejects(removeTree('/'), 'ERR_CALVE_PROTECTED');
});

test('what is not there', async () => {
  const src = tree('src', 1, 1);
  assert.equal((await rejects(cloneTree(at('none'), at('dst')), 'ERR_CALVE_MISSING')).path, at('none'));
  assert.equal((await rejects(cloneTree(src, at('none', 'dst')), 'ERR_CALVE_PARENT_MISSING')).path, at('none'));
  await rejects(cloneFile(at('none'), at('dst')), 'ERR_CALVE_MISSING');
  await rejects(probe(at('none')), 'ERR_CALVE_MISSING');
  await rejects(probe(src, at('none', 'deep')), 'ERR_CALVE_PARENT_MISSING');
  // A file in place of a directory on the way.
  const inTheWay = await rejects(cloneTree(src, at('src', 'd0', 'f0', 'dst')), 'ERR_CALVE_IO');
  assert.equal(inTheWay.errnoName, 'ENOTDIR');
  assert.deepEqual(fs.readdirSync(folder), ['src']);
});

test('removing: aborted, and a callback that throws', async () => {
  await cloneTree(largeTree(), at('a'));
  await rejects(removeTree(at('a'), { signal: AbortSignal.abort() }), 'ERR_CALVE_ABORTED');
  assert.equal(fs.readdirSync(at('a')).length, 60);
  const thrown = new Error('no more');
  await assert.rejects(removeTree(at('a'), { wait: true, onProgress: () => { throw thrown; } }), (error) => error === thrown);
  assert.ok(!fs.existsSync(at('a', 'd59', 'f99')));
  // What was left of it is trash, which the next removal here takes away.
  tree('b', 1, 1);
  await removeTree(at('b'));
  await until(() => fs.readdirSync(folder).length === 0);
});

test('a probe lists the strategies', async () => {
  const answer = await probe(folder);
  assert.equal(answer.schema, 'calve.probe/1');
  assert.ok(answer.strategies.some((one) => one.strategy === 'copy' && one.available));
});

test('aborting before, during and after', async () => {
  const src = largeTree();
  const before = await rejects(cloneTree(src, at('dst'), { signal: AbortSignal.abort('why') }), 'ERR_CALVE_ABORTED');
  assert.equal(before.cause, 'why');
  assert.equal(before.name, 'AbortError');
  assert.deepEqual([before.errno, before.errnoName], [-os.constants.errno.ECANCELED, 'ECANCELED']);
  await inTime(async () => {
    const during = new AbortController();
    const cloning = cloneTree(src, at('dst'), { ...SLOW, signal: during.signal });
    setTimeout(() => during.abort(), 5);
    const [settled] = await Promise.allSettled([cloning]);
    if (settled.status === 'rejected') await rejects(cloning, 'ERR_CALVE_ABORTED');
    const nothing = nothingLeft();
    assert.equal(nothing, settled.status === 'rejected');
    return nothing;
  });
  const after = new AbortController();
  await cloneTree(src, at('dst'), { signal: after.signal });
  after.abort();
  assert.deepEqual(fs.readdirSync(folder), ['dst']);
});

test('progress is reported; what the callback throws ends the clone', async () => {
  const src = largeTree();
  const seen = [];
  await cloneTree(src, at('dst'), { onProgress: (progress) => seen.push(progress) });
  assert.ok(seen.at(-1).entries >= 6000, JSON.stringify(seen.at(-1)));
  assert.ok(seen.every((one, index) => index === 0 || one.entries >= seen[index - 1].entries));
  const thrown = new Error('no more');
  await assert.rejects(
    cloneTree(src, at('dst2'), { onProgress: () => { throw thrown; }, strategy: 'copy', verify: true, threads: 1 }),
    (error) => error === thrown,
  );
  assert.deepEqual(fs.readdirSync(folder).filter((name) => name.startsWith('.')), []);
  // So short that only the last call is made: the clone is there, and the error arrives.
  fs.mkdirSync(at('empty'));
  await assert.rejects(cloneTree(at('empty'), at('dst3'), { onProgress: () => { throw thrown; } }), (error) => error === thrown);
  assert.ok(fs.existsSync(at('dst3')));
});

test('the event loop goes on during a clone', async () => {
  const src = largeTree();
  // One that is blocked never turns in the middle. How long it stands still is for the bench.
  await inTime(async () => {
    let turns = 0;
    const timer = setInterval(() => { turns += 1; }, 1);
    await cloneTree(src, at('dst'), SLOW);
    clearInterval(timer);
    fs.rmSync(at('dst'), { recursive: true });
    return turns >= 5;
  });
});

test('clones at the same time, from worker threads too', async () => {
  const src = tree('src', 5, 5);
  await Promise.all(Array.from({ length: 8 }, (_, n) => cloneTree(src, at(`dst${n}`))));
  const code = `const { parentPort, workerData } = require('node:worker_threads');
    require('calve').cloneTree(workerData.src, workerData.dst).then((receipt) => parentPort.postMessage(receipt.entries.files));`;
  const counts = await Promise.all([8, 9].map((n) => new Promise((resolve, reject) => {
    const worker = new Worker(code, { eval: true, workerData: { src, dst: at(`dst${n}`) } });
    worker.on('message', resolve);
    worker.on('error', reject);
  })));
  assert.deepEqual(counts, [25, 25]);
  assert.equal(fs.readdirSync(folder).length, 11);
});

test('a worker that is terminated during a clone leaves nothing', async () => {
  const src = largeTree();
  const code = `const { parentPort, workerData } = require('node:worker_threads');
    require('calve').cloneTree(workerData.src, workerData.dst, { strategy: 'copy', verify: true, threads: 1 });
    parentPort.postMessage('started');`;
  await inTime(async () => {
    const worker = new Worker(code, { eval: true, workerData: { src, dst: at('dst') } });
    await new Promise((resolve, reject) => { worker.on('message', resolve); worker.on('error', reject); });
    await worker.terminate();
    return nothingLeft();
  });
});

test('a process that exits during a clone leaves nothing', async () => {
  const src = largeTree();
  const code = `const { cloneTree } = require('calve');
    cloneTree(process.argv[1], process.argv[2], { strategy: 'copy', verify: true, threads: 1 });
    setTimeout(() => process.exit(7), 10);`;
  await inTime(() => {
    const run = spawnSync(process.execPath, ['-e', code, src, at('dst')], { encoding: 'utf8' });
    assert.equal(run.status, 7, run.stderr);
    return nothingLeft();
  });
});

test('what begins when the process exits is too late', () => {
  const src = tree('src', 3, 4);
  const code = `const { cloneTree, cloneTreeSync } = require('calve');
    cloneTreeSync(process.argv[1], process.argv[2]);
    process.on('exit', () => {
      cloneTree(process.argv[1], process.argv[2] + 'a');
      for (const until = Date.now() + 300; Date.now() < until;);
      // This is waited for.
      cloneTreeSync(process.argv[1], process.argv[2] + 'b');
    });`;
  const run = spawnSync(process.execPath, ['-e', code, src, at('dst')], { encoding: 'utf8' });
  assert.equal(run.status, 0, run.stderr);
  assert.deepEqual(fs.readdirSync(folder).sort(), ['dst', 'dstb', 'src']);
});

test('an exception that nobody catches ends the process, and leaves nothing', async () => {
  const src = largeTree();
  const code = `const { cloneTree } = require('calve');
    cloneTree(process.argv[1], process.argv[2], { strategy: 'copy', verify: true, threads: 1 });
    setTimeout(() => { throw new Error('nobody catches this'); }, 10);`;
  await inTime(() => {
    const run = spawnSync(process.execPath, ['-e', code, src, at('dst')], { encoding: 'utf8' });
    assert.equal(run.status, 1);
    assert.match(run.stderr, /nobody catches this/);
    return nothingLeft();
  });
});

test('a disk that fills up during clones', async (t) => {
  fs.mkdirSync(at('src'));
  for (let n = 0; n < 60; n += 1) fs.writeFileSync(at('src', `${n}`), Buffer.alloc(100_000, n));
  // Room for one, so that each finds enough of it at the beginning, but not for all three.
  await onSmallDisk(t, at('small'), 'size=10m', async () => {
    const clones = ['a', 'b', 'c'].map((name) => cloneTree(at('src'), at('small', name), { threads: 1 }).then(() => name));
    const settled = await Promise.allSettled(clones);
    const failed = settled.filter((one) => one.status === 'rejected').map((one) => one.reason);
    assert.ok(failed.length >= 2, `${failed.length}`);
    for (const error of failed) assert.ok(error instanceof CalveError && error.errnoName === 'ENOSPC' && error.hint.includes('space'), `${error}`);
    const complete = settled.filter((one) => one.status === 'fulfilled').map((one) => one.value);
    assert.deepEqual(fs.readdirSync(at('small')), complete);
  });
});
