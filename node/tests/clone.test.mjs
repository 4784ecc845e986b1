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
import { CalveError, cloneFile, cloneFileSync, cloneTree, cloneTreeSync, probe, removeTree, removeTreeSync } from 'calve';

let folder;
beforeEach(() => { folder = fs.mkdtempSync(path.join(os.tmpdir(), 'calve-')); });
// What deletes in the background may still be at it.
afterEach(() => fs.rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 }));
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
after(() => large && fs.rmSync(path.dirname(large), { recursive: true, force: true, maxRetries: 20, retryDelay: 50 }));

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
  cloneTreeSync(src, at('dst3'), { exclude: ['d*', '!d1'] });
  assert.deepEqual(fs.readdirSync(at('dst3')).sort(), ['d1', 'link']);
  assert.deepEqual(fs.readdirSync(folder).sort(), ['dst', 'dst2', 'dst3', 'src']);
});

test('a source that nobody writes to is stable, where the file system can tell', async () => {
  const src = tree('src', 3, 4);
  const { file_system } = (await probe(src)).src;
  if (['ext4', 'xfs', 'btrfs'].includes(file_system)) {
    await cloneTree(src, at('dst'), { require: 'stable' });
    cloneTreeSync(src, at('dst2'), { require: ['stable'], verify: true });
    await cloneFile(path.join(src, 'd0', 'f0'), at('file'), { require: 'stable', verify: true });
    for (const made of ['dst', 'dst2']) execFileSync('diff', ['-r', src, at(made)]);
    assert.equal(fs.readFileSync(at('file'), 'utf8'), 'contents 0 0');
  } else {
    const error = await cloneTree(src, at('dst'), { require: 'stable' }).catch((reason) => reason);
    assert.ok(error.schema === 'calve.clone/1' || error.code === 'ERR_CALVE_REQUIREMENT_REFUSED', `${file_system}: ${error}`);
  }
});

test('required from CommonJS it is the same', () => {
  const required = createRequire(import.meta.url)('calve');
  assert.equal(required.cloneTree, cloneTree);
  assert.deepEqual(Object.keys(required).sort(),
    ['CalveError', 'Database', 'cloneFile', 'cloneFileSync', 'cloneTree', 'cloneTreeSync', 'database', 'isSupported', 'probe', 'readFiles', 'removeTree', 'removeTreeSync',
      'startDatabase', 'writeFiles', 'writeFilesSync']);
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
  await typeError(() => cloneFileSync('a', 'b', { signal: new AbortController().signal }), 'options.signal');
  await typeError(() => removeTreeSync('a', { onProgress: () => {} }), 'options.onProgress');
  await typeError(() => removeTreeSync('a', { force: 1 }), 'options.force');
});

test('options that do not exist are TypeErrors with the nearest name', async () => {
  const unknown = async (call, name, meant) => {
    const error = await Promise.resolve().then(call).then(() => assert.fail(name), (reason) => reason);
    assert.ok(error instanceof TypeError && error.code === 'ERR_INVALID_ARG_VALUE', `${error}`);
    assert.ok(error.message.includes(`\`options.${name}\` is unknown; did you mean \`${meant}\`?`), error.message);
  };
  await unknown(() => cloneTree('a', 'b', { one_file_system: true }), 'one_file_system', 'oneFileSystem');
  await unknown(() => cloneTree('a', 'b', { onprogress: () => {} }), 'onprogress', 'onProgress');
  await unknown(() => cloneTreeSync('a', 'b', { excludes: 'x' }), 'excludes', 'exclude');
  await unknown(() => cloneFile('a', 'b', { overwrite: true, thread: 1 }), 'thread', 'threads').catch(() => {});
  await unknown(() => removeTree('a', { forced: true }), 'forced', 'force');
  await unknown(() => removeTreeSync('a', { Wait: true }), 'Wait', 'wait');
  await assert.rejects(cloneTree('a', 'b', { recursive: true }), /`options.recursive` is unknown; the options are `strategy`, /);
});

