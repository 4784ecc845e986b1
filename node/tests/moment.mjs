// Moments, on a machine of any speed: nothing here is decided by how long something takes.
import assert from 'node:assert/strict';
import { once } from 'node:events';

/**
 * Calls `attempt` until it says that it came in time. What it wants to be in the middle of may have ended already, where the
 * processors are busy with something else; where it cannot be in the middle at all, no attempt comes in time.
 */
export async function inTime(attempt) {
  for (let tries = 0; tries < 40; tries += 1) {
    if (await attempt()) return;
  }
  assert.fail('it had always ended before');
}

/** Until `done`, which another process sees to: one of the lowest priority, which gets little of a busy machine. */
export async function until(done) {
  for (let tries = 0; tries < 12_000 && !(await done()); tries += 1) await new Promise((resolve) => { setTimeout(resolve, 25); });
  assert.ok(await done(), 'not within five minutes');
}

/** Returns what `child` prints first. Fails if it ends before that. */
export async function begun(child) {
  const end = once(child, 'close').then(([code, signal]) => assert.fail(`it ended before it began: ${signal ?? code}`));
  const [text] = await Promise.race([once(child.stdout, 'data'), end]);
  return String(text);
}
