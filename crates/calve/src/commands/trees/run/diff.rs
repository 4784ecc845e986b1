//! Prints the changes of `calve run` as a unified diff in git's format, for `git apply` and `patch -p1`.

use std::path::Path;
use std::time::Duration;

use calve_core::internal::EntryKind;
use calve_core::overlay_run::Version;
use similar::TextDiff;

use super::copy::PrivateCopy;
use crate::failure::Failure;
use crate::sys;

/// A longer file, or one with a zero byte, is only named, in a way that makes `git apply` refuse the whole diff.
const LONGEST_TEXT: u64 = 16 << 20;

/// After this time a diff need not be minimal.
const SEARCH: Duration = Duration::from_secs(2);

pub(super) fn print(copy: &PrivateCopy, write: impl Fn(&[u8]) -> Result<(), Failure>) -> Result<(), Failure> {
    for change in copy.changes.iter() {
        let [before, after] = copy.overlay.versions(change, LONGEST_TEXT)?;
        let path = &change.path;
        let (before, after) = (DiffSide::new(change.before, before), DiffSide::new(change.after, after));
        let mut text = Vec::new();
        match (&before, &after) {
            // Like git: delete the one, then create the other.
            (Some(old), Some(new)) if old.is_link() != new.is_link() => {
                file_diff(&mut text, path, before.as_ref(), None);
                file_diff(&mut text, path, None, after.as_ref());
            }
            _ => file_diff(&mut text, path, before.as_ref(), after.as_ref()),
        }
        write(&text)?;
    }
    Ok(())
}

struct DiffSide {
    /// In git's form.
    mode: &'static str,
    /// `None` if too long.
    contents: Option<Vec<u8>>,
}

const LINK: &str = "120000";

impl DiffSide {
    fn new(kind: Option<EntryKind>, version: Option<Version>) -> Option<Self> {
        let Version { is_executable, contents } = version?;
        let mode = match kind {
            Some(EntryKind::Symlink) => LINK,
            _ if is_executable => "100755",
            _ => "100644",
        };
        Some(Self { mode, contents })
    }

    fn is_link(&self) -> bool {
        self.mode == LINK
    }
}

fn file_diff(out: &mut Vec<u8>, path: &Path, before: Option<&DiffSide>, after: Option<&DiffSide>) {
    let (a, b) = (name("a/", path), name("b/", path));
    let contents = |side: Option<&DiffSide>| side.map_or(Some(Vec::new()), |side| side.contents.clone());
    let [old, new] = [before, after].map(contents);
    let is_same = old.is_some() && old == new;
    let is_text = [&old, &new].iter().all(|contents| contents.as_ref().is_some_and(|contents| !contents.contains(&0)));
    let header = match (before, after) {
        (None, None) => return,
        (None, Some(new)) => format!("new file mode {}\n", new.mode),
        (Some(old), None) => format!("deleted file mode {}\n", old.mode),
        (Some(old), Some(new)) if old.mode != new.mode => format!("old mode {}\nnew mode {}\n", old.mode, new.mode),
        // A diff cannot express the change, such as another owner.
        (Some(_), Some(_)) if is_same => return,
        // Otherwise `patch` takes a symlink for a file, and git skips binary files but applies the rest.
        (Some(_), Some(new)) if new.is_link() || !is_text => format!("old mode {0}\nnew mode {0}\n", new.mode),
        _ => String::new(),
    };
    out.extend([b"diff --git ", &*a, b" ", &*b, b"\n", header.as_bytes()].concat());
    let (a, b) = (before.map_or(NOWHERE, |_| &*a), after.map_or(NOWHERE, |_| &*b));
    match (old, new) {
        _ if is_same => {}
        (Some(old), Some(new)) if is_text => hunks(out, [a, b], &old, &new),
        _ => out.extend([b"Binary files ", a, b" and ", b, b" differ\n"].concat()),
    }
}

const NOWHERE: &[u8] = b"/dev/null";

fn hunks(out: &mut Vec<u8>, names: [&[u8]; 2], old: &[u8], new: &[u8]) {
    let [old, new] = [old, new].map(|text| text.split_inclusive(|&byte| byte == b'\n').collect::<Vec<_>>());
    let diff = TextDiff::configure().timeout(SEARCH).diff_slices(&old, &new);
    for (index, hunk) in diff.unified_diff().iter_hunks().enumerate() {
        if index == 0 {
            // A tab ends a name that contains a space.
            let end = |name: &[u8]| if name.contains(&b' ') { &b"\t\n"[..] } else { b"\n" };
            out.extend([b"--- ", names[0], end(names[0]), b"+++ ", names[1], end(names[1])].concat());
        }
        out.extend(format!("{}\n", hunk.header()).into_bytes());
        for line in hunk.iter_changes() {
            out.extend(line.tag().to_string().bytes());
            out.extend(line.value());
            if !line.value().ends_with(b"\n") {
                out.extend(b"\n\\ No newline at end of file\n");
            }
        }
    }
}

/// Quotes a name like git if it has control characters, quotes or backslashes.
fn name(prefix: &str, path: &Path) -> Vec<u8> {
    let bytes = [prefix.as_bytes(), sys::path_bytes(path)].concat();
    if !bytes.iter().any(|byte| byte.is_ascii_control() || b"\"\\".contains(byte)) {
        return bytes;
    }
    let mut quoted = vec![b'"'];
    for byte in bytes {
        match byte {
            b'"' | b'\\' => quoted.extend([b'\\', byte]),
            byte if byte.is_ascii_control() => quoted.extend(format!("\\{byte:03o}").bytes()),
            byte => quoted.push(byte),
        }
    }
    quoted.push(b'"');
    quoted
}
