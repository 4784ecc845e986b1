// Against the installed package: `npx calve` in an empty project.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { hasProgram, onExt4, skipped } from './machine.mjs';
import { inTime, until } from './moment.mjs';
import { cloneFile, cloneTree, cloneTreeSync, isSupported } from 'calve';
import * as calveFs from 'calve/fs';

let folder;
let environment;
beforeEach(() => {
  // Open to the user that a server runs as when root asks for one.
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'calve-'));
  fs.chmodSync(folder, 0o755);
  const git = { GIT_AUTHOR_NAME: 'a', GIT_AUTHOR_EMAIL: 'a@b', GIT_COMMITTER_NAME: 'a', GIT_COMMITTER_EMAIL: 'a@b', GIT_CONFIG_GLOBAL: '/dev/null' };
  environment = { ...process.env, ...git, CALVE_HOME: path.join(folder, '.home') };
});
afterEach(() => fs.rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 }));
const at = (...names) => path.join(folder, ...names);
/** The script that npm has linked to for this project, run in `directory`. */
const linked = path.resolve('node_modules', '.bin', 'calve');
const calve = (directory, ...given) => spawnSync(linked, given, { cwd: directory, env: environment, encoding: 'utf8' });
function succeeds(run) {
  assert.equal(run.status, 0, run.stderr);
  return run.stdout;
}

test('it runs by npx, with its streams and its exit code', () => {
  fs.mkdirSync(at('src', 'd'), { recursive: true });
  fs.writeFileSync(at('src', 'd', 'f'), 'x');
  const npx = (...given) => spawnSync('npx', ['--no-install', 'calve', ...given], { encoding: 'utf8' });
  const run = npx('cp', '--json', at('src'), at('dst'));
  assert.equal(JSON.parse(succeeds(run)).schema, 'calve.clone/1');
  assert.equal(npx('cp', at('none'), at('dst3')).status, 1);
  assert.equal(npx('nonsense').status, 2);
});

test('every command is there', () => {
  const known = succeeds(calve(folder, '--help'));
  for (const command of ['cp', 'rm', 'probe', 'worktree', 'git', 'db', 'dedupe', 'du', 'bench', 'hook', 'completions', 'shell-init']) {
    assert.match(known, new RegExp(`^  ${command} `, 'm'));
    if (Number(process.env.CALVE_ROUNDS ?? 0.1) >= 1) succeeds(calve(folder, command, '--help'));
  }
  assert.match(succeeds(calve(folder, 'probe', '.')), /copy/);
  assert.equal(JSON.parse(succeeds(calve(folder, 'db', 'list', '--json'))).schema, 'calve.db.servers/1');
  assert.match(succeeds(calve(folder, 'completions', 'bash')), /calve/);
});

test('git and worktree', (t) => {
  if (!hasProgram(t, 'git')) return;
  const git = (...given) => execFileSync('git', given, { cwd: at('origin'), env: environment, stdio: 'pipe' });
  fs.mkdirSync(at('origin', 'node_modules', 'some'), { recursive: true });
  git('init', '-q', '-b', 'main');
  fs.writeFileSync(at('origin', '.gitignore'), 'node_modules\n');
  fs.writeFileSync(at('origin', 'node_modules', 'some', 'index.js'), '1');
  git('add', '.');
  git('commit', '-q', '-m', 'first');
  const worktree = succeeds(calve(at('origin'), 'worktree', 'add', 'feature')).trim();
  assert.ok(fs.existsSync(path.join(worktree, 'node_modules', 'some', 'index.js')), worktree);
  const listed = JSON.parse(succeeds(calve(at('origin'), 'worktree', 'list', '--json')));
  assert.equal(listed.schema, 'calve.worktrees/1');
  assert.ok(JSON.stringify(listed).includes('feature'));
  succeeds(calve(at('origin'), 'worktree', 'remove', 'feature'));
  assert.ok(!fs.existsSync(worktree));
  succeeds(calve(folder, 'git', 'clone', `file://${at('origin')}`, 'copy'));
  assert.ok(fs.existsSync(at('copy', '.gitignore')));
  assert.match(succeeds(calve(folder, 'git', 'advise')), /clone/);
});

