//! Where a new worktree goes, and what git calls it.

use std::path::{Path, PathBuf};

use crate::config::Config;
use crate::error::{Error, Result};
use crate::paths::plain;
use crate::remedy::Remedy;
use crate::repository::Repository;

const TEMPLATE: &str = "../{repo}.{branch}";
/// In a project's directory with the repository in `.bare`, next to the other worktrees.
const BESIDE: &str = "../{branch}";

/// Returns the place that the configuration gives a branch. Slashes in its name become dashes.
pub(crate) fn of_branch(repository: &Repository, config: &Config, branch: &str) -> PathBuf {
    let template = config.path.as_deref().unwrap_or(if repository.is_hidden() { BESIDE } else { TEMPLATE });
    let path = template.replace("{repo}", &repository.name()).replace("{branch}", &branch.replace('/', "-"));
    let base = match repository.worktrees.first() {
        // A bare repository that is the hidden folder of a project.
        Some(main) => main.path.clone(),
        None => repository.common.clone(),
    };
    plain(&base.join(path))
}

/// Returns the absolute form of a place whose parent exists: git compares worktrees by their paths.
pub(crate) fn absolute(path: &Path) -> Result<PathBuf> {
    let named = || {
        let reason = format!("`{}` is not a name that a worktree can have", calve_core::ShownPath(path));
        Error::refused(reason, Remedy::GiveNewPath)
    };
    let name = path.file_name().ok_or_else(named)?;
    if name.as_encoded_bytes().iter().any(|&byte| byte == b'\n' || byte == b'\r') {
        // git keeps paths in files of one line.
        return Err(named());
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Ok(fs_err::canonicalize(parent)?.join(name))
}

/// Returns the name of the directory in which git keeps a worktree's own files, made the way git makes it: a character that a reference may
/// not have becomes a dash.
pub(crate) fn identifier(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut id: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' }).collect();
    while id.contains("..") {
        id = id.replace("..", ".-");
    }
    if id.starts_with('.') {
        id.replace_range(..1, "-");
    }
    if id.ends_with(".lock") || id.ends_with('.') {
        id.push('-');
    }
    if id.is_empty() { "worktree".to_owned() } else { id }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_names_of_references() {
        for (path, id) in [
            ("/a/b.x", "b.x"),
            ("/a/.hidden", "-hidden"),
            ("/a/x y\u{e9}", "x-y-"),
            ("/a/..", "worktree"),
            ("/a/q.lock", "q.lock-"),
        ] {
            assert_eq!(identifier(Path::new(path)), id);
        }
    }

    #[test]
    fn dots_are_resolved_by_name() {
        assert_eq!(plain(Path::new("/a/b/../c/./d")), Path::new("/a/c/d"));
        assert_eq!(plain(Path::new("/../x")), Path::new("/x"));
    }
}
