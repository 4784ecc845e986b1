//! Layers: deterministic tars, compressed by zstd.

use std::fs::File;
use std::io::{self, Read, Take, Write};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use calve_core::internal::{PortableEntry, PortableKind, PortableTemplate, ShownPath};
use tar::{Builder, EntryType, Header};
use zstd::bulk::Compressor;
use zstd::stream::read::Decoder;

use crate::assemble::{Parents, path_of};
use crate::error::Error;
use crate::frames::{Frame, FrameCompressor, LEVEL, hash};
use crate::image::{chunks, contents, contents_in};
use crate::spool::Spool;

/// 128 MiB, the limit of the command `zstd`.
const LARGEST_WINDOW: u32 = 27;
/// Approximate size in a tar of an entry with nanoseconds in its time, without its contents.
const HEADER_BYTES: u64 = 2 << 10;
const SKIPPABLE: [u8; 4] = [0x50, 0x2a, 0x4d, 0x18];

pub(crate) struct Layer {
    pub(crate) blob: Spool,
    pub(crate) frames: Vec<Frame>,
    pub(crate) diff_id: String,
}

/// Writes a range of entries. `changed` makes the error for a file that differs from the manifest.
pub(crate) fn write(
    template: &PortableTemplate,
    range: &Range<usize>,
    root: &Path,
    blob: Spool,
    changed: impl Fn(&PortableEntry) -> Error,
) -> Result<Layer, Error> {
    let failed = |error: io::Error| Error::io("write a layer of", root, error);
    let mut parents = Parents::open(root)?;
    let size = range.clone().map(|index| HEADER_BYTES + contents_size(template, range, index)).sum();
    let compressor = FrameCompressor::new(blob, range.start, size).map_err(failed)?;
    let mut tar = Builder::new(compressor);
    for index in range.clone() {
        let entry = &template.entries[index];
        tar.get_mut().begin_entry(contents_size(template, range, index)).map_err(failed)?;
        append_extensions(&mut tar, entry).map_err(failed)?;
        let mut header = header(entry);
        let path = name_in_header(&mut tar, tar_path(entry)).map_err(failed)?;
        if let Some(file) = contents_in(template, range, index) {
            let PortableKind::File { size, hash } = template.entries[file].kind else { continue };
            header.set_entry_type(EntryType::Regular);
            header.set_size(size);
            let file = parents.open_file(&entry.path)?.take(size);
            let mut contents = HashedContents { file, hash: blake3::Hasher::new() };
            tar.append_data(&mut header, path, &mut contents).map_err(failed)?;
            if contents.file.limit() > 0 || contents.hash.finalize() != hash {
                return Err(changed(entry));
            }
            continue;
        }
        let appended = match &entry.kind {
            PortableKind::Symlink(target) => tar.append_link(&mut header, path, path_of(target.to_bytes())),
            PortableKind::HardLink(file) => tar.append_link(&mut header, path, path_of(&template.entries[*file].path)),
            _ => tar.append_data(&mut header, path, io::empty()),
        };
        appended.map_err(failed)?;
    }
    let (blob, frames, diff_id) = tar.into_inner().and_then(FrameCompressor::finish).map_err(failed)?;
    Ok(Layer { blob, frames, diff_id })
}

