// Against the installed package: `calve/fs` beside `node:fs`. Each call is made twice, with the same paths: by Node, and by Calve.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { begun } from './moment.mjs';

// How often Calve has left something to Node: it takes Node's functions when it is loaded.
const node = { cp: fs.cp, cpSync: fs.cpSync, rm: fs.rm, rmSync: fs.rmSync, promises: { cp: fs.promises.cp, rm: fs.promises.rm } };
let left = 0;
const counted = (call) => (...given) => { left += 1; return call(...given); };
for (const name of ['cp', 'cpSync', 'rm', 'rmSync']) fs[name] = counted(node[name]);
for (const name of ['cp', 'rm']) fs.promises[name] = counted(node.promises[name]);
const calve = await import('calve/fs');
const calvePromises = await import('calve/fs/promises');
Object.assign(fs, { cp: node.cp, cpSync: node.cpSync, rm: node.rm, rmSync: node.rmSync });
Object.assign(fs.promises, node.promises);

let folder;
beforeEach(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'calve-'));
  left = 0;
});
afterEach(() => fs.rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 }));
const at = (...names) => path.join(folder, ...names);
/** Node 22 copies trees another way in `cpSync`: see the differences. */
const syncIsOther = Number(process.versions.node.split('.')[0]) >= 22;

/** Everything that can be seen of a tree but times. */
function tree(root) {
  const seen = {};
  const look = (file, name) => {
    const data = fs.lstatSync(file, { throwIfNoEntry: false });
    if (data === undefined) return;
    const text = data.isFile() ? fs.readFileSync(file, 'latin1') : data.isSymbolicLink() ? fs.readlinkSync(file) : '';
    seen[name] = `${data.mode.toString(8)} ${data.uid}:${data.gid} ${data.isDirectory() ? '' : data.nlink} ${text}`;
    if (data.isDirectory()) for (const one of fs.readdirSync(file)) look(path.join(file, one), `${name}/${one}`);
  };
  look(root, '');
  return Object.fromEntries(Object.entries(seen).sort());
}

const caught = async (call) => {
  try {
    return { value: await call() };
  } catch (error) {
    const { name, message, code, errno, syscall, path: about, info } = error;
    return { name, message, code, errno, syscall, about, info };
  }
};

/** Makes both, and what becomes of `dst` by Node and by Calve. */
async function both(make, src, dst, options, forms = ['promise', 'callback', 'sync']) {
  const clean = () => { fs.rmSync(folder, { recursive: true, force: true }); fs.mkdirSync(folder); };
  const result = async (call) => {
    clean();
    make();
    return { answer: await caught(call), made: tree(folder) };
  };
  const calls = {
    promise: [() => node.promises.cp(src, dst, options), () => calve.promises.cp(src, dst, options)],
    callback: [() => promisify(node.cp)(src, dst, options), () => promisify(calve.cp)(src, dst, options)],
    sync: [() => node.cpSync(src, dst, options), () => calve.cpSync(src, dst, options)],
  };
  for (const form of forms) {
    if (form === 'sync' && syncIsOther && options?.recursive && !options.filter) continue;
    const expected = await result(calls[form][0]);
    const found = await result(calls[form][1]);
    assert.deepEqual(found, expected, `${form} ${JSON.stringify(options)}`);
  }
}

/** Modes, links of all kinds, hard links, an empty directory. */
function odd(root) {
  fs.mkdirSync(path.join(root, 'd/e'), { recursive: true });
  fs.mkdirSync(path.join(root, 'empty'));
  fs.writeFileSync(path.join(root, 'file'), 'x'.repeat(10_000));
  fs.writeFileSync(path.join(root, 'd/script'), '#!');
  fs.writeFileSync(path.join(root, 'd/e/ü 😀'), 'name');
  fs.chmodSync(path.join(root, 'd/script'), 0o4755);
  fs.chmodSync(path.join(root, 'file'), 0o604);
  fs.linkSync(path.join(root, 'file'), path.join(root, 'd/second'));
  fs.chmodSync(path.join(root, 'd/e'), 0o2711);
  fs.chmodSync(path.join(root, 'd'), 0o1777);
  fs.chmodSync(root, 0o750);
}

