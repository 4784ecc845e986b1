//! Scripts in `bin` directories that name another tree, mostly as their interpreter.

use std::os::unix::ffi::OsStrExt as _;

use crate::escape::detectors::Detector;
use crate::escape::detectors::texts::{is_activate, is_script_folder};
use crate::escape::entry::{EntryName, WalkEntry, read};
use crate::escape::report::{PendingFinding, ReferenceKind};
use crate::escape::trees::{Language, Mention, Trees};

pub(super) struct Shebang;

/// Launchers and shims are small.
const SCRIPT_BYTES: u64 = 64 * 1024;

/// The kernel reads 256 bytes (Linux 5.1; 128 before that), of which the last one ends the line.
const LINE_BYTES: usize = 127;

impl Detector for Shebang {
    fn wants(&self, entry: &EntryName<'_>) -> bool {
        entry.is_file() && is_script_folder(entry) && !is_activate(entry)
    }

    fn look(&self, entry: &WalkEntry<'_>, trees: &Trees, found: &mut Vec<PendingFinding>) {
        let Ok(name) = std::ffi::CString::new(entry.name()) else { return };
        let Some(script) = read(entry.directory(), name.as_c_str(), SCRIPT_BYTES) else { return };
        if !script.starts_with(b"#!") {
            return;
        }
        let Some(named) = trees.named(&script, Language::Shell) else { return };
        let Mention { names, moved } = named;
        let named = Mention { names, moved: moved.and_then(runnable) };
        found.push(PendingFinding::text(ReferenceKind::Shebang, entry.path(), named));
    }
}

/// Returns a script whose first line the kernel takes whole. A longer line of Python's goes by way of the shell, as pip writes it. `None`
/// if neither is possible.
fn runnable(script: Vec<u8>) -> Option<Vec<u8>> {
    let end = script.iter().position(|&byte| byte == b'\n').unwrap_or(script.len());
    if end <= LINE_BYTES {
        return Some(script);
    }
    let interpreter = script[2..end].trim_ascii();
    let name = std::path::Path::new(std::ffi::OsStr::from_bytes(interpreter)).file_name()?;
    if !name.as_bytes().starts_with(b"python") || interpreter.contains(&b' ') {
        return None;
    }
    let mut longer = b"#!/bin/sh\n'''exec' \"".to_vec();
    longer.extend_from_slice(interpreter);
    longer.extend_from_slice(b"\" \"$0\" \"$@\"\n' '''");
    longer.extend_from_slice(&script[end..]);
    Some(longer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_the_kernel_would_cut_goes_by_way_of_the_shell() {
        let short = b"#!/a/bin/python3\nimport sys\n".to_vec();
        assert_eq!(runnable(short.clone()), Some(short));
        let long = format!("/{}/bin/python3", "x".repeat(150));
        let script = runnable(format!("#!{long}\nprint(1)\n").into_bytes()).unwrap();
        let script = String::from_utf8(script).unwrap();
        assert_eq!(script, format!("#!/bin/sh\n'''exec' \"{long}\" \"$0\" \"$@\"\n' '''\nprint(1)\n"));
        assert_eq!(runnable(format!("#!/{}/bin/ruby\n", "x".repeat(150)).into_bytes()), None);
    }
}
