import * as promises from './fs-promises.js';
import { copying, original, removing, sharing, standIn } from './stand-ins.js';

/** Everything that `node:fs` has; `cp`, `rm` and `copyFile` are faster, and so are their other forms. */
export * from 'node:fs';
export { promises };

/** What `fs` takes for a callback. */
type Callback = (error: NodeJS.ErrnoException | null) => void;

/** Calls back when the promise is settled, as `fs` does: what is thrown then is nobody's rejection. */
function later(settled: Promise<boolean>, next: (isDone: boolean) => void): void {
  void settled.then((isDone) => process.nextTick(next, isDone));
}

export const cp = standIn(original.cp, function cp(src: unknown, dest: unknown, options: unknown, callback: unknown): void {
  if (typeof options === 'function') [options, callback] = [undefined, options];
  const call = copying(src, dest, options);
  const byNode = () => original.cp(src as string, dest as string, call.options as object, callback as Callback);
  if (call.fast === undefined || typeof callback !== 'function') return byNode();
  return later(call.fast.run(), (isDone) => (isDone ? (callback as Callback)(null) : byNode()));
});

export const cpSync = standIn(original.cpSync, function cpSync(src: unknown, dest: unknown, options: unknown): void {
  const call = copying(src, dest, options);
  if (!call.fast?.runSync()) original.cpSync(src as string, dest as string, call.options as object);
});

export const rm = standIn(original.rm, function rm(path: unknown, options: unknown, callback: unknown): void {
  if (typeof options === 'function') [options, callback] = [undefined, options];
  const byNode = () => original.rm(path as string, options as object, callback as Callback);
  const fast = removing(path, options);
  if (fast === undefined || typeof callback !== 'function') return byNode();
  return later(fast.run(), (isDone) => (isDone ? (callback as Callback)(null) : byNode()));
});

export const rmSync = standIn(original.rmSync, function rmSync(path: unknown, options: unknown): void {
  if (!removing(path, options)?.runSync()) original.rmSync(path as string, options as object);
});

export const copyFile = standIn(original.copyFile, function copyFile(src: unknown, dest: unknown, mode: unknown, callback: unknown): void {
  if (typeof mode === 'function') [mode, callback] = [undefined, mode];
  original.copyFile(src as string, dest as string, sharing(mode) as number, callback as Callback);
});

export const copyFileSync = standIn(original.copyFileSync, function copyFileSync(src: unknown, dest: unknown, mode: unknown): void {
  original.copyFileSync(src as string, dest as string, sharing(mode) as number);
});
