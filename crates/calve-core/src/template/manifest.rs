//! The manifest: one line for each entry, in the format of mtree(5), sorted. docs/registry-format.md describes it.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use crate::tree::location::Identity;

pub(super) const HEAD: &str = "#mtree\n# calve template manifest 1\n";

pub(super) struct ManifestEntry {
    /// Below the root; empty for the root.
    pub(super) path: Vec<u8>,
    /// The keywords, with a space before each.
    pub(super) keywords: Box<str>,
    /// Its inode, if that may have further names.
    pub(super) linked: Option<Identity>,
    pub(super) size: u64,
}

pub(super) struct Manifest {
    pub(super) text: String,
    pub(super) entries: u64,
    /// The sizes of the files, each inode once.
    pub(super) bytes: u64,
}

impl Manifest {
    pub(super) fn new(mut entries: Vec<ManifestEntry>) -> Self {
        entries.sort_unstable_by(|a, b| order(&a.path).cmp(order(&b.path)));
        // Reserved at once: growing would copy it and double the memory.
        let length = |entry: &ManifestEntry| entry.path.len() + entry.keywords.len() + 4;
        let mut text = String::with_capacity(HEAD.len() + entries.iter().map(length).sum::<usize>());
        text.push_str(HEAD);
        let mut manifest = Self { text, entries: entries.len() as u64, bytes: 0 };
        let mut first_names: HashMap<Identity, usize> = HashMap::new();
        for (index, entry) in entries.iter().enumerate() {
            let text = &mut manifest.text;
            name(&entry.path, text);
            text.push_str(&entry.keywords);
            let first = entry.linked.map(|inode| *first_names.entry(inode).or_insert(index));
            match first.filter(|&first| first != index) {
                Some(first) => {
                    text.push_str(" hardlink=");
                    name(&entries[first].path, text);
                }
                None => manifest.bytes += entry.size,
            }
            text.push('\n');
        }
        manifest
    }
}

pub(super) fn key(text: &[u8]) -> String {
    blake3::hash(text).to_hex().to_string()
}

/// Returns the sort key of a path: name by name, so that a directory's entries follow it.
pub(super) fn order(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.split(|&byte| byte == b'/')
}

pub(super) fn name(path: &[u8], text: &mut String) {
    text.push('.');
    if !path.is_empty() {
        text.push('/');
        escape(path, text);
    }
}

/// Writes bytes as vis(3) does with octal numbers, for all but a few characters.
pub(super) fn escape(bytes: &[u8], text: &mut String) {
    for &byte in bytes {
        if byte.is_ascii_alphanumeric() || b"/._-+,:@%~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            let _ = write!(text, "\\{byte:03o}");
        }
    }
}

pub(super) fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, more @ ..] = rest {
        rest = more;
        if *first != b'\\' {
            bytes.push(*first);
            continue;
        }
        let (digits, more) = rest.split_at_checked(3)?;
        bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok()?);
        rest = more;
    }
    Some(bytes)
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line<'t> {
    pub(super) path: Vec<u8>,
    pub(super) keywords: &'t str,
}

pub(super) fn shown(path: &[u8]) -> PathBuf {
    OsStr::from_bytes(if path.is_empty() { b"." } else { path }).into()
}

/// Parses the lines of a manifest, in order. `None` unless it begins with `head`: another version wrote it.
pub(super) fn lines_after<'t>(head: &str, text: &'t str) -> Option<impl Iterator<Item = Option<Line<'t>>> + use<'t>> {
    let body = text.strip_prefix(head)?;
    Some(body.lines().map(|line| {
        let (name, keywords) = line.split_once(' ')?;
        let path = match name {
            "." => Vec::new(),
            name => unescape(name.strip_prefix("./")?)?,
        };
        Some(Line { path, keywords })
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_name_is_read_as_it_was_written() {
        let all: Vec<u8> = (1..=255).collect();
        let mut text = String::new();
        escape(&all, &mut text);
        assert!(text.bytes().all(|byte| byte.is_ascii_graphic()));
        assert_eq!(unescape(&text), Some(all));
        assert_eq!(unescape("a\\12"), None);
    }

    #[test]
    fn what_is_in_a_directory_follows_it() {
        let entry =
            |path: &str| ManifestEntry { path: path.into(), keywords: " type=file".into(), linked: None, size: 0 };
        let manifest = Manifest::new(["a-b", "a/b", "", "a", "a/b/c", "b"].map(entry).into());
        let paths: Vec<_> = lines_after(HEAD, &manifest.text).unwrap().map(|line| line.unwrap().path).collect();
        let expected = ["", "a", "a/b", "a/b/c", "a-b", "b"].map(|path| path.as_bytes().to_vec());
        assert_eq!(paths, expected);
    }

    #[test]
    fn names_of_one_inode_are_a_group_and_count_once() {
        let entry =
            |path: &str, linked| ManifestEntry { path: path.into(), keywords: " size=5".into(), linked, size: 5 };
        let manifest = Manifest::new(vec![entry("z", Some((1, 2))), entry("a", Some((1, 2))), entry("b", None)]);
        assert_eq!(manifest.text, format!("{HEAD}./a size=5\n./b size=5\n./z size=5 hardlink=./a\n"));
        assert_eq!(manifest.bytes, 10);
    }
}
