//! Which worktree owns which service data, after moves, copies and removals.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use calve_core::internal::ShownPath;
use calve_db::{Home, Service};
use calve_git::environment::WorktreeId;
use calve_git::escape::worktrees_of;
use calve_git::worktree;

use crate::error::{Error, Result};
use crate::host::{Event, Host};
use crate::remedy::Remedy;

/// Returns a worktree's services and records its place. In a copied repository it has none: the original owns them.
pub(crate) fn kept(home: &Home, owner: &WorktreeId) -> Result<Vec<Service>> {
    let Some(own) = seen(home, owner)? else {
        owner.forget()?;
        return Ok(Vec::new());
    };
    note_place(home, owner, &own)?;
    Ok(own)
}

fn note_place(home: &Home, owner: &WorktreeId, own: &[Service]) -> Result<()> {
    let entry = owner.entry.as_os_str();
    // The entry of a removed worktree no longer tells its place.
    let known = Some(WorktreeId::last_root(&owner.entry)).filter(|root| *root != owner.entry).map(OsString::from);
    let root = |service: &Service| known.as_ref().unwrap_or(&service.worktree.root).clone();
    if own.iter().any(|service| service.worktree.entry != entry || service.worktree.root != root(service)) {
        own.iter().try_for_each(|one| calve_db::set_worktree(home, one, entry.to_owned(), root(one)))?;
    }
    Ok(())
}

/// Returns a worktree's services, and writes nothing. `None` if its repository is a copy.
pub(crate) fn seen(home: &Home, owner: &WorktreeId) -> Result<Option<Vec<Service>>> {
    own_of(owner, calve_db::services_of(home, &owner.id)?)
}

/// Returns the services that the worktree owns. `None` if its repository is a copy.
pub(crate) fn own_of(owner: &WorktreeId, mut own: Vec<Service>) -> Result<Option<Vec<Service>>> {
    own.retain(|service| service.worktree.id == owner.id);
    let other = own.iter().map(|service| Path::new(&service.worktree.entry)).find(|other| *other != owner.entry);
    let is_copy = match other {
        Some(other) => WorktreeId::is_at(other, &owner.id)? && !owner.is(other),
        None => false,
    };
    Ok((!is_copy).then_some(own))
}

/// Returns the repository's worktree `id`, whose data was to be cloned for the worktree at `root`.
pub(crate) fn noted(host: &dyn Host, root: &Path, id: &str) -> Result<Option<WorktreeId>> {
    let others = worktrees_of(root)?.others;
    let found = others.iter().filter_map(|other| WorktreeId::read(other).ok()?).find(|owner| owner.id == id);
    if found.is_none() {
        let text = "the source worktree is gone, so the data comes from the template";
        host.report(Event::Warning(text.into()));
    }
    Ok(found)
}

/// Returns the data of a worktree (named by branch, path or name): all of it, or one service's. Fails without any.
pub fn services_of_named(home: &Home, start: &Path, name: &Path, service: Option<&str>) -> Result<Vec<Service>> {
    let (_, mut found) = worktree::find_all(start, &[name.to_path_buf()])?;
    let owner = found.pop().transpose()?.map_or(Ok(None), |root| WorktreeId::read(&root))?;
    let mut services = owner.map_or(Ok(Vec::new()), |owner| kept(home, &owner))?;
    services.retain(|found| service.is_none_or(|service| found.service == service));
    if services.is_empty() {
        let of = service.map_or("any service".into(), |service| format!("a service `{}`", service.escape_default()));
        return Err(Error::failed(format!("`{}` has no data of {of}", ShownPath(name)), Remedy::StartServicesThere));
    }
    Ok(services)
}

/// Records the places of worktrees before their entries go, and with them the knowledge of who owns the data.
pub fn note_places(home: &Home, entries: &[PathBuf]) {
    note_places_of(home, entries.iter().filter_map(|entry| WorktreeId::of_entry(entry).ok()?));
}

/// Records the places of all worktrees of the repository around `start`, if any: it may have been moved.
pub fn note_places_around(home: &Home, start: &Path) {
    note_places_of(home, WorktreeId::of_repository(start).into_iter().flatten());
}

fn note_places_of(home: &Home, owners: impl Iterator<Item = WorktreeId>) {
    for owner in owners {
        if let Ok(Some(own)) = seen(home, &owner) {
            _ = note_place(home, &owner, &own);
        }
    }
}

/// Returns services of a repository's worktrees that are gone or `going`. `common` is its common git directory.
pub(crate) fn gone_services(home: &Home, common: &Path, going: &[PathBuf]) -> Result<Vec<Service>> {
    let Ok(common) = fs_err::canonicalize(common) else { return Ok(Vec::new()) };
    // Not canonicalized itself: git removes this directory with its last entry.
    let entries = common.join("worktrees");
    // After the repository moved, its data still has the former place.
    let owners: Vec<_> = going.iter().filter_map(|entry| WorktreeId::of_entry(entry).ok()?).collect();
    let is_going = |service: &Service| {
        let own = owners.iter().find(|owner| owner.id == service.worktree.id);
        own.is_some_and(|owner| matches!(own_of(owner, vec![service.clone()]), Ok(Some(_))))
    };
    let is_here = |service: &Service| Path::new(&service.worktree.entry).starts_with(&entries);
    let mut gone = calve_db::services(home)?;
    gone.retain(|service| is_going(service) || is_here(service) && has_no_worktree(service));
    Ok(gone)
}

/// Finishes removals that were killed.
pub(crate) fn sweep(home: &Home) -> Result<()> {
    Ok(calve_db::finish_removals(home, &has_no_worktree)?)
}

fn has_no_worktree(service: &Service) -> bool {
    // An error does not prove that it is gone.
    matches!(WorktreeId::is_at(Path::new(&service.worktree.entry), &service.worktree.id), Ok(false))
}

/// Returns the last known root of the data's worktree. The root and the entry may both be gone.
pub fn last_root(service: &Service) -> PathBuf {
    let root = WorktreeId::last_root(Path::new(&service.worktree.entry));
    if root == service.worktree.entry { PathBuf::from(&service.worktree.root) } else { root }
}
