//! Every key of the configuration files, and the weight that it has, by who wrote the file.
//!
//! docs/threat-model.md says for each key what a hostile repository can do with it.

use std::path::Path;

use crate::config::LOCAL;
use crate::error::Result;
use crate::git::Git;

/// The author of a configuration file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Author {
    /// Anyone who can push to the repository: the file comes with a clone.
    Repository,
    /// The user of this machine.
    User,
}

impl Author {
    /// Finds the author of a file in the root of a worktree. The user's file is [`LOCAL`], unless git tracks it, or cannot say: a clone can bring
    /// a file of any name along. Where names are compared without regard to case, it can also bring it under another spelling.
    pub(crate) fn of(worktree: &Path, file: &str) -> Result<Author> {
        if file != LOCAL {
            return Ok(Author::Repository);
        }
        let git = Git::at(worktree).with("GIT_LITERAL_PATHSPECS", "0");
        let tracked = git.output(&["ls-files", "-z", "--", &format!(":(top,icase){file}")])?;
        let is_users = tracked.status.success() && tracked.stdout.is_empty();
        Ok(if is_users { Author::User } else { Author::Repository })
    }
}

/// The weight of a key in a file of the repository. In a file of the user's every key holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Say {
    Holds,
    /// It holds for places in and beside the repository.
    HoldsNearby,
    /// It is a proposal, and the user decides.
    Proposes,
}

/// Every table that the files may have, with its keys. Whoever reads more from them adds it here: what is not listed is a mistake.
pub(crate) const KEYS: [(&str, &[(&str, Say)]); 5] = [
    (
        "worktree",
        &[
            ("path", Say::HoldsNearby),
            ("include", Say::Holds),
            ("exclude", Say::Holds),
            ("secrets", Say::Holds),
            ("spares", Say::Proposes),
            ("env-file", Say::Holds),
        ],
    ),
    ("hooks", &[("post-add", Say::Proposes), ("pre-remove", Say::Proposes)]),
    (DATABASE, &[("standby", Say::Holds)]),
    // Its keys are names that the project chooses.
    ("ports", &[]),
    (
        SERVICE,
        &[
            ("template", Say::Holds),
            ("env", Say::Holds),
            ("engine", Say::Holds),
            ("create", Say::Proposes),
            ("inputs", Say::Holds),
        ],
    ),
];
pub(crate) const SERVICE: &str = "services.NAME";
pub(crate) const DATABASE: &str = "db.NAME";

/// Returns whether a key holds as it is written, because the user wrote it, or because anybody may write it.
pub(crate) fn holds(author: Author, table: &str, key: &str) -> bool {
    let say =
        KEYS.iter().find(|(name, _)| *name == table).and_then(|(_, keys)| keys.iter().find(|(name, _)| *name == key));
    author == Author::User || say.is_some_and(|(_, say)| *say == Say::Holds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_threat_model_answers_for_every_key() {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/threat-model.md");
        let Ok(text) = fs_err::read_to_string(page) else { return };
        for (table, keys) in KEYS {
            let named = if keys.is_empty() { &[("NAME", Say::Holds)] } else { keys };
            for (key, _) in named {
                let row = format!("| `[{table}] {key}` |");
                assert!(text.lines().any(|line| line.starts_with(&row)), "docs/threat-model.md has no row {row}");
            }
        }
    }

    #[test]
    fn a_repository_decides_nothing_that_leads_out_of_it_or_runs() {
        for (table, key) in [
            ("worktree", "path"),
            ("worktree", "spares"),
            ("hooks", "post-add"),
            ("hooks", "pre-remove"),
            (SERVICE, "create"),
        ] {
            assert!(!holds(Author::Repository, table, key), "[{table}] {key}");
            assert!(holds(Author::User, table, key), "[{table}] {key}");
        }
        assert!(holds(Author::Repository, "worktree", "exclude"));
    }
}
