// Against the installed package: many small files.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { onSmallDisk } from './machine.mjs';
import { CalveError, readFiles, writeFiles, writeFilesSync } from 'calve';

let folder;
beforeEach(() => { folder = fs.mkdtempSync(path.join(os.tmpdir(), 'calve-')); });
afterEach(() => fs.rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 }));
const at = (...names) => path.join(folder, ...names);
const read = (...names) => fs.readFileSync(at(...names), 'utf8');
const code = (wanted) => (error) => {
  assert.ok(error instanceof CalveError, String(error));
  assert.equal(error.code, wanted);
  return true;
};

test('what is given is written: objects, maps, iterables, strings and bytes', async () => {
  const receipt = await writeFiles(folder, { a: 'one', 'b/c': 'zwei ü 😀' }, { mkdir: true });
  assert.deepEqual([receipt.schema, receipt.files, receipt.directories], ['calve.write/1', 2, 1]);
  assert.equal(read('b', 'c'), 'zwei ü 😀');
  writeFilesSync(folder, new Map([['a', Buffer.from('two')], ['d', new Uint8Array([1, 2])], ['empty', '']]));
  assert.deepEqual([read('a'), fs.readFileSync(at('d')).length, read('empty')], ['two', 2, '']);
  async function* several() {
    yield [Buffer.from('e\xff', 'latin1'), 'bytes'];
    yield ['large', Buffer.alloc(300_000, 7)];
    yield ['long', 'x'.repeat(200_000)];
  }
  await writeFiles(folder, several());
  assert.deepEqual([fs.statSync(at('large')).size, fs.statSync(at('long')).size], [300_000, 200_000]);
  assert.equal(fs.readFileSync(Buffer.concat([Buffer.from(`${folder}/`), Buffer.from('e\xff', 'latin1')]), 'utf8'), 'bytes');
});

test('an iterable may use one buffer again and again', async () => {
  for (const size of [10, 3000, 100_000]) {
    const buffer = Buffer.alloc(size);
    function* reusing() {
      for (let n = 0; n < 200; n += 1) yield [`${n}`, buffer.fill(n)];
    }
    async function* reusingLater() {
      yield* reusing();
    }
    writeFilesSync(at('sync'), reusing(), { mkdir: true });
    await writeFiles(at('async'), reusing(), { mkdir: true });
    await writeFiles(at('later'), reusingLater(), { mkdir: true });
    for (const root of ['sync', 'async', 'later']) {
      for (let n = 0; n < 200; n += 1) assert.ok(fs.readFileSync(at(root, `${n}`)).equals(Buffer.alloc(size, n)), `${root} ${n}`);
    }
  }
});

test('thousands of files in many batches, read again', async () => {
  const entries = Array.from({ length: 5000 }, (_, n) => [`d${n % 30}/f${n}`, `contents ${n} ${'x'.repeat(n % 3000)}`]);
  for (const write of [writeFiles, async (...given) => writeFilesSync(...given)]) {
    const receipt = await write(at('root'), entries, { mkdir: true });
    assert.equal(receipt.files, 5000);
    let n = 0;
    for await (const [file, contents] of readFiles(entries.map(([name]) => at('root', name)))) {
      assert.equal(file, at('root', entries[n][0]));
      assert.equal(contents.toString(), entries[n][1]);
      n += 1;
    }
    assert.equal(n, 5000);
    fs.rmSync(at('root'), { recursive: true });
  }
});

