// Against the installed package: memory that its owner gives away while it is being written. What gets into a file is what was given,
// never what has the memory afterwards.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { writeFiles, writeFilesSync } from 'calve';

let folder;
beforeEach(() => { folder = fs.mkdtempSync(path.join(os.tmpdir(), 'calve-')); });
afterEach(() => fs.rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 }));

const BAD = 0xee;
const filled = (size, n) => Buffer.alloc(size, n % 200);
const own = (size, n) => new Uint8Array(new ArrayBuffer(size)).fill(n % 200);
/** By whom it is got afterwards, who writes into it. */
const spoil = (buffer) => new Uint8Array(buffer).fill(BAD);

/** Ways to give memory away: what makes bytes, and what takes them away again. */
const ways = {
  structuredClone: { make: own, away: (bytes) => spoil(structuredClone(bytes.buffer, { transfer: [bytes.buffer] })) },
  postMessage: {
    make: own,
    away: (bytes) => {
      const { port1, port2 } = new MessageChannel();
      port1.postMessage(bytes.buffer, [bytes.buffer]);
      port1.close();
      port2.close();
    },
  },
  'WebAssembly.Memory.grow': {
    make: (size, n) => {
      const memory = new WebAssembly.Memory({ initial: Math.ceil(size / 65536), maximum: Math.ceil(size / 65536) + 1 });
      return Object.assign(new Uint8Array(memory.buffer, 0, size).fill(n % 200), { memory });
    },
    away: ({ memory }) => {
      memory.grow(1);
      spoil(memory.buffer);
    },
  },
  ...(ArrayBuffer.prototype.transfer && { transfer: { make: own, away: (bytes) => spoil(bytes.buffer.transfer()) } }),
  ...(ArrayBuffer.prototype.resize && {
    'a buffer that shrinks': {
      make: (size, n) => new Uint8Array(new ArrayBuffer(size, { maxByteLength: size }), 0, size).fill(n % 200),
      away: (bytes) => {
        bytes.buffer.resize(1);
        spoil(bytes.buffer);
      },
    },
  }),
};

/** The files that are there are as they were given. */
function asGiven(size) {
  const names = fs.readdirSync(folder);
  for (const name of names) assert.ok(fs.readFileSync(path.join(folder, name)).equals(filled(size, Number(name))), `${name} has something else in it`);
  return names.length;
}

const takenAway = (error) => {
  assert.ok(error instanceof TypeError && error.code === 'ERR_INVALID_ARG_VALUE', `${error}`);
  assert.match(error.message, /`entries\[\d+\]\[1\]` (has no memory any more|was transferred)/);
  return true;
};

for (const [name, { make, away }] of Object.entries(ways)) {
  test(`${name}, as soon as the call has returned`, async () => {
    const size = 100_000;
    const all = Array.from({ length: 50 }, (_, n) => [`${n}`, make(size, n)]);
    const writing = writeFiles(folder, all, { concurrency: 1 });
    for (const [, bytes] of all) away(bytes);
    assert.equal((await writing).files, 50);
    assert.equal(asGiven(size), 50);
  });

  test(`${name}, in the middle`, async () => {
    const size = 100_000;
    const all = Array.from({ length: 200 }, (_, n) => [`${n}`, make(size, n)]);
    const writing = writeFiles(folder, all, { concurrency: 1 });
    writing.catch(() => {});
    await setImmediate();
    for (const [, bytes] of all) away(bytes);
    // What had not been copied yet is named, unless everything had been.
    const error = await writing.then(() => undefined, (reason) => reason);
    if (error !== undefined) takenAway(error);
    const written = asGiven(size);
    assert.ok(error !== undefined || written === 200);
  });

  test(`${name}, of a large one`, async () => {
    const size = 40 << 20;
    const bytes = make(size, 7);
    const writing = writeFiles(folder, { 7: bytes });
    writing.catch(() => {});
    away(bytes);
    await assert.rejects(writing, takenAway);
    assert.equal(asGiven(size), 0);
  });

  test(`${name}, before`, async () => {
    const bytes = make(100_000, 1);
    away(bytes);
    await assert.rejects(writeFiles(folder, [['1', bytes]]), takenAway);
    assert.throws(() => writeFilesSync(folder, [['1', bytes]]), takenAway);
    assert.deepEqual(fs.readdirSync(folder), []);
  });

  test(`${name}, by what gives the next one, while everything else waits`, () => {
    const first = make(100_000, 0);
    function* giving() {
      yield ['0', first];
      away(first);
      yield ['1', make(100_000, 1)];
    }
    writeFilesSync(folder, giving());
    assert.equal(asGiven(100_000), 2);
    // An array whose elements are made when they are looked at.
    const second = make(100_000, 1);
    const all = [['1', second], undefined];
    Object.defineProperty(all, 1, { get: () => { away(second); return ['2', make(100_000, 2)]; } });
    fs.rmSync(path.join(folder, '1'));
    assert.throws(() => writeFilesSync(folder, all), takenAway);
    asGiven(100_000);
  });
}
