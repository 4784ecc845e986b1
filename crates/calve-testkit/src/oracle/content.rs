//! A 64-bit digest of a file's contents, equal for equal bytes, with zeros stored or as holes.

use std::ffi::OsStr;
use std::fs::File;
use std::hash::Hasher;
use std::io::Read as _;
use std::os::fd::BorrowedFd;

use rustix::fs::{OFlags, SeekFrom};
use rustix::io::{Errno, Result};

use crate::cursor::open_unnoticed;

/// On every file system, holes begin and end on multiples of this or of a larger size.
const BLOCK: usize = 4096;
const BUFFER: usize = 64 * BLOCK;

#[expect(deprecated, reason = "its replacement cannot be given a key")]
fn hash(key: u64, block: &[u8]) -> u64 {
    let mut hasher = std::hash::SipHasher::new_with_keys(key, 0x6361_6c76_6521_2121);
    hasher.write(block);
    hasher.finish()
}

/// Sums a hash of the block and its place over all nonzero blocks. Zero blocks add nothing, so holes need not be read.
pub(crate) fn digest(dir: BorrowedFd<'_>, name: &OsStr) -> Result<u64> {
    const ZEROS: [u8; BLOCK] = [0; BLOCK];
    // Without NONBLOCK, a FIFO that has replaced the file since its stat would hang the test.
    let file = File::from(open_unnoticed(dir, name, OFlags::RDONLY | OFlags::NONBLOCK)?);
    let mut digest = 0u64;
    let mut buffer = Vec::with_capacity(BUFFER);
    let mut at = 0;
    loop {
        at = match rustix::fs::seek(&file, SeekFrom::Data(at)) {
            Ok(data) => data - data % BLOCK as u64,
            Err(Errno::NXIO) => return Ok(digest),
            // Not every file system reports holes.
            Err(Errno::INVAL | Errno::OPNOTSUPP) => at,
            Err(error) => return Err(error),
        };
        rustix::fs::seek(&file, SeekFrom::Start(at))?;
        buffer.clear();
        let read = (&file).take(BUFFER as u64).read_to_end(&mut buffer);
        read.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        let blocks = buffer.chunks(BLOCK).enumerate();
        for (index, block) in blocks.filter(|(_, block)| *block != &ZEROS[..block.len()]) {
            digest = digest.wrapping_add(hash(at + (index * BLOCK) as u64, block));
        }
        if buffer.len() < BUFFER {
            return Ok(digest);
        }
        at += BUFFER as u64;
    }
}