test('wrong arguments are TypeErrors that name them', async () => {
  const named = (name) => (error) => (error instanceof TypeError || error instanceof RangeError) && error.message.includes(`\`${name}\``);
  for (const write of [writeFiles, async (...given) => writeFilesSync(...given)]) {
    await assert.rejects(write(1, []), named('root'));
    await assert.rejects(write(folder, 'text'), named('entries'));
    await assert.rejects(write(folder, [['a', 'b', 'c']]), named('entries[0]'));
    await assert.rejects(write(folder, [['a', 'b'], [1, 'b']]), named('entries[1][0]'));
    await assert.rejects(write(folder, [['a\ud800', 'b']]), named('entries[0][0]'));
    await assert.rejects(write(folder, [['a', 1]]), named('entries[0][1]'));
    await assert.rejects(write(folder, [], { flag: 'a' }), named('options.flag'));
    await assert.rejects(write(folder, [], { mode: -1 }), named('options.mode'));
    await assert.rejects(write(folder, [], { fsync: true }), named('options.fsync'));
    await assert.rejects(write(folder, [], { concurrency: 100 }), named('options.concurrency'));
    await assert.rejects(write(folder, [], { concurrency: '2' }), named('options.concurrency'));
    await assert.rejects(write(folder, [], { mode: '648' }), named('options.mode'));
    await assert.rejects(write(folder, [], { mode: '' }), named('options.mode'));
    await assert.rejects(write(folder, [], { mode: '77777' }), named('options.mode'));
    await assert.rejects(write(folder, [], { mkdir: 'yes' }), named('options.mkdir'));
    await assert.rejects(write(folder, [], { atomic: 1 }), named('options.atomic'));
    await assert.rejects(write(folder, [], { onError: 'ignore' }), named('options.onError'));
    await assert.rejects(write(folder, [], { signal: {} }), named('options.signal'));
    await assert.rejects(write(folder, [], 'wx'), named('options'));
    await assert.rejects(write(folder, null), named('entries'));
    await assert.rejects(write(folder, { a: 1 }), named('entries[0][1]'));
    await assert.rejects(write('', []), named('root'));
  }
  assert.throws(() => writeFilesSync(folder, (async function* none() {})()), named('entries'));
  for (const paths of ['path', 5, null, {}, Buffer.from('path')]) assert.throws(() => readFiles(paths), named('paths'));
  assert.throws(() => readFiles([], { concurrency: 0 }), named('options.concurrency'));
  assert.throws(() => readFiles([], { onError: 'ignore' }), named('options.onError'));
  assert.throws(() => readFiles([], { signal: 1 }), named('options.signal'));
  assert.throws(() => readFiles([], 'collect'), named('options'));
  await assert.rejects(readFiles([1]).next(), named('paths[0]'));
  assert.deepEqual(fs.readdirSync(folder), []);
});

test('what is no entries is a TypeError, not nothing', async () => {
  for (const entries of [Promise.resolve({ a: 'x' }), new Date(), new WeakMap(), new WeakSet(), /x/, new Error('x'), new URL('file:///a'), new ArrayBuffer(4), new DataView(new ArrayBuffer(4)), new (class Files { a = 'x'; })(), () => {}]) {
    await assert.rejects(writeFiles(folder, entries), (error) => error instanceof TypeError && error.message.includes('`entries`'), String(entries));
    assert.throws(() => writeFilesSync(folder, entries), (error) => error instanceof TypeError && error.message.includes('`entries`'));
  }
  await assert.rejects(writeFiles(folder, Promise.resolve([])), /a Promise \(is an `await` missing\?\)/);
  await assert.rejects(writeFiles(folder, [['a', Promise.resolve('x')]]), /`entries\[0\]\[1\]`.*await/);
  for (const paths of [Promise.resolve([]), new Date()]) assert.throws(() => readFiles(paths), /`paths`/);
  assert.deepEqual(fs.readdirSync(folder), []);
  await writeFiles(folder, Object.assign(Object.create(null), { a: 'x' }));
  assert.equal(read('a'), 'x');
});

test('options: unknown ones are TypeErrors with the nearest name, undefined ones were not given', async () => {
  const unknown = (name, meant) => (error) => error instanceof TypeError && error.message.includes(`\`options.${name}\` is unknown; did you mean \`${meant}\`?`);
  await assert.rejects(writeFiles(folder, {}, { mkdirs: true }), unknown('mkdirs', 'mkdir'));
  assert.throws(() => writeFilesSync(folder, {}, { on_error: 'collect' }), unknown('on_error', 'onError'));
  assert.throws(() => readFiles([], { concurency: 2 }), unknown('concurency', 'concurrency'));
  const none = Object.fromEntries(['concurrency', 'mode', 'flag', 'mkdir', 'fsync', 'atomic', 'onError', 'signal', 'other'].map((name) => [name, undefined]));
  await writeFiles(folder, { a: 'x' }, none);
  writeFilesSync(folder, { b: 'x' }, none);
  assert.deepEqual((await Array.fromAsync?.(readFiles([at('a')], { concurrency: undefined, onError: undefined, signal: undefined })) ?? [0]).length, 1);
});

