//! The index of an image: its files, and the places of their chunks in the layers.

use std::collections::HashSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use serde::{Deserialize, Serialize};

use crate::frames::Hash;
use crate::image::Descriptor;

pub(super) const LARGEST_CHUNK_BYTES: u32 = 1 << 20;
/// About a million chunks. A larger index is not read.
pub(super) const LARGEST_INDEX_BYTES: u64 = 48 << 20;
pub(super) const FORMAT: u32 = 1;
/// More than a tar has for an entry beside its contents: two headers, a path, and padding.
const BETWEEN_BYTES: u64 = 8 << 10;

/// All directories but the root, and all files, in the order of the layers.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Index {
    pub(super) format: u32,
    pub(super) directories: Vec<IndexedDirectory>,
    pub(super) files: Vec<IndexedFile>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct IndexedDirectory {
    pub(super) path: String,
    pub(super) mode: u32,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct IndexedFile {
    pub(super) path: String,
    pub(super) mode: u32,
    pub(super) layer: usize,
    /// Start of its first chunk in the layer. The others follow.
    pub(super) offset: u64,
    pub(super) chunks: Vec<Chunk>,
}

/// A part of a file, in a frame of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "(String, u32, u32)", try_from = "(String, u32, u32)")]
pub(super) struct Chunk {
    pub(super) hash: Hash,
    pub(super) size: u32,
    pub(super) compressed: u32,
}

impl From<Chunk> for (String, u32, u32) {
    fn from(chunk: Chunk) -> Self {
        (STANDARD_NO_PAD.encode(chunk.hash), chunk.size, chunk.compressed)
    }
}

impl TryFrom<(String, u32, u32)> for Chunk {
    type Error = &'static str;

    fn try_from((hash, size, compressed): (String, u32, u32)) -> Result<Self, Self::Error> {
        let hash = STANDARD_NO_PAD.decode(hash).ok().and_then(|hash| hash.try_into().ok()).ok_or("no hash")?;
        Ok(Self { hash, size, compressed })
    }
}

impl Chunk {
    /// Checks the sizes against those of a frame whose contents cannot be compressed.
    fn is_possible(&self) -> bool {
        let most = u64::from(self.size) + u64::from(self.size / 128) + 512;
        (1..=LARGEST_CHUNK_BYTES).contains(&self.size) && (1..=most).contains(&u64::from(self.compressed))
    }
}

impl IndexedFile {
    pub(super) fn size(&self) -> u64 {
        self.chunks.iter().map(|chunk| u64::from(chunk.size)).sum()
    }

    /// Returns its chunks, each with its place in the file and in the layer.
    pub(super) fn placed(&self) -> impl Iterator<Item = (Chunk, u64, u64)> + '_ {
        let (mut at, mut start) = (0, self.offset);
        self.chunks.iter().map(move |chunk| {
            let place = (*chunk, at, start);
            at += u64::from(chunk.size);
            start += u64::from(chunk.compressed);
            place
        })
    }
}

impl Index {
    /// Parses an index, and checks everything but its places in layers.
    pub(super) fn parse(text: &str) -> Result<Self, &'static str> {
        let index: Self = serde_json::from_str(text).map_err(|_| "its index is not valid")?;
        if index.format != FORMAT {
            return Err("its index is of another version");
        }
        let mut directories = HashSet::from([""]);
        let mut files = HashSet::new();
        for directory in &index.directories {
            check_place(&directory.path, directory.mode, &directories)?;
            if !directories.insert(&directory.path) {
                return Err("its index has a directory twice");
            }
        }
        for file in &index.files {
            check_place(&file.path, file.mode, &directories)?;
            if directories.contains(&*file.path) || !files.insert(&*file.path) {
                return Err("its index has a file twice");
            }
            if !file.chunks.iter().all(Chunk::is_possible) {
                return Err("its index has a chunk of an impossible size");
            }
        }
        Ok(index)
    }

    /// Checks that each chunk has a place of its own in one of these layers, and that no layer has much else.
    pub(super) fn check_layers(&self, layers: &[Descriptor]) -> Result<(), &'static str> {
        let mut last = (0, 0);
        let mut used = vec![0; layers.len()];
        for file in &self.files {
            let layer = layers.get(file.layer).ok_or("its index has a file in no layer")?;
            if (file.layer, file.offset) < last {
                return Err("its index has two chunks at one place");
            }
            let length: u64 = file.chunks.iter().map(|chunk| u64::from(chunk.compressed)).sum();
            let end = file.offset.checked_add(length).filter(|end| *end <= layer.size);
            last = (file.layer, end.ok_or("its index has a chunk outside of its layer")?);
            used[file.layer] += length + BETWEEN_BYTES;
        }
        let most_between = BETWEEN_BYTES * (self.directories.len() as u64 + 2);
        // Layers without files are not fetched.
        let is_too_large = |(layer, used): (&Descriptor, &u64)| *used > 0 && layer.size > used + most_between;
        if layers.iter().zip(&used).any(is_too_large) { Err("a layer is too large") } else { Ok(()) }
    }
}

