// One way to write many small files, timed: what `calve bench write` starts, once for each run.
//
// usage: node ways.mjs WAY ROOT FILES BYTES DIRECTORIES RESULT PACKAGE
//
// ROOT is made. Before the clock starts its directories exist, names and contents are at hand, and a few files have been written
// the same way elsewhere, so that what a process loads once is loaded. RESULT gets one JSON document.
import fs from 'node:fs';
import path from 'node:path';
import { createRequire } from 'node:module';
import { performance } from 'node:perf_hooks';
import { fileURLToPath } from 'node:url';
import { Worker, isMainThread, parentPort, workerData } from 'node:worker_threads';

/** What is to be written: `files` files of `bytes` bytes below `root`, dealt out to so many directories. */
const names = ({ files, directories }) => Array.from({ length: files }, (_, n) => `d${n % directories}/f${n}`);
const paths = (task) => names(task).map((name) => path.join(task.root, name));
const contents = ({ bytes }) => Buffer.alloc(bytes, 'x');

/** From the name of a way to what prepares it for a task; that is not timed. What it gives is, and may have to be ended. */
const ways = {
  loop(task) {
    const [all, data] = [paths(task), contents(task)];
    return { write() { for (const one of all) fs.writeFileSync(one, data); } };
  },
  all(task) {
    const [all, data] = [paths(task), contents(task)];
    return { write: () => Promise.all(all.map((one) => fs.promises.writeFile(one, data))) };
  },
  await(task) {
    const [all, data] = [paths(task), contents(task)];
    return { async write() { for (const one of all) await fs.promises.writeFile(one, data); } };
  },
  /** Workers that wait for the word. */
  async threads(task, count) {
    const workers = startWorkers(task, count, false);
    await heard(workers);
    return {
      async write() {
        const done = heard(workers);
        for (const worker of workers) worker.postMessage('go');
        await done;
      },
      end: () => stop(workers),
    };
  },
  /** The same, but their start counts. */
  'threads-started': (task, count) => {
    let workers = [];
    return {
      async write() {
        workers = startWorkers(task, count, true);
        await heard(workers);
      },
      end: () => stop(workers),
    };
  },
  sync(task, concurrency, calve) {
    const [all, data] = [names(task), contents(task)];
    const entries = all.map((one) => [one, data]);
    return { write() { calve.writeFilesSync(task.root, entries, concurrency ? { concurrency } : {}); } };
  },
  async(task, concurrency, calve) {
    const [all, data] = [names(task), contents(task)];
    const entries = all.map((one) => [one, data]);
    return { write: () => calve.writeFiles(task.root, entries, concurrency ? { concurrency } : {}) };
  },
};

function startWorkers(task, of, go) {
  const file = fileURLToPath(import.meta.url);
  return Array.from({ length: of }, (_, worker) => new Worker(file, { workerData: { ...task, worker, of, go } }));
}

/** The next message of each. */
function heard(workers) {
  return Promise.all(workers.map((worker) => new Promise((resolve, reject) => {
    worker.once('error', reject);
    worker.once('message', ({ code, message }) => (message === undefined ? resolve() : reject(Object.assign(new Error(message), { code }))));
  })));
}

const stop = (workers) => Promise.all(workers.map((worker) => worker.terminate()));

/** A worker thread's part: by directory where there are several, else every so many-th file. */
function work(task) {
  const { worker, of, directories, go } = task;
  const [all, data] = [paths(task).filter((_, n) => (directories > 1 ? n % directories : n) % of === worker), contents(task)];
  const write = () => {
    try {
      for (const one of all) fs.writeFileSync(one, data);
      parentPort.postMessage({});
    } catch ({ code, message }) {
      parentPort.postMessage({ code, message });
    }
  };
  if (go) return write();
  parentPort.once('message', write);
  parentPort.postMessage({});
}

/** Runs `write`, and how late a timer of a millisecond was meanwhile: that long nothing else could happen. */
async function timed(write) {
  const pause = (milliseconds) => new Promise((resolve) => { setTimeout(resolve, milliseconds); });
  let [last, stall] = [performance.now(), 0];
  const timer = setInterval(() => {
    const now = performance.now();
    stall = Math.max(stall, now - last - 1);
    last = now;
  }, 1);
  await pause(5);
  stall = 0;
  let error = null;
  const started = performance.now();
  try {
    await write();
  } catch (caught) {
    error = { code: caught.code ?? null, message: caught.message };
  }
  const seconds = (performance.now() - started) / 1000;
  await pause(3);
  clearInterval(timer);
  return { seconds, stall_seconds: stall / 1000, error };
}

async function main([way, root, files, bytes, directories, result, packagePath]) {
  const [name, number] = way.split(':');
  const calve = createRequire(import.meta.url)(packagePath);
  const prepare = async (below, task) => {
    for (let d = 0; d < task.directories; d += 1) fs.mkdirSync(path.join(root, below, `d${d}`), { recursive: true });
    return ways[name]({ root: path.join(root, below), bytes: Number(bytes), ...task }, Number(number), calve);
  };
  const warm = await prepare('warm', { files: 20, directories: 1 });
  await warm.write();
  await warm.end?.();
  const it = await prepare('files', { files: Number(files), directories: Number(directories) });
  const measured = await timed(() => it.write());
  fs.writeFileSync(result, JSON.stringify(measured));
  await it.end?.();
}

if (isMainThread) await main(process.argv.slice(2));
else work(workerData);