/// Writes a revision's last layer: a tar, empty or with a delta's whiteouts and changed directories, and the manifest
/// in a frame that decompressors skip. The frames are the manifest's. Returns also its place, `START-END`.
pub(crate) fn write_manifest(
    text: &str,
    (directories, whiteouts): (&[&PortableEntry], &[PathBuf]),
    mut blob: Spool,
) -> io::Result<(Layer, String)> {
    let mut tar = Builder::new(Vec::new());
    for directory in directories {
        append_extensions(&mut tar, directory)?;
        let path = name_in_header(&mut tar, tar_path(directory))?;
        tar.append_data(&mut header(directory), path, io::empty())?;
    }
    for path in whiteouts {
        let path = name_in_header(&mut tar, path)?;
        tar.append_data(&mut new_header(EntryType::Regular, 0o600, 0), path, io::empty())?;
    }
    let tar = tar.into_inner()?;
    blob.write_all(&zstd::encode_all(&tar[..], LEVEL)?)?;
    let (mut manifest, mut frames) = (Vec::new(), Vec::new());
    let mut compressor = Compressor::new(LEVEL)?;
    for has in chunks(text) {
        let chunk = text[has.clone()].as_bytes();
        let start = manifest.len() as u64;
        manifest.extend(compressor.compress(chunk)?);
        frames.push(Frame { has, bytes: start..manifest.len() as u64, hash: hash(chunk) });
    }
    let length = u32::try_from(manifest.len()).map_err(|_| io::ErrorKind::FileTooLarge)?;
    blob.write_all(&SKIPPABLE)?;
    blob.write_all(&length.to_le_bytes())?;
    let start = blob.size;
    blob.write_all(&manifest)?;
    let at = format!("{start}-{}", blob.size);
    Ok((Layer { blob, frames, diff_id: crate::spool::digest(&tar) }, at))
}

/// Decompresses a manifest or a part of one. Fails beyond `limit` bytes.
pub(crate) fn read_manifest(compressed: impl Read, limit: u64) -> io::Result<String> {
    let mut text = String::new();
    let length = decoder(compressed)?.take(limit + 1).read_to_string(&mut text)?;
    if length as u64 > limit { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(text) }
}

/// Hands `receive` the files in `part` of a layer, with their indexes: their order decides, not their names in the tar.
pub(crate) fn read(
    template: &PortableTemplate,
    range: &Range<usize>,
    part: &Range<usize>,
    compressed: impl Read,
    mut receive: impl FnMut(usize, &mut dyn Read) -> Result<(), Error>,
    wrong: impl Fn(&str) -> Error,
) -> Result<(), Error> {
    let unreadable =
        |error: io::Error| wrong(&format!("a layer that cannot be read: {}", error.to_string().escape_debug()));
    let mut expected = part.clone().filter(|&index| contents_in(template, range, index).is_some());
    let decoder = decoder(compressed).map_err(unreadable)?;
    let mut archive = tar::Archive::new(decoder.take(largest(template, range, part)));
    for entry in archive.entries().map_err(unreadable)?.raw(true) {
        let mut entry = entry.map_err(unreadable)?;
        if entry.header().entry_type() != EntryType::Regular {
            continue;
        }
        let index = expected.next().ok_or_else(|| wrong("a layer with more files than the manifest has"))?;
        let PortableEntry { path, kind, .. } = &template.entries[index];
        let PortableKind::File { size, .. } = kind else { continue };
        if entry.size() != *size {
            return Err(wrong(&format!(
                "a layer in which `{}` has a different size than in the manifest",
                ShownPath(path_of(path))
            )));
        }
        receive(index, &mut entry)?;
    }
    expected.next().map_or(Ok(()), |_| Err(wrong("a layer with fewer files than the manifest has")))
}

fn decoder<'a>(compressed: impl Read + 'a) -> io::Result<impl Read + 'a> {
    let mut decoder = Decoder::new(compressed)?;
    decoder.window_log_max(LARGEST_WINDOW)?;
    Ok(decoder)
}

/// Returns the largest size that a tar of `part` of a layer can have: contents, headers, names and attributes.
pub(crate) fn largest(template: &PortableTemplate, range: &Range<usize>, part: &Range<usize>) -> u64 {
    let entry = |index: usize| {
        let entry = &template.entries[index];
        contents_size(template, range, index).saturating_add(8192 + 4 * entry.line.len() as u64)
    };
    part.clone().map(entry).fold(65_536, u64::saturating_add)
}

fn contents_size(template: &PortableTemplate, range: &Range<usize>, index: usize) -> u64 {
    contents_in(template, range, index).map_or(0, |file| contents(&template.entries[file]))
}

