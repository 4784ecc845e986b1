//! Where the data of a service comes from, or would.

use std::path::{Path, PathBuf};

use calve_db::{Home, Service, ServiceOrigin};
use calve_git::environment::WorktreeId;

#[derive(Debug)]
pub enum DataOrigin {
    Template {
        name: String,
        /// If not, it is made first.
        is_there: bool,
    },
    Worktree {
        /// None of data that was kept, of which the worktree is gone.
        path: Option<PathBuf>,
        server: String,
        runs: bool,
        /// Its data comes from a template that was replaced since.
        is_older: bool,
    },
}

impl DataOrigin {
    /// Describes the data of `source`, which one of `donated` has, or a template.
    pub(crate) fn new(home: &Home, source: &ServiceOrigin, donated: &[Service]) -> Self {
        let donor = donated.iter().find(|donor| source.is(donor));
        match (source, donor) {
            (ServiceOrigin::Template(name), _) => {
                let is_there = calve_db::service_template(home, name).is_ok();
                Self::Template { name: name.clone(), is_there }
            }
            (ServiceOrigin::Service(_), donor) => Self::Worktree {
                path: donor.and_then(|donor| {
                    WorktreeId::root(Path::new(&donor.worktree.entry), &donor.worktree.id).ok().flatten()
                }),
                server: donor.map(|donor| donor.name.clone()).unwrap_or_default(),
                runs: donor.is_some_and(|donor| donor.server(home).is_ok_and(|server| server.is_some())),
                is_older: donor.is_some_and(|donor| calve_db::has_newer_template(home, donor)),
            },
        }
    }
}
