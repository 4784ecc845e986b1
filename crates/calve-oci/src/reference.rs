//! Names of images: `HOST[:PORT]/REPOSITORY[:TAG]`, or with `@sha256:DIGEST`.

use std::fmt;

use crate::address::{Address, AddressFault, Transport, host_name};
use crate::error::Error;

const LATEST: &str = "latest";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// Host, with the port if one was named.
    pub registry: String,
    pub repository: String,
    /// The tag, or the digest that the image's manifest must have.
    pub version: String,
    pub transport: Transport,
}

impl Reference {
    /// Parses a reference (`latest` if no tag is named). Refuses a registry on another machine without encryption.
    pub fn parse(text: &str, transport: Transport) -> Result<Self, Error> {
        let refused = |what| Error::BadReference { reference: text.into(), what };
        let (registry, rest) = text.split_once('/').ok_or_else(|| refused("names no registry"))?;
        // Its older name. Credentials are looked up by the other one.
        let registry = if registry == "index.docker.io" { "docker.io" } else { registry };
        if !registry.contains(['.', ':']) && registry != "localhost" {
            return Err(refused("names no registry"));
        }
        // The message leaves out a password before it.
        if let Some((_, reference)) = text.split_once('@').filter(|_| registry.contains('@')) {
            return Err(Error::BadReference { reference: reference.into(), what: "has a user name before it" });
        }
        if host_name(registry).is_none_or(|name| name.ends_with('.')) {
            return Err(refused("names a host that is not valid"));
        }
        let (repository, version) = match rest.split_once('@') {
            Some((named, digest)) => (named.split_once(':').map_or(named, |(repository, _)| repository), digest),
            None => rest.split_once(':').unwrap_or((rest, LATEST)),
        };
        if !is_repository(repository) {
            return Err(refused("names a repository that is not valid"));
        }
        if !(is_tag(version) && !rest.contains('@') || is_digest(version) && rest.contains('@')) {
            return Err(refused("has a tag or a digest that is not valid"));
        }
        let [registry, repository, version] = [registry, repository, version].map(str::to_owned);
        let reference = Self { registry, repository, version, transport };
        reference.address()?;
        Ok(reference)
    }

    pub(crate) fn address(&self) -> Result<Address, Error> {
        let host = if self.registry == "docker.io" { "registry-1.docker.io" } else { &*self.registry };
        Address::of_registry(host, self.transport).map_err(|fault| match fault {
            AddressFault::Unencrypted(_) => Error::NotLoopback(self.registry.clone()),
            AddressFault::Invalid | AddressFault::HasUserName => self.refused("names a host that is not valid"),
        })
    }

    /// Returns the last part of the repository, the default name of the template.
    pub fn name(&self) -> &str {
        self.repository.rsplit('/').next().unwrap_or(&self.repository)
    }

    /// Makes a tag from files' contents, in order: `TAG-HASH` or `key-HASH`. Refuses a digest, and too long a tag.
    pub fn with_key(mut self, files: &[Vec<u8>]) -> Result<Self, Error> {
        if self.digest().is_some() {
            return Err(self.refused("has a digest, so that files cannot choose the tag"));
        }
        let mut hash = blake3::Hasher::new();
        for contents in files {
            hash.update(&(contents.len() as u64).to_le_bytes()).update(contents);
        }
        let start = if self.version == LATEST { "key" } else { &*self.version };
        let version = format!("{start}-{}", &hash.finalize().to_hex()[..32]);
        if !is_tag(&version) {
            return Err(self.refused("has a tag that is too long for a hash after it"));
        }
        self.version = version;
        Ok(self)
    }

    /// Returns the registry and the repository, which all versions of an image share.
    pub fn repository_name(&self) -> String {
        format!("{}/{}", self.registry, self.repository)
    }

    /// Fails with [`Error::NameTaken`] for a template from elsewhere: it may have no other copy.
    pub fn check_replaces(&self, name: &str, origin: Option<&str>) -> Result<(), Error> {
        let origin = origin.and_then(|origin| Self::parse(origin, Transport::Https).ok());
        if origin.is_some_and(|origin| origin.repository_name() == self.repository_name()) {
            return Ok(());
        }
        Err(Error::NameTaken { name: name.into(), repository: self.repository_name() })
    }

    pub(crate) fn check_tag(&self) -> Result<(), Error> {
        if self.digest().is_none() { Ok(()) } else { Err(self.refused("has a digest, which only a pull can ask for")) }
    }

    fn refused(&self, what: &'static str) -> Error {
        Error::BadReference { reference: self.to_string(), what }
    }

    pub(crate) fn not_a_template(&self, what: impl Into<String>) -> Error {
        Error::NotATemplate { reference: self.to_string(), what: what.into() }
    }

    pub(crate) fn digest(&self) -> Option<&str> {
        Some(self.version.as_str()).filter(|version| is_digest(version))
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let separator = if self.digest().is_some() { '@' } else { ':' };
        write!(f, "{}/{}{separator}{}", self.registry, self.repository, self.version)
    }
}

fn is_repository(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_part = |part: &str| {
        part.starts_with(is_plain) && part.ends_with(is_plain) && part.chars().all(|c| is_plain(c) || "._-".contains(c))
    };
    text.len() <= 255 && text.split('/').all(is_part)
}

