//! The portable part of a template: a manifest without facts that mean nothing on other machines, and its entries.
//!
//! Owners do not travel: the receiver owns the files. Of the extended attributes, only `user.*` travel.

use std::ffi::CString;
use std::ops::Range;

use super::manifest::{HEAD, Line, key, lines_after, order, unescape};

pub(super) const PORTABLE: &str = "#mtree\n# calve portable template 1\n";
const UNREADABLE: &str = "is not a manifest that this version can read";
const SET_ID: u32 = 0o6000;
const SET_GROUP_ID: u32 = 0o2000;

/// The part of a template that is equal on every machine.
#[derive(Debug, Clone)]
pub struct PortableTemplate {
    /// The manifest, sorted so that a directory's entries follow it.
    pub text: String,
    /// Its entries in the same order, the root first.
    pub entries: Vec<PortableEntry>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortableEntry {
    /// The path below the root; empty for the root. No name in it is `.` or `..`.
    pub path: Vec<u8>,
    pub kind: PortableKind,
    /// Its permission bits; 0 for a link.
    pub mode: u32,
    /// The seconds of its modification time since 1970.
    pub seconds: i64,
    pub nanoseconds: u32,
    /// Its extended attributes, all of the user's namespace.
    pub xattrs: Vec<(CString, Vec<u8>)>,
    /// The range of its line in the text.
    pub line: Range<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PortableKind {
    Directory,
    /// A file of this size and BLAKE3 hash.
    File {
        size: u64,
        hash: [u8; 32],
    },
    Symlink(CString),
    /// A further name of the file or symlink with this index.
    HardLink(usize),
}

/// Why a manifest does not describe a template that can travel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortabilityObstacle {
    /// The entry in the way, if it is one.
    pub path: Vec<u8>,
    /// The obstacle, as a clause.
    pub what: &'static str,
}

impl PortableTemplate {
    /// Parses a manifest from another machine. Fails for lines that no template can have: outside of the root, not in a
    /// directory, or repeated.
    pub fn parse(text: String) -> Result<Self, PortabilityObstacle> {
        let mut entries: Vec<PortableEntry> = Vec::new();
        // The directories above an entry: the entries are in the order of a walk.
        let mut above: Vec<usize> = Vec::new();
        each_line(PORTABLE, &text, UNREADABLE, |path, keywords, line| {
            let mut entry = fields(path, keywords, line).ok_or("has a line that is not valid")?;
            if entries.is_empty() != path.is_empty() || path.is_empty() && entry.kind != PortableKind::Directory {
                return Err("is not below a root");
            }
            if !path.is_empty() {
                check_position(path, &entries, &mut above)?;
            }
            if keywords.contains(" hardlink=") {
                let first = first_name(keywords).and_then(|first| position(&entries, &first));
                let first = first.filter(|&first| is_same_file(&entries[first], &entry));
                entry.kind = PortableKind::HardLink(first.ok_or("is a hard link to nothing")?);
            }
            if entry.kind == PortableKind::Directory {
                above.push(entries.len());
            }
            entries.push(entry);
            Ok(())
        })?;
        match entries.is_empty() {
            true => Err(PortabilityObstacle { path: Vec::new(), what: UNREADABLE }),
            false => Ok(Self { text, entries }),
        }
    }

    pub(super) fn of_manifest(manifest: &str) -> Result<Self, PortabilityObstacle> {
        let mut text = String::with_capacity(manifest.len());
        text.push_str(PORTABLE);
        for line in portable_lines(manifest)? {
            text.push_str(&line?);
        }
        Self::parse(text)
    }

    /// Returns the key, which equal templates share on every machine.
    pub fn key(&self) -> String {
        key(self.text.as_bytes())
    }

    /// Returns the index of the entry with this path.
    pub fn find(&self, path: &[u8]) -> Option<usize> {
        position(&self.entries, path)
    }

