// Many small files: ways of Node's own beside calve's, in one run, interleaved. Run where `calve` is installed.
//
// usage: node write.mjs DIR [RUNS [FILES [BYTES]]]
import fs from 'node:fs';
import path from 'node:path';
import { performance, monitorEventLoopDelay } from 'node:perf_hooks';
import { writeFiles, writeFilesSync } from 'calve';

const [into, runs = '7', files = '1000', bytes = '6144'] = process.argv.slice(2);
const contents = Buffer.alloc(Number(bytes), 'x');
const ways = {
  'writeFileSync loop': (root, entries) => { for (const [name, data] of entries) fs.writeFileSync(path.join(root, name), data); },
  'Promise.all': (root, entries) => Promise.all(entries.map(([name, data]) => fs.promises.writeFile(path.join(root, name), data))),
  'writeFilesSync': (root, entries) => writeFilesSync(root, entries),
  'writeFiles': (root, entries) => writeFiles(root, entries),
  'writeFiles, 1 thread': (root, entries) => writeFiles(root, entries, { concurrency: 1 }),
};
const median = (list) => list.slice().sort((a, b) => a - b)[Math.floor(list.length / 2)];

console.log(`Node ${process.version}; ${files} files of ${bytes} bytes; ${runs} runs; ms: median (least to most), ratio to the loop, longest stall`);
for (const directories of [1, 20, 1000].filter((count) => count <= Number(files) / 50)) {
  const entries = Array.from({ length: Number(files) }, (_, n) => [`d${n % directories}/f${n}`, contents]);
  const times = Object.fromEntries(Object.keys(ways).map((name) => [name, []]));
  const stalls = Object.fromEntries(Object.keys(ways).map((name) => [name, 0]));
  for (let run = 0; run < Number(runs) + 1; run += 1) {
    for (const [name, write] of Object.entries(ways)) {
      const root = path.join(into, `run${run}-${name.replaceAll(/\W/g, '')}`);
      for (let d = 0; d < directories; d += 1) fs.mkdirSync(path.join(root, `d${d}`), { recursive: true });
      const delay = monitorEventLoopDelay({ resolution: 1 });
      delay.enable();
      const started = performance.now();
      await write(root, entries);
      // The first run is not counted.
      if (run > 0) times[name].push(performance.now() - started);
      await new Promise((resolve) => setTimeout(resolve, 2));
      delay.disable();
      stalls[name] = Math.max(stalls[name], delay.max / 1e6);
      fs.rmSync(root, { recursive: true });
    }
  }
  console.log(`${directories} directories`);
  for (const [name, list] of Object.entries(times)) {
    const ratio = median(list) / median(times['writeFileSync loop']);
    const spread = `${Math.min(...list).toFixed(1)} to ${Math.max(...list).toFixed(1)}`;
    console.log(`  ${name.padEnd(22)} ${median(list).toFixed(1).padStart(8)} (${spread})  ${ratio.toFixed(2)}  stall ${stalls[name].toFixed(1)}`);
  }
}