function links(root) {
  fs.symlinkSync('../file', path.join(root, 'd/up'));
  fs.symlinkSync('e/../nowhere/', path.join(root, 'd/dangling'));
  fs.symlinkSync('/etc/../etc/', path.join(root, 'd/absolute'));
  fs.symlinkSync('d', path.join(root, 'directory'));
  fs.symlinkSync('../../../../../../..', path.join(root, 'root'));
}

test('a new tree is what Node makes, and Node has nothing to do', async () => {
  const make = () => { odd(at('src')); links(at('src')); };
  for (const options of [{}, { verbatimSymlinks: true }, { preserveTimestamps: true }, { force: false, errorOnExist: true }, { mode: fs.constants.COPYFILE_EXCL }, { mode: null }]) {
    left = 0;
    await both(make, at('src'), at('dst'), { recursive: true, ...options });
    assert.equal(left, 0, JSON.stringify(options));
  }
  left = 0;
  await both(make, at('src'), at('some/where/dst'), { recursive: true });
  await both(make, `${at('src')}/`, `${at('dst')}/`, { recursive: true });
  await both(make, pathToFileURL(at('src')), pathToFileURL(at('dst')), { recursive: true });
  await both(make, path.relative('.', at('src')), path.relative('.', at('dst')), { recursive: true });
  await both(() => odd(at('src')), at('src'), at('dst'), { recursive: true, dereference: true });
  assert.equal(left, 0);
});

test('a directory has the mode of its source, whatever it inherits', async () => {
  const make = () => {
    fs.chmodSync(folder, 0o2775);
    odd(at('src'));
    for (const mode of [0o700, 0o711, 0o755, 0o500, 0o1777, 0o2700, 0o2755]) {
      fs.mkdirSync(at('src', `${mode}`));
      fs.chmodSync(at('src', `${mode}`), mode);
    }
  };
  await both(make, at('src'), at('dst'), { recursive: true });
  await both(make, at('src/448'), at('dst'), { recursive: true });
  assert.equal(left, 0);
});

test('what is there is merged as Node merges it', async () => {
  const make = () => {
    odd(at('src'));
    fs.mkdirSync(at('dst/d/e'), { recursive: true });
    fs.chmodSync(at('dst/d'), 0o711);
    fs.writeFileSync(at('dst/d/script'), 'mine');
    // Node writes through it with `dereference`: it must lead to what each round begins without.
    fs.symlinkSync(at('nowhere'), at('dst/file'));
    fs.writeFileSync(at('dst/own'), 'mine');
    fs.linkSync(at('dst/own'), at('dst/d/second'));
  };
  for (const options of [{}, { force: false }, { dereference: true }]) {
    left = 0;
    await both(make, at('src'), at('dst'), { recursive: true, ...options });
    assert.equal(left, options.dereference ? (syncIsOther ? 2 : 3) : 0);
  }
  await both(make, at('src'), at('dst'), { recursive: true, force: false, errorOnExist: true });
  await both(() => { odd(at('src')); fs.mkdirSync(at('dst')); }, at('src'), at('dst'), { recursive: true });
});

