//! The repositories named at the server's start, and their worktrees. A client reaches nothing else.

use std::path::{Path, PathBuf};

use calve_core::internal::ShownPath;
use calve_git::escape::worktrees_of;
use calve_git::hooks::repository_of;

use super::arguments::Arguments;
use super::documents::Problem;
use super::error::ServeError;

#[derive(Debug)]
pub(super) struct Repositories(Vec<ServedRepository>);

#[derive(Debug)]
struct ServedRepository {
    /// Canonical path of the named directory.
    path: PathBuf,
    /// The repository's own directory, in case a worktree at `path` is removed.
    own: Option<PathBuf>,
}

impl ServedRepository {
    fn present(&self) -> &Path {
        self.own.as_deref().filter(|_| !self.path.is_dir()).unwrap_or(&self.path)
    }
}

impl Repositories {
    pub(super) fn named(paths: &[PathBuf]) -> Result<Self, ServeError> {
        let one = |path: &PathBuf| {
            let real = fs_err::canonicalize(path);
            let real = real.and_then(|real| fs_err::read_dir(&real).map(|_| real));
            let path = real.map_err(|error| ServeError::NoDirectory { path: path.clone(), error })?;
            let main = worktrees_of(&path).ok().and_then(|worktrees| worktrees.main);
            let own = main.or_else(|| repository_of(&path).ok());
            Ok(ServedRepository { path, own })
        };
        paths.iter().map(one).collect::<Result<_, _>>().map(Self)
    }

    pub(super) async fn chosen(&self, arguments: &Arguments) -> Result<PathBuf, Problem> {
        match (arguments.text("repository"), &self.0[..]) {
            (None, [only]) => Ok(only.present().to_path_buf()),
            (None, _) => Err(Problem::new("several repositories are served", self.hint())),
            (Some(name), all) => {
                let by_path = all.iter().find(|one| one.path == Path::new(name));
                let mut named = all.iter().filter(|one| one.path.file_name() == Some(name.as_ref()));
                let by_name = named.next().filter(|_| named.next().is_none());
                by_path.or(by_name).map(|one| one.present().to_path_buf()).ok_or_else(|| {
                    Problem::new(format!("the repository `{}` is not served", ShownPath(name)), self.hint())
                })
            }
        }
    }

    fn hint(&self) -> String {
        let names: Vec<String> = self.0.iter().map(|one| format!("`{}`", ShownPath(&one.path))).collect();
        format!("name one of these as `repository`: {}", names.join(", "))
    }
}

/// Returns the path of the worktree with this branch, path or name, in this repository only.
pub(super) fn worktree(repository: &Path, name: &str) -> Result<PathBuf, Problem> {
    let hint = "list_worktrees has the names of all";
    let problem = |error: calve_git::Error| Problem::new(error.to_string(), hint);
    let (_, mut found) = calve_git::worktree::find_all(repository, &[PathBuf::from(name)]).map_err(problem)?;
    found.pop().ok_or_else(|| Problem::new("no worktree was named", hint))?.map_err(problem)
}