test('an option that is undefined was not given', async () => {
  const src = tree('src', 1, 1);
  const none = Object.fromEntries(['strategy', 'require', 'exclude', 'replace', 'oneFileSystem', 'threads', 'sync', 'verify', 'signal', 'onProgress', 'other'].map((name) => [name, undefined]));
  await cloneTree(src, at('a'), none);
  cloneTreeSync(src, at('b'), none);
  cloneFileSync(at('src', 'd0', 'f0'), at('c'), none);
  await removeTree(at('a'), { wait: undefined, force: undefined, signal: undefined, onProgress: undefined });
  removeTreeSync(at('b'), { wait: true, force: undefined, signal: undefined, onProgress: undefined });
});

test('errors say what, where and what to do', async () => {
  const src = tree('src', 1, 1);
  const exists = await rejects(cloneTree(src, src), 'ERR_CALVE_SAME');
  assert.ok(exists.hint.length > 0);
  const directory = await rejects(cloneFile(src, at('dst')), 'ERR_CALVE_IS_A_DIRECTORY');
  assert.deepEqual([directory.syscall, directory.errnoName, directory.errno], ['clone the file', 'EISDIR', -os.constants.errno.EISDIR]);
  assert.match(directory.hint, /a file is needed/);
  fs.mkdirSync(at('there'));
  fs.writeFileSync(at('there', 'x'), '');
  // The program's options by the names that they have here.
  assert.match((await rejects(cloneTree(src, at('there')), 'ERR_CALVE_DESTINATION_EXISTS')).hint, /`replace` swaps the clone in/);
  const instant = await rejects(cloneFile(at('src', 'd0', 'f0'), at('dst'), { require: 'instant' }), 'ERR_CALVE_REQUIREMENT_REFUSED');
  assert.match(instant.message, /the requirement `instant` cannot be met here/);
  assert.match(instant.hint, /call `probe\(src, dst\)`/);
  assert.equal((await cloneFile(at('src', 'd0', 'f0'), at('file'))).entries.files, 1);
  assert.equal(cloneFileSync(at('src', 'd0', 'f0'), at('file2')).entries.files, 1);
  assert.throws(() => cloneFileSync(src, at('dst')), (error) => error instanceof CalveError && error.errnoName === 'EISDIR');
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
  const inTheWay = await rejects(cloneTree(src, at('src', 'd0', 'f0', 'dst')), 'ERR_CALVE_NOT_A_DIRECTORY');
  assert.equal(inTheWay.errnoName, 'ENOTDIR');
  assert.deepEqual(fs.readdirSync(folder), ['src']);
});

test('removing by a function that blocks', async () => {
  tree('a', 2, 3);
  assert.equal(removeTreeSync(at('a'), { wait: true }).deleted_entries, 9);
  tree('a', 2, 3);
  assert.notEqual(removeTreeSync(at('a')).trash, null);
  assert.ok(!fs.existsSync(at('a')));
  await until(() => fs.readdirSync(folder).length === 0);
  assert.throws(() => removeTreeSync(at('a')), (error) => error instanceof CalveError && error.code === 'ERR_CALVE_MISSING' && error.path === at('a'));
  assert.throws(() => removeTreeSync('/'), (error) => error.code === 'ERR_CALVE_PROTECTED');
});

test('a missing path is no error with force', async () => {
  const nothing = { path: at('a'), trash: null, deleted_entries: 0, warnings: [], elapsed_ms: 0 };
  for (const wait of [false, true]) {
    assert.deepEqual(await removeTree(at('a'), { force: true, wait }), nothing);
    assert.deepEqual(removeTreeSync(at('a'), { force: true, wait }), nothing);
    assert.equal((await removeTree(at('none', 'deep'), { force: true, wait })).trash, null);
  }
  await rejects(removeTree('/', { force: true }), 'ERR_CALVE_PROTECTED');
  tree('a', 1, 1);
  assert.equal((await removeTree(at('a'), { force: true, wait: true })).deleted_entries, 3);
});