test('a conflict is the error that Node has, and leaves what Node leaves', async () => {
  const conflicts = [
    () => fs.writeFileSync(at('dst'), ''),
    () => fs.mkdirSync(at('dst/file'), { recursive: true }),
    () => { fs.mkdirSync(at('dst')); fs.writeFileSync(at('dst/d'), ''); },
    () => fs.symlinkSync('src', at('dst')),
    () => { fs.mkdirSync(at('dst')); fs.linkSync(at('src/file'), at('dst/file')); },
    () => { fs.mkdirSync(at('dst/d'), { recursive: true }); fs.symlinkSync(folder, at('dst/d/up')); },
    () => { fs.mkdirSync(at('dst/d'), { recursive: true }); fs.symlinkSync(at('src'), at('dst/directory')); },
    () => execFileSync('mkfifo', [at('src/d/fifo')]),
  ];
  const all = [{}, { force: false, verbatimSymlinks: true }, { dereference: true }];
  for (const [number, conflict] of conflicts.entries()) {
    // With few rounds each conflict with one of them.
    for (const options of Number(process.env.CALVE_ROUNDS ?? 0.1) < 1 ? [all[number % 3]] : all) {
      await both(() => { odd(at('src')); fs.symlinkSync('../file', at('src/d/up')); fs.symlinkSync('d', at('src/directory')); conflict(); }, at('src'), at('dst'), { recursive: true, ...options });
    }
  }
  await both(() => odd(at('src')), at('src'), at('src/d/inside'), { recursive: true });
  await both(() => odd(at('src')), at('src'), at('src'), { recursive: true });
  await both(() => odd(at('src')), at('src/d'), at('src'), { recursive: true });
  await both(() => { odd(at('src')); fs.symlinkSync('src', at('link')); }, at('src'), at('link/inside'), { recursive: true });
  await both(() => { odd(at('src')); fs.symlinkSync('src', at('link')); }, `${at('link')}/d`, at('src'), { recursive: true });
  await both(() => { odd(at('src')); fs.symlinkSync('src', at('link')); }, at('link'), at('dst'), { recursive: true });
  await both(() => { odd(at('src')); fs.symlinkSync('src', at('link')); }, `${at('link')}/`, at('dst'), { recursive: true });
  await both(() => { odd(at('src')); fs.symlinkSync('src/d', at('link')); }, `${at('link')}/../d/e`, at('dst'), { recursive: true });
  await both(() => {}, at('none'), at('dst'), { recursive: true });
  await both(() => odd(at('src')), at('src'), at('dst'), {});
  await both(() => odd(at('src')), at('src/file'), at('some/dst'), undefined);
});

test('arguments that Node refuses are refused by Node', async () => {
  const wrong = [{ force: undefined }, { recursive: 1 }, { filter: 1 }, { mode: 99 }, { mode: 'x' }, { dereference: true, verbatimSymlinks: true, recursive: true }, null, [], 'x', 1];
  for (const options of wrong) await both(() => odd(at('src')), at('src'), at('dst'), options && typeof options === 'object' && !Array.isArray(options) ? { recursive: true, ...options } : options);
  // Node's `cp` knows no signal: one that is given is no reason to stop.
  for (const signal of [AbortSignal.abort(), 1]) await both(() => odd(at('src')), at('src'), at('dst'), { recursive: true, signal });
  for (const odds of [1, '', 'a\0b', null, undefined, new URL('http://x/'), Buffer.from(at('src'))]) {
    await both(() => odd(at('src')), odds, at('dst'), { recursive: true }, ['promise', 'callback']);
  }
  for (const call of [(which) => which.cp('a', 'b'), (which) => which.cp('a', 'b', { recursive: true }), (which) => which.rm(1, () => {}), (which) => which.copyFile('a', 'b'), (which) => which.rmSync('a', { recursive: true, retryDelay: -1 }), (which) => which.rmSync('a', { recursive: true, force: 1 })]) {
    const by = async (which) => caught(() => call(which));
    assert.deepEqual(await by(calve), await by({ ...fs, ...node }));
  }
});

test('a filter is called as Node calls it, and it may throw or reject', async () => {
  for (const throws of [false, true]) {
    for (const isAsync of [false, true]) {
      const runs = [];
      const options = { recursive: true, filter: (from, to) => {
        runs.at(-1).push([from, to]);
        if (throws && from.endsWith('script')) {
          if (isAsync) return Promise.reject(new Error('no'));
          throw new Error('no');
        }
        return isAsync ? Promise.resolve(!from.endsWith('/d/e')) : !from.endsWith('/d/e');
      } };
      await both(() => { odd(at('src')); runs.push([]); }, at('src'), at('dst'), options);
      assert.ok(runs.length === 6 && runs[0].length > 2);
      for (const form of [0, 2, 4]) assert.deepEqual(runs[form + 1], runs[form]);
    }
  }
});

