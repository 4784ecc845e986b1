// What a machine may lack: a skip is told by name in the file CALVE_SKIP_LOG, and is a failure where CI is set.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';

/** Names the skipped test `t`. */
export function skipped(t, reason) {
  assert.ok(!process.env.CI, `must not be skipped in CI: ${t.name}: ${reason}`);
  if (process.env.CALVE_SKIP_LOG) fs.appendFileSync(process.env.CALVE_SKIP_LOG, `skipped: ${t.name}: ${reason}\n`);
  t.skip(reason);
}

/** Whether a program is in the PATH; without it `t` is skipped. */
export function hasProgram(t, name) {
  const found = process.env.PATH.split(':').some((directory) => fs.existsSync(`${directory}/${name}`));
  if (!found) skipped(t, `${name} is not installed`);
  return found;
}

/** Calls `use` with a small tmpfs mounted at `place`; `t` is the test's context. */
export async function onSmallDisk(t, place, options, use) {
  if (process.getuid() !== 0) {
    skipped(t, 'only root can mount');
    return;
  }
  fs.mkdirSync(place);
  execFileSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', place]);
  try {
    await use();
  } finally {
    unmount(place);
  }
}

/** Calls `use` with a small ext4 mounted at `place`. */
export async function onExt4(t, place, use) {
  if (process.getuid() !== 0) {
    skipped(t, 'only root can mount');
    return;
  }
  const image = `${place}.img`;
  fs.mkdirSync(place);
  fs.writeFileSync(image, '');
  fs.truncateSync(image, 64 << 20);
  execFileSync('mkfs.ext4', ['-q', '-F', image], { env: { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/sbin` } });
  execFileSync('mount', ['-o', 'loop', image, place]);
  try {
    await use();
  } finally {
    unmount(place);
    fs.rmSync(image);
  }
}

/** The system closes what an ended thread or process had open a moment after it is told to have ended. */
function unmount(place) {
  execFileSync('sh', ['-c', 'n=0; until umount "$1"; do n=$((n + 1)); [ "$n" -lt 300 ] || exit 1; sleep 0.1; done', 'sh', place]);
}
