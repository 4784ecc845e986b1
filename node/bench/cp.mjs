// Copies a tree with the standard libraries, their replacements and Calve, taking turns: the time, the disk used, and the longest time
// that the event loop was blocked. `cp`, Python and bench/bare.c run outside of it: their stalls are the machine's, and their times include their start.
// So are those of an idle loop, and of one beside threads that only count, one for each processor.
// `bench/drop-ins` installs everything and runs this. It names the ways that are not installed, and prints a line on stderr at the end of each run.
//
// usage: node cp.mjs [--runs N] [--python PATH] [--bare PATH] [--only WAY]... SRC DIR
//        PATH: a Python where `calve` is installed; bench/bare.c, compiled. WAY: as the table names it; all of them by default. DIR: on the file system of SRC
import { spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { performance } from 'node:perf_hooks';
import { parseArgs } from 'node:util';
import { Worker } from 'node:worker_threads';
import { cloneTree, removeTree } from 'calve';
import calve from 'calve/fs';

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: { runs: { type: 'string', default: '3' }, python: { type: 'string' }, bare: { type: 'string' }, only: { type: 'string', multiple: true } },
});
const [src, into] = positionals.map((given) => path.resolve(given));
const leftOut = [];
const optional = async (name) => import(name).catch(() => { leftOut.push(`${name}: it is not installed`); });
const [fsExtra, cpy] = [await optional('fs-extra'), await optional('cpy')];
for (const one of ['python', 'bare']) if (options[one] === undefined) leftOut.push(`${one}: --${one} was not given`);

const recursive = { recursive: true };
const run = (program, ...given) => new Promise((resolve, reject) => {
  const child = spawn(program, given, { stdio: 'inherit' });
  child.on('error', reject);
  child.on('exit', (code) => (code === 0 ? resolve() : reject(new Error(`${program}: ${code}`))));
});
const python = (module) => (dst) => run(options.python, '-c', `import ${module}, sys; ${module}.copytree(*sys.argv[1:], symlinks=True)`, src, dst);
const pause = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });
/** Threads that keep every processor busy for two seconds, in user space alone. */
const busy = () => Promise.all(os.cpus().map(() => new Promise((resolve, reject) => {
  new Worker('const until = Date.now() + 2000; while (Date.now() < until);', { eval: true }).on('exit', resolve).on('error', reject);
})));
const ways = {
  'idle loop': () => pause(2000),
  'busy threads': busy,
  'fs.promises.cp': (dst) => fs.promises.cp(src, dst, recursive),
  'calve promises.cp': (dst) => calve.promises.cp(src, dst, recursive),
  'fs.cpSync': async (dst) => fs.cpSync(src, dst, recursive),
  'calve cpSync': async (dst) => calve.cpSync(src, dst, recursive),
  'calve cloneTree': (dst) => cloneTree(src, dst),
  'cp -a': (dst) => run('cp', '-a', src, dst),
  ...(options.bare && { 'bare calls': (dst) => run(options.bare, src, dst) }),
  ...(fsExtra && { 'fs-extra copy': (dst) => fsExtra.default.copy(src, dst) }),
  ...(cpy && { cpy: (dst) => cpy.default(['**'], dst, { cwd: src, dot: true }) }),
  ...(options.python && { 'shutil.copytree': python('shutil'), 'calve copytree': python('calve.shutil') }),
};
// What removes the copy that this way has made, and is measured too.
const removals = {
  'fs.promises.cp': ['fs.promises.rm', (dst) => fs.promises.rm(dst, recursive)],
  'calve promises.cp': ['calve promises.rm', (dst) => calve.promises.rm(dst, recursive)],
  'calve cpSync': ['calve rmSync', async (dst) => calve.rmSync(dst, recursive)],
};
const results = {};
for (const name of options.only ?? []) {
  if (!(name in ways)) throw new Error(`\`${name}\` is none of: ${Object.keys(ways).join(', ')}`);
}

/** Runs `work`: the time, and the longest that a timer of a millisecond was late. */
async function watched(work) {
  let [last, stall] = [performance.now(), 0];
  const look = () => {
    const now = performance.now();
    stall = Math.max(stall, now - last - 1);
    last = now;
  };
  const timer = setInterval(look, 1);
  const started = performance.now();
  await work().finally(() => clearInterval(timer));
  const took = performance.now() - started;
  look();
  return [took, stall];
}

