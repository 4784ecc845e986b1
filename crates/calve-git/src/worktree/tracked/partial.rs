//! Objects that a partial clone does not have.

use std::collections::HashSet;
use std::path::Path;

use calve_core::internal::ShownPath;

use crate::error::{Error, Result};
use crate::git::Git;
use crate::remedy::Remedy;

/// File contents that a remote did not send.
#[derive(Debug)]
pub(crate) struct StillMissing {
    remote: String,
    files: usize,
    said: String,
}

impl StillMissing {
    pub(crate) fn error(&self) -> Error {
        let (remote, said) = (ShownPath(Path::new(&self.remote)), self.said.trim());
        let what = if self.files == 1 {
            "the contents of 1 file are"
        } else {
            &format!("the contents of {} files are", self.files)
        };
        Error::refused(format!("{what} still on `{remote}`, which did not send them: {said}"), Remedy::GoOnline)
    }
}

/// Fetches the missing objects in one request, as `git checkout` does (git's promisor-remote.c). `git checkout-index` would open a
/// connection for each. Returns the objects that the remote did not send.
pub(crate) fn fetch_missing(
    git: &Git,
    remote: &str,
    commit: &str,
    wanted: HashSet<&str>,
) -> Result<Option<StillMissing>> {
    let objects = git.run(&["rev-list", "--objects", "--no-object-names", "--missing=print", "--no-walk", commit])?;
    let (mut list, mut files) = (Vec::new(), 0);
    for oid in objects.split(|&byte| byte == b'\n').filter_map(|line| line.strip_prefix(b"?")) {
        if std::str::from_utf8(oid).is_ok_and(|oid| wanted.contains(oid)) {
            list.extend_from_slice(oid);
            list.push(b'\n');
            files += 1;
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
            Ok(_) => {}
            Err(Error::Git { said, .. }) => return Ok(Some(StillMissing { remote: remote.to_owned(), files, said })),
            Err(other) => return Err(other),
        }
    }
    Ok(None)
}