test('contents: array buffers and views of them', async () => {
  const bytes = Uint8Array.from({ length: 64 }, (_, n) => n);
  const whole = bytes.buffer;
  const shared = new SharedArrayBuffer(4);
  new Uint8Array(shared).set([1, 2, 3, 4]);
  const contents = {
    buffer: whole, view: new DataView(whole, 8, 5), floats: new Float64Array(whole, 16, 2), clamped: new Uint8ClampedArray(whole, 1, 3),
    shared, part: bytes.subarray(3, 7), none: new ArrayBuffer(0), large: new ArrayBuffer(5 << 20),
  };
  for (const root of ['async', 'sync']) {
    if (root === 'async') await writeFiles(at(root), contents, { mkdir: true });
    else writeFilesSync(at(root), contents, { mkdir: true });
    const there = (name) => [...fs.readFileSync(at(root, name))];
    assert.deepEqual(there('buffer'), [...bytes]);
    assert.deepEqual([there('view'), there('floats'), there('clamped')], [[8, 9, 10, 11, 12], [...bytes.subarray(16, 32)], [1, 2, 3]]);
    assert.deepEqual([there('shared'), there('part'), there('none')], [[1, 2, 3, 4], [3, 4, 5, 6], []]);
    assert.equal(fs.statSync(at(root, 'large')).size, 5 << 20);
  }
});

test('nothing is written outside of the root', async () => {
  fs.mkdirSync(at('root'));
  fs.mkdirSync(at('outside'));
  fs.symlinkSync(at('outside'), at('root', 'link'));
  fs.symlinkSync(at('outside', 'file'), at('root', 'file'));
  for (const name of ['../x', '/x', 'a/../../x', 'link/x', '..', at('outside', 'y')]) {
    await assert.rejects(writeFiles(at('root'), [[name, 'bad']], { mkdir: true }), code('ERR_CALVE_OUTSIDE_ROOT'));
  }
  await assert.rejects(writeFiles(at('root'), [['file', 'bad']]), code('ERR_CALVE_NOT_A_FILE'));
  assert.deepEqual([fs.readdirSync(at('outside')), fs.readdirSync(at('root')).sort()], [[], ['file', 'link']]);
});

test('missing paths, directories in the way, and existing files', async () => {
  await assert.rejects(writeFiles(at('none'), { a: '' }), code('ERR_CALVE_MISSING'));
  await assert.rejects(writeFiles(folder, { 'no/a': '' }), (error) => error.code === 'ERR_CALVE_PARENT_MISSING' && error.errno === -2 && error.path === at('no') && /make that directory/.test(error.hint));
  await assert.rejects(writeFiles(at('no', 'root'), { a: '' }, { mkdir: true }), code('ERR_CALVE_PARENT_MISSING'));
  fs.mkdirSync(at('directory'));
  await assert.rejects(writeFiles(folder, { directory: 'x' }), (error) => error.code === 'ERR_CALVE_IS_A_DIRECTORY' && error.errnoName === 'EISDIR' && error.path === at('directory'));
  fs.writeFileSync(at('file'), 'old');
  await assert.rejects(writeFiles(folder, { file: 'new' }, { flag: 'wx' }), (error) => error.code === 'ERR_CALVE_EXISTS' && error.errnoName === 'EEXIST');
  const receipt = await writeFiles(folder, { file: 'new', a: '1', '../b': '2', c: '3' }, { flag: 'wx', onError: 'collect' });
  assert.deepEqual(receipt.failures.map(({ index, error }) => [index, error.code]), [[0, 'ERR_CALVE_EXISTS'], [2, 'ERR_CALVE_OUTSIDE_ROOT']]);
  assert.deepEqual([read('file'), read('a'), read('c')], ['old', '1', '3']);
});