pub(crate) fn check_base(base: &str) -> Result<(), Error> {
    if is_tag(base) { Ok(()) } else { Err(Error::BadBase(base.into())) }
}

fn is_tag(text: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.len() <= 128 && text.starts_with(is_word) && text.chars().all(|c| is_word(c) || ".-".contains(c))
}

pub(crate) fn is_digest(text: &str) -> bool {
    let is_digit = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    text.strip_prefix("sha256:").is_some_and(|hex| hex.len() == 64 && hex.chars().all(is_digit))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Option<String> {
        let reference = Reference::parse(text, Transport::Https).ok()?;
        Some(format!("{} {} {}", reference.registry, reference.repository, reference.version))
    }

    #[test]
    fn references_are_read() {
        let digest = format!("sha256:{}", "0a".repeat(32));
        for (text, expected) in [
            ("127.0.0.1:5000/a", "127.0.0.1:5000 a latest".to_owned()),
            ("ghcr.io/team/node-modules:v1.2", "ghcr.io team/node-modules v1.2".to_owned()),
            ("localhost/a/b/c:x", "localhost a/b/c x".to_owned()),
            ("index.docker.io/team/a", "docker.io team/a latest".to_owned()),
            ("[::1]:5000/a:x", "[::1]:5000 a x".to_owned()),
            (&format!("ghcr.io/a@{digest}"), format!("ghcr.io a {digest}")),
            (&format!("ghcr.io/a:tag@{digest}"), format!("ghcr.io a {digest}")),
        ] {
            assert_eq!(parsed(text), Some(expected), "{text}");
        }
        let by_digest = Reference::parse(&format!("ghcr.io/a@{digest}"), Transport::Https).unwrap();
        assert_eq!((by_digest.to_string(), by_digest.digest()), (format!("ghcr.io/a@{digest}"), Some(&*digest)));
    }

    #[test]
    fn what_is_no_reference_is_refused() {
        for text in [
            "",
            "a",
            "team/a",
            "/a",
            "ghcr.io/",
            "ghcr.io/A",
            "ghcr.io/../a",
            "ghcr.io/a//b",
            "ghcr.io/a:",
            "ghcr.io/a:b/c",
            "ghcr.io/a@sha256:0",
            "ghcr.io:0/a",
            "ghcr.io./a",
            "ghcr.io.:443/a",
            "ghcr.io:99999/a",
            "ghcr.io:+443/a",
            "user:password@ghcr.io/a",
            "-x.io/a",
            "a b.io/a",
            "ghcr.io/a?b=c",
            "[::g]:5000/a",
            "ghcr.io/a:x\n",
        ] {
            assert_eq!(parsed(text), None, "{text}");
        }
    }

    #[test]
    fn a_password_in_a_reference_is_not_repeated() {
        for text in ["user:password@ghcr.io/a", "password@localhost:80/a:x", "localhost:80@x:password@ghcr.io/a"] {
            for transport in [Transport::Https, Transport::PlainHttp] {
                let refused = Reference::parse(text, transport).unwrap_err().to_string();
                assert!(refused.contains("has a user name before it"), "{refused}");
                assert_eq!(refused.contains("password"), text.starts_with("localhost"), "{refused}");
            }
        }
    }

    #[test]
    fn the_contents_of_files_become_a_part_of_the_tag() {
        let keyed = |text: &str, files: &[&str]| {
            let files: Vec<_> = files.iter().map(|contents| contents.as_bytes().to_vec()).collect();
            Some(Reference::parse(text, Transport::Https).unwrap().with_key(&files).ok()?.version)
        };
        // It never changes: templates that were pushed are found by it.
        let hash = "902bc072d2e2b04eb9f984205b707eaa";
        assert_eq!(keyed("ghcr.io/a", &["1", "23"]), Some(format!("key-{hash}")));
        assert_eq!(keyed("ghcr.io/a:linux-x64", &["1", "23"]), Some(format!("linux-x64-{hash}")));
        for other in [&["12", "3"][..], &["23", "1"], &["1"], &["1", "23", ""]] {
            assert_ne!(keyed("ghcr.io/a", other), Some(format!("key-{hash}")), "{other:?}");
        }
        assert_eq!(keyed(&format!("ghcr.io/a@sha256:{}", "0a".repeat(32)), &["1"]), None);
        assert_eq!(keyed(&format!("ghcr.io/a:{}", "t".repeat(96)), &["1"]), None);
    }

    #[test]
    fn only_this_machine_is_reached_without_encryption() {
        for registry in ["127.0.0.1:5000", "localhost:5000", "localhost", "[::1]:5000", "127.9.9.9"] {
            assert!(Reference::parse(&format!("{registry}/a"), Transport::PlainHttp).is_ok(), "{registry}");
        }
        for registry in ["ghcr.io", "127.0.0.1.example.org", "10.0.0.1:5000", "localhost.example.org", "[fe80::1]:5000"]
        {
            let refused = Reference::parse(&format!("{registry}/a"), Transport::PlainHttp);
            assert!(matches!(refused, Err(Error::NotLoopback(_))), "{registry}");
        }
    }
}