test('a database server, from its template to its end', (t) => {
  if (!hasProgram(t, 'psql')) return;
  const sql = (text) => ['psql', '-qAtX', '-v', 'ON_ERROR_STOP=1', '-c', text];
  const created = calve(folder, 'db', 'template', 'create', 'shop', '--engine', 'postgres', '--', ...sql('create table t as select 42 as n'));
  // There are machines with the client alone.
  if (/cannot find `(postgres|initdb)`/.test(created.stderr)) return skipped(t, 'the server of PostgreSQL is not installed');
  succeeds(created);
  assert.equal(succeeds(calve(folder, 'db', 'run', 'shop', '--', ...sql('select n from t'))).trim(), '42');
  const url = succeeds(calve(folder, 'db', 'start', 'shop')).trim();
  assert.match(url, /^postgres/);
  try {
    assert.equal(JSON.parse(succeeds(calve(folder, 'db', 'list', '--json'))).servers.length, 1);
  } finally {
    succeeds(calve(folder, 'db', 'stop', '--all'));
  }
  assert.equal(JSON.parse(succeeds(calve(folder, 'db', 'list', '--json'))).servers.length, 0);
  succeeds(calve(folder, 'db', 'template', 'remove', 'shop'));
});

test('a signal to the script reaches the program, which leaves nothing', async () => {
  fs.mkdirSync(at('src'));
  for (let n = 0; n < 4000; n += 1) fs.writeFileSync(at('src', `${n}`), 'x'.repeat(5000));
  // As soon as something is being made. A terminal sends Ctrl-C to all processes of the group.
  const code = `const [linked, signal, toAll] = process.argv.slice(1);
    const child = require('node:child_process').spawn(linked, ['cp', '--strategy', 'copy', '--verify', '--threads', '1', 'src', 'dst'], { stdio: 'inherit', detached: true });
    const hidden = () => require('node:fs').readdirSync('.').some((name) => name.startsWith('.') && name !== '.home');
    const timer = setInterval(() => { if (hidden()) { clearInterval(timer); process.kill(toAll ? -child.pid : child.pid, signal); } }, 1);
    child.on('exit', (code, signal) => { clearInterval(timer); console.log(code ?? signal); });`;
  for (const sent of [['SIGTERM'], ['SIGINT'], ['SIGINT', 'to all'], ['SIGHUP']]) await inTime(() => {
    const run = spawnSync(process.execPath, ['-e', code, linked, ...sent], { cwd: folder, env: environment, encoding: 'utf8' });
    const names = fs.readdirSync(folder).filter((name) => name !== '.home').sort();
    if (run.stdout === '130\n') {
      assert.deepEqual(names, ['src']);
      return true;
    }
    // It was faster.
    assert.equal(run.stdout, '0\n', run.stderr);
    assert.deepEqual(names, ['dst', 'src']);
    fs.rmSync(at('dst'), { recursive: true });
    return false;
  });
});

test('the bench finds this package', () => {
  const run = spawnSync('npx', ['--no-install', 'calve', 'bench', 'write', '--into', folder, '--files', '40', '--size', '3000', '--directories', '4', '--runs', '1', '--json'], { encoding: 'utf8' });
  const report = JSON.parse(succeeds(run));
  assert.deepEqual(report.failed, []);
  assert.equal(report.facts.npm_package, createRequire(import.meta.url)('calve/package.json').version);
  for (const way of ['calve.writeFiles', 'calve.writeFilesSync', 'calve.writeFiles, 2 threads']) {
    assert.equal(report.results.filter((one) => one.command === way).length, 1, way);
  }
  assert.deepEqual(fs.readdirSync(folder), []);
});

/** A copy of the part of this Node's binary that is looked at, with another loader in it. */
function withLoader(name, loader) {
  const binary = fs.readFileSync(process.execPath);
  const at = binary.indexOf(Buffer.from('/lib64/ld-linux-x86-64.so.2\0'));
  if (at < 0) return undefined;
  binary.write(`${loader}\0`, at, 'latin1');
  fs.writeFileSync(name, binary.subarray(0, at + 4096));
  return name;
}

