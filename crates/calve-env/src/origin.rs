use std::path::{Path, PathBuf};

use calve_db::{Home, Service};
use calve_git::environment::WorktreeId;

#[derive(Debug)]
pub enum DataOrigin {
    Template {
        name: String,
        /// If false, it is made first.
        is_there: bool,
        /// The worktree whose data was preferred, and the data there that does not fit. `None` if the template was.
        passed_over: Option<(PathBuf, Option<Box<Service>>)>,
    },
    Worktree {
        /// `None` for kept data whose worktree is gone.
        path: Option<PathBuf>,
        server: String,
        runs: bool,
        /// Its template has been replaced since.
        is_older: bool,
    },
}

impl DataOrigin {
    /// Describes the data of `donor`, or else of a template, although a worktree was preferred (with its data, if any).
    pub(crate) fn new(
        home: &Home,
        donor: Option<&Service>,
        template: &str,
        preferred: Option<(&Path, Option<&Service>)>,
    ) -> Self {
        let Some(donor) = donor else {
            let is_there = calve_db::service_template(home, template).is_ok();
            let passed_over = preferred.map(|(root, other)| (root.to_path_buf(), other.cloned().map(Box::new)));
            return Self::Template { name: template.to_owned(), is_there, passed_over };
        };
        Self::Worktree {
            path: WorktreeId::root(Path::new(&donor.worktree.entry), &donor.worktree.id).ok().flatten(),
            server: donor.name.clone(),
            runs: donor.server(home).is_ok_and(|server| server.is_some()),
            is_older: calve_db::has_newer_template(home, donor),
        }
    }
}
