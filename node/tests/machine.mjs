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
    // The system closes what an ended thread had open a moment after the thread is told to have ended.
    execFileSync('sh', ['-c', 'n=0; until umount "$1"; do n=$((n + 1)); [ "$n" -lt 300 ] || exit 1; sleep 0.1; done', 'sh', place]);
  }
}
