//! The repository of a clone or a fetch, without the parts that must not be stored, printed or run.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use calve_core::internal::ShownPath;
use memchr::memmem;
use percent_encoding::{AsciiSet, CONTROLS, percent_decode, utf8_percent_encode};

use crate::paths::{in_url, path_of};
use crate::redact;
use crate::remedy::Remedy;
use crate::remote::error::RemoteError;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// `https://`, or `http://`.
    Http,
    /// `ssh://`, or `host:path`.
    Ssh,
    Git,
    /// `file://`: the same protocol, with a server process on this machine.
    File,
    /// A path: git links or copies the repository's files, and supports neither filters nor depths.
    Local,
}

/// A repository to clone from. Printing it shows no credentials, no query and no fragment.
#[derive(Clone, PartialEq, Eq)]
pub struct RepositoryUrl {
    pub kind: Transport,
    /// Only git gets it as it is.
    text: OsString,
    /// Texts that must not be printed anywhere, if they are longer than a word.
    secrets: Vec<String>,
    /// `https://host:port`, which the credentials are for.
    pub(crate) origin: String,
    pub(crate) credentials: Option<Credentials>,
}

/// The part before the `@` of an `https://` URL.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Credentials {
    pub(crate) username: String,
    pub(crate) password: Option<String>,
}

impl fmt::Debug for RepositoryUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RepositoryUrl({self})")
    }
}

impl fmt::Display for RepositoryUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            Transport::Local | Transport::File => write!(f, "{}", ShownPath(Path::new(self.as_os_str()))),
            Transport::Http | Transport::Ssh | Transport::Git => f.write_str(&redact::url(&self.text)),
        }
    }
}

