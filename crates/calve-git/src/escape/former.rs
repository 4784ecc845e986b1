use std::path::{Path, PathBuf};

use memchr::memmem;

use super::entry::{TEXT_BYTES, WalkEntry};
use crate::directory::{open_directory, read};
use crate::paths::{is_missing, path_of};

/// Returns the tree's path when this virtual environment or CMake build was made. Not an existing one, such as `/usr`.
pub(super) fn root(entry: &WalkEntry<'_>, new: &Path) -> Option<PathBuf> {
    let (text, key): (_, &[u8]) = match entry.name() {
        b"pyvenv.cfg" => {
            let scripts = open_directory(entry.directory, "bin").ok()?;
            (read(&scripts, "activate", TEXT_BYTES)?, b"VIRTUAL_ENV=")
        }
        b"CMakeCache.txt" => (entry.text()?, b"CMAKE_CACHEFILE_DIR:INTERNAL="),
        _ => return None,
    };
    let at = entry.folder;
    let stated = memmem::find_iter(&text, key).map(|found| stated(&text[found + key.len()..]));
    let path = stated.into_iter().find(|path| path.is_absolute() && path.ends_with(at))?;
    let root = path.ancestors().nth(at.components().count())?;
    (is_missing(root) && root != new).then(|| root.to_path_buf())
}

fn stated(text: &[u8]) -> PathBuf {
    let (text, quote) = match text.first() {
        Some(&quote @ (b'"' | b'\'')) => (&text[1..], Some(quote)),
        _ => (text, None),
    };
    let ends = |byte: &u8| *byte == b'\n' || quote.map_or(*byte == b';', |quote| *byte == quote);
    path_of(&text[..text.iter().position(ends).unwrap_or(text.len())])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read_as_shells_and_cmake_write_them() {
        for text in ["/a b/c", "\"/a b/c\"; export X", "'/a b/c'\nnext", "/a b/c\nnext", "/a b/c;"] {
            assert_eq!(stated(text.as_bytes()), Path::new("/a b/c"), "{text}");
        }
    }
}
