//! Every key of the configuration files, and who may have written them (docs/threat-model-repositories.md: what a hostile one can do).

use std::path::Path;

use crate::error::Result;
use crate::git::Git;

/// The file that a project keeps in its repository.
pub const SHARED: &str = ".calve.toml";
/// The file for one machine. What it sets holds instead of what the other one sets. It is the user's, unless git tracks it.
pub const LOCAL: &str = ".calve.local.toml";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Author {
    /// Anyone who can push to the repository: the file comes with a clone. Its `path` holds in and beside the repository alone, and `spares`, hooks
    /// and `create` are proposals, about which the user decides.
    Repository,
    User,
}

impl Author {
    /// Finds a file's author: the user, of [`LOCAL`] that git does not track, by its very name. A clone can bring any file along, in any spelling.
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

/// Every table that the files may have, with its keys. Code that reads more from them adds it here: other keys are mistakes.
pub(crate) const KEYS: [(&str, &[&str]); 5] = [
    ("worktree", &["path", "include", "exclude", "secrets", "spares", "env-file"]),
    ("hooks", &["post-add", "pre-remove"]),
    (DATABASE, &["standby"]),
    // Its keys are names that the project chooses.
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
