use std::collections::HashSet;

use crate::error::Result;
use crate::git::Git;

/// All references of a repository at one time, and those of the worktree that git was asked in.
#[derive(Debug, Clone)]
pub(crate) struct References {
    /// Lines of an object, a name and, for a symbolic reference, its target.
    listed: String,
}

pub(crate) struct Reference<'l> {
    pub(crate) oid: &'l str,
    pub(crate) name: &'l str,
    leads_to: &'l str,
}

impl Reference<'_> {
    /// Returns whether it belongs to the worktree that git was asked in (gitrepository-layout(5)).
    pub(crate) fn is_of_one_worktree(&self) -> bool {
        ["refs/bisect/", "refs/worktree/", "refs/rewritten/"].iter().any(|prefix| self.name.starts_with(prefix))
    }
}

impl References {
    pub(crate) fn list(git: &Git) -> Result<References> {
        let listed = git.run(&["for-each-ref", "--format=%(objectname) %(refname) %(symref)"])?;
        Ok(References { listed: String::from_utf8_lossy(&listed).into_owned() })
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = Reference<'_>> {
        self.listed.lines().filter_map(|line| {
            let mut words = line.splitn(3, ' ');
            Some(Reference { oid: words.next()?, name: words.next()?, leads_to: words.next()? })
        })
    }

    /// Returns the full names of a branch: its own, and symbolic references that would dangle without it.
    pub(crate) fn names_of(&self, branch: &str) -> HashSet<String> {
        let own = format!("refs/heads/{branch}");
        let others = self.all().filter(|one| one.leads_to == own).map(|one| one.name.to_owned());
        let mut names: HashSet<String> = others.collect();
        names.insert(own);
        names
    }
}
