//! The keys of the configuration files, and the files' authors (docs/threat-model-repositories.md: hostile ones).

use std::path::Path;

use crate::error::Result;
use crate::git::Git;

/// The project's file, kept in its repository.
pub const SHARED: &str = ".calve.toml";
/// One machine's file, which overrides [`SHARED`]. It is the user's, unless git tracks it.
pub const LOCAL: &str = ".calve.local.toml";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Author {
    /// Anyone who can push to the repository: the file comes with a clone. Its `path` is confined to the repository and
    /// beside it; `spares`, hooks and `create` are proposals, about which the user decides.
    Repository,
    User,
}

impl Author {
    /// Returns the user only for an untracked file named [`LOCAL`]: a clone can bring any file, in any spelling.
    pub(crate) fn find(worktree: &Path, file: &str) -> Result<Author> {
        if file != LOCAL {
            return Ok(Author::Repository);
        }
        let git = Git::at(worktree).with("GIT_LITERAL_PATHSPECS", "0");
        let tracked = git.output(&["ls-files", "-z", "--", &format!(":(top,icase){file}")])?;
        let is_users = tracked.status.success() && tracked.stdout.is_empty();
        Ok(if is_users { Author::User } else { Author::Repository })
    }
}

/// Every table and its keys. Code that reads another key adds it here: keys not listed are mistakes.
pub(crate) const KEYS: [(&str, &[&str]); 5] = [
    ("worktree", &["path", "include", "exclude", "secrets", "spares", "env-file"]),
    ("hooks", &["post-add", "pre-remove"]),
    (DATABASE, &["standby"]),
    // The project chooses the keys.
    ("ports", &[]),
    (SERVICE, &["template", "env", "engine", "create", "inputs"]),
];

pub(crate) const SERVICE: &str = "services.NAME";
pub(crate) const DATABASE: &str = "db.NAME";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_threat_model_answers_for_every_key() {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/threat-model-repositories.md");
        let Ok(text) = fs_err::read_to_string(page) else { return };
        for (table, keys) in KEYS {
            for key in if keys.is_empty() { &["NAME"] } else { keys } {
                let row = format!("| `[{table}] {key}` |");
                assert!(text.lines().any(|line| line.starts_with(&row)), "the threat model has no row {row}");
            }
        }
    }
}