test('each platform asks for a package that is named as optional', (t) => {
  const { optionalDependencies, version } = createRequire(import.meta.url)('calve/package.json');
  const code = `const [platform, arch, execPath] = process.argv.slice(1);
    for (const [name, value] of Object.entries({ platform, arch, execPath })) Object.defineProperty(process, name, { value });
    require('node:module')._resolveFilename = ((original) => function find(name, ...rest) {
      if (/^calve-[a-z]/.test(name)) { console.log(name.split('/')[0]); process.exit(0); }
      return original.call(this, name, ...rest);
    })(require('node:module')._resolveFilename);
    require('calve').cloneTreeSync('a', 'b');`;
  const [gnu, musl] = [withLoader(at('gnu'), '/lib64/ld-linux-x86-64.so.2'), withLoader(at('musl'), '/lib/ld-musl-x86_64.so.1')];
  if (gnu === undefined) return skipped(t, 'this Node is for another processor');
  // An executable that says nothing is not the program that runs.
  const asked = [['linux', 'x64', gnu], ['linux', 'arm64', gnu], ['linux', 'x64', musl], ['linux', 'arm64', musl], ['linux', 'x64', at('none')],
    ['darwin', 'x64', ''], ['darwin', 'arm64', '']].map((given) => {
    const run = spawnSync(process.execPath, ['-e', code, ...given], { encoding: 'utf8' });
    return succeeds(run).trim();
  });
  assert.deepEqual([...new Set(asked)].sort(), Object.keys(optionalDependencies).sort());
  assert.deepEqual([asked[2], asked[4]], ['calve-linux-x64-musl', 'calve-linux-x64-gnu']);
  assert.deepEqual([...new Set(Object.values(optionalDependencies))], [version]);
});

test('without the package of the platform a short message says what is missing', () => {
  fs.cpSync(path.resolve('node_modules', 'calve'), at('node_modules', 'calve'), { recursive: true });
  const run = spawnSync(process.execPath, [at('node_modules', 'calve', 'bin', 'calve.js'), 'probe'], { cwd: folder, encoding: 'utf8' });
  assert.equal(run.status, 1);
  assert.match(run.stderr, /^calve: the package `calve-[a-z0-9-]+` with the binaries for this platform is not installed\nhint: [^\n]*optional[^\n]*\n$/);
  for (const call of ["cloneTree('a', 'b')", "startDatabase('shop')"]) {
    const code = `require('calve').${call}.catch((error) => console.log(error.code, error instanceof require('calve').CalveError));`;
    assert.equal(succeeds(spawnSync(process.execPath, ['-e', code], { cwd: folder, encoding: 'utf8' })), 'ERR_CALVE_NO_PACKAGE true\n', call);
  }
});

test('on Windows and other systems without binaries it loads, its drop-ins are those of Node, and all else says where it runs', () => {
  const code = `const [platform, arch] = process.argv.slice(1);
    for (const [name, value] of Object.entries({ platform, arch })) Object.defineProperty(process, name, { value });
    process.on('warning', (warning) => console.log('warned', warning.message));
    const fs = require('node:fs');
    const [calve, calveFs, calvePromises] = [require('calve'), require('calve/fs'), require('calve/fs/promises')];
    const own = (mine, node) => Object.keys(node).filter((name) => mine[name] !== node[name]).concat(Object.keys(mine).filter((name) => !(name in node)));
    console.log('own', own({ ...calveFs, promises: fs.promises }, fs).concat(own({ ...calvePromises }, fs.promises)).join());
    console.log('supported', calve.isSupported());
    const server = new calve.Database({ name: 'a', socket: '' });
    const calls = [() => calve.cloneTree('a', 'b'), () => calve.cloneFile('a', 'b'), () => calve.cloneTreeSync('a', 'b'), () => calve.cloneFileSync('a', 'b'),
      () => calve.probe('a'), () => calve.removeTree('a', { force: true }), () => calve.removeTreeSync('a', { force: true, wait: true }),
      () => calve.writeFiles('a', { b: 'c' }), () => calve.writeFilesSync('a', { b: 'c' }), () => calve.readFiles(['a']).next(),
      () => calve.startDatabase('shop'), () => server.reset(), () => server.mark('m'), () => server.stop()];
    (async () => {
      for (const call of calls) {
        const error = await Promise.resolve().then(call).catch((error) => error);
        if (!(error instanceof calve.CalveError) || error.code !== 'ERR_CALVE_UNSUPPORTED' || !/WSL2/.test(error.hint)) console.log(String(call), error);
      }
    })();`;
  for (const [platform, arch] of [['win32', 'x64'], ['win32', 'arm64'], ['freebsd', 'x64'], ['linux', 'riscv64']]) {
    const run = spawnSync(process.execPath, ['-e', code, platform, arch], { encoding: 'utf8' });
    assert.equal(run.stderr, '');
    assert.equal(succeeds(run), 'own \nsupported false\n', `${platform} ${arch}`);
  }
  const windows = "Object.defineProperty(process, 'platform', { value: 'win32' });";
  fs.writeFileSync(at('windows.cjs'), windows);
  const program = spawnSync(process.execPath, ['--require', at('windows.cjs'), path.resolve('node_modules', 'calve', 'bin', 'calve.js'), 'probe'], { encoding: 'utf8' });
  assert.equal(program.status, 1);
  assert.match(program.stderr, /^calve: calve does not run on win32-[a-z0-9]+\nhint: [^\n]*WSL2\n$/);
  assert.deepEqual([isSupported(), calveFs.cpSync === fs.cpSync], [true, false]);
});

