//! pnpm: `node_modules/.pnpm/lock.yaml`, its copy of the lockfile that it has installed, against `pnpm-lock.yaml`.

use super::fit::{Fit, Judge};
use crate::directory::{Directory, Time};

pub(super) const WITNESS: &str = ".modules.yaml";

/// Written after every link has been made.
const COPY: &str = ".pnpm/lock.yaml";

/// pnpm writes its copy to another name first, in the same directory: that is modified a little later than the copy.
const RENAMES_WITHIN: Time = 1_000_000_000;

pub(super) fn read<'t>(lockfiles: &[&'t str]) -> Judge<'t> {
    let wanted = lockfiles.first().copied().unwrap_or_default();
    Box::new(|directory| judge(directory, wanted))
}

fn judge(directory: &Directory, wanted: &str) -> Fit {
    if !directory.has(WITNESS) {
        return Fit::No;
    }
    // A virtual store may be elsewhere.
    let (Some(end), Some(store)) = (directory.changed(COPY), directory.changed(".pnpm")) else { return Fit::Unsure };
    let Some(copy) = directory.read(COPY) else { return Fit::Unsure };
    let is_same = copy.lines().eq(wanted.lines());
    // One that was killed has added a version to the store, or has linked another one that was there already.
    let is_whole = store <= end + RENAMES_WITHIN && links(directory).all(|made| made <= end);
    (is_same && is_whole).into()
}

/// Returns when each of the project's own dependencies was linked.
fn links(directory: &Directory) -> impl Iterator<Item = Time> {
    let names = directory.names().into_iter().filter(|name| !name.starts_with('.'));
    names.flat_map(|name| match directory.directory(&name).filter(|_| name.starts_with('@')) {
        Some(scope) => scope.names().iter().filter_map(|inside| scope.linked(inside)).collect(),
        None => Vec::from_iter(directory.linked(&name)),
    })
}
