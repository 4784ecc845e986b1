//! The next step of the program's user, in words: one file for each library, whose remedies are names.

#[cfg(unix)]
pub(crate) mod bench;
pub(crate) mod core;
#[cfg(unix)]
pub(crate) mod db;
#[cfg(unix)]
pub(crate) mod git;
#[cfg(unix)]
pub(crate) mod oci;
pub(crate) mod unsaved;
#[cfg(unix)]
pub(crate) mod volume;

use std::path::Path;

use calve_core::ShownPath;

/// Returns a path as a word of a shell's command line, which can be copied into it as it stands.
pub(crate) fn word(path: &Path) -> String {
    let shown = ShownPath(path).to_string();
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+,:@%\\".contains(c);
    // On Windows a quoted path is the same in every shell that has one.
    let quote = if cfg!(windows) { '"' } else { '\'' };
    let dashed = if shown.starts_with('-') { format!("./{shown}") } else { shown };
    match dashed.chars().all(|c| is_plain(c) && (c != '\\' || cfg!(windows))) {
        true if !dashed.is_empty() => dashed,
        _ => format!("{quote}{}{quote}", dashed.replace('\'', r"'\''")),
    }
}

#[cfg(all(test, not(windows)))]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_word_of_a_shell() {
        let words = ["a/b.c", "a b", "it's", "-x", "$HOME"].map(|path| word(Path::new(path)));
        assert_eq!(words, ["a/b.c", "'a b'", r"'it'\''s'", "./-x", "'$HOME'"]);
    }
}