test('a destination that changes type meanwhile costs the source nothing, and leaves nothing half made', async () => {
  for (let n = 0; n < 30; n += 1) {
    fs.mkdirSync(at('src', `${n}`), { recursive: true });
    fs.writeFileSync(at('src', `${n}`, 'file'), 'x');
  }
  fs.mkdirSync(at('dst'));
  const before = tree(at('src'));
  const program = `
    const fs = require('node:fs');
    const remove = (name) => fs.rmSync(name, { recursive: true });
    const deeds = [(name) => fs.writeFileSync(name, ''), remove, fs.mkdirSync, remove];
    console.log('begun');
    for (let n = 0; ; n += 1) try { deeds[n % 4](process.argv[1] + '/' + (n >> 2) % 30); } catch {}`;
  const child = spawn(process.execPath, ['--eval', program, at('dst')], { stdio: ['ignore', 'pipe', 'inherit'] });
  await begun(child);
  for (let round = 0; round < 20; round += 1) await caught(() => calve.promises.cp(at('src'), at('dst'), { recursive: true }));
  child.kill('SIGKILL');
  await once(child, 'exit');
  assert.deepEqual(tree(at('src')), before);
  assert.deepEqual(fs.readdirSync(folder).sort(), ['dst', 'src']);
  assert.deepEqual(fs.readdirSync(at('dst')).filter((name) => name.startsWith('.calve-')), []);
  fs.rmSync(at('dst'), { recursive: true });
  await calve.promises.cp(at('src'), at('dst'), { recursive: true });
  assert.deepEqual(tree(at('dst')), before);
});

test('random trees, random destinations, random options', async () => {
  let seed = 20;
  const random = (below) => { seed = (seed * 1103515245 + 12345) % 2147483648; return Math.floor(seed / 65536) % below; };
  const grow = (root, depth, targets, state) => {
    fs.mkdirSync(root, { recursive: true });
    for (const name of 'abcd') {
      const file = path.join(root, name);
      switch (state() % 7) {
        case 0: case 1: if (depth > 0) grow(file, depth - 1, targets, state); break;
        case 2: case 3: fs.writeFileSync(file, `${state()}`, { mode: 0o600 + state() % 0o200 }); break;
        case 4: fs.symlinkSync(targets[state() % targets.length], file); break;
        default:
      }
    }
  };
  for (let round = 0; round < 24; round += 1) {
    const [first, withLinks] = [random(1 << 20), random(3) === 0];
    const options = Object.fromEntries(['force', 'errorOnExist', 'dereference', 'preserveTimestamps', 'verbatimSymlinks'].filter(() => random(3) === 0).map((name) => [name, random(2) === 0]));
    if (options.dereference) delete options.verbatimSymlinks;
    const make = () => {
      let own = first;
      const state = () => { own = (own * 1103515245 + 12345) % 2147483648; const value = Math.floor(own / 65536); return !withLinks && value % 7 === 4 ? 5 : value; };
      // Circles have no end there but a limit of the system's.
      const targets = options.dereference ? ['a', 'none/x', at('outside')] : ['a', '../b', '.', 'c/d', '/etc'];
      fs.writeFileSync(at('outside'), 'outside');
      grow(at('src'), 3, targets, state);
      if (round % 3 > 0) grow(at('dst'), 2, targets, state);
    };
    await both(make, at('src'), at('dst'), { recursive: true, ...options }, ['promise', 'sync']);
  }
});

test('everything of node:fs is there, and what is replaced looks the same', async () => {
  const own = { fs: ['copyFile', 'copyFileSync', 'cp', 'cpSync', 'promises', 'rm', 'rmSync'], 'fs/promises': ['copyFile', 'cp', 'rm'] };
  const require = createRequire(import.meta.url);
  for (const [name, replaced] of Object.entries(own)) {
    const given = await import(`node:${name}`);
    const nodes = name === 'fs' ? fs : fs.promises;
    const required = require(`calve/${name}`);
    for (const found of [await import(`calve/${name}`), required, (await import(`calve/${name}`)).default]) {
      for (const one of Object.keys(given).filter((key) => key !== 'default')) {
        assert.ok(one in found, `${name}.${one}`);
        if (replaced.includes(one)) assert.deepEqual([found[one].name, found[one].length], [nodes[one].name, nodes[one].length], one);
        else assert.equal(found[one], given[one], one);
      }
    }
  }
  assert.equal(calve.promises.cp, calvePromises.cp);
  assert.equal(require('calve/fs').promises, require('calve/fs/promises'));
});

