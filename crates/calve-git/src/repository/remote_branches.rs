//! Remotes' branches as they were last fetched, found by refspecs, as git finds them.

use crate::repository::opened::Repository;
use crate::repository::references::Refspec;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RemoteBranch<'r> {
    pub(crate) remote: &'r str,
    pub(crate) branch: &'r str,
    /// Its name here: `origin/x`.
    pub(crate) name: &'r str,
    pub(crate) oid: &'r str,
    /// A refspec keeps it up to date, so that a local branch can follow it.
    pub(crate) is_followed: bool,
}

const TRACKING: &str = "refs/remotes/";

impl Repository {
    pub(crate) fn remotes(&self) -> Vec<&str> {
        let mut names: Vec<&str> =
            self.settings_below("remote.").filter_map(|(key, _)| key.strip_suffix(".url")).collect();
        names.sort_unstable();
        names
    }

    pub(crate) fn refspecs_of<'r>(&'r self, remote: &'r str) -> impl Iterator<Item = &'r Refspec> {
        self.refspecs.iter().filter(move |(of, _)| of == remote).map(|(_, refspec)| refspec)
    }

    /// Returns whether a fetch from the remote brings the branch, if the remote has it.
    pub(crate) fn follows(&self, remote: &str, branch: &str) -> bool {
        let reference = format!("refs/heads/{branch}");
        self.refspecs_of(remote).any(|refspec| refspec.destination_of(&reference).is_some())
    }

    pub(crate) fn remotes_with<'r>(&'r self, branch: &'r str) -> Vec<RemoteBranch<'r>> {
        self.remotes().into_iter().filter_map(|remote| self.branch_at(remote, branch)).collect()
    }

    fn branch_at<'r>(&'r self, remote: &'r str, branch: &'r str) -> Option<RemoteBranch<'r>> {
        let found = |reference: &str| {
            let found = self.references.all().find(|known| known.name == reference)?;
            Some((found.oid, found.name.strip_prefix(TRACKING)?))
        };
        let source = format!("refs/heads/{branch}");
        let followed = self.refspecs_of(remote).find_map(|refspec| found(&refspec.destination_of(&source)?));
        // Fetched once, to the place where people expect it.
        let (oid, name) = followed.or_else(|| found(&format!("{TRACKING}{remote}/{branch}")))?;
        Some(RemoteBranch { remote, branch, name, oid, is_followed: followed.is_some() })
    }

    /// Returns the remote branch with this name here, such as `origin/x`. `origin/HEAD` is no branch.
    pub(crate) fn remote_branch<'r>(&'r self, name: &'r str) -> Option<RemoteBranch<'r>> {
        let oid = self.object_of(TRACKING, name)?;
        let of_remote = |remote: &'r str| {
            let reference = format!("{TRACKING}{name}");
            let source = self.refspecs_of(remote).find_map(|refspec| refspec.source_of(&reference));
            let followed = source.as_deref().and_then(|source| source.strip_prefix("refs/heads/"));
            let is_followed = followed.is_some_and(|branch| name.ends_with(branch));
            let branch = match followed.filter(|_| is_followed) {
                Some(branch) => &name[name.len() - branch.len()..],
                None => name.strip_prefix(remote)?.strip_prefix('/')?,
            };
            (branch != "HEAD").then_some(RemoteBranch { remote, branch, name, oid, is_followed })
        };
        let found = self.remotes().into_iter().filter_map(of_remote);
        found.max_by_key(|found| (found.is_followed, found.remote.len()))
    }
}
