//! The next step of the program's user, in words: one file for each library, whose remedies are names.

pub(crate) mod bench;
pub(crate) mod core;
pub(crate) mod db;
pub(crate) mod fitting;
pub(crate) mod git;
pub(crate) mod oci;
pub(crate) mod unsaved;
pub(crate) mod volume;

use std::path::Path;

use calve_core::ShownPath;

/// Returns a path as a word of a shell's command line, which can be copied into it as it stands.
pub(crate) fn word(path: &Path) -> String {
    let shown = ShownPath(path).to_string();
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+,:@%".contains(c);
    let dashed = if shown.starts_with('-') { format!("./{shown}") } else { shown };
    match dashed.chars().all(is_plain) {
        true if !dashed.is_empty() => dashed,
        _ => format!("'{}'", dashed.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_word_of_a_shell() {
        let words = ["a/b.c", "a b", "it's", "-x", "$HOME"].map(|path| word(Path::new(path)));
        assert_eq!(words, ["a/b.c", "'a b'", r"'it'\''s'", "./-x", "'$HOME'"]);
    }
}