/** More entries than Node is left to delete. */
function large(root) {
  fs.mkdirSync(path.join(root, 'below'), { recursive: true });
  for (let n = 0; n < 300; n += 1) fs.writeFileSync(path.join(root, n % 2 ? 'below' : '', `${n}`), '');
}

test('a large tree is out of sight when `rm` is done, and Node removes everything else', async () => {
  const ways = { promise: (...given) => calve.promises.rm(...given), callback: promisify(calve.rm), sync: async (...given) => calve.rmSync(...given) };
  for (const rm of Object.values(ways)) {
    left = 0;
    large(at('tree'));
    await rm(at('tree'), { recursive: true, force: true });
    assert.equal(fs.existsSync(at('tree')), false);
    large(at('tree'));
    await rm(pathToFileURL(at('tree')), { recursive: true });
    large(at('b\xff'));
    await rm(Buffer.from(`${at('b\xff')}/`), { recursive: true, maxRetries: 1 });
    assert.equal(left, 0);
    assert.equal(fs.existsSync(at('b\xff')), false);
    // What is small is gone with all that is in it, and so is what is no directory.
    fs.mkdirSync(at('small/tree'), { recursive: true });
    await rm(at('small/tree'), { recursive: true });
    assert.deepEqual(fs.readdirSync(at('small')), []);
    large(at('kept'));
    fs.symlinkSync('kept', at('link'));
    await rm(at('link'), { recursive: true });
    assert.equal(fs.readdirSync(at('kept')).length, 151);
    assert.equal(left, 2);
    assert.equal((await caught(() => rm(at('kept')))).code, 'ERR_FS_EISDIR');
    assert.equal((await caught(() => rm(at('none'), { recursive: true }))).code, 'ENOENT');
    await rm(at('none'), { recursive: true, force: true });
    await rm(at('kept'), { recursive: true });
    fs.rmSync(at('small'), { recursive: true });
  }
});

test('a file is copied as Node copies it', async () => {
  fs.writeFileSync(at('a'), 'x'.repeat(100_000), { mode: 0o640 });
  for (const copy of [calve.promises.copyFile, promisify(calve.copyFile), async (...given) => calve.copyFileSync(...given)]) {
    for (const given of [[], [undefined], [0], [fs.constants.COPYFILE_EXCL], [fs.constants.COPYFILE_FICLONE]]) {
      fs.rmSync(at('b'), { force: true });
      await copy(at('a'), Buffer.from(at('b')), ...given);
      assert.equal(fs.readFileSync(at('b'), 'utf8').length, 100_000);
      assert.equal(fs.statSync(at('b')).mode, fs.statSync(at('a')).mode);
    }
    assert.equal((await caught(() => copy(at('a'), at('b'), fs.constants.COPYFILE_EXCL))).code, 'EEXIST');
    assert.match((await caught(() => copy(at('a'), at('b'), 'x'))).code, /^ERR_INVALID_ARG_(TYPE|VALUE)$/);
    assert.equal((await caught(() => copy(at('none'), at('b')))).syscall, 'copyfile');
  }
});

// The table of docs/node-and-python.md: what is different on purpose.

