use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};

use crate::error::{Error, Result};
use crate::paths::plain;
use crate::place::Place;
use crate::remedy::Remedy;
use crate::repository::Repository;

const TEMPLATE: &str = "../{repo}.{branch}";
/// For a repository in a project's `.bare`: next to the other worktrees.
const BESIDE: &str = "../{branch}";
/// Directories in which programs look up packages by name.
const PACKAGES: [&str; 7] = ["node_modules", "bower_components", "vendor", ".venv", "venv", "site-packages", ".tox"];

const PACKAGES_FAULT: &str = "is where programs look for packages";

/// The path of new worktrees, with `{repo}` and `{branch}` in it; relative to the main worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PathTemplate {
    pub(crate) text: String,
    /// File, line and column if the repository says so; `None` if the user does.
    pub(crate) said_by_repository: Option<String>,
}

impl PathTemplate {
    pub(crate) fn usual(repository: &Repository) -> PathTemplate {
        let text = if repository.is_hidden() { BESIDE } else { TEMPLATE };
        PathTemplate { text: text.to_owned(), said_by_repository: None }
    }

    /// Returns the place of a branch's worktree, with slashes as dashes. Refuses one that the repository may not name.
    pub(crate) fn place(&self, repository: &Repository, branch: &str) -> Result<Place> {
        // A directory's name need not be text.
        let parts = self.text.split("{repo}").map(|part| part.replace("{branch}", &branch.replace('/', "-")).into());
        let text = parts.collect::<Vec<OsString>>().join(&*repository.name());
        let main = repository.worktrees.first();
        // Without one, the repository is a bare one in a project's hidden folder.
        let base = main.map_or(repository.common.as_path(), |main| main.path.as_path());
        let Some(position) = &self.said_by_repository else { return Ok(Place::Anywhere(plain(&base.join(text)))) };
        let is_in_git = main.is_none_or(|main| main.is_bare);
        // The template is checked, not the branch: in the main worktree, a branch may have any name.
        let place = match Path::new(&self.text).iter().any(has_packages) {
            true => Err(PACKAGES_FAULT),
            false => nearby(base, &text, is_in_git),
        };
        place.map_err(|fault| {
            let text = calve_core::internal::ShownPath(&text);
            let reason =
                format!("{position}: `{text}` {fault}, and a file of the repository may not name such a place");
            Error::refused(reason, Remedy::NamePlaceInLocalConfig)
        })
    }
}

fn has_packages(name: &OsStr) -> bool {
    PACKAGES.iter().any(|known| name.eq_ignore_ascii_case(known))
}

fn nearby(base: &Path, text: &OsStr, is_in_git: bool) -> std::result::Result<Place, &'static str> {
    let mut components = Path::new(text).components().filter(|part| *part != Component::CurDir).peekable();
    let is_beside = components.next_if_eq(&Component::ParentDir).is_some();
    let mut below = PathBuf::new();
    for part in components {
        match part {
            Component::Normal(name) => below.push(name),
            Component::ParentDir if below.as_os_str().is_empty() => {
                return Err("is above the repository's surroundings");
            }
            Component::ParentDir => return Err("has `..` after a name"),
            _ => return Err("is absolute"),
        }
    }
    let has = |is_wanted: fn(&OsStr) -> bool| below.iter().any(is_wanted);
    match is_beside {
        _ if below.as_os_str().is_empty() => Err("names no directory"),
        true if has(|name| name.as_encoded_bytes().starts_with(b".")) => Err("has a hidden name"),
        true if has(has_packages) => Err(PACKAGES_FAULT),
        false if is_in_git || has(may_be_git) => Err("is among git's own files"),
        true => Ok(Place::Below { root: base.parent().ok_or("is outside of `/`")?.to_path_buf(), below }),
        false => Ok(Place::Below { root: base.to_path_buf(), below }),
    }
}

/// Returns whether a file system may take the name for `.git`, ignoring case or invisible characters (core.protectHFS).
fn may_be_git(name: &OsStr) -> bool {
    let seen: String = name.to_string_lossy().chars().filter(char::is_ascii).collect();
    seen.eq_ignore_ascii_case(".git")
}

/// Allows only `{repo}` and `{branch}` in braces. Without `{branch}`, every worktree would get the same place.
pub(crate) fn check_template(template: &str) -> std::result::Result<(), String> {
    if !template.contains("{branch}") {
        return Err("`path` needs `{branch}` in it: each worktree gets a place of its own".into());
    }
    let rest = template.replace("{branch}", "").replace("{repo}", "");
    if rest.contains(['{', '}']) {
        return Err("`path` may have `{repo}` and `{branch}` in braces, and nothing else".into());
    }
    if rest.contains(|c: char| c.is_control()) {
        return Err("`path` has a control character in it".into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_names_places_in_it_and_beside_it_only() {
        let place = |text: &str, is_in_git| nearby(Path::new("/me/proj"), OsStr::new(text), is_in_git);
        for (text, root, below) in [
            ("../proj.x", "/me", "proj.x"),
            ("./../wt/./x", "/me", "wt/x"),
            (".worktrees/x", "/me/proj", ".worktrees/x"),
        ] {
            assert_eq!(place(text, false), Ok(Place::Below { root: root.into(), below: below.into() }), "{text}");
        }
        for (text, fault) in [
            ("/tmp/x", "absolute"),
            ("../../x", "above"),
            ("../x/../.config/git", "after a name"),
            ("x/../../.config/systemd", "after a name"),
            ("wt/x/../y", "after a name"),
            ("../x/..", "after a name"),
            ("..", "names no"),
            ("./", "names no"),
            ("../.config/x", "hidden"),
            ("../node_modules", "look for packages"),
            ("../venv/x", "look for packages"),
            ("../.x", "hidden"),
            ("../other/.git/hooks", "hidden"),
            ("../...", "hidden"),
            (".git/hooks", "git's own"),
            (".GIT/x", "git's own"),
            (".g\u{200c}it/x", "git's own"),
            ("sub/.git/x", "git's own"),
        ] {
            assert!(place(text, false).unwrap_err().contains(fault), "{text}");
        }
        // Relative to a bare repository, that is among its references and hooks.
        assert!(place("hooks", true).unwrap_err().contains("git's own"));
        assert!(place("../x", true).is_ok());
        for (text, expected) in [
            ("../node_modules/{branch}", true),
            ("sub/Node_Modules/{branch}", true),
            (".venv/lib/{branch}", true),
            (".worktrees/{branch}", false),
            ("target/worktrees/{branch}", false),
        ] {
            assert_eq!(Path::new(text).iter().any(has_packages), expected, "{text}");
        }
    }
}