test('of several that remove the same tree one does it, and the others find nothing', async () => {
  for (let round = 0; round < 20; round += 1) {
    tree('a', 2, 2);
    const settled = await Promise.allSettled(Array.from({ length: 6 }, () => removeTree(at('a'), { wait: true })));
    const codes = settled.filter((one) => one.status === 'rejected').map((one) => one.reason.code);
    assert.deepEqual(codes, Array(5).fill('ERR_CALVE_MISSING'));
  }
});

test('what a wait for deletion leaves is deleted in the background, however it ends', async () => {
  const thrown = new Error('no more');
  const fails = () => { throw thrown; };
  await cloneTree(largeTree(), at('a'));
  await rejects(removeTree(at('a'), { wait: true, signal: AbortSignal.abort() }), 'ABORT_ERR');
  assert.equal(fs.readdirSync(at('a')).length, 60);
  for (const onProgress of [fails, async () => fails(), () => ({ then: (_, reject) => reject(thrown) })]) {
    if (!fs.existsSync(at('a'))) await cloneTree(largeTree(), at('a'));
    await assert.rejects(removeTree(at('a'), { wait: true, onProgress }), (error) => error === thrown);
    assert.ok(!fs.existsSync(at('a')));
    await until(() => fs.readdirSync(folder).length === 0);
  }
  tree('a', 1, 1);
  await assert.rejects(removeTree(at('a'), { onProgress: fails }), (error) => error === thrown);
  await until(() => fs.readdirSync(folder).length === 0);
  await inTime(async () => {
    await cloneTree(largeTree(), at('a'));
    const during = new AbortController();
    let isOver = false;
    const removing = removeTree(at('a'), { wait: true, signal: during.signal });
    const over = removing.then(() => undefined, (reason) => reason).finally(() => { isOver = true; });
    // Without a pause: on a machine that has nothing else to do, the deletion takes less than one.
    while (!isOver && fs.existsSync(at('a'))) await new Promise((resolve) => { setImmediate(resolve); });
    during.abort('why');
    const error = await over;
    await until(() => fs.readdirSync(folder).length === 0);
    if (error !== undefined) assert.deepEqual([error.name, error.code, error.cause], ['AbortError', 'ABORT_ERR', 'why']);
    return error !== undefined;
  });
});

test('trash is deleted also where no program can be started', () => {
  const { name } = path.parse(fs.readdirSync('node_modules').find((one) => /^calve-/.test(one)));
  for (const one of ['calve', name]) fs.cpSync(path.resolve('node_modules', one), at('node_modules', one), { recursive: true });
  for (const program of fs.readdirSync(at('node_modules', name, 'bin'))) fs.chmodSync(at('node_modules', name, 'bin', program), 0o644);
  const code = `const { cloneTree, removeTree, removeTreeSync } = require('calve');
    (async () => {
      await cloneTree(process.argv[1], process.argv[2] + '/a');
      await removeTree(process.argv[2] + '/a');
      await cloneTree(process.argv[1], process.argv[2] + '/b');
      removeTreeSync(process.argv[2] + '/b');
    })();`;
  const src = tree('src', 3, 3);
  fs.mkdirSync(at('place'));
  const run = spawnSync(process.execPath, ['-e', code, src, at('place')], { cwd: folder, encoding: 'utf8' });
  assert.equal(run.status, 0, run.stderr);
  // The process has ended when it is done.
  assert.deepEqual(fs.readdirSync(at('place')), []);
});

test('a process that runs for long collects the background processes that have ended', { skip: process.platform !== 'linux' }, async () => {
  const children = () => fs.readFileSync(`/proc/self/task/${process.pid}/children`, 'utf8').trim();
  for (const one of ['a', 'b']) await removeTree(tree(one, 2, 2));
  assert.notEqual(children(), '');
  await until(() => fs.readdirSync(folder).length === 0 && children() === '');
});

