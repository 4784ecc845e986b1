//! Which tracked files git would write otherwise than it stores them. Those are left to git.
//!
//! A file that git calls unchanged need not be what git's checkout writes: with `eol=crlf` both line endings are unchanged. Where
//! nothing is converted on the way out, a file that is converted on the way in is recognised by its size: taking away carriage
//! returns makes it smaller. So is one that Git LFS keeps elsewhere: its pointer says how large it is.

use std::collections::HashMap;

use crate::error::Result;
use crate::git::Git;
use crate::repository::Repository;
use crate::worktree::tracked::index::Index;
use crate::worktree::tracked::lfs;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Conversion {
    /// Files are stored as they are.
    None,
    /// A file of this size, in bytes, is what git would write: line endings may be changed on the way in, and are not on the way
    /// out; or it is the size that a pointer of Git LFS names.
    Size(u64),
    ByGit,
}

#[derive(Debug, Clone, Default)]
struct Attributes {
    text: Option<Vec<u8>>,
    eol: Option<Vec<u8>>,
    is_filtered: bool,
    is_in_lfs: bool,
}

/// Returns how git converts each file, or that it converts none if there is no git to ask.
pub(crate) fn conversions_if_asked(
    repository: &Repository,
    git: Option<&Git>,
    index: &Index,
    donor: &Index,
) -> Result<Vec<Conversion>> {
    match git {
        Some(git) => conversions(repository, git, index, donor),
        None => Ok(vec![Conversion::None; index.entries.len()]),
    }
}

/// Asks how git converts each file. `git` must use the index that is asked about. Asks only about files that `donor` may have: git writes
/// the others anyway, and in a partial clone each question about one of those would bring it, and each by a request of its own.
fn conversions(repository: &Repository, git: &Git, index: &Index, donor: &Index) -> Result<Vec<Conversion>> {
    let in_donor = index.also_in(donor);
    let mut paths = Vec::new();
    for (entry, _) in index.entries.iter().zip(&in_donor).filter(|(_, in_donor)| **in_donor) {
        paths.extend_from_slice(&entry.path);
        paths.push(0);
    }
    let said = git.fed(&["check-attr", "--cached", "-a", "-z", "--stdin"], &paths)?;
    let mut known: HashMap<&[u8], Attributes> = HashMap::new();
    let mut fields = said.split(|&byte| byte == 0);
    while let (Some(path), Some(name), Some(value)) = (fields.next(), fields.next(), fields.next()) {
        let attributes = known.entry(path).or_default();
        match name {
            b"text" => attributes.text = Some(value.to_vec()),
            b"eol" => attributes.eol = Some(value.to_vec()),
            b"filter" if value == b"lfs" => attributes.is_in_lfs = true,
            b"filter" | b"ident" | b"working-tree-encoding" | b"crlf" if value != b"unset" => {
                attributes.is_filtered = true;
            }
            _ => {}
        }
    }
    let settings = Settings::read(repository);
    let plain = Attributes::default();
    let mut found: Vec<Conversion> = Vec::with_capacity(index.entries.len());
    let mut pointers = Vec::new();
    for (at, entry) in index.entries.iter().enumerate() {
        if !in_donor[at] {
            found.push(Conversion::ByGit);
            continue;
        }
        let attributes = known.get(entry.path.as_slice()).unwrap_or(&plain);
        if attributes.is_in_lfs && settings.has_lfs && attributes.text.as_deref() == Some(b"unset") {
            pointers.push(at);
        }
        found.push(settings.conversion(attributes));
    }
    add_sizes(git, index, &mut found)?;
    for (at, size) in lfs::sizes(git, index, &pointers)? {
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

    fn conversion(&self, attributes: &Attributes) -> Conversion {
        if attributes.is_filtered || attributes.is_in_lfs || attributes.eol.as_deref() == Some(b"crlf") {
            return Conversion::ByGit;
        }
        let is_text = match attributes.text.as_deref() {
            Some(b"unset") => return Conversion::None,
            Some(_) => true,
            None => attributes.eol.is_some(),
        };
        if !is_text && !self.reads_crlf {
            return Conversion::None;
        }
        let writes_lf = attributes.eol.as_deref() == Some(b"lf");
        if !writes_lf && (self.writes_crlf || is_text && self.eol_is_crlf) {
            return Conversion::ByGit;
        }
        Conversion::Size(u64::MAX)
    }
}

/// Asks for the sizes of the blobs for which they matter.
fn add_sizes(git: &Git, index: &Index, found: &mut [Conversion]) -> Result<()> {
    let wanted: Vec<usize> = (0..found.len()).filter(|&at| matches!(found[at], Conversion::Size(_))).collect();
    if wanted.is_empty() {
        return Ok(());
    }
    let mut names = String::new();
    for &at in &wanted {
        names.push_str(&index.entries[at].hex());
        names.push('\n');
    }
    let said = git.fed(&["cat-file", "--batch-check=%(objectsize)"], names.as_bytes())?;
    // "HASH missing", as for the commits of submodules, is no number.
    let sizes = said.split(|&byte| byte == b'\n').map(|line| std::str::from_utf8(line).ok()?.parse().ok());
    for (at, size) in wanted.into_iter().zip(sizes) {
        found[at] = size.map_or(Conversion::ByGit, Conversion::Size);
    }
    Ok(())
}