test('a template that the program has made is cloned by its name', async () => {
  const before = process.env.CALVE_HOME;
  process.env.CALVE_HOME = environment.CALVE_HOME;
  try {
    fs.mkdirSync(at('src', '@d'), { recursive: true });
    fs.writeFileSync(at('src', '@d', 'f'), 'x');
    succeeds(calve(folder, 'template', 'create', 'shop', 'src'));
    fs.rmSync(at('src', '@d', 'f'));
    assert.equal((await cloneTree('@shop', at('dst'))).src, '@shop');
    assert.equal(fs.readFileSync(at('dst', '@d', 'f'), 'utf8'), 'x');
    assert.equal(cloneTreeSync('@shop', at('dst2'), { exclude: 'f' }).src, '@shop');
    assert.deepEqual(fs.readdirSync(at('dst2', '@d')), []);
    await assert.rejects(cloneTree('@none', at('dst3')), { code: 'ERR_CALVE_TEMPLATE', errnoName: 'ENOENT' });
    await assert.rejects(cloneFile('@shop', at('dst3')), { code: 'ERR_CALVE_IS_A_DIRECTORY' });
    // With a slash it is a path.
    await assert.rejects(cloneTree('@d/f', at('dst3')), { code: 'ERR_CALVE_MISSING' });
    fs.writeFileSync(path.join(JSON.parse(succeeds(calve(folder, 'template', 'show', '--json', 'shop'))).tree, '@d', 'f'), 'y');
    const changed = await cloneTree('@shop', at('dst3'), { strategy: 'copy' }).catch((error) => error);
    assert.equal(changed.code, 'ERR_CALVE_TEMPLATE');
    assert.match(changed.hint, /verify the template/);
  } finally {
    if (before === undefined) delete process.env.CALVE_HOME;
    else process.env.CALVE_HOME = before;
  }
});

test('a spare that the program has made is handed over, and the next one is built', (t) => onExt4(t, at('disk'), async () => {
  const on = (...names) => at('disk', ...names);
  const before = process.env.CALVE_HOME;
  environment.CALVE_HOME = process.env.CALVE_HOME = on('home');
  const list = () => JSON.parse(succeeds(calve(folder, 'spares', 'list', '--json'))).sources[0].spares;
  const same = (name) => execFileSync('diff', ['-r', on('src'), on(name)]);
  try {
    fs.mkdirSync(on('src', 'd'), { recursive: true });
    for (let n = 0; n < 20; n += 1) fs.writeFileSync(on('src', 'd', `${n}`), `${n}`);
    succeeds(calve(folder, 'spares', 'add', '--quiet', on('src')));
    // Where each entry has to be looked at, and with other options.
    await assert.rejects(cloneTree(on('src'), on('a'), { require: 'instant' }), { code: 'ERR_CALVE_REQUIREMENT_REFUSED' });
    const without = await cloneTree(on('src'), on('b'), { exclude: '3' });
    assert.deepEqual([without.strategy, without.refused[0].strategy, without.spare], ['copy', 'spare', undefined]);
    // What stands in for Node's own function makes what that makes.
    calveFs.cpSync(on('src'), on('c'), { recursive: true });
    assert.equal(list().length, 1);

    fs.writeFileSync(on('src', 'd', '7'), 'changed');
    const made = await cloneTree(on('src'), on('dst'));
    assert.deepEqual([made.strategy, made.spare.checked, made.spare.entries_checked], ['spare', 'walked', 22]);
    assert.ok(made.spare.entries_updated > 0);
    same('dst');
    // Somebody sets about building the next one, or has built it.
    await until(() => list().length === 1 || fs.existsSync(on('home', 'spares', '.waiting')));
    succeeds(calve(folder, 'spares', 'refill', '--quiet', on('src')));
    assert.equal(cloneTreeSync(on('src'), on('dst2'), { strategy: 'spare' }).strategy, 'spare');
    same('dst2');
  } finally {
    // Whoever waits with the next one goes.
    calve(folder, 'spares', 'remove', '--quiet', on('src'));
    if (before === undefined) delete process.env.CALVE_HOME;
    else process.env.CALVE_HOME = before;
  }
}));
