import { closeSync, openSync, readSync } from 'node:fs';

/** Returns whether Calve has binaries for this system: Linux and macOS, x64 and arm64. Elsewhere `calve/fs` is `node:fs`, and all else fails. */
export function isSupported(): boolean {
  return ['linux', 'darwin'].includes(process.platform) && ['x64', 'arm64'].includes(process.arch);
}

/** @internal The name of the package with this platform's binaries. */
export function platformPackage(): string {
  const base = `calve-${process.platform}-${process.arch}`;
  return process.platform === 'linux' ? `${base}-${libc()}` : base;
}

/**
 * The C library that this process was started with, by the name of the loader in its own program: both can be installed. A report of
 * Node's (`process.report`) tells it too, and looks up the name of every peer of every connection for that.
 */
function libc(): 'gnu' | 'musl' {
  for (const program of [process.execPath, '/proc/self/exe']) {
    const loader = loaderOf(program);
    if (loader !== undefined) return loader.includes('ld-musl-') ? 'musl' : 'gnu';
  }
  return 'gnu';
}

const HEADER_BYTES = 64;
const PROGRAM_HEADER_BYTES = 56;
const PT_INTERP = 3;

/** The loader that an ELF file of 64 bits names (elf(5)); `undefined` of other files, and of those that need none. */
function loaderOf(file: string): string | undefined {
  let fd: number | undefined;
  try {
    fd = openSync(file, 'r');
    const header = piece(fd, 0, HEADER_BYTES);
    if (header.toString('latin1', 0, 4) !== '\x7fELF' || header[4] !== 2 || header[5] !== 1) return undefined;
    const [offset, count] = [Number(header.readBigUInt64LE(32)), header.readUInt16LE(56)];
    const table = piece(fd, offset, count * PROGRAM_HEADER_BYTES);
    for (let at = 0; at + PROGRAM_HEADER_BYTES <= table.length; at += PROGRAM_HEADER_BYTES) {
      if (table.readUInt32LE(at) !== PT_INTERP) continue;
      const [start, length] = [Number(table.readBigUInt64LE(at + 8)), Number(table.readBigUInt64LE(at + 32))];
      return piece(fd, start, Math.min(length, 4096)).toString('latin1').replace(/\0.*$/s, '');
    }
    return undefined;
  } catch {
    return undefined;
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}

function piece(fd: number, at: number, length: number): Buffer {
  const bytes = Buffer.alloc(length);
  return bytes.subarray(0, readSync(fd, bytes, 0, length, at));
}
