// What copies and removes a tree, taking turns: the time, and the longest time that the event loop was blocked. Run where `calve` is
// installed; `fs-extra` and `cpy` are there too, or left out.
//
// usage: node cp.mjs SRC DIR [RUNS]
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { performance } from 'node:perf_hooks';
import { cloneTree, removeTree } from 'calve';
import calve from 'calve/fs';

const [src, into, runs = '3'] = process.argv.slice(2);
const optional = async (name) => import(name).catch(() => undefined);
const [fsExtra, cpy] = [await optional('fs-extra'), await optional('cpy')];
const recursive = { recursive: true };
const run = (program, ...given) => new Promise((resolve, reject) => {
  const child = spawn(program, given, { stdio: 'inherit' });
  child.on('error', reject);
  child.on('exit', (code) => (code === 0 ? resolve() : reject(new Error(`${program}: ${code}`))));
});
const ways = {
  'fs.promises.cp': (dst) => fs.promises.cp(src, dst, recursive),
  'calve promises.cp': (dst) => calve.promises.cp(src, dst, recursive),
  'fs.cpSync': async (dst) => fs.cpSync(src, dst, recursive),
  'calve cpSync': async (dst) => calve.cpSync(src, dst, recursive),
  'calve cloneTree': (dst) => cloneTree(src, dst),
  'cp -a': (dst) => run('cp', '-a', src, dst),
  ...(fsExtra && { 'fs-extra copy': (dst) => fsExtra.default.copy(src, dst) }),
  ...(cpy && { cpy: (dst) => cpy.default(['**'], path.resolve(dst), { cwd: src, dot: true }) }),
};
const [times, stalls] = [{}, {}];

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
  await work();
  const took = performance.now() - started;
  look();
  clearInterval(timer);
  return [took, stall];
}

async function measured(name, isCounted, work) {
  const [took, stall] = await watched(work);
  if (!isCounted) return;
  (times[name] ??= []).push(took);
  (stalls[name] ??= []).push(stall);
}

for (let round = 0; round <= Number(runs); round += 1) {
  for (const [name, copy] of Object.entries(ways)) {
    const dst = path.join(into, `calve-bench-${process.pid}`);
    // The first round is not counted.
    await measured(name, round > 0, () => copy(dst));
    if (name === 'fs.promises.cp') await measured('fs.promises.rm', round > 0, () => fs.promises.rm(dst, recursive));
    else if (name === 'calve promises.cp') await measured('calve promises.rm', round > 0, () => calve.promises.rm(dst, recursive));
    else if (name === 'calve cpSync') await measured('calve rmSync', round > 0, async () => calve.rmSync(dst, recursive));
    else await removeTree(dst, { wait: true });
    // What is deleted in the background is no part of the next one.
    while (fs.readdirSync(into).some((one) => one.startsWith('.calve-trash'))) await new Promise((resolve) => { setTimeout(resolve, 50); });
  }
}
const median = (list) => list.slice().sort((a, b) => a - b)[Math.floor(list.length / 2)];
const shown = (number) => number.toFixed(1).padStart(10);
for (const [name, each] of Object.entries(times)) {
  console.log(`${name.padEnd(18)} ${shown(median(each))} ms (${Math.min(...each).toFixed(1)} to ${Math.max(...each).toFixed(1)}); longest stalls, ms: ${stalls[name].map((stall) => stall.toFixed(1)).join(' ')}`);
}
const ratio = (name, to) => console.log(`${name} / ${to}: ${(median(times[name]) / median(times[to])).toFixed(3)}`);
ratio('calve promises.cp', 'fs.promises.cp');
ratio('calve cpSync', 'fs.cpSync');
ratio('calve promises.cp', 'calve cloneTree');
