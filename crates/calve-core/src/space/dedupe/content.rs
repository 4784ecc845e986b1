//! A file's contents as 128 bits of BLAKE3 (O'Connor et al. 2020). The kernel compares the bytes themselves later.

use std::os::fd::BorrowedFd;

use rustix::io::Errno;

use crate::sys;

/// The first half of a BLAKE3 hash; never zero.
pub(super) type Content = [u8; 16];

const PART: usize = 64 * 1024;

pub(super) struct Reader(Vec<u8>);

impl Reader {
    pub(super) fn new() -> Self {
        Self(vec![0; PART])
    }

    /// Hashes the first block, to tell large files apart without reading all of them.
    pub(super) fn beginning(&mut self, file: BorrowedFd<'_>) -> sys::Result<Content> {
        let read = read_at(file, &mut self.0[..4096], 0)?;
        Ok(shortened(&blake3::hash(&self.0[..read])))
    }

    /// Hashes a file, without the zeros of a large one, so that holes need not be read. `None` if it is shorter by now.
    pub(super) fn whole(
        &mut self,
        file: BorrowedFd<'_>,
        size: u64,
        stopped: impl Fn() -> bool,
    ) -> sys::Result<Option<Content>> {
        if size <= PART as u64 {
            let wanted = size as usize;
            let read = read_at(file, &mut self.0[..wanted], 0)?;
            return Ok((read == wanted).then(|| shortened(&blake3::hash(&self.0[..wanted]))));
        }
        let mut hasher = blake3::Hasher::new();
        let mut position = 0;
        while position < size {
            if stopped() {
                return Err(Errno::CANCELED);
            }
            match sys::seek_data(file, position) {
                Ok(data) => position = data.max(position) / PART as u64 * PART as u64,
                Err(Errno::NXIO) => break,
                Err(Errno::INVAL) => {}
                Err(errno) => return Err(errno),
            }
            // Several parts for each lseek(2): most files have no holes.
            for _ in 0..64 {
                if position >= size {
                    break;
                }
                let wanted = (size - position).min(PART as u64) as usize;
                if read_at(file, &mut self.0[..wanted], position)? != wanted {
                    return Ok(None);
                }
                let part = &self.0[..wanted];
                if part.iter().any(|&byte| byte != 0) {
                    hasher.update(&position.to_le_bytes());
                    hasher.update(part);
                }
                position += wanted as u64;
            }
        }
        Ok(Some(shortened(&hasher.finalize())))
    }
}

fn read_at(file: BorrowedFd<'_>, buffer: &mut [u8], position: u64) -> sys::Result<usize> {
    sys::read_full(buffer, |rest, before| rustix::io::pread(file, rest, position + before as u64))
}

pub(super) fn shortened(hash: &blake3::Hash) -> Content {
    let mut content: Content = hash.as_bytes()[..16].try_into().unwrap_or_default();
    // Zero means unknown.
    content[0] |= 1;
    content
}
