import { copying, original, removing, sharing, standIn } from './stand-ins.js';

/** Everything that `node:fs/promises` has; `cp`, `rm` and `copyFile` are faster. */
export * from 'node:fs/promises';

export const cp = standIn(original.promises.cp, async function cp(src: unknown, dest: unknown, options: unknown): Promise<void> {
  const call = copying(src, dest, options);
  if (await call.fast?.run()) return undefined;
  return original.promises.cp(src as string, dest as string, call.options as object);
});

export const rm = standIn(original.promises.rm, async function rm(path: unknown, options: unknown): Promise<void> {
  if (await removing(path, options)?.run()) return undefined;
  return original.promises.rm(path as string, options as object);
});

export const copyFile = standIn(original.promises.copyFile, async function copyFile(src: unknown, dest: unknown, mode: unknown): Promise<void> {
  return original.promises.copyFile(src as string, dest as string, sharing(mode) as number);
});