test('difference: a new tree appears when it is complete, also when a signal ends the process', async () => {
  for (let n = 0; n < 4; n += 1) large(at('src', `${n}`));
  fs.mkdirSync(at('empty'));
  const program = `
    const { cpSync, promises: { cp } } = require('calve/fs');
    const [src, dst, isSync] = process.argv.slice(1);
    console.log('begun');
    isSync ? cpSync(src, dst, { recursive: true }) : cp(src, dst, { recursive: true });`;
  for (const signal of ['SIGKILL', 'SIGTERM', 'SIGINT']) {
    for (const isSync of ['', 'yes']) {
      const child = spawn(process.execPath, ['--eval', program, at('src'), at('dst'), isSync], { stdio: ['ignore', 'pipe', 'inherit'] });
      await begun(child);
      // It is at work.
      while (child.exitCode === null && fs.readdirSync(folder).length === 2) await setImmediate();
      child.kill(signal);
      await once(child, 'exit');
      assert.ok(!fs.existsSync(at('dst')) || fs.readdirSync(at('dst')).length === 4, `${signal} ${isSync}`);
      // What it has left is removed by the next copy.
      calve.cpSync(at('empty'), at('other'), { recursive: true });
      assert.deepEqual(fs.readdirSync(folder).filter((name) => name.startsWith('.calve-')), []);
      for (const made of ['dst', 'other']) fs.rmSync(at(made), { recursive: true, force: true });
    }
  }
});

test('difference: `cpSync` does what `cp` does, whatever the version of Node', async () => {
  odd(at('src'));
  links(at('src'));
  calve.cpSync(at('src'), at('dst'), { recursive: true });
  const made = tree(at('dst'));
  fs.rmSync(at('dst'), { recursive: true });
  await node.promises.cp(at('src'), at('dst'), { recursive: true });
  assert.deepEqual(made, tree(at('dst')));
  assert.equal(left, 0);
});

test('difference: times that are preserved keep their nanoseconds, and those of the source stay', async () => {
  fs.mkdirSync(at('src'));
  fs.writeFileSync(at('src/a'), 'x');
  execFileSync('touch', ['-d', '2001-09-09 01:46:40.123456789Z', at('src/a')]);
  await calve.promises.cp(at('src'), at('dst'), { recursive: true, preserveTimestamps: true });
  for (const file of ['src/a', 'dst/a']) {
    const { atimeNs, mtimeNs } = fs.statSync(at(file), { bigint: true });
    assert.deepEqual([atimeNs, mtimeNs], [1_000_000_000_123_456_789n, 1_000_000_000_123_456_789n]);
  }
});

test('difference: the target of a link keeps bytes that are not UTF-8; with names Node fails', async () => {
  const target = Buffer.from('b\xff', 'latin1');
  fs.mkdirSync(at('src'));
  fs.symlinkSync(target, at('src/link'));
  await calve.promises.cp(at('src'), at('dst'), { recursive: true, verbatimSymlinks: true });
  assert.deepEqual(fs.readlinkSync(at('dst/link'), { encoding: 'buffer' }), target);
  fs.writeFileSync(Buffer.concat([Buffer.from(at('src/')), target]), '');
  const failed = await caught(() => calve.promises.cp(at('src'), at('other'), { recursive: true }));
  assert.deepEqual([failed.code, failed.syscall], ['ENOENT', 'lstat']);
});

test('difference: `rm` takes a large tree away although what is in it cannot be deleted', { skip: process.getuid() !== 0 }, async () => {
  fs.chmodSync(folder, 0o777);
  // It may be that somebody else cannot reach the directories above: everything is loaded before it is somebody else, and no path is absolute.
  const program = `
    const { mkdirSync, writeFileSync, chmodSync, existsSync } = require('node:fs');
    const { cpSync, rmSync } = require('calve/fs');
    const [folder] = process.argv.slice(1);
    mkdirSync(folder + '/empty');
    cpSync(folder + '/empty', folder + '/copy', { recursive: true });
    process.chdir(folder);
    process.setgroups([]);
    process.setgid(65534);
    process.setuid(65534);
    mkdirSync('tree/locked/in', { recursive: true });
    for (let n = 0; n < 300; n += 1) writeFileSync('tree/' + n, '');
    chmodSync('tree/locked', 0o555);
    rmSync('tree', { recursive: true });
    if (existsSync('tree')) throw new Error('it is there');`;
  const child = spawn(process.execPath, ['--eval', program, folder], { stdio: 'inherit' });
  assert.deepEqual(await once(child, 'exit'), [0, null]);
});