impl RepositoryUrl {
    /// Parses a repository as git does: a URL, `host:path`, or a path, which is relative to the current directory.
    /// Fails for anything that git would run as a command, take for an option, or not understand.
    pub fn parse(given: &OsStr) -> Result<Self, RemoteError> {
        let refuse = |why: &str| Err(RemoteError::url(given, why));
        let bytes = given.as_bytes();
        if bytes.is_empty() {
            return refuse("it is empty");
        }
        if bytes[0] == b'-' {
            return refuse("it begins with a dash, which git would take for an option");
        }
        if bytes.iter().any(u8::is_ascii_control) || given.to_str().is_some_and(|text| text.contains(char::is_control))
        {
            return refuse("it has control characters in it");
        }
        if let Some(at) = memmem::find(bytes, b"::")
            && at > 0
            && bytes[..at].iter().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte))
        {
            return refuse("`name::` has git run the program `git-remote-name`, or any command");
        }
        if let Some(at) = memmem::find(bytes, b"://") {
            let Some(text) = given.to_str() else { return refuse("a URL is text; write other bytes as %XX") };
            return Self::with_scheme(given, &text[..at], &text[at + 3..]);
        }
        let colon = bytes.iter().position(|byte| b":/".contains(byte)).filter(|&at| bytes[at] == b':');
        match colon.filter(|_| !Path::new(given).exists()) {
            Some(colon) => Self::like_scp(given, &bytes[..colon], &bytes[colon + 1..]),
            None => Self::local(given),
        }
    }

    fn with_scheme(given: &OsStr, scheme: &str, rest: &str) -> Result<Self, RemoteError> {
        let refuse = |why: &str| Err(RemoteError::url(given, why));
        let scheme = scheme.to_ascii_lowercase();
        let kind = match scheme.as_str() {
            "https" | "http" => Transport::Http,
            "ssh" | "git+ssh" | "ssh+git" => Transport::Ssh,
            "git" => Transport::Git,
            "file" => Transport::File,
            _ => return refuse("the kinds of URL are https, http, ssh, git and file"),
        };
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        if kind == Transport::File {
            return Ok(Self::new(kind, format!("file://{rest}").into()));
        }
        if path.trim_matches('/').is_empty() {
            return refuse("it names no repository");
        }
        let (user, host) = authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
        if host.is_empty() || host.starts_with('-') || user.is_some_and(|user| user.starts_with('-')) {
            return refuse("its host or user begins with a dash, which ssh would take for an option, or is missing");
        }
        if path.starts_with("/-") && kind == Transport::Ssh {
            return refuse("its path begins with a dash, which the server would take for an option");
        }
        if kind == Transport::Http {
            let port = host.rsplit(']').next().and_then(|rest| rest.split_once(':')).map_or("", |(_, port)| port);
            if !port.bytes().all(|byte| byte.is_ascii_digit()) {
                return refuse("its port is not a number (write a `/` in a password as `%2F`)");
            }
            let credentials = user.map(|user| Credentials::parse(given, user)).transpose()?;
            let origin = format!("{scheme}://{host}");
            let mut url = Self::new(kind, format!("{origin}{}", escaped(path)).into());
            (url.origin, url.credentials, url.secrets) = (origin, credentials, secrets(user, path));
            return Ok(url);
        }
        // ssh takes no password from a URL, so one that is there can only leak.
        let user = user.map(|user| user.split(':').next().unwrap_or(user));
        if kind == Transport::Git && user.is_some() {
            return refuse("git:// knows no users");
        }
        let user = user.map(|user| format!("{user}@")).unwrap_or_default();
        Ok(Self::new(kind, format!("{scheme}://{user}{host}{path}").into()))
    }

    fn like_scp(given: &OsStr, host: &[u8], path: &[u8]) -> Result<Self, RemoteError> {
        let refuse = |why: &str| Err(RemoteError::url(given, why));
        let after_user = host.iter().rposition(|byte| *byte == b'@').map_or(host, |at| &host[at + 1..]);
        if host.is_empty() || after_user.is_empty() || host[0] == b'-' || after_user[0] == b'-' {
            return refuse("its host or user begins with a dash, which ssh would take for an option, or is missing");
        }
        if path.is_empty() || path[0] == b'-' {
            return refuse("its path is empty, or begins with a dash, which the server would take for an option");
        }
        if host.eq_ignore_ascii_case(b"http") || host.eq_ignore_ascii_case(b"https") {
            // git would take it for a host of that name, with a password or a token in the path.
            let shown = format!("{}:…", String::from_utf8_lossy(host));
            return Err(RemoteError::url(shown.as_ref(), "`http:` and `https:` need two slashes after them"));
        }
        Ok(Self::new(Transport::Ssh, given.to_os_string()))
    }

    fn local(given: &OsStr) -> Result<Self, RemoteError> {
        let found = fs_err::canonicalize(given);
        let Ok(path) = found else { return Err(RemoteError::url(given, "there is no such directory")) };
        if !path.is_dir() {
            return Err(RemoteError::url(given, "it is not a directory"));
        }
        Ok(Self::new(Transport::Local, path.into_os_string()))
    }

    fn new(kind: Transport, text: OsString) -> Self {
        Self { kind, text, secrets: Vec::new(), origin: String::new(), credentials: None }
    }

    pub fn as_os_str(&self) -> &OsStr {
        &self.text
    }

    /// Removes the secrets of this URL, and of any other, from git's words.
    pub fn censored(&self, said: &str) -> String {
        let own = self.as_os_str().to_string_lossy();
        let said = if self.kind == Transport::Http { said.replace(&*own, &self.to_string()) } else { said.to_owned() };
        self.secrets.iter().fold(redact::prose(&said), |said, secret| said.replace(secret, redact::INSTEAD))
    }

    /// Returns whether it has a query, which git needs each time and so keeps.
    pub(crate) fn has_query(&self) -> bool {
        self.kind == Transport::Http && self.as_os_str().as_bytes().contains(&b'?')
    }

    /// Returns a local path as a URL, so that filters and depths apply to it.
    pub(crate) fn over_the_protocol(&self) -> Self {
        if self.kind != Transport::Local {
            return self.clone();
        }
        Self::new(Transport::File, format!("file://{}", in_url(self.as_os_str().as_bytes())).into())
    }

    pub(crate) fn directory(&self) -> Option<PathBuf> {
        match self.kind {
            Transport::Local => Some(self.as_os_str().into()),
            Transport::File => {
                let bytes = self.as_os_str().as_bytes().strip_prefix(b"file://")?;
                let path = &bytes[bytes.iter().position(|&byte| byte == b'/')?..];
                Some(path_of(&decoded(path)))
            }
            Transport::Http | Transport::Ssh | Transport::Git => None,
        }
    }

    /// Returns the name of the directory that git would clone into. Fails if the URL has none.
    pub fn directory_name(&self) -> Result<OsString, RemoteError> {
        let bytes = self.as_os_str().as_bytes();
        let bytes = bytes.strip_prefix(b"file://").unwrap_or(bytes);
        let is_secret = |byte: &u8| self.kind == Transport::Http && b"?#".contains(byte);
        let bytes = &bytes[..bytes.iter().position(is_secret).unwrap_or(bytes.len())];
        let trimmed = trim_end(bytes, b'/');
        let trimmed = trim_end(trimmed.strip_suffix(b"/.git").unwrap_or(trimmed), b'/');
        let start = trimmed.iter().rposition(|byte| b"/:".contains(byte)).map_or(0, |at| at + 1);
        let name = &trimmed[start..];
        let name = name.strip_suffix(b".git").unwrap_or(name);
        let name = if self.kind == Transport::Local { name.to_vec() } else { decoded(name) };
        let usable = !name.is_empty() && name != b"." && name != b".." && !name.contains(&b'/') && name[0] != b'-';
        if usable && !name.iter().any(u8::is_ascii_control) {
            return Ok(OsString::from_vec(name));
        }
        let reason = format!("`{self}` names no directory to clone into");
        Err(RemoteError::Usage { reason, remedy: Remedy::NameDirectory })
    }
}

