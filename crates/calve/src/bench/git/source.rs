//! Where a repository comes from: a path or a URL, and which of these are refused.

use std::path::{Path, PathBuf};

use calve_core::Shown;
use calve_git::{Git, Synthetic};

use crate::failure::{FAILED, Failure, USAGE};

/// A repository to measure, before it is copied.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    Path(PathBuf),
    Url(String),
    Synthetic(Synthetic),
}

/// What git may be told to speak.
const SCHEMES: [&str; 5] = ["https", "http", "ssh", "git", "file"];

impl Source {
    /// A path that is there, or a URL.
    pub(crate) fn of(text: &str) -> Result<Self, Failure> {
        if text.starts_with('-') {
            let hint = "write `./` before a path that begins so";
            return Err(refused(text, "begins with a dash, as an option does", hint));
        }
        if fs_err::metadata(text).is_ok() {
            return Ok(Self::Path(PathBuf::from(text)));
        }
        if is_url(text)? {
            return Ok(Self::Url(text.to_owned()));
        }
        Err(calve_core::Error::Missing(PathBuf::from(text)).into())
    }

    /// For people, and without what a URL may have of a password.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Path(path) => path.to_string_lossy().into_owned(),
            Self::Url(url) => without_password(url),
            Self::Synthetic(of) => {
                format!(
                    "synthetic {}, {} commits, {} files of {} bytes",
                    of.shape.name(),
                    of.commits,
                    of.files,
                    of.file_bytes
                )
            }
        }
    }

    /// The last part of it.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Synthetic(of) => format!("synthetic-{}", of.shape.name()),
            Self::Path(path) => {
                let real = fs_err::canonicalize(path).unwrap_or_else(|_| path.clone());
                last_part(&real.to_string_lossy())
            }
            Self::Url(url) => last_part(url),
        }
    }

    /// Refuses what cannot be measured, before anything is copied.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let Self::Path(path) = self else { return Ok(()) };
        let git = Git::at(path);
        if !path.is_dir() || !git.output(&["rev-parse", "--git-dir"]).is_ok_and(|it| it.status.success()) {
            let text = format!("`{}` is not a git repository, or not one that you may read", Shown(path));
            return Err(Failure::stated(FAILED, text, "name the directory of a repository, or a URL, with `--repo`"));
        }
        if is_partial(&git) {
            let text =
                format!("`{}` is a partial clone: it lacks objects, which git would fetch one by one", Shown(path));
            return Err(Failure::stated(FAILED, text, "name the repository that it was cloned from, or a full clone"));
        }
        if git.line(&["rev-parse", "--is-shallow-repository"]).is_ok_and(|answer| answer == "true") {
            let text = format!("`{}` is a shallow clone: its history is cut off", Shown(path));
            return Err(Failure::stated(FAILED, text, "run `git fetch --unshallow` in it, or name a full clone"));
        }
        Ok(())
    }
}

/// The configuration of a clone with a filter, whatever the version of git that made it.
fn is_partial(git: &Git) -> bool {
    let pattern = r"^(remote\..*\.(promisor|partialclonefilter)|extensions\.partialclone)$";
    git.output(&["config", "--get-regexp", pattern]).is_ok_and(|found| !found.stdout.is_empty())
}

/// Whether it is meant as one. Some that git would take are refused: what they name is run.
pub(crate) fn is_url(text: &str) -> Result<bool, Failure> {
    if text.starts_with('-') {
        return Err(refused(text, "begins with a dash, as an option does", "name a URL"));
    }
    let scheme_length = text.find(|c: char| !(c.is_ascii_alphanumeric() || "+-.".contains(c))).unwrap_or(0);
    let (scheme, rest) = text.split_at(scheme_length);
    if rest.starts_with("::") {
        let hint = "name a URL of https, ssh, git or file";
        return Err(refused(text, &format!("names the remote helper `{scheme}`, which runs programs"), hint));
    }
    if let Some(address) = rest.strip_prefix("://") {
        if !SCHEMES.contains(&scheme) {
            return Err(refused(text, &format!("has the scheme `{scheme}`"), "name a URL of https, ssh, git or file"));
        }
        if address.starts_with('-') {
            return Err(refused(
                text,
                "has a host that begins with a dash, as an option does",
                "name a URL with a host",
            ));
        }
        return Ok(true);
    }
    // HOST:PATH, with no slash before the colon.
    Ok(text.split_once(':').is_some_and(|(host, path)| !host.is_empty() && !host.contains('/') && !path.is_empty()))
}

fn refused(text: &str, why: &str, hint: &'static str) -> Failure {
    let shown = without_password(text);
    Failure::stated(USAGE, format!("`{}` is refused: it {why}", Shown(Path::new(&shown))), hint)
}

/// "https://user:secret@host/path" as "https://user@host/path".
pub(crate) fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let host_ends = rest.find('/').unwrap_or(rest.len());
    let Some((login, host)) = rest[..host_ends].rsplit_once('@') else { return url.to_owned() };
    // With no password the login is often a token.
    let user = match login.split_once(':') {
        Some((user, _)) => format!("{user}@"),
        None if scheme.starts_with("http") => String::new(),
        None => format!("{login}@"),
    };
    format!("{scheme}://{user}{host}{}", &rest[host_ends..])
}

fn last_part(text: &str) -> String {
    let trimmed = text.trim_end_matches('/').trim_end_matches("/.git");
    let part = trimmed.rsplit(['/', ':']).next().unwrap_or(trimmed);
    let name = part.strip_suffix(".git").filter(|name| !name.is_empty()).unwrap_or(part);
    if name.is_empty() { "repository".into() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_told_from_paths_and_from_programs() {
        for url in ["https://host/a", "ssh://me@host/a", "git://host/a", "file:///a", "host:a/b", "me@host:a"] {
            assert!(is_url(url).unwrap(), "{url}");
        }
        for path in ["a", "./a:b", "/a:b", ":a", "a:"] {
            assert!(!is_url(path).unwrap(), "{path}");
        }
        for wrong in
            ["ext::sh -c evil", "fd::17", "-upload-pack=evil", "ssh://-oProxyCommand=evil/a", "ftp://host/a", "a+b://c"]
        {
            assert!(is_url(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn names_and_passwords() {
        assert_eq!(last_part("https://host/a/jquery.git/"), "jquery");
        assert_eq!(last_part("/src/it's a \"name\"/.git"), "it's a \"name\"");
        assert_eq!(last_part("host:b"), "b");
        assert_eq!(without_password("https://me:secret@host/a@b"), "https://me@host/a@b");
        assert_eq!(without_password("https://token@host/a"), "https://host/a");
        assert_eq!(without_password("ssh://git@host/a"), "ssh://git@host/a");
        assert_eq!(without_password("git@host:a"), "git@host:a");
    }
}
