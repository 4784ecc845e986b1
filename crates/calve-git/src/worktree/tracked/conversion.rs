//! Finds the tracked files that git would write otherwise than it stores them. Those are left to git.
//!
//! A file that git calls unchanged may still differ from a checkout: with `eol=crlf` both line endings count as unchanged. Where only the way
//! in converts, the size identifies a file: without carriage returns it is smaller. So it does with Git LFS, whose pointers name the size.

use std::collections::HashMap;

use crate::error::Result;
use crate::git::Git;
use crate::repository::Repository;
use crate::worktree::tracked::index::{GITLINK, Index};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Conversion {
    /// A checkout writes the file as it is stored.
    None,
    /// A file of this size, in bytes, is as git would write it: endings change only on the way in, or Git LFS names it.
    Size(u64),
    ByGit,
}

#[derive(Debug, Clone, Copy, Default)]
struct Attributes<'s> {
    text: Option<&'s [u8]>,
    eol: Option<&'s [u8]>,
    is_filtered: bool,
    is_in_lfs: bool,
}

/// Asks how git converts each file; without `git`, nothing is converted. `git` must use `index`. Asks only about files that `donor` may have:
/// git writes the others anyway, and in a partial clone each question about one would fetch it, in a request of its own.
pub(crate) fn conversions(
    repository: &Repository,
    git: Option<&Git>,
    index: &Index,
    donor: &Index,
) -> Result<Vec<Conversion>> {
    let Some(git) = git else { return Ok(vec![Conversion::None; index.entries.len()]) };
    let in_donor = index.also_in(donor);
    let mut paths = Vec::new();
    for (entry, _) in index.entries.iter().zip(&in_donor).filter(|(_, in_donor)| **in_donor) {
        paths.extend_from_slice(&entry.path);
        paths.push(0);
    }
    let said = git.fed(&["check-attr", "--cached", "-a", "-z", "--stdin"], &paths)?;
    let mut known: HashMap<&[u8], Attributes<'_>> = HashMap::new();
    let mut fields = said.split(|&byte| byte == 0);
    while let (Some(path), Some(name), Some(value)) = (fields.next(), fields.next(), fields.next()) {
        let attributes = known.entry(path).or_default();
        match name {
            b"text" => attributes.text = Some(value),
            b"eol" => attributes.eol = Some(value),
            b"filter" if value == b"lfs" => attributes.is_in_lfs = true,
            b"filter" | b"ident" | b"working-tree-encoding" | b"crlf" if value != b"unset" => {
                attributes.is_filtered = true;
            }
            _ => {}
        }
    }
    let settings = Settings::read(repository);
    let mut found: Vec<Conversion> = Vec::with_capacity(index.entries.len());
    let mut pointers = Vec::new();
    for (at, entry) in index.entries.iter().enumerate() {
        if !in_donor[at] {
            found.push(Conversion::ByGit);
            continue;
        }
        let attributes = known.get(entry.path.as_slice()).copied().unwrap_or_default();
        if attributes.is_in_lfs && settings.has_lfs && attributes.text == Some(b"unset") {
            pointers.push(at);
        }
        found.push(settings.conversion(attributes));
    }
    let sized: Vec<usize> = (0..found.len())
        .filter(|&at| matches!(found[at], Conversion::Size(_)) && index.entries[at].mode != GITLINK)
        .collect();
    let oids: Vec<String> = sized.iter().map(|&at| index.entries[at].hex()).collect();
    for (at, size) in sized.into_iter().zip(git.sizes(&oids)?) {
        found[at] = size.map_or(Conversion::ByGit, Conversion::Size);
    }
    for (at, size) in sizes_in_lfs(git, index, &pointers)? {
        found[at] = Conversion::Size(size);
    }
    Ok(found)
}

struct Settings {
    writes_crlf: bool,
    reads_crlf: bool,
    eol_is_crlf: bool,
    has_lfs: bool,
}

impl Settings {
    fn read(repository: &Repository) -> Settings {
        let is_input = repository.setting("core.autocrlf").is_some_and(|value| value.eq_ignore_ascii_case("input"));
        let writes_crlf = !is_input && repository.is_set("core.autocrlf");
        let eol_is_crlf = repository.setting("core.eol").is_some_and(|value| value.eq_ignore_ascii_case("crlf"));
        let has_lfs = ["filter.lfs.process", "filter.lfs.smudge"].iter().any(|name| repository.setting(name).is_some());
        Settings { writes_crlf, reads_crlf: is_input || writes_crlf, eol_is_crlf, has_lfs }
    }

    fn conversion(&self, Attributes { text, eol, is_filtered, is_in_lfs }: Attributes<'_>) -> Conversion {
        let is_text = text.or(eol).is_some();
        let is_as_stored = text == Some(b"unset") || !is_text && !self.reads_crlf;
        let writes_crlf = eol != Some(b"lf") && (self.writes_crlf || is_text && self.eol_is_crlf);
        if is_filtered || is_in_lfs || eol == Some(b"crlf") || writes_crlf && !is_as_stored {
            Conversion::ByGit
        } else if is_as_stored {
            Conversion::None
        } else {
            Conversion::Size(u64::MAX)
        }
    }
}

/// A Git LFS pointer (git-lfs/docs/spec.md) is smaller than this. A large file committed as itself is not read.
const POINTER_BYTES: u64 = 1024;

/// Returns the sizes in bytes that the Git LFS pointers among these entries name. Leaves out all other entries.
fn sizes_in_lfs(git: &Git, index: &Index, wanted: &[usize]) -> Result<Vec<(usize, u64)>> {
    let oids: Vec<String> = wanted.iter().map(|&at| index.entries[at].hex()).collect();
    let found = wanted.iter().zip(git.blobs(&oids, POINTER_BYTES - 1)?).filter_map(|(&at, pointer)| {
        let pointer = pointer?;
        // If the worktree has the pointer itself, its size must not pass for the file's.
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