test('a refused permission', () => {
  // Root may write everywhere, so this is somebody else, who cannot get to the package nor to the folder by its path.
  const code = `const { probe, writeFiles } = require('calve');
    probe('/').then(() => {
      process.chdir(process.argv[1]);
      if (process.getuid() === 0) { process.setgid(65534); process.setuid(65534); }
      return writeFiles('.', { a: 'x' });
    }).catch((error) => console.log(error.code, error.errnoName));`;
  fs.chmodSync(folder, 0o555);
  const run = spawnSync(process.execPath, ['-e', code, folder], { encoding: 'utf8' });
  fs.chmodSync(folder, 0o755);
  assert.equal(run.stdout, 'ERR_CALVE_PERMISSION EACCES\n', run.stderr);
});

test('an atomic file keeps the mode of the one that it takes the place of', async () => {
  fs.writeFileSync(at('program'), 'old', { mode: 0o755 });
  fs.chmodSync(at('program'), 0o755);
  await writeFiles(folder, { program: 'new', other: 'new' }, { atomic: true, mode: 0o600 });
  assert.deepEqual([fs.statSync(at('program')).mode & 0o777, fs.statSync(at('other')).mode & 0o777], [0o755, 0o600]);
  assert.equal(read('program'), 'new');
});

test('names that are not UTF-8, and no names at all', async () => {
  const name = Buffer.from('n\xff', 'latin1');
  await writeFiles(folder, [[name, 'x']]);
  const whole = Buffer.concat([Buffer.from(`${folder}/`), name]);
  for await (const [file, contents] of readFiles([whole])) assert.deepEqual([file, contents.toString()], [whole, 'x']);
  await assert.rejects(writeFiles(folder, [[name, 'y']], { flag: 'wx' }), (error) => error.path.equals(whole));
  for (const wrong of ['a\0b', '', 'a\ud800']) {
    await assert.rejects(writeFiles(folder, [[wrong, 'x']]), TypeError);
    await assert.rejects(readFiles([wrong]).next(), TypeError);
  }
  await assert.rejects(writeFiles(folder, { 'n\udfff': 'x' }), (error) => error.message.includes('`entries[0][0]`'));
  // As with fs.writeFile: what no encoding has becomes U+FFFD.
  await writeFiles(folder, { text: 'a\ud800' });
  assert.equal(read('text'), 'a\ufffd');
});

test('a file where a directory should be', async () => {
  fs.writeFileSync(at('file'), 'old');
  for (const mkdir of [false, true]) {
    await assert.rejects(writeFiles(folder, { 'file/below': 'x' }, { mkdir }), (error) => error.errnoName === 'ENOTDIR' && error.path === at('file'));
    await assert.rejects(writeFiles(at('file'), { below: 'x' }, { mkdir }), (error) => error.errnoName === 'ENOTDIR');
  }
  assert.deepEqual([fs.readdirSync(folder), read('file')], [['file'], 'old']);
});

test('of two entries with one path the later wins, or is refused', async () => {
  await writeFiles(folder, [['a', '1'], ['./a', '2'], ['b', '3']]);
  assert.equal(read('a'), '2');
  const many = Array.from({ length: 3000 }, (_, n) => ['same', `${n}`]);
  writeFilesSync(folder, many);
  assert.equal(read('same'), '2999');
  await assert.rejects(writeFiles(folder, [['new', '1'], ['new', '2']], { flag: 'wx' }), (error) => error.errnoName === 'EEXIST');
  assert.equal(fs.readFileSync(at('new'), 'utf8'), '1');
});

test('modes, fsync and atomic files', async () => {
  const umask = process.umask();
  for (const fsync of ['none', 'end', 'each']) {
    await writeFiles(folder, { [`${fsync}/a`]: 'x' }, { mkdir: true, fsync, atomic: fsync === 'each', mode: fsync === 'end' ? '640' : 0o640 });
    assert.equal(fs.statSync(at(fsync, 'a')).mode & 0o777, 0o640 & ~umask);
    assert.deepEqual(fs.readdirSync(at(fsync)), ['a']);
  }
});

