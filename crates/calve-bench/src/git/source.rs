//! Sources of repositories, paths and URLs, and which of them are refused.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use calve_core::internal::ShownPath;
use calve_git::Git;
use calve_git::remote::{RepositoryUrl, Transport};

use crate::error::BenchError;
use crate::remedy::Remedy;

pub struct Source {
    /// For git alone: it may have credentials.
    given: String,
    url: RepositoryUrl,
}

impl Source {
    pub fn parse(text: &str) -> Result<Self, BenchError> {
        let url = RepositoryUrl::parse(OsStr::new(text));
        let url = url.map_err(|error| BenchError::usage(error.to_string(), Remedy::CorrectUrl))?;
        Ok(Self { given: text.to_owned(), url })
    }

    /// Returns the directory, `None` for a URL.
    pub(super) fn path(&self) -> Option<&Path> {
        (self.url.kind == Transport::Local).then(|| Path::new(self.url.as_os_str()))
    }

    pub(super) fn text(&self) -> OsString {
        self.path().map_or_else(|| OsString::from(&self.given), OsString::from)
    }

    /// Removes secrets from git's messages.
    pub(super) fn censored(&self, said: &str) -> String {
        self.url.censored(&said.replace(&self.given, &self.url.to_string()))
    }

    /// Returns the source for messages, without credentials.
    pub(crate) fn shown(&self) -> String {
        self.path().map_or_else(|| self.url.to_string(), |path| path.to_string_lossy().into_owned())
    }

    pub(crate) fn name(&self) -> String {
        self.url.directory_name().map_or_else(|_| "repository".into(), |name| name.to_string_lossy().into_owned())
    }

    /// Refuses a source that cannot be measured, before anything is copied.
    pub(crate) fn check(&self) -> Result<(), BenchError> {
        let Some(path) = self.path() else { return Ok(()) };
        let git = Git::at(path);
        // Below the root of a work tree git finds the repository, but does not clone that directory.
        if !path.is_dir() || !git.line(&["rev-parse", "--show-prefix"]).is_ok_and(|prefix| prefix.is_empty()) {
            let text = format!("`{}` is not a git repository, or not one that you may read", ShownPath(path));
            return Err(BenchError::failed(text, Remedy::NameRepository));
        }
        // A filtered clone, made by any version of git.
        let filtered = r"^(remote\..*\.(promisor|partialclonefilter)|extensions\.partialclone)$";
        if git.output(&["config", "--get-regexp", filtered]).is_ok_and(|found| !found.stdout.is_empty()) {
            let text =
                format!("`{}` is a partial clone: it lacks objects, which git would fetch one by one", ShownPath(path));
            return Err(BenchError::failed(text, Remedy::NameFullClone));
        }
        if git.line(&["rev-parse", "--is-shallow-repository"]).is_ok_and(|answer| answer == "true") {
            let text = format!("`{}` is a shallow clone: its history is cut off", ShownPath(path));
            return Err(BenchError::failed(text, Remedy::Unshallow));
        }
        Ok(())
    }
}
