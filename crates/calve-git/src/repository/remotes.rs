//! Distinguishes a repository's configured servers from others, by name and by address.

use std::collections::{HashMap, HashSet};

use crate::settings::is_true;

/// Prefix of the remotes that GitHub Desktop makes for the forks of pull requests.
const FORK_OF_DESKTOP: &str = "github-desktop-";

/// The setting with which Visual Studio Code marks the remotes that it made for pull requests.
const FORK_OF_CODE: &str = "github-pr-remote";

/// Options of `git fetch` and `git pull` whose value may be a separate argument.
const WITH_VALUE: [&str; 18] = [
    "-X",
    "-s",
    "--deepen",
    "--depth",
    "--filter",
    "--jobs",
    "--negotiation-tip",
    "--recurse-submodules-default",
    "--refmap",
    "--server-option",
    "--shallow-exclude",
    "--shallow-since",
    "--strategy",
    "--strategy-option",
    "--submodule-prefix",
    "--upload-pack",
    "-j",
    "-o",
];

#[derive(Debug, Default)]
pub(crate) struct Remotes {
    names: HashSet<String>,
    addresses: HashSet<String>,
    /// Remotes that a program made for the fork of a pull request.
    forks: HashSet<String>,
    /// `url.BASE.insteadOf`: pairs of an address's prefix and its replacement.
    rewritten: Vec<(String, String)>,
}

impl Remotes {
    /// Reads the remotes from all settings, whose names are in the form that git compares.
    pub(crate) fn new(settings: &[(String, String)]) -> Remotes {
        let mut remotes = Remotes::default();
        let mut all: HashMap<&str, Vec<&str>> = HashMap::new();
        for (name, value) in settings {
            if let Some((remote, key)) = name.strip_prefix("remote.").and_then(|rest| rest.rsplit_once('.')) {
                match key {
                    "url" => all.entry(remote).or_default().push(value),
                    FORK_OF_CODE if is_true(value) => drop(remotes.forks.insert(remote.to_owned())),
                    _ => {}
                }
            } else if let Some(base) = name.strip_prefix("url.").and_then(|rest| rest.strip_suffix(".insteadof")) {
                remotes.rewritten.push((value.clone(), base.to_owned()));
            }
        }
        for (remote, urls) in all {
            if remote.starts_with(FORK_OF_DESKTOP) {
                remotes.forks.insert(remote.to_owned());
            }
            if !remotes.forks.contains(remote) {
                remotes.names.insert(remote.to_owned());
                let addresses: Vec<String> = urls.into_iter().map(|url| remotes.address(url)).collect();
                remotes.addresses.extend(addresses);
            }
        }
        remotes
    }

    pub(crate) fn is_fork(&self, name: &str) -> bool {
        self.forks.contains(name)
    }

    /// Returns whether this is the name or the address of a configured remote, or this repository.
    pub(crate) fn has(&self, name: &str) -> bool {
        name == "." || self.names.contains(name) || !self.is_fork(name) && self.addresses.contains(&self.address(name))
    }

    /// Returns whether a fetch or a pull with these arguments asks a configured remote, as one that names none does.
    pub(crate) fn are_asked_by<'w>(&self, mut words: impl Iterator<Item = &'w str>) -> bool {
        while let Some(word) = words.next() {
            if WITH_VALUE.contains(&word) {
                words.next();
            } else if !word.starts_with('-') {
                return self.has(word);
            }
        }
        true
    }

    /// Normalizes an address as git logs it (without user, final `.git` and slashes), with ssh and https alike.
    fn address(&self, url: &str) -> String {
        let longest =
            self.rewritten.iter().filter(|(begin, _)| url.starts_with(begin)).max_by_key(|(begin, _)| begin.len());
        let url = longest.map_or_else(|| url.to_owned(), |(begin, base)| format!("{base}{}", &url[begin.len()..]));
        let url = url.trim_end_matches('/');
        let url = url.strip_suffix(".git").unwrap_or(url).trim_end_matches('/');
        let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
        let colon = rest.find([':', '/']).filter(|at| rest[*at..].starts_with(':'));
        match scheme {
            "file" => rest.to_owned(),
            // A path, or `user@host:path`.
            "" if colon.is_none() => rest.to_owned(),
            "" => {
                let (host, path) = rest.split_once(':').unwrap_or((rest, ""));
                format!("//{}/{}", without_user(host), path.trim_start_matches('/'))
            }
            _ => {
                let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
                let is_usual = matches!(scheme, "ssh" | "git+ssh" | "ssh+git" | "https");
                let scheme = if is_usual { String::new() } else { format!("{scheme}:") };
                format!("{scheme}//{}/{path}", without_user(host))
            }
        }
    }
}

fn without_user(host: &str) -> String {
    host.rsplit('@').next().unwrap_or(host).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remotes(settings: &[(&str, &str)]) -> Remotes {
        let owned = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Remotes::new(&owned.collect::<Vec<_>>())
    }

    #[test]
    fn a_remote_is_known_by_its_name_and_its_address() {
        let remotes = remotes(&[
            ("remote.origin.url", "git@Example.org:we/project.git"),
            ("remote.deep/er.url", "https://u:p@example.org:8443/we/other/"),
            ("remote.disk.url", "file:///srv/project.git"),
            ("remote.near.url", "../near"),
            ("remote.short.url", "we:short"),
            ("url.https://example.org/we/.insteadof", "we:"),
            ("remote.github-desktop-them.url", "https://example.org/them/project"),
            ("remote.pr.url", "https://example.org/those/project"),
            ("remote.pr.github-pr-remote", "true"),
        ]);
        for known in [
            "origin",
            "deep/er",
            ".",
            "https://example.org/we/project",
            "ssh://git@example.org/we/project.git/",
            "example.org:we/project",
            "https://example.org:8443/we/other.git",
            "/srv/project",
            "../near/",
            "https://other@example.org/we/short",
            "we:short",
        ] {
            assert!(remotes.has(known), "{known}");
        }
        for other in [
            "fork",
            "",
            "https://example.org/them/project",
            "https://example.org/we/project2",
            "http://example.org/we/project",
            "https://example.org.evil/we/project",
            "https://example.org@evil/we/project",
            "https://example.org:81/we/project",
            "git@example.org:them/project",
            "/srv/project/fork",
            "github-desktop-them",
            "pr",
        ] {
            assert!(!remotes.has(other), "{other}");
        }
    }

    #[test]
    fn the_first_argument_says_who_is_asked() {
        let remotes = remotes(&[("remote.origin.url", "/srv/project")]);
        for (line, expected) in [
            ("", true),
            ("-q --all", true),
            ("-q --depth 1 origin main", true),
            ("--depth=1 -j 4 --refmap a:b /srv/project main:x", true),
            ("--depth 1 /srv/fork main", false),
            ("../fork origin", false),
            ("--unknown 7 origin", false),
        ] {
            assert_eq!(remotes.are_asked_by(line.split_ascii_whitespace()), expected, "{line}");
        }
    }
}