test('an iterable that throws: its error arrives, and nothing goes on', async () => {
  const thrown = new Error('no more');
  let closed = false;
  function* failing() {
    try {
      for (let n = 0; n < 3000; n += 1) yield [`${n}`, 'x'];
      throw thrown;
    } finally { closed = true; }
  }
  async function* failingLater() { yield* failing(); }
  await assert.rejects(writeFiles(folder, failing()), (error) => error === thrown);
  await assert.rejects(writeFiles(folder, failingLater()), (error) => error === thrown);
  assert.throws(() => writeFilesSync(folder, failing()), (error) => error === thrown);
  assert.ok(closed);
  closed = false;
  await assert.rejects(writeFiles(at('none'), failing()), code('ERR_CALVE_MISSING'));
  const before = fs.readdirSync(folder).length;
  await new Promise((resolve) => setTimeout(resolve, 50));
  assert.equal(fs.readdirSync(folder).length, before);
});

test('an iterable of paths that throws, and a reader that stops early', async () => {
  fs.writeFileSync(at('a'), 'x');
  const thrown = new Error('no more');
  let closed = 0;
  function* failing() { try { for (let n = 0; n < 600; n += 1) yield at('a'); throw thrown; } finally { closed += 1; } }
  async function* failingLater() { yield* failing(); }
  for (const paths of [failing(), failingLater()]) {
    let seen = 0;
    await assert.rejects(async () => { for await (const one of readFiles(paths)) seen += one.length > 0 ? 1 : 0; }, (error) => error === thrown);
    assert.ok(seen <= 600);
  }
  assert.equal(closed, 2);
  function* endless() { try { for (;;) yield at('a'); } finally { closed += 1; } }
  for await (const [, contents] of readFiles(endless())) { assert.equal(contents.toString(), 'x'); break; }
  assert.equal(closed, 3);
});

test('the iterable is asked for more only as fast as files are written', async () => {
  const [size, most] = [20_000, 8 << 20];
  let ahead = 0;
  async function* many() {
    for (let asked = 0; asked < 5000; asked += 1) {
      // Now and then, for listing them takes long.
      if (asked % 50 === 0) ahead = Math.max(ahead, asked - fs.readdirSync(folder).length);
      yield [`${asked}`, Buffer.alloc(size)];
    }
  }
  // 100 MB, of which two batches of 8 MiB are in memory: one is being written, and one filled.
  const receipt = await writeFiles(folder, many());
  assert.equal(receipt.files, 5000);
  assert.ok(ahead <= 2 * (most / size + 1), `${ahead} files ahead`);
});

test('aborting before, during and after', async () => {
  await assert.rejects(writeFiles(folder, { a: 'x' }, { signal: AbortSignal.abort() }), code('ABORT_ERR'));
  assert.deepEqual(fs.readdirSync(folder), []);
  const during = new AbortController();
  let given = 0;
  async function* endless() { for (;;) { given += 1; if (given === 5000) during.abort(); yield [`${given}`, 'x']; } }
  await assert.rejects(writeFiles(folder, endless(), { signal: during.signal }), code('ABORT_ERR'));
  assert.ok(given < 20_000);
  const after = new AbortController();
  await writeFiles(folder, { last: 'x' }, { signal: after.signal });
  after.abort();
  await assert.rejects(readFiles([at('last')], { signal: AbortSignal.abort() }).next(), code('ABORT_ERR'));
  // While the iterable is waited for, which may never answer.
  async function* stuck() { yield ['stuck', 'x']; await new Promise(() => {}); }
  async function* stuckPaths() { yield at('last'); await new Promise(() => {}); }
  for (const reason of [undefined, 'why']) {
    const waiting = new AbortController();
    setTimeout(() => waiting.abort(reason), 5);
    await assert.rejects(writeFiles(folder, stuck(), { signal: waiting.signal }), (error) => error.name === 'AbortError' && error.code === 'ABORT_ERR' && (reason === undefined || error.cause === reason));
    const idle = new AbortController();
    setTimeout(() => idle.abort(reason), 5);
    await assert.rejects(readFiles(stuckPaths(), { signal: idle.signal }).next(), code('ABORT_ERR'));
  }
  const reading = new AbortController();
  let seen = 0;
  function* again() { for (;;) yield at('last'); }
  await assert.rejects(async () => {
    for await (const [, contents] of readFiles(again(), { signal: reading.signal })) {
      seen += contents.length;
      if (seen === 700) reading.abort();
    }
  }, code('ABORT_ERR'));
  assert.ok(seen < 5000, `${seen}`);
});

