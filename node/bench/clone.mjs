// cloneTree beside the program, in one run, taking turns: the time, and how late a timer of this process was meanwhile. Run where
// `calve` is installed. What the program's clones do to the timer is what the machine does to it; nothing of that runs in here.
//
// usage: node clone.mjs SRC DIR [RUNS]
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { performance } from 'node:perf_hooks';
import { cloneTree, removeTree } from 'calve';

const [src, into, runs = '5'] = process.argv.slice(2);
// The program itself, without the script that npx starts.
const program = path.resolve('node_modules', fs.readdirSync('node_modules').find((name) => name.startsWith('calve-')), 'bin', 'calve');
const ways = {
  cloneTree: (dst) => cloneTree(src, dst),
  'calve cp': (dst) => new Promise((resolve, reject) => {
    const child = spawn(program, ['cp', '-q', '-T', src, dst], { stdio: 'inherit' });
    child.on('error', reject);
    child.on('exit', (code) => (code === 0 ? resolve() : reject(new Error(`calve cp: ${code}`))));
  }),
};
const times = {};
const stalls = {};

/** Runs `work`, and the longest that a timer of a millisecond was late. */
async function watched(work) {
  let [last, stall] = [performance.now(), 0];
  const timer = setInterval(() => {
    const now = performance.now();
    stall = Math.max(stall, now - last - 1);
    last = now;
  }, 1);
  const started = performance.now();
  await work();
  const took = performance.now() - started;
  await new Promise((resolve) => { setTimeout(resolve, 3); });
  clearInterval(timer);
  return [took, stall];
}

for (let run = 0; run <= Number(runs); run += 1) {
  for (const [name, clone] of Object.entries(ways)) {
    const dst = path.join(into, `calve-bench-${process.pid}`);
    const [took, stall] = await watched(() => clone(dst));
    await removeTree(dst, { wait: true });
    // The first round is not counted.
    if (run === 0) continue;
    (times[name] ??= []).push(took);
    (stalls[name] ??= []).push(stall);
  }
}
const median = (list) => list.slice().sort((a, b) => a - b)[Math.floor(list.length / 2)];
for (const name of Object.keys(ways)) {
  const each = stalls[name].map((stall) => stall.toFixed(1)).join(' ');
  console.log(`${name.padEnd(10)} ${median(times[name]).toFixed(0).padStart(6)} ms (${Math.min(...times[name]).toFixed(0)} to ${Math.max(...times[name]).toFixed(0)}); longest stalls, ms: ${each}`);
}
console.log(`ratio of the medians: ${(median(times.cloneTree) / median(times['calve cp'])).toFixed(3)}`);
