// Against the installed package: database servers, by the program that its platform's package contains.
import assert from 'node:assert/strict';
import { execFile, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { CalveError, Database, database, startDatabase } from 'calve';
import { hasProgram } from './machine.mjs';
import { begun, until } from './moment.mjs';

const require = createRequire(import.meta.url);
const calve = path.resolve('node_modules', '.bin', 'calve');
const said = async (...command) => (await promisify(execFile)(command[0], command.slice(1))).stdout.trim();
const running = () => JSON.parse(execFileSync(calve, ['db', 'list', '--json'], { encoding: 'utf8' })).servers.map(({ name }) => name);
const psql = (database, sql) => said('psql', database.url, '-qtAc', sql);
const COUNT = 'SELECT count(*) FROM customers';
const isThere = process.env.PATH.split(':').some((directory) => fs.existsSync(`${directory}/psql`));
let home;

before(() => {
  // Open to the user that a server of root runs as.
  home = fs.mkdtempSync(path.join(os.tmpdir(), 'calve-'));
  fs.chmodSync(home, 0o755);
  process.env.CALVE_HOME = home;
  const fill = 'CREATE TABLE customers AS SELECT generate_series(1, 100) AS id';
  if (isThere) execFileSync(calve, ['db', 'template', 'create', '-q', 'shop', '--engine', 'postgres', '--', 'psql', '-qc', fill]);
});
after(() => {
  execFileSync(calve, ['db', 'stop', '-q', '--all']);
  execFileSync(calve, ['db', 'gc', '-q']);
  fs.rmSync(home, { recursive: true, force: true });
});

test('a server is reached, put back and ended', async (t) => {
  if (!hasProgram(t, 'psql')) return;
  const database = await startDatabase('shop', { name: 'mine' });
  assert.ok(database instanceof Database);
  assert.deepEqual([database.name, database.engine, database.user, database.database], ['mine', 'postgres', 'postgres', 'postgres']);
  assert.equal(database.socket, `${database.host}/.s.PGSQL.${database.port}`);
  assert.deepEqual([database.password, database.tcpUrl, database.tcpPort], [null, null, null]);
  assert.deepEqual([database.environment.DATABASE_URL, database.environment.PGSERVICE], [database.url, null]);
  await psql(database, 'DELETE FROM customers WHERE id > 10');
  assert.equal(await psql(database, COUNT), '10');
  await database.reset();
  assert.equal(await psql(database, COUNT), '100');
  assert.deepEqual(running(), ['mine']);
  await database.stop();
  assert.deepEqual(running(), []);
  // Once more, and after the program has ended it.
  await database.stop();
});

test('a server goes back to a mark', async (t) => {
  if (!hasProgram(t, 'psql')) return;
  const database = await startDatabase('shop');
  await psql(database, 'DELETE FROM customers WHERE id > 50');
  await database.mark('half');
  await psql(database, 'DROP TABLE customers');
  await database.reset({ to: 'half' });
  assert.equal(await psql(database, COUNT), '50');
  await database.stop();
});

test('several at once, by TCP too, end with their blocks', async (t) => {
  if (!hasProgram(t, 'psql')) return;
  const all = await Promise.all([startDatabase('shop'), startDatabase('shop', { tcp: true })]);
  const [, tcp] = all;
  assert.equal(await said('psql', tcp.tcpUrl, '-qtAc', COUNT), '100');
  assert.ok(tcp.password && tcp.tcpUrl.includes(String(tcp.tcpPort)));
  const taken = await startDatabase('shop', { tcp: tcp.tcpPort }).catch((error) => error);
  assert.equal(taken.hint, 'choose another port, or name none to get a free one');
  // What `await using` calls.
  for (const one of all) await one[Symbol.asyncDispose]();
  assert.deepEqual(running(), []);
});

test('a server ends with the process that is killed', async (t) => {
  if (!hasProgram(t, 'psql')) return;
  const code = "require('calve').startDatabase('shop', { name: 'killed' }).then(({ url }) => { console.log(url); setInterval(() => {}, 1000); });";
  const child = spawn(process.execPath, ['-e', code], { stdio: ['ignore', 'pipe', 'inherit'] });
  await begun(child);
  assert.deepEqual(running(), ['killed']);
  child.kill('SIGKILL');
  await until(() => running().length === 0);
});

test('errors say what to do', async (t) => {
  if (!hasProgram(t, 'psql')) return;
  const none = await startDatabase('none').catch((error) => error);
  assert.ok(none instanceof CalveError);
  assert.deepEqual([none.code, none.message], ['ERR_CALVE_DB', 'there is no template `none`']);
  assert.match(none.hint, /calve db template create none/);
  await assert.rejects(startDatabase('shop', { name: 'a b' }), { code: /^ERR_CALVE/, message: /name/ });
  const database = await startDatabase('shop');
  await assert.rejects(database.reset({ to: 'never' }), { name: 'CalveError', hint: /see `calve db marks / });
  await database.stop();
  await assert.rejects(database.reset(), { name: 'CalveError', message: /there is no/ });
});

test('wrong arguments are TypeErrors', async () => {
  await assert.rejects(startDatabase(1), { name: 'TypeError', message: /`template` must be a string/ });
  await assert.rejects(startDatabase('shop', { tpc: true }), { name: 'TypeError', message: /did you mean `tcp`/ });
  await assert.rejects(startDatabase('shop', { tcp: 1.5 }), { name: 'TypeError', message: /`options.tcp`/ });
  await assert.rejects(startDatabase('shop', { ownerPid: '1' }), { name: 'TypeError', message: /`options.ownerPid`/ });
  assert.throws(() => database(), /add calve to the test runner's configuration/);
});

test('a start waits for its answer alone', async (t) => {
  if (!hasProgram(t, 'psql')) return;
  const folder = fs.mkdtempSync(path.join(home, 'answer-'));
  const [platform] = fs.readdirSync('node_modules').filter((name) => /^calve-/.test(name));
  fs.cpSync(path.resolve('node_modules', 'calve'), path.join(folder, 'node_modules', 'calve'), { recursive: true });
  const real = path.resolve('node_modules', platform, 'bin', 'calve');
  const answer = execFileSync(real, ['db', 'start', '--quiet', '--json', `--owner-pid=${process.pid}`, '--', 'shop']);
  fs.writeFileSync(path.join(folder, 'answer'), answer);
  const program = path.join(folder, 'node_modules', platform, 'bin', 'calve');
  fs.mkdirSync(path.dirname(program), { recursive: true });
  // More than a pipe holds, and the answer in two parts.
  const parts = `head -c 100 ${folder}/answer; sleep 0.2; tail -c +101 ${folder}/answer`;
  const text = `echo $$ >${folder}/pid; head -c 100000 /dev/zero | tr '\\0' x >&2; ${parts}; exec sleep 60`;
  fs.writeFileSync(program, `#!/bin/sh\n${text}\n`, { mode: 0o755 });
  const start = "require('calve').startDatabase('shop').then((server) => console.log(server.name))";
  const began = performance.now();
  // This process ends by itself: what goes on does not keep it.
  const name = execFileSync(process.execPath, ['-e', start], { cwd: folder, encoding: 'utf8' }).trim();
  const took = performance.now() - began;
  process.kill(Number(fs.readFileSync(path.join(folder, 'pid'), 'utf8')), 'SIGKILL');
  assert.ok(took < 30_000, `${took} ms`);
  assert.equal(name, JSON.parse(answer).name);
  execFileSync(real, ['db', 'stop', '--quiet', name]);
});

test('another version of the program is told apart', async () => {
  const folder = fs.mkdtempSync(path.join(home, 'other-'));
  const [platform] = fs.readdirSync('node_modules').filter((name) => /^calve-/.test(name));
  fs.cpSync(path.resolve('node_modules', 'calve'), path.join(folder, 'node_modules', 'calve'), { recursive: true });
  const program = path.join(folder, 'node_modules', platform, 'bin', 'calve');
  fs.mkdirSync(path.dirname(program), { recursive: true });
  const { version } = require('calve/package.json');
  const start = "require('calve').startDatabase('shop').catch((error) => console.log(JSON.stringify([error.code, error.message, error.hint])))";
  const version001 = '[ "$1" != --version ] || { echo calve 0.0.1; exit; };';
  for (const text of [`${version001} echo "error: unexpected argument" >&2; exit 2`, `${version001} echo '{"schema": "calve.db.server/1"}'`]) {
    fs.writeFileSync(program, `#!/bin/sh\n${text}\n`, { mode: 0o755 });
    const run = execFileSync(process.execPath, ['-e', start], { cwd: folder, encoding: 'utf8' });
    const [code, message, hint] = JSON.parse(run);
    assert.equal(code, 'ERR_CALVE_OTHER_VERSION');
    assert.ok(message.includes(`is calve 0.0.1, and the package is calve ${version}`), message);
    assert.match(hint, /install the package again/);
  }
});