test('files that cannot be read: an error, or collected', async () => {
  fs.writeFileSync(at('a'), 'x');
  const paths = [at('a'), at('none'), folder, at('a')];
  const seen = [];
  await assert.rejects(async () => { for await (const [file] of readFiles(paths)) seen.push(file); }, code('ERR_CALVE_MISSING'));
  assert.deepEqual(seen, [at('a')]);
  const all = [];
  for await (const [, contents] of readFiles(paths, { onError: 'collect' })) all.push(contents instanceof CalveError ? contents.errnoName : `${contents}`);
  assert.deepEqual(all, ['x', 'ENOENT', 'EISDIR', 'x']);
});

test('a process at its limit of open files still writes', () => {
  const program = `const { writeFilesSync } = require('calve'); const fs = require('fs');
    const open = []; try { for (;;) open.push(fs.openSync('/dev/null')); } catch (error) { if (error.code !== 'EMFILE') throw error; }
    for (const fd of open.splice(0, 12)) fs.closeSync(fd);
    const receipt = writeFilesSync(process.argv[1], Array.from({ length: 2000 }, (_, n) => ['d' + n % 20 + '/f' + n, 'x']), { mkdir: true, concurrency: 8 });
    if (receipt.files !== 2000) process.exit(1);`;
  const run = spawnSync('sh', ['-c', 'ulimit -n 256; exec "$@"', 'sh', process.execPath, '-e', program, folder], { encoding: 'utf8' });
  assert.equal(run.status, 0, run.stderr);
});

test('a full disk: the error says so, and no half file is left', async (t) => {
  await onSmallDisk(t, at('small'), 'size=2m', async () => {
    const entries = Array.from({ length: 20 }, (_, n) => [`f${n}`, Buffer.alloc(300_000, 1)]);
    await assert.rejects(writeFiles(at('small'), entries), (error) => error.errnoName === 'ENOSPC' && error.hint.includes('stay'));
    for (const name of fs.readdirSync(at('small'))) assert.equal(fs.statSync(at('small', name)).size, 300_000);
  });
});

test('from worker threads', async () => {
  const code = `const { parentPort, workerData } = require('node:worker_threads');
    const { readFiles, writeFiles, writeFilesSync } = require('calve');
    (async () => {
      const entries = Array.from({ length: 300 }, (_, n) => ['f' + n, Buffer.alloc(5000, n)]);
      await writeFiles(workerData, entries, { mkdir: true });
      writeFilesSync(workerData, [['last', 'x']]);
      let read = 0;
      for await (const [, contents] of readFiles(entries.map(([name]) => workerData + '/' + name))) read += contents.length;
      parentPort.postMessage(read);
    })();`;
  const sums = await Promise.all([0, 1, 2].map((n) => new Promise((resolve, reject) => {
    const worker = new Worker(code, { eval: true, workerData: at(`w${n}`) });
    worker.on('message', resolve);
    worker.on('error', reject);
  })));
  assert.deepEqual(sums, [1_500_000, 1_500_000, 1_500_000]);
  assert.equal(fs.readdirSync(at('w2')).length, 301);
});

test('a process that exits in the middle leaves no half file', () => {
  const code = `const { writeFiles } = require('calve');
    writeFiles(process.argv[1], Array.from({ length: 5000 }, (_, n) => ['f' + n, Buffer.alloc(20_000, 'x')]), { concurrency: 2 });
    setTimeout(() => process.exit(7), 20);`;
  const run = spawnSync(process.execPath, ['-e', code, folder], { encoding: 'utf8' });
  assert.equal(run.status, 7, run.stderr);
  const sizes = new Set(fs.readdirSync(folder).map((name) => fs.statSync(at(name)).size));
  assert.ok([...sizes].every((size) => size === 20_000), [...sizes].join());
});
