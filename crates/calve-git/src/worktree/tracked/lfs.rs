//! Pointers of Git LFS: what git stores in place of a large file (git-lfs/docs/spec.md).

use crate::error::Result;
use crate::git::Git;
use crate::worktree::tracked::index::Index;

/// A pointer is smaller than this; so a large file that somebody has committed itself is not read.
const LARGEST_BYTES: u64 = 1024;

/// Returns the sizes, in bytes, of the files that these entries of an index point to; entries that are no pointers are left out.
pub(crate) fn sizes(git: &Git, index: &Index, wanted: &[usize]) -> Result<Vec<(usize, u64)>> {
    let names = |wanted: &[usize]| -> Vec<u8> {
        wanted.iter().flat_map(|&at| (index.entries[at].hex() + "\n").into_bytes()).collect()
    };
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let said = git.fed(&["cat-file", "--batch-check=%(objectsize)"], &names(wanted))?;
    let lines = said.split(|&byte| byte == b'\n').map(|line| std::str::from_utf8(line).ok()?.parse::<u64>().ok());
    let small: Vec<(usize, u64)> = wanted
        .iter()
        .zip(lines)
        .filter_map(|(&at, size)| Some((at, size.filter(|size| *size < LARGEST_BYTES)?)))
        .collect();
    let positions: Vec<usize> = small.iter().map(|(at, _)| *at).collect();
    if positions.is_empty() {
        return Ok(Vec::new());
    }
    let said = git.fed(&["cat-file", "--batch=%(objectsize)"], &names(&positions))?;
    let mut rest = said.as_slice();
    let mut found = Vec::new();
    for (at, stored) in small {
        let Some((contents, after)) = first(rest) else { break };
        rest = after;
        // Where the worktree has the pointer itself, its size must not pass for that of the file.
        found.extend(pointed_to(contents).filter(|size| *size != stored).map(|size| (at, size)));
    }
    Ok(found)
}

/// Splits the contents in `SIZE\nCONTENTS\n` from what comes after them.
fn first(said: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = said.iter().position(|&byte| byte == b'\n')?;
    let size: usize = std::str::from_utf8(&said[..end]).ok()?.parse().ok()?;
    let contents = said.get(end + 1..)?;
    Some((contents.get(..size)?, contents.get(size + 1..)?))
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

    #[test]
    fn contents_are_taken_one_after_another() {
        let (one, rest) = first(b"3\na\nb\n0\n\n").unwrap();
        assert_eq!((one, rest), (&b"a\nb"[..], &b"0\n\n"[..]));
        assert_eq!(first(rest), Some((&b""[..], &b""[..])));
        assert_eq!(first(b"9\nabc\n"), None);
    }
}