impl Credentials {
    fn parse(given: &OsStr, before_the_at: &str) -> Result<Self, RemoteError> {
        let parts = before_the_at.split_once(':');
        let (username, password) =
            parts.map_or((before_the_at, None), |(username, password)| (username, Some(password)));
        let plain = |text: &str| match String::from_utf8(decoded(text.as_bytes())) {
            Ok(text) if !text.contains(char::is_control) => Ok(text),
            _ => Err(RemoteError::url(given, "its credentials are not text")),
        };
        Ok(Self { username: plain(username)?, password: password.map(plain).transpose()? })
    }
}

/// Lists the parts of an `https://` URL that may be secret, decoded and raw. Shorter ones would be found in any text.
fn secrets(user: Option<&str>, path: &str) -> Vec<String> {
    const SHORTEST: usize = 6;
    let behind = path.split_once(['?', '#']).map(|(_, behind)| behind);
    let pairs = behind.into_iter().flat_map(|behind| behind.split(['&', '#', ';']));
    let values = pairs.map(|pair| pair.split_once('=').map_or(pair, |(_, value)| value));
    // A user's name is no secret, unless it is a token without a password.
    let login = user.map(|user| match user.split_once(':') {
        Some((token, "" | "x-oauth-basic")) => token,
        Some((_, password)) => password,
        None => user,
    });
    let mut all: Vec<String> = user.into_iter().chain(behind).chain(values).chain(login).map(str::to_owned).collect();
    let plain: Vec<String> =
        all.iter().map(|part| String::from_utf8_lossy(&decoded(part.as_bytes())).into_owned()).collect();
    let escaped: Vec<String> = all.iter().map(|part| escaped(part)).collect();
    all.extend(plain.into_iter().chain(escaped));
    all.retain(|part| part.len() >= SHORTEST);
    // Longest first: others may be parts of it.
    all.sort_by_key(|part| std::cmp::Reverse(part.len()));
    all.dedup();
    all
}

/// Misplaced characters that people write into URLs. Browsers, too, escape them.
const MISPLACED: &AsciiSet =
    &CONTROLS.add(b' ').add(b'"').add(b'<').add(b'>').add(b'`').add(b'{').add(b'}').add(b'|').add(b'\\').add(b'^');

fn escaped(path: &str) -> String {
    utf8_percent_encode(path, MISPLACED).to_string()
}

fn decoded(text: &[u8]) -> Vec<u8> {
    percent_decode(text).collect()
}

