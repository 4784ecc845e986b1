//! The trees of an audit, the spellings of their paths, and texts that name them.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use memchr::memmem::Finder;
use rustix::fs::{AtFlags, CWD, Mode, OFlags};

use crate::error::{Error, Result, failed};
use crate::paths::{in_url, path_of, plain, real};

use crate::escape::entry::EntryName;
use crate::escape::options::AuditOptions;

pub(super) struct Trees {
    root: File,
    /// Its present or future path.
    pub(super) new: PathBuf,
    /// The other trees, the copied one first.
    olds: Vec<PathBuf>,
    /// Other trees inside the new one, relative to it.
    inside: Vec<PathBuf>,
    spellings: Vec<Spelling>,
}

/// One spelling of a tree's path, and of the new tree's.
struct Spelling {
    finder: Finder<'static>,
    /// `None` for the new tree itself.
    becomes: Option<Vec<u8>>,
}

/// The language of a text, which decides the characters that a path may have in it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    /// One item per line.
    Lines,
    /// A string in JSON, YAML or Python.
    Quoted,
    /// Words for a shell, quoted or not.
    Shell,
}

pub(super) struct Mention {
    pub(super) names: PathBuf,
    /// The text with the new tree in place of the others; `None` if the new path would mean something else there.
    pub(super) moved: Option<Vec<u8>>,
}

impl Trees {
    pub(super) fn new(new: &Path, old: &Path, options: &AuditOptions) -> Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(CWD, new, flags, Mode::empty());
        let root = File::from(opened.map_err(|errno| failed("failed to open", new, errno))?);
        let becomes = options.will_be.as_deref();
        let new = absolute(becomes.unwrap_or(new))?;
        let real_new = real(&new);
        let mut olds = Vec::new();
        for old in std::iter::once(old).chain(options.others.iter().map(PathBuf::as_path)) {
            let given = absolute(old)?;
            let real = fs_err::canonicalize(old).unwrap_or_else(|_| given.clone());
            for old in [real, given] {
                // Every path names the root of the file system.
                if old != new && old != real_new && old.parent().is_some() && !olds.contains(&old) {
                    olds.push(old);
                }
            }
        }
        let mut spellings = Vec::new();
        for spell in [<[u8]>::to_vec, |path: &[u8]| in_url(path).into_bytes(), in_makefile] {
            let becomes = spell(new.as_os_str().as_bytes());
            let mut add = |old: &Path, becomes: Option<Vec<u8>>| {
                let spelled = spell(old.as_os_str().as_bytes());
                if !spellings.iter().any(|known: &Spelling| known.finder.needle() == spelled) {
                    spellings.push(Spelling { finder: Finder::new(&spelled).into_owned(), becomes });
                }
            };
            [&new, &real_new].into_iter().for_each(|new| add(new, None));
            olds.iter().for_each(|old| add(old, Some(becomes.clone())));
        }
        let below = |old: &PathBuf| old.strip_prefix(&new).ok().map(Path::to_path_buf);
        let inside = olds.iter().filter_map(below).collect();
        Ok(Self { root, new, olds, inside, spellings })
    }

    /// Returns the new tree's directory, wherever it is now.
    pub(super) fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    pub(super) fn old_path(&self) -> Option<&Path> {
        self.olds.first().map(PathBuf::as_path)
    }

    pub(super) fn is_another(&self, entry: &EntryName<'_>) -> bool {
        !self.inside.is_empty() && self.inside.contains(&entry.path())
    }

    /// Converts a path in another tree to the same path below the new one.
    pub(super) fn below_another(&self, path: &Path) -> Option<PathBuf> {
        if path.starts_with(&self.new)
            && !self.olds.iter().any(|old| old.starts_with(&self.new) && path.starts_with(old))
        {
            return None;
        }
        let holding = self.olds.iter().filter(|old| path.starts_with(old));
        let longest = holding.max_by_key(|old| old.as_os_str().len())?;
        path.strip_prefix(longest).ok().map(Path::to_path_buf)
    }

    /// Returns whether something exists at a path below the new tree, even a dangling link.
    pub(super) fn has(&self, below: &Path) -> bool {
        let path = if below.as_os_str().is_empty() { Path::new(".") } else { below };
        rustix::fs::statat(&self.root, path, AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    pub(super) fn first_named(&self, text: &[u8]) -> Option<PathBuf> {
        self.matches(text).next().map(|(begin, end, _)| path_at(text, begin, end))
    }

    /// Returns the first path in another tree that `text` names, and the text that names the new tree instead.
    pub(super) fn named(&self, text: &[u8], language: Language) -> Option<Mention> {
        let mut moved = Vec::new();
        let mut from = 0;
        let mut names = None;
        for (begin, end, becomes) in self.matches(text) {
            names.get_or_insert_with(|| path_at(text, begin, end));
            moved.extend_from_slice(&text[from..begin]);
            moved.extend_from_slice(becomes);
            from = end;
        }
        let names = names?;
        moved.extend_from_slice(&text[from..]);
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+@%=:,~^".contains(&byte) || byte >= 0x80;
        let is_writable = self.new.as_os_str().as_bytes().iter().all(|&byte| match language {
            Language::Lines => byte != b'\n' && byte != b'\r',
            Language::Quoted => plain(byte) || b" ()[]&;!".contains(&byte),
            Language::Shell => plain(byte),
        });
        Some(Mention { names, moved: is_writable.then_some(moved) })
    }

    /// Finds where other trees are named, from the front, each with the new tree's spelling.
    fn matches<'t>(&'t self, text: &'t [u8]) -> impl Iterator<Item = (usize, usize, &'t [u8])> {
        let mut next: Vec<Option<usize>> = self.spellings.iter().map(|spelling| spelling.finder.find(text)).collect();
        std::iter::from_fn(move || {
            loop {
                let found = next.iter().enumerate().filter_map(|(index, at)| Some(((*at)?, index)));
                // The longest of several that begin here: a worktree may be inside another one.
                let (at, index) = found
                    .min_by_key(|&(at, index)| (at, std::cmp::Reverse(self.spellings[index].finder.needle().len())))?;
                let spelling = &self.spellings[index];
                let end = at + spelling.finder.needle().len();
                if !begins_path(text, at) || text.get(end).is_some_and(|&byte| in_name(byte)) {
                    next[index] = find_from(spelling, text, at + 1);
                    continue;
                }
                for (spelling, position) in self.spellings.iter().zip(&mut next) {
                    if position.is_some_and(|position| position < end) {
                        *position = find_from(spelling, text, end);
                    }
                }
                if let Some(becomes) = &spelling.becomes {
                    return Some((at, end, becomes.as_slice()));
                }
            }
        })
    }
}