test('a probe lists the strategies', async () => {
  const answer = await probe(folder);
  assert.equal(answer.schema, 'calve.probe/1');
  assert.ok(answer.strategies.some((offer) => offer.remedy?.includes(' ')), JSON.stringify(answer.strategies));
  assert.ok(answer.strategies.some((one) => one.strategy === 'copy' && one.available));
});

test('aborting before, during and after', async () => {
  const src = largeTree();
  const before = await rejects(cloneTree(src, at('dst'), { signal: AbortSignal.abort('why') }), 'ABORT_ERR');
  assert.equal(before.cause, 'why');
  assert.equal(before.name, 'AbortError');
  assert.deepEqual([before.errno, before.errnoName], [-os.constants.errno.ECANCELED, 'ECANCELED']);
  await inTime(async () => {
    const during = new AbortController();
    const cloning = cloneTree(src, at('dst'), { ...SLOW, signal: during.signal });
    setTimeout(() => during.abort(), 5);
    const [settled] = await Promise.allSettled([cloning]);
    if (settled.status === 'rejected') await rejects(cloning, 'ABORT_ERR');
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
  assert.deepEqual(fs.readdirSync(folder), ['dst']);
});

test('however small the tree, a callback that throws or is rejected ends the clone', async () => {
  const thrown = new Error('no more');
  const fails = () => { throw thrown; };
  fs.mkdirSync(at('empty'));
  tree('old', 1, 1);
  const failing = [fails, async () => fails(), async () => { await new Promise((resolve) => { setTimeout(resolve, 10); }); fails(); }];
  for (const [src, dst, options] of [['empty', 'new', {}], ['empty', 'old', { replace: true }], ['old/d0/f0', 'new', {}]]) {
    for (const onProgress of failing) {
      let shown;
      const looking = (progress) => { shown = progress; return onProgress(progress); };
      await assert.rejects(cloneTree(at(src), at(dst), { ...options, onProgress: looking }), (error) => error === thrown);
      assert.deepEqual(Object.keys(shown), ['entries', 'bytes']);
      assert.deepEqual(fs.readdirSync(folder).sort(), ['empty', 'old']);
      assert.deepEqual(fs.readdirSync(at('old')), ['d0']);
    }
  }
  // What it returns is waited for, and the clone has no name until then.
  let seen;
  await cloneTree(at('old'), at('new'), { onProgress: async () => {
    await new Promise((resolve) => { setTimeout(resolve, 20); });
    seen = fs.existsSync(at('new'));
  } });
  assert.deepEqual([seen, fs.existsSync(at('new', 'd0', 'f0'))], [false, true]);
  // One that never answers can be aborted.
  const waiting = new AbortController();
  const never = () => { setImmediate(() => waiting.abort()); return new Promise(() => {}); };
  await rejects(cloneTree(at('old'), at('never'), { onProgress: never, signal: waiting.signal }), 'ABORT_ERR');
  assert.ok(!fs.existsSync(at('never')));
});

test('a process that exits while a callback is waited for leaves nothing', () => {
  const src = tree('src', 1, 1);
  const code = `require('calve').cloneTree(process.argv[1], process.argv[2], { onProgress: () => { setImmediate(() => process.exit(7)); return new Promise(() => {}); } });`;
  const run = spawnSync(process.execPath, ['-e', code, src, at('dst')], { encoding: 'utf8' });
  assert.equal(run.status, 7, run.stderr);
  assert.deepEqual(fs.readdirSync(folder), ['src']);
});

test('no report of the process is made, which looks up the names of all peers', () => {
  const src = tree('src', 1, 1);
  tree('dst', 1, 1);
  const code = `process.report.getReport = () => process.exit(9);
    const { cloneTree, removeTree } = require('calve');
    (async () => {
      await cloneTree(process.argv[1], process.argv[2], { replace: true });
      await removeTree(process.argv[2]);
    })();`;
  const run = spawnSync(process.execPath, ['-e', code, src, at('dst')], { encoding: 'utf8' });
  assert.equal(run.status, 0, run.stderr);
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
