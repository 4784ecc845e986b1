//! Carries what git ignores into a worktree that something else has made, by git alone.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use calve_core::{Unreadable, clone_tree};

use crate::error::{Error, Result};
use crate::escape::{self, AuditOptions, AuditReport, Fix, Moved};
use crate::git::Git;
use crate::remedy::Remedy;
use crate::worktree::add::ignored::{LeftEntry, LeftReason};
use crate::worktree::add::survey::{AddRequest, no_donor, rules_below, survey};
use crate::worktree::add::{AddOptions, take_skipped};
use crate::worktree::repository::Repository;
use crate::worktree::tracked::index::Index;

/// A worktree that has now what git ignores.
#[derive(Debug)]
#[non_exhaustive]
pub struct FillReport {
    /// Its root.
    pub path: PathBuf,
    /// The worktree that the files came from.
    pub donor: PathBuf,
    /// It is a pull request's, or the donor is, and not trusted.
    pub is_untrusted: bool,
    /// What was carried.
    pub carried: Vec<PathBuf>,
    /// What was not, and why.
    pub left: Vec<LeftEntry>,
    /// What pointed back into the donor.
    pub audit: AuditReport,
}

/// Carries what git ignores from `options.from`, by default the main worktree, into the worktree that `options.start` is in. What is there
/// already stays as it is.
pub fn fill(options: &AddOptions) -> Result<FillReport> {
    let repository = Repository::open(&options.start)?;
    let here = repository.here.clone().ok_or_else(no_donor)?;
    let main = || repository.main().map(Path::to_path_buf);
    let donor = options.from.clone().or_else(main).ok_or_else(no_donor)?;
    let git = Git::at(&here);
    let head = git.line(&["rev-parse", "--verify", "HEAD^{commit}"])?.to_string_lossy().into_owned();
    let wanted = AddOptions {
        branch: head.clone(),
        is_detached: true,
        from: Some(donor),
        // A place where nothing is.
        path: Some(here.join(".git/fill")),
        ..options.clone()
    };
    let mut request = AddRequest::new(repository, &wanted)?;
    if request.donor == here {
        return Err(Error::refused("this is the worktree that the files would come from", Remedy::NameSource));
    }
    request.path.clone_from(&here);
    let index = || Ok(Index::listed(&git.run(&["ls-tree", "-r", "-z", "--full-tree", &head])?));
    let survey = survey(&request, &wanted, index, None)?;
    let own = survey.roots.iter().map(|root| (root.path.clone(), request.donor.join(&root.path)));
    let foreign = survey.dependencies.iter().filter(|one| one.from != request.donor);
    let parts: Vec<_> = own.chain(foreign.map(|one| (one.path.clone(), one.from.join(&one.path)))).collect();
    let mut left = survey.left;
    let mut carried = Vec::new();
    for (path, from) in parts {
        let to = here.join(&path);
        if fs_err::symlink_metadata(&to).is_ok() {
            left.push(LeftEntry { path, reason: LeftReason::Collides });
        } else if survey.may_show && !is_ignored(&git, &path)? {
            left.push(LeftEntry { path, reason: LeftReason::NotIgnored });
        } else {
            fs_err::create_dir_all(to.parent().unwrap_or(&here))?;
            let mut clone = options.clone.clone();
            clone.unreadable = Unreadable::Skip;
            let is_directory = fs_err::symlink_metadata(&from).is_ok_and(|found| found.is_dir());
            clone.select = is_directory.then(|| rules_below(&survey.rules, &path));
            let mut report = clone_tree(&from, &to, &clone)?;
            take_skipped(&mut report, &path, &mut left);
            carried.push(path);
        }
    }
    carried.sort();
    left.sort_by(|a, b| a.path.cmp(&b.path));
    let audit = match carried.is_empty() {
        true => AuditReport::default(),
        false => audited(&request, &here, &carried, options)?,
    };
    Ok(FillReport { path: here, donor: request.donor, is_untrusted: request.is_untrusted, carried, left, audit })
}

fn is_ignored(git: &Git, path: &Path) -> Result<bool> {
    // What is no text is not asked about, and stays.
    let Some(path) = path.to_str() else { return Ok(false) };
    Ok(git.output(&["check-ignore", "--quiet", "--", path])?.status.success())
}

fn audited(request: &AddRequest, here: &Path, carried: &[PathBuf], options: &AddOptions) -> Result<AuditReport> {
    let others = request.repository.worktrees.iter().filter(|one| !one.is_bare && one.path != here);
    let audit = AuditOptions {
        names: None,
        fix: Fix::Yes,
        below: carried.to_vec(),
        others: others.map(|one| one.path.clone()).collect(),
        will_be: None,
        moved: Moved::Ignored,
        tracked: Some(HashSet::new()),
        threads: options.clone.threads,
        cancel: options.clone.cancel.clone(),
    };
    escape::audit(here, &request.donor, &audit)
}
