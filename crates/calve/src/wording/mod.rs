//! Messages that name the program's commands: the libraries' remedies, and reports.

pub(crate) mod clone;
pub(crate) mod core;
pub(crate) mod db;
pub(crate) mod fitting;
pub(crate) mod git;
pub(crate) mod oci;
pub(crate) mod system;
pub(crate) mod unsaved;
pub(crate) mod volume;

use std::path::Path;

pub(crate) use calve_core::internal::word;
use calve_oci::{Reference, Transport};

const LARGER_HOME: &str = "free some space, or set CALVE_HOME to a directory on a larger file system";

/// Returns whether another CALVE_HOME would move `path`. A path inside a volume would not move.
fn is_below_home(path: &Path) -> bool {
    crate::home::directory().is_ok_and(|home| path.starts_with(&home) && !path.starts_with(home.join("volumes")))
}

/// Returns a library's words with the program's own for a part of them.
fn reworded(remedy: &impl ToString, part: &str, own: &str) -> String {
    let words = remedy.to_string();
    debug_assert!(words.contains(part), "`{words}` does not say `{part}`");
    words.replacen(part, own, 1)
}

/// Tells how to repair a template that was pulled from `origin`.
pub(crate) fn pull_again(command: &str, name: &str, origin: &str) -> String {
    let is_here = Reference::parse(origin, Transport::PlainHttp).is_ok();
    let plain = if is_here { "--plain-http " } else { "" };
    format!("pull it again: {command} {plain}--name {name} {origin}")
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    use std::process::Command;

    use super::*;

    #[test]
    fn a_path_is_one_word_of_a_shell() {
        let words = ["a/b.c", "a b", "it's", "-x", "$HOME"].map(|path| word(Path::new(path)));
        assert_eq!(words, ["a/b.c", "'a b'", r"'it'\''s'", "./-x", "'$HOME'"]);
        let strange: [&[u8]; 5] = [b"a\nb", b"it's\x1b[1m 7\\", "\u{85}ä".as_bytes(), b"\xff7 x", b"-\t"];
        for name in strange {
            let word = word(Path::new(OsStr::from_bytes(name)));
            let printed = Command::new("bash").args(["-c", &format!("printf %s {word}")]).output().unwrap().stdout;
            let name = if name.starts_with(b"-") { &[b"./", name].concat() } else { name };
            assert!(word.starts_with("$'") && printed == name, "{word}");
        }
    }
}