/// Checks a path's last name, its mode, and that its directory came before.
fn check_place(path: &str, mode: u32, directories: &HashSet<&str>) -> Result<(), &'static str> {
    let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
    if name.is_empty() || name == "." || name == ".." || name.len() > 255 || name.contains('\0') {
        return Err("its index has a name that is not allowed");
    }
    if !directories.contains(parent) {
        return Err("its index has a file that is not in a directory of the template");
    }
    if mode & !0o777 != 0 {
        return Err("its index has a file with a mode that is not allowed");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: &str = "AAAAAAAAAAAAAAAAAAAAAA";

    fn parse(directories: &str, files: &str) -> Result<Index, &'static str> {
        Index::parse(&format!(r#"{{"format": 1, "directories": [{directories}], "files": [{files}]}}"#))
    }

    fn file(path: &str, layer: usize, offset: u64, chunks: &str) -> String {
        format!(r#"{{"path": "{path}", "mode": 384, "layer": {layer}, "offset": {offset}, "chunks": [{chunks}]}}"#)
    }

    fn chunk(size: u64, compressed: u64) -> String {
        format!(r#"["{HASH}", {size}, {compressed}]"#)
    }

    #[test]
    fn no_file_is_outside_of_the_root_or_at_an_impossible_place() {
        let base = r#"{"path": "base", "mode": 448}"#;
        assert_eq!(parse(base, &file("base/1", 0, 0, &chunk(10, 12))).unwrap().files[0].size(), 10);
        for (directories, files) in [
            (base, file("../1", 0, 0, "")),
            (base, file("/etc/passwd", 0, 0, "")),
            (base, file("base/../../1", 0, 0, "")),
            (base, file("base//1", 0, 0, "")),
            (base, file("base", 0, 0, "")),
            (base, file("", 0, 0, "")),
            (base, file("other/1", 0, 0, "")),
            (base, file("base/1", 0, 0, "").replace("384", "2541")),
            (base, format!("{0},{0}", file("base/1", 0, 0, ""))),
            (r#"{"path": "..", "mode": 448}"#, String::new()),
            (r#"{"path": "base/below", "mode": 448}"#, String::new()),
            (base, file("1", 0, 0, &chunk(0, 10))),
            (base, file("1", 0, 0, &chunk(10, 0))),
            (base, file("1", 0, 0, &chunk(1_048_577, 100))),
            (base, file("1", 0, 0, &chunk(4_294_967_296, 100))),
            (base, file("1", 0, 0, &chunk(10, 1_000_000))),
            (base, file("1", 0, 0, &chunk(10, 12)).replace(HASH, "AAAA")),
        ] {
            assert!(parse(directories, &files).is_err(), "{files}");
        }
    }

    #[test]
    fn chunks_are_in_their_layers_and_do_not_overlap() {
        let layer = |size| Descriptor {
            media_type: String::new(),
            digest: String::new(),
            size,
            annotations: std::collections::BTreeMap::new(),
        };
        let layers = [layer(100), layer(50)];
        let check = |files: &[String]| parse("", &files.join(",")).unwrap().check_layers(&layers);
        assert_eq!(check(&[file("1", 0, 90, &chunk(10, 10)), file("2", 1, 0, &chunk(10, 10))]), Ok(()));
        for files in [
            &[file("1", 2, 0, "")][..],
            &[file("1", 0, 91, &chunk(10, 10))],
            &[file("1", 0, u64::MAX, &chunk(10, 10))],
            &[file("1", 0, 0, &chunk(10, 10)), file("2", 0, 9, &chunk(10, 10))],
            &[file("1", 1, 0, &chunk(10, 10)), file("2", 0, 0, &chunk(10, 10))],
        ] {
            assert!(check(files).is_err(), "{files:?}");
        }
    }
}