    /// Returns the sum of the file sizes, each file once.
    pub fn bytes(&self) -> u64 {
        let size = |entry: &PortableEntry| match entry.kind {
            PortableKind::File { size, .. } => size,
            _ => 0,
        };
        self.entries.iter().fold(0, |sum: u64, entry| sum.saturating_add(size(entry)))
    }
}

/// Calls `each` with path, keywords and range of every line after `head`. Fails unless the paths are in strict order.
pub(super) fn each_line(
    head: &str,
    text: &str,
    unreadable: &'static str,
    mut each: impl FnMut(&[u8], &str, Range<usize>) -> Result<(), &'static str>,
) -> Result<(), PortabilityObstacle> {
    let unreadable = || PortabilityObstacle { path: Vec::new(), what: unreadable };
    let (mut last, mut end): (Option<Vec<u8>>, usize) = (None, head.len());
    for line in lines_after(head, text).ok_or_else(unreadable)? {
        let Line { path, keywords } = line.ok_or_else(unreadable)?;
        let refused = |what| PortabilityObstacle { path: path.clone(), what };
        let start = end;
        end = start + text[start..].find('\n').ok_or_else(unreadable)? + 1;
        if last.is_some_and(|last| order(&last).ge(order(&path))) {
            return Err(refused("is not in order"));
        }
        each(&path, keywords, start..end).map_err(refused)?;
        last = Some(path);
    }
    Ok(())
}

pub(super) fn portable_lines(
    manifest: &str,
) -> Result<impl Iterator<Item = Result<String, PortabilityObstacle>> + use<'_>, PortabilityObstacle> {
    let unreadable = || PortabilityObstacle { path: Vec::new(), what: UNREADABLE };
    Ok(lines_after(HEAD, manifest).ok_or_else(unreadable)?.map(move |line| {
        let line = line.ok_or_else(unreadable)?;
        let refused = |what| PortabilityObstacle { path: line.path.clone(), what };
        let mut text = String::new();
        super::manifest::name(&line.path, &mut text);
        for keyword in line.keywords.split(' ') {
            let kept = travels(keyword, line.keywords).map_err(refused)?;
            if let Some(kept) = kept {
                text.push(' ');
                text.push_str(&kept);
            }
        }
        text.push('\n');
        Ok(text)
    }))
}

/// Returns a keyword as it travels, or `None` if it does not. Fails if it would change who may do what.
fn travels(keyword: &str, all: &str) -> Result<Option<String>, &'static str> {
    let (name, value) = keyword.split_once('=').unwrap_or((keyword, ""));
    match name {
        "uid" | "gid" => Ok(None),
        "type" if !matches!(value, "dir" | "file" | "link") => Err("is a device, a FIFO or a socket"),
        "mode" => {
            let mode = u32::from_str_radix(value, 8).map_err(|_| "has a line that is not valid")?;
            let is_directory = all.split(' ').next() == Some("type=dir");
            // On a directory it only says which group new entries get.
            let mode = if is_directory { mode & !SET_GROUP_ID } else { mode };
            if mode & SET_ID != 0 {
                return Err("has the set-user-ID or the set-group-ID bit");
            }
            Ok(Some(format!("mode={mode:04o}")))
        }
        "xattr.security.capability" => Err("has capabilities"),
        name if name.starts_with("xattr.system.posix_acl_") => Err("has an access control list"),
        name if name.starts_with("xattr.") && !name.starts_with("xattr.user.") => Ok(None),
        _ => Ok(Some(keyword.to_owned())),
    }
}

/// Parses the keywords of a line: each at most once, in a fixed order.
pub(super) fn fields(path: &[u8], keywords: &str, line: Range<usize>) -> Option<PortableEntry> {
    let mut rest = keywords.split(' ').peekable();
    let mut value = |name: &str| rest.next_if(|keyword| keyword.split('=').next() == Some(name))?.split_once('=');
    let kind = value("type")?.1;
    let mode = if kind == "link" { 0 } else { u32::from_str_radix(value("mode")?.1, 8).ok()? };
    let (seconds, nanoseconds) = value("time")?.1.split_once('.')?;
    let kind = match kind {
        "dir" => PortableKind::Directory,
        "file" => PortableKind::File {
            size: value("size")?.1.parse().ok()?,
            hash: digits(value("blake3digest")?.1)?.try_into().ok()?,
        },
        "link" => PortableKind::Symlink(CString::new(unescape(value("link")?.1)?).ok()?),
        _ => return None,
    };
    let mut xattrs = Vec::new();
    while let Some(keyword) = rest.next_if(|keyword| keyword.starts_with("xattr.user.")) {
        let (name, value) = keyword.strip_prefix("xattr.")?.split_once('=')?;
        xattrs.push((CString::new(unescape(name)?).ok()?, digits(value)?));
    }
    let _ = rest.next_if(|keyword| keyword.starts_with("hardlink="));
    let nanoseconds = nanoseconds.parse().ok().filter(|&nanoseconds: &u32| nanoseconds < 1_000_000_000)?;
    let is_whole = rest.next().is_none() && mode & !0o1777 == 0;
    let (path, seconds) = (path.to_vec(), seconds.parse().ok()?);
    is_whole.then_some(PortableEntry { path, kind, mode, seconds, nanoseconds, xattrs, line })
}

fn digits(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2);
    pairs
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok().filter(|pair| pair.len() == 2)?, 16).ok())
        .collect()
}

/// Checks that all names are valid, and that the parent is a directory listed before.
fn check_position(path: &[u8], entries: &[PortableEntry], above: &mut Vec<usize>) -> Result<(), &'static str> {
    let is_name =
        |name: &[u8]| !name.is_empty() && name != b"." && name != b".." && name.len() <= 255 && !name.contains(&0);
    if !order(path).all(is_name) {
        return Err("has a name that is not allowed");
    }
    let (parent, _) = split_name(path);
    while above.pop_if(|at| entries[*at].path != parent).is_some() {}
    if above.is_empty() { Err("is not in a directory of the template") } else { Ok(()) }
}

