//! What a file holds, in 64 bits: equal for equal bytes, whether zeros are stored or holes.

use std::ffi::OsStr;
use std::fs::File;
use std::hash::Hasher;
use std::io::Read as _;
use std::os::fd::BorrowedFd;

use rustix::fs::{OFlags, SeekFrom};
use rustix::io::{Errno, Result};

use crate::cursor::open_unnoticed;

/// Holes begin and end on multiples of this, or of something larger, everywhere.
const BLOCK: usize = 4096;
const BUFFER: usize = 64 * BLOCK;

#[expect(deprecated, reason = "its replacement cannot be given a key")]
fn hash(key: u64, block: &[u8]) -> u64 {
    let mut hasher = std::hash::SipHasher::new_with_keys(key, 0x6361_6c76_6521_2121);
    hasher.write(block);
    hasher.finish()
}

/// Returns the sum over all blocks that are not zero of a hash of the block and its place. Blocks of zeros add nothing, so a hole
/// needs not be read.
pub(crate) fn digest(dir: BorrowedFd<'_>, name: &OsStr) -> Result<u64> {
    const ZEROS: [u8; BLOCK] = [0; BLOCK];
    // Without NONBLOCK a FIFO that took the file's place since it was looked at would hang the test.
    let file = File::from(open_unnoticed(dir, name, OFlags::RDONLY | OFlags::NONBLOCK)?);
    let mut digest = 0u64;
    let mut buffer = Vec::with_capacity(BUFFER);
    let mut at = 0;
    loop {
        at = match rustix::fs::seek(&file, SeekFrom::Data(at)) {
            Ok(data) => data - data % BLOCK as u64,
            Err(Errno::NXIO) => return Ok(digest),
            // Not every file system knows its holes.
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