fn tar_path(entry: &PortableEntry) -> &Path {
    path_of(if entry.path.is_empty() { b"./" } else { &entry.path })
}

/// Returns the path for the header of the next entry. If `tar` would refuse it, because the header has no room for it
/// and its first byte is not UTF-8, appends it as a GNU long name. Readers then ignore the one that is returned.
fn name_in_header<'a, W: Write>(tar: &mut Builder<W>, path: &'a Path) -> io::Result<&'a Path> {
    let bytes = path.as_os_str().as_bytes();
    let begins_without_utf8 = || str::from_utf8(bytes).is_err_and(|error| error.valid_up_to() == 0);
    if bytes.len() <= 100 || !begins_without_utf8() {
        return Ok(path);
    }
    let mut header = new_header(EntryType::GNULongName, 0o644, 0);
    header.as_old_mut().name[..13].copy_from_slice(b"././@LongLink");
    header.set_size(bytes.len() as u64 + 1);
    header.set_cksum();
    tar.append(&header, bytes.chain(&b"\0"[..]))?;
    Ok(path_of(&bytes[..1]))
}

fn header(entry: &PortableEntry) -> Header {
    let (kind, mode) = match entry.kind {
        PortableKind::Directory => (EntryType::Directory, entry.mode),
        PortableKind::File { .. } => (EntryType::Regular, entry.mode),
        PortableKind::Symlink(_) => (EntryType::Symlink, 0o777),
        PortableKind::HardLink(_) => (EntryType::Link, entry.mode),
    };
    new_header(kind, mode, u64::try_from(entry.seconds).unwrap_or(0))
}

pub(crate) fn new_header(kind: EntryType, mode: u32, seconds: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(seconds);
    header.set_size(0);
    header
}

/// Appends the fields that a header has no room for.
fn append_extensions<W: Write>(tar: &mut Builder<W>, entry: &PortableEntry) -> io::Result<()> {
    let mut extensions: Vec<(String, Vec<u8>)> = Vec::new();
    if entry.seconds < 0 || entry.nanoseconds > 0 {
        extensions.push(("mtime".into(), time(entry.seconds, entry.nanoseconds).into_bytes()));
    }
    for (name, value) in &entry.xattrs {
        // pax cannot write other names. The manifest has them.
        if let Some(name) = name.to_str().ok().filter(|name| !name.contains(['=', '\n'])) {
            extensions.push((format!("SCHILY.xattr.{name}"), value.clone()));
        }
    }
    if extensions.is_empty() {
        return Ok(());
    }
    tar.append_pax_extensions(extensions.iter().map(|(name, value)| (&**name, &**value)))
}

/// Formats a time as a decimal number. `seconds` is rounded down, so the nanoseconds always count upwards.
fn time(seconds: i64, nanoseconds: u32) -> String {
    match (seconds, nanoseconds) {
        (seconds, 0) => seconds.to_string(),
        (..0, _) => format!("-{}.{:09}", -(seconds + 1), 1_000_000_000 - nanoseconds),
        _ => format!("{seconds}.{nanoseconds:09}"),
    }
}

struct HashedContents {
    file: Take<File>,
    hash: blake3::Hasher,
}

impl Read for HashedContents {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.hash.update(&buffer[..read]);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_before_1970_are_decimal_numbers() {
        let times = [(5, 0), (5, 7), (-1, 0), (-1, 999_999_999), (-2, 5)].map(|(s, n)| time(s, n));
        assert_eq!(times, ["5", "5.000000007", "-1", "-0.000000001", "-1.999999995"]);
    }

    #[test]
    fn a_manifest_that_grows_without_end_is_not_read() {
        let bomb = zstd::encode_all(&vec![b'a'; 1 << 20][..], LEVEL).unwrap();
        assert_eq!(read_manifest(&*bomb, 1 << 20).unwrap().len(), 1 << 20);
        assert_eq!(read_manifest(&*bomb, (1 << 20) - 1).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    }
}