fn trim_end(bytes: &[u8], byte: u8) -> &[u8] {
    &bytes[..bytes.iter().rposition(|b| *b != byte).map_or(0, |at| at + 1)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(given: &str) -> Result<RepositoryUrl, RemoteError> {
        RepositoryUrl::parse(OsStr::new(given))
    }

    #[test]
    fn every_way_to_name_a_repository_is_understood() {
        let cases = [
            ("https://example.org/a/b.git", Transport::Http, "b"),
            ("HTTPS://example.org/a/b", Transport::Http, "b"),
            ("http://127.0.0.1:8080/it's a \"name\".git", Transport::Http, "it's a \"name\""),
            ("ssh://git@example.org:22/a/b.git/", Transport::Ssh, "b"),
            ("git@example.org:a/b.git", Transport::Ssh, "b"),
            ("example.org:b", Transport::Ssh, "b"),
            ("[::1]:b", Transport::Ssh, "b"),
            ("git://example.org/b/.git", Transport::Git, "b"),
            ("file:///some/b%20c.git", Transport::File, "b c"),
        ];
        for (given, kind, name) in cases {
            let url = parse(given).unwrap();
            assert_eq!((url.kind, url.directory_name().unwrap()), (kind, name.into()), "{given}");
        }
        let local = parse("src/").unwrap();
        assert_eq!((local.kind, local.directory_name().unwrap()), (Transport::Local, "src".into()));
        assert!(local.over_the_protocol().to_string().starts_with("file:///"));
    }

    #[test]
    fn what_git_would_run_or_take_for_an_option_is_refused() {
        let bad = [
            "",
            "-u",
            "--upload-pack=x",
            "ext::sh -c true",
            "fd::17",
            "transport::address",
            "https://example.org/a\nb",
            "https://example.org/a\u{9b}b",
            "ssh://-oProxyCommand=x/a",
            "ssh://-x@example.org/a",
            "ssh://example.org/-a",
            "-x@example.org:a",
            "a@-x:b",
            "example.org:-b",
            "https:///a",
            "https://example.org",
            "gopher://example.org/a",
            "git://user@example.org/a",
            "https://a%0ab:c@example.org/x",
            "there/is/nothing/here",
        ];
        for given in bad {
            assert!(parse(given).is_err(), "{given}");
        }
    }

    #[test]
    fn credentials_are_taken_out() {
        let url = parse("https://me:p%40ss@example.org:8443/a.git").unwrap();
        assert_eq!(url.to_string(), "https://example.org:8443/a.git");
        assert_eq!(url.origin, "https://example.org:8443");
        let credentials = url.credentials.as_ref().unwrap();
        assert_eq!((credentials.username.as_str(), credentials.password.as_deref()), ("me", Some("p@ss")));
        assert!(!format!("{url:?}").contains("ss@"));
        assert_eq!(parse("ssh://git:secret@example.org/a").unwrap().to_string(), "ssh://git@example.org/a");
        let error = parse("gopher://me:secret@example.org/a").unwrap_err().to_string();
        assert!(!error.contains("secret") && error.contains("gopher://example.org/a"), "{error}");
        for (given, name) in [
            ("https://example.org/a.git?private_token=secret1", "a"),
            ("https://example.org/a.git#secret1", "a"),
            ("https://me:secret1@example.org/a?x=1", "a"),
        ] {
            let url = parse(given).unwrap();
            assert_eq!(url.directory_name().unwrap(), name);
            assert!(!format!("{url} {url:?}").contains("secret"), "{url}");
            let said = url.censored("unable to access 'https://example.org/a.git?private_token=secret1/info': secret1");
            assert!(!said.contains("secret") && said.contains("unable to access"), "{said}");
        }
        for bad in [
            "https://me:sec/ret@example.org/a",
            "https:/me:secret@example.org/a",
            "http:/x:secret@y",
            "https:example.org/a?private_token=secret",
            "HTTPS:secret@example.org/a",
            "https://h?secret",
        ] {
            let error = parse(bad).unwrap_err().to_string();
            assert!(!error.contains("sec"), "{error}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn fuzz_urls() {
        let urls: [&[u8]; 6] = [
            b"https://user:secret@example.org:8443/a/b.git?private_token=x#y",
            b"git@example.org:a/b.git",
            b"ssh://[::1]:22/~/a",
            b"file:///a%20b",
            b"../a",
            b"ext::sh -c a",
        ];
        calve_testkit::fuzz(&urls, |input| {
            if let Ok(url) = RepositoryUrl::parse(OsStr::from_bytes(input)) {
                drop(format!("{url:?}"));
            }
        });
    }
}
