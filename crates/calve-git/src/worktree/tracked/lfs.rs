//! Pointers of Git LFS: what git stores in place of a large file (git-lfs/docs/spec.md).

use crate::error::Result;
use crate::git::Git;
use crate::worktree::tracked::index::Index;

/// A pointer is smaller than this; so a large file that was committed itself is not read.
const LARGEST_BYTES: u64 = 1024;

/// Returns the sizes, in bytes, of the files that these entries of an index point to; entries that are no pointers are left out.
pub(crate) fn sizes(git: &Git, index: &Index, wanted: &[usize]) -> Result<Vec<(usize, u64)>> {
    let oids: Vec<String> = wanted.iter().map(|&at| index.entries[at].hex()).collect();
    let found = wanted.iter().zip(git.blobs(&oids, LARGEST_BYTES - 1)?).filter_map(|(&at, pointer)| {
        let pointer = pointer?;
        // Where the worktree has the pointer itself, its size must not pass for that of the file.
        Some((at, pointed_to(&pointer).filter(|size| *size != pointer.len() as u64)?))
    });
    Ok(found.collect())
}

fn pointed_to(pointer: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(pointer).ok()?;
    let mut lines = text.lines();
    lines.next().filter(|line| line.starts_with("version https://git-lfs.github.com/spec/"))?;
    lines.find_map(|line| line.strip_prefix("size "))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_tells_the_size_and_nothing_else_does() {
        let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n";
        assert_eq!(pointed_to(pointer.as_bytes()), Some(12345));
        for other in ["", "size 5\n", "version 1\nsize 5\n", &pointer.replace("12345", "x"), "\u{0}\nsize 1"] {
            assert_eq!(pointed_to(other.as_bytes()), None, "{other}");
        }
    }
}