test('`rm` in a directory that may not be written to deletes no more than Node does', { skip: process.getuid() !== 0 }, async () => {
  const program = `
    const fs = require('node:fs');
    const own = { rmSync: fs.rmSync, rm: fs.promises.rm };
    const calve = { rmSync: require('calve/fs').rmSync, rm: require('calve/fs').promises.rm };
    const [folder] = process.argv.slice(1);
    fs.mkdirSync(folder + '/empty');
    require('calve/fs').cpSync(folder + '/empty', folder + '/copy', { recursive: true });
    process.chdir(folder);
    process.setgroups([]);
    process.setgid(65534);
    process.setuid(65534);
    const left = async (parent, rm) => {
      fs.mkdirSync(parent + '/tree', { recursive: true });
      for (let n = 0; n < 300; n += 1) fs.writeFileSync(parent + '/tree/' + n, '');
      fs.chmodSync(parent, 0o555);
      const code = await rm(parent + '/tree', { recursive: true }).then(() => 'none', (error) => error.code);
      const names = fs.readdirSync(parent + '/tree').length;
      fs.chmodSync(parent, 0o755);
      return code + ' ' + names;
    };
    (async () => {
      for (const name of ['rmSync', 'rm']) {
        const [expected, found] = [await left('of node ' + name, async (...given) => own[name](...given)), await left('of calve ' + name, async (...given) => calve[name](...given))];
        if (expected !== found) throw new Error(name + ': ' + expected + ', but ' + found);
      }
    })();`;
  fs.chmodSync(folder, 0o777);
  const child = spawn(process.execPath, ['--eval', program, folder], { stdio: 'inherit' });
  assert.deepEqual(await once(child, 'exit'), [0, null]);
});

test('difference: without its binaries it warns once, and Node does the work', async () => {
  const package_ = path.dirname(createRequire(import.meta.url).resolve('calve/package.json'));
  fs.mkdirSync(at('node_modules'));
  fs.cpSync(package_, at('node_modules/calve'), { recursive: true, filter: (file) => !file.includes('calve-linux') });
  odd(at('src'));
  const program = `const { cpSync, rmSync } = require('calve/fs'); cpSync('src', 'dst', { recursive: true }); cpSync('src', 'dst2', { recursive: true }); rmSync('dst2', { recursive: true });`;
  const child = spawn(process.execPath, ['--eval', program], { cwd: folder, stdio: ['ignore', 'inherit', 'pipe'] });
  let told = '';
  child.stderr.on('data', (text) => { told += text; });
  assert.deepEqual(await once(child, 'exit'), [0, null]);
  assert.equal(told.match(/CalveWarning: calve\/fs is no faster than node:fs here: the package `calve-/g)?.length, 1, told);
  assert.ok(fs.existsSync(at('dst/file')) && !fs.existsSync(at('dst2')));
});

test('copies run beside each other, and what is begun before the process exits leaves nothing half made', async () => {
  for (let n = 0; n < 2; n += 1) large(at('src', `${n}`));
  await Promise.all(Array.from({ length: 4 }, (_, n) => calvePromises.cp(at('src'), at('copies', `${n}`), { recursive: true })));
  for (let n = 0; n < 4; n += 1) assert.deepEqual(tree(at('copies', `${n}`)), tree(at('src')));
  const results = await Promise.allSettled(Array.from({ length: 4 }, () => calvePromises.cp(at('src'), at('same'), { recursive: true })));
  assert.ok(results.some(({ status }) => status === 'fulfilled'));
  const program = `const { cp } = require('calve/fs'); cp(${JSON.stringify(at('src'))}, ${JSON.stringify(at('dst'))}, { recursive: true }, () => {}); process.exit();`;
  execFileSync(process.execPath, ['--eval', program]);
  assert.deepEqual(fs.readdirSync(folder).filter((name) => name.startsWith('.calve-staging')), []);
});