fn find_from(spelling: &Spelling, text: &[u8], from: usize) -> Option<usize> {
    spelling.finder.find(text.get(from..)?).map(|at| at + from)
}

fn in_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"._-+@%~=".contains(&byte) || byte >= 0x80
}

fn begins_path(text: &[u8], at: usize) -> bool {
    let before = &text[..at];
    match before.last() {
        None => true,
        Some(b'/') => before.ends_with(b"://") || before.ends_with(b"://localhost"),
        // KEY=PATH, and a compiler's -IPATH.
        Some(b'=') => true,
        Some(b'I' | b'L' | b'F' | b'B' | b'S' | b'H') if before.len() > 1 => before[before.len() - 2] == b'-',
        Some(&byte) => !in_name(byte),
    }
}

/// Returns the whole path that begins with those bytes, for display.
fn path_at(text: &[u8], begin: usize, end: usize) -> PathBuf {
    let rest = &text[end..];
    let stop = |byte: &u8| byte.is_ascii_control() || b" \"'`<>|;,:*?$()[]{}\\".contains(byte);
    let length = rest.iter().position(stop).unwrap_or(rest.len()).min(4096);
    path_of(&text[begin..end + length])
}

fn in_makefile(path: &[u8]) -> Vec<u8> {
    path.split(|&byte| byte == b' ').collect::<Vec<_>>().join(&b"\\ "[..])
}

pub(super) fn relative(from: &Path, to: &Path) -> PathBuf {
    let shared = from.components().zip(to.components()).take_while(|(a, b)| a == b).count();
    let up = from.components().skip(shared).map(|_| Component::ParentDir);
    let way: PathBuf = up.chain(to.components().skip(shared)).collect();
    if way.as_os_str().is_empty() { ".".into() } else { way }
}

fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).map(|path| plain(&path)).map_err(Error::Io)
}