/** The bytes in use, when everything is written. */
function used() {
  spawnSync('sync', ['-f', into], { stdio: 'inherit' });
  const { blocks, bfree, bsize } = fs.statfsSync(into);
  return (blocks - bfree) * bsize;
}

function add(name, time, stall, bytes) {
  const result = results[name] ??= { times: [], stalls: [], bytes: [] };
  result.times.push(time);
  console.error(`${name}: ${time.toFixed(1)} ms, longest stall ${stall.toFixed(1)} ms`);
  result.stalls.push(stall);
  if (bytes !== undefined) result.bytes.push(bytes);
}

/** Copies and removes once. */
async function turn(name, isCounted) {
  const dst = path.join(into, `calve-bench-${process.pid}`);
  const before = used();
  try {
    const copied = await watched(() => ways[name](dst));
    if (isCounted) add(name, ...copied, fs.existsSync(dst) ? used() - before : undefined);
    const [removal, remove] = removals[name] ?? [];
    if (remove) {
      const removed = await watched(() => remove(dst));
      if (isCounted) add(removal, ...removed);
    }
  } finally {
    if (fs.existsSync(dst)) await removeTree(dst, { wait: true });
    // What is deleted in the background is no part of the next turn.
    while (fs.readdirSync(into).some((one) => one.startsWith('.calve-trash'))) await pause(50);
  }
}

/** Reads every file: a way that shares extents does not. */
function readAll(directory) {
  for (const entry of fs.readdirSync(directory, { withFileTypes: true })) {
    const file = path.join(directory, entry.name);
    if (entry.isDirectory()) readAll(file);
    else if (entry.isFile()) fs.readFileSync(file);
  }
}

// Not counted: what is read from the disk, and what is loaded, for the first time.
readAll(src);
await turn('calve promises.cp', false);
const names = Object.keys(ways).filter((name) => options.only?.includes(name) ?? true);
for (let round = 0; round < Number(options.runs); round += 1) {
  // Each way is first, second and last for once. Every second round goes backwards: after a way that takes a minute, the disk of the machine
  // below the image is busy for a while, and the next way would always be the same one.
  const order = names.map((_, at) => names[(at + round) % names.length]);
  for (const name of (round % 2 === 0 ? order : order.reverse()).filter((one) => one in ways)) {
    await turn(name, true).catch((error) => {
      if (name.startsWith('calve')) throw error;
      leftOut.push(`${name}: ${error.message}`);
      delete ways[name];
      delete results[name];
    });
  }
}

const share = (list, part) => list.slice().sort((a, b) => a - b)[Math.min(list.length - 1, Math.floor(list.length * part))];
const median = (list) => share(list, 0.5);
const shown = (number) => number.toFixed(1).padStart(9);
console.log(`${''.padEnd(18)} ${'median'.padStart(9)}    ${'range'.padEnd(22)} ${'disk'.padStart(12)}  longest stall of a run, ms: median / p95 / most`);
for (const [name, { times, stalls, bytes }] of Object.entries(results)) {
  const disk = bytes.length === 0 ? ' '.repeat(12) : `${shown(median(bytes) / 1e6)} MB`;
  const range = `(${Math.min(...times).toFixed(1)} to ${Math.max(...times).toFixed(1)})`.padEnd(22);
  const longest = [0.5, 0.95, 1].map((part) => share(stalls, part).toFixed(1)).join(' / ');
  console.log(`${name.padEnd(18)} ${shown(median(times))} ms ${range} ${disk}  ${longest}`);
}
const pairs = [['calve promises.cp', 'fs.promises.cp'], ['calve cpSync', 'fs.cpSync'], ['calve copytree', 'shutil.copytree'], ['calve promises.cp', 'calve cloneTree']];
for (const [one, other] of pairs) {
  if (results[one] && results[other]) console.log(`${one} / ${other}: ${(median(results[one].times) / median(results[other].times)).toFixed(3)}`);
}
for (const why of leftOut) console.log(`left out: ${why}`);
