//! Objects that a partial clone does not have.

use std::collections::HashSet;

use crate::error::{Error, Result};
use crate::git::Git;

/// Fetches those of the objects that are missing, with one request. `git checkout-index` would ask for each by itself, with a
/// connection of its own. `git checkout` asks in this way, too (git's promisor-remote.c).
pub(crate) fn fetch_missing(git: &Git, remote: &str, commit: &str, wanted: HashSet<&str>) -> Result<()> {
    let objects = git.run(&["rev-list", "--objects", "--no-object-names", "--missing=print", "--no-walk", commit])?;
    let mut list = Vec::new();
    for oid in objects.split(|&byte| byte == b'\n').filter_map(|line| line.strip_prefix(b"?")) {
        if std::str::from_utf8(oid).is_ok_and(|oid| wanted.contains(oid)) {
            list.extend_from_slice(oid);
            list.push(b'\n');
        }
    }
    if !list.is_empty() {
        let fetch = [
            &["-c", "fetch.negotiationAlgorithm=noop", "fetch", remote][..],
            &[
                "--quiet",
                "--no-tags",
                "--no-write-fetch-head",
                "--recurse-submodules=no",
                "--filter=blob:none",
                "--stdin",
            ],
        ];
        match git.fed(&fetch.concat(), &list) {
            // Another remote may have them: `checkout-index` goes on from here, and says what it does not get.
            Ok(_) | Err(Error::Git { .. }) => {}
            Err(other) => return Err(other),
        }
    }
    Ok(())
}