pub(super) fn position(entries: &[PortableEntry], path: &[u8]) -> Option<usize> {
    entries.binary_search_by(|entry| order(&entry.path).cmp(order(path))).ok()
}

/// Splits a path into its parent, empty for the root, and its name.
pub fn split_name(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|&byte| byte == b'/') {
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (&path[..0], path),
    }
}

pub(super) fn first_name(keywords: &str) -> Option<Vec<u8>> {
    let (_, first) = keywords.rsplit_once(" hardlink=")?;
    unescape(first.strip_prefix("./")?)
}

/// Returns whether two names may belong to one file: their facts are equal.
pub(super) fn is_same_file(first: &PortableEntry, other: &PortableEntry) -> bool {
    let said = |entry: &PortableEntry| (entry.kind.clone(), entry.mode, entry.seconds, entry.nanoseconds);
    matches!(first.kind, PortableKind::File { .. } | PortableKind::Symlink(_))
        && said(first) == said(other)
        && first.xattrs == other.xattrs
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "type=file mode=0644 time=1.000000000 size=0 blake3digest=";
    const ROOT: &str = ". type=dir mode=0755 time=1.000000000\n";

    fn parse(lines: &[&str]) -> Result<PortableTemplate, PortabilityObstacle> {
        PortableTemplate::parse(format!("{PORTABLE}{}", lines.concat()))
    }

    fn file(path: &str) -> String {
        format!("{path} {FILE}{}\n", "0".repeat(64))
    }

    #[test]
    fn what_belongs_to_the_machine_is_left_out() {
        let hash = "ab".repeat(32);
        let full = format!(
            "{HEAD}. type=dir mode=2755 uid=5 gid=6 time=-1.000000005 xattr.security.selinux=00\n\
             ./a type=file mode=0644 uid=5 gid=6 time=1.000000000 size=3 blake3digest={hash} xattr.user.x=01ff\n\
             ./b type=file mode=0644 uid=5 gid=6 time=1.000000000 size=3 blake3digest={hash} xattr.user.x=01ff hardlink=./a\n\
             ./c type=link uid=5 gid=6 time=1.000000000 link=../../out\n"
        );
        let portable = PortableTemplate::of_manifest(&full).unwrap();
        assert!(!portable.text.contains("uid") && !portable.text.contains("selinux"));
        let [root, a, b, c] = &portable.entries[..] else { panic!("{portable:?}") };
        assert_eq!((root.mode, root.seconds, root.nanoseconds), (0o755, -1, 5));
        assert_eq!((&a.kind, a.xattrs.len()), (&PortableKind::File { size: 3, hash: [0xab; 32] }, 1));
        assert_eq!(b.kind, PortableKind::HardLink(1));
        assert_eq!(c.kind, PortableKind::Symlink(c"../../out".into()));
        assert!(portable.text[b.line.clone()].starts_with("./b "));
        assert_eq!(portable.bytes(), 3);
    }

    #[test]
    fn what_would_change_who_may_do_what_does_not_travel() {
        for (keywords, what) in [
            ("type=file mode=4755 uid=0 gid=0 time=1.0", "set-user-ID"),
            ("type=dir mode=4755 uid=0 gid=0 time=1.0", "set-user-ID"),
            ("type=char mode=0644 uid=0 gid=0 time=1.0 device=native,1,3", "device"),
            ("type=file mode=0755 xattr.security.capability=00", "capabilities"),
            ("type=dir mode=0755 xattr.system.posix_acl_default=00", "access control list"),
        ] {
            let refused = PortableTemplate::of_manifest(&format!("{HEAD}{ROOT}./a {keywords}\n")).unwrap_err();
            assert!(refused.what.contains(what) && refused.path == b"a", "{refused:?}");
        }
    }

    #[test]
    fn no_entry_is_outside_of_the_root_or_behind_a_link() {
        assert_eq!(parse(&[ROOT, &file("./a")]).unwrap().entries.len(), 2);
        let link = "./a type=link time=1.000000000 link=/etc\n";
        for lines in [
            [ROOT, &file("./../a")],
            [ROOT, &file(".//etc/passwd")],
            [ROOT, &file("/etc/passwd")],
            [ROOT, &file("./a/./b")],
            [ROOT, &file("./a/b")],
            [ROOT, &file("./a\\000b")],
            [ROOT, ROOT],
            [ROOT, &file("./a").replace("0644", "4644")],
            [ROOT, &file("./a").replace("size=0", "size=-1")],
            [ROOT, &format!("{link}{}", file("./a/b"))],
            [ROOT, &format!("{}{}", file("./b"), file("./a"))],
            [ROOT, &format!("{}{}", file("./a"), file("./a"))],
            [ROOT, &format!("{} hardlink=./c\n", file("./a").trim_end())],
            [ROOT, &format!("{link}{} hardlink=./a\n", file("./b").trim_end())],
            ["", &file("./a")],
        ] {
            assert!(parse(&lines).is_err(), "{lines:?}");
        }
    }
}
