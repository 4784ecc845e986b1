//! Writing a layer: an ordinary tar, with a frame for each chunk.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;

use fastcdc::v2020::StreamCDC;
use ring::digest::{Context, SHA256};
use tar::{Builder, EntryType};
use zstd::bulk::Compressor;

use super::index::{Chunk, IndexedDirectory, LARGEST_CHUNK_BYTES};
use crate::frames::hash;
use crate::layer;
use crate::spool::{Spool, digest_of};

/// Approximate size of a chunk. If one page of 8 KiB in a hundred changes, one chunk in twenty-five is fetched.
const CHUNK_BYTES: u64 = 16 << 10;
/// With so many chunks the index has one or two per cent of the image. Larger data have larger chunks.
const CHUNKS: u64 = 1 << 18;
/// Chunks are small: level 3 leaves tables of PostgreSQL 6 % larger.
const LEVEL: i32 = 6;
/// A file up to this size is one chunk.
const WHOLE_BYTES: u64 = 128 << 10;
const BLOCK_BYTES: u64 = 512;

/// Returns the average size of chunks in data of `all` bytes.
pub(super) fn chunk_bytes(all: u64) -> usize {
    let mut size = CHUNK_BYTES;
    while all / size > CHUNKS && size < u64::from(LARGEST_CHUNK_BYTES) / 4 {
        size *= 2;
    }
    size as usize
}

pub(super) struct LayerWriter {
    blob: Spool,
    tar: Context,
    compressor: Compressor<'static>,
    /// Bytes of the tar between the contents of two files.
    between: Vec<u8>,
    chunk_bytes: usize,
}

impl LayerWriter {
    pub(super) fn new(blob: Spool, chunk_bytes: usize) -> io::Result<Self> {
        let (tar, compressor) = (Context::new(&SHA256), Compressor::new(LEVEL)?);
        Ok(Self { blob, tar, compressor, between: Vec::new(), chunk_bytes })
    }

    pub(super) fn directory(&mut self, directory: &IndexedDirectory) -> io::Result<()> {
        let header = header(&format!("{}/", directory.path), directory.mode, EntryType::Directory, 0)?;
        self.between.extend(header);
        Ok(())
    }

    /// Appends a file, which must still have `size` bytes. Returns where its chunks begin, and the chunks.
    pub(super) fn file(&mut self, path: &str, mode: u32, size: u64, contents: File) -> io::Result<(u64, Vec<Chunk>)> {
        self.between.extend(header(path, mode, EntryType::Regular, size)?);
        self.end_between()?;
        let offset = self.blob.size;
        let mut chunks = Vec::new();
        let mut done = 0;
        if size <= WHOLE_BYTES {
            let mut whole = Vec::with_capacity(size as usize);
            io::Read::read_to_end(&mut io::Read::take(&contents, size + 1), &mut whole)?;
            done = whole.len() as u64;
            if !whole.is_empty() {
                chunks.push(self.chunk(&whole)?);
            }
        } else {
            let average = self.chunk_bytes;
            for chunk in StreamCDC::new(contents, average / 4, average, average * 4) {
                let chunk = chunk.map_err(io::Error::from)?;
                done += chunk.data.len() as u64;
                chunks.push(self.chunk(&chunk.data)?);
            }
        }
        if done != size {
            return Err(io::Error::other("it has changed"));
        }
        let padding = size.next_multiple_of(BLOCK_BYTES) - size;
        self.between.resize(padding as usize, 0);
        Ok((offset, chunks))
    }

    pub(super) fn finish(mut self) -> io::Result<(Spool, String)> {
        self.between.extend([0; 2 * BLOCK_BYTES as usize]);
        self.end_between()?;
        Ok((self.blob, digest_of(self.tar)))
    }

    fn chunk(&mut self, contents: &[u8]) -> io::Result<Chunk> {
        let (size, compressed) = (contents.len() as u32, self.frame(contents)?);
        Ok(Chunk { hash: hash(contents), size, compressed })
    }

    fn end_between(&mut self) -> io::Result<()> {
        if self.between.is_empty() {
            return Ok(());
        }
        let between = std::mem::take(&mut self.between);
        self.frame(&between).map(drop)
    }

    fn frame(&mut self, contents: &[u8]) -> io::Result<u32> {
        self.tar.update(contents);
        let compressed = self.compressor.compress(contents)?;
        self.blob.write_all(&compressed)?;
        u32::try_from(compressed.len()).map_err(|_| io::ErrorKind::FileTooLarge.into())
    }
}

/// Times and owners are zero, so that equal layers do not differ.
fn header(path: &str, mode: u32, kind: EntryType, size: u64) -> io::Result<Vec<u8>> {
    let mut header = layer::new_header(kind, mode, 0);
    header.set_size(size);
    let mut tar = Builder::new(Vec::new());
    tar.append_data(&mut header, Path::new(path), io::empty())?;
    Ok(std::mem::take(tar.get_mut()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_of_large_data_are_larger() {
        let sizes = [0, 8 << 30, 9 << 30, 1 << 40].map(chunk_bytes);
        assert_eq!(sizes, [16 << 10, 32 << 10, 64 << 10, 256 << 10]);
    }
}
