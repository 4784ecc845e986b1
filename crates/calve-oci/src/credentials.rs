//! Credentials of docker and podman: in a file, or in a helper program that the file names.

use std::collections::HashMap;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use crate::error::Error;

/// Files that may have credentials, in search order.
#[derive(Debug, Clone, Default)]
pub struct CredentialFiles(pub Vec<PathBuf>);

#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Credentials {
    Password {
        user: String,
        secret: String,
    },
    /// Exchanged for a token of shorter life.
    IdentityToken(String),
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct ConfigFile {
    auths: HashMap<String, Auth>,
    creds_store: Option<String>,
    cred_helpers: HashMap<String, String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Auth {
    auth: Option<String>,
    username: Option<String>,
    password: Option<String>,
    identitytoken: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct HelperAnswer {
    username: String,
    secret: String,
}

impl CredentialFiles {
    pub(crate) fn find(&self, registry: &str, repository: &str) -> Result<Option<Credentials>, Error> {
        let failed = |reason: String| Error::Credentials { registry: registry.into(), reason };
        for path in &self.0 {
            let text = match fs_err::read(path) {
                Ok(text) => text,
                Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                    continue;
                }
                Err(error) => return Err(failed(error.to_string())),
            };
            // serde's message quotes the mistake, which may be a secret.
            let file: ConfigFile = serde_json::from_slice(&text).map_err(|error| {
                let (line, column) = (error.line(), error.column());
                failed(format!("`{}` has a mistake in line {line}, column {column}", path.display()))
            })?;
            if let Some(found) = file.find(registry, repository).map_err(failed)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }
}

impl ConfigFile {
    /// Podman's files have namespaces too: the longest one counts.
    fn find(&self, registry: &str, repository: &str) -> Result<Option<Credentials>, String> {
        let place = format!("{registry}/{repository}");
        let namespaces = place.match_indices('/').map(|(slash, _)| &place[..slash]).skip(1).chain([&*place]);
        let mut found = None;
        for key in namespaces {
            if self.auths.contains_key(key) {
                found = self.written(key)?.or(found);
            }
        }
        let keys: &[&str] = match registry {
            "docker.io" => &["https://index.docker.io/v1/", "index.docker.io", "docker.io"],
            other => &[other],
        };
        for key in keys {
            if found.is_none() {
                found = self.of_registry(key)?;
            }
        }
        Ok(found)
    }

    fn of_registry(&self, key: &str) -> Result<Option<Credentials>, String> {
        if let Some(helper) = self.cred_helpers.get(key).or(self.creds_store.as_ref())
            && let Some(found) = ask(helper, key)?
        {
            return Ok(Some(found));
        }
        self.written(key)
    }

    /// Reads the credentials that the file itself has under a key.
    fn written(&self, key: &str) -> Result<Option<Credentials>, String> {
        let addressed = || self.auths.iter().find(|(named, _)| host(named) == Some(key)).map(|(_, auth)| auth);
        let Some(auth) = self.auths.get(key).or_else(addressed) else { return Ok(None) };
        if let Some(token) = auth.identitytoken.clone().filter(|token| !token.is_empty()) {
            return Ok(Some(Credentials::IdentityToken(token)));
        }
        if let (Some(user), Some(secret)) = (&auth.username, &auth.password) {
            return Ok(Some(Credentials::Password { user: user.clone(), secret: secret.clone() }));
        }
        let Some(encoded) = auth.auth.as_ref().filter(|encoded| !encoded.is_empty()) else { return Ok(None) };
        let decoded = STANDARD.decode(encoded.trim()).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        let (user, secret) = decoded
            .as_deref()
            .and_then(|decoded| decoded.split_once(':'))
            .ok_or_else(|| format!("the entry of `{key}` is not valid"))?;
        Ok(Some(Credentials::Password { user: user.into(), secret: secret.trim_end_matches('\0').into() }))
    }
}

/// Returns the host of a key that is a URL, as docker once wrote them.
fn host(named: &str) -> Option<&str> {
    let address = named.strip_prefix("https://").or_else(|| named.strip_prefix("http://"))?;
    address.split('/').next()
}

/// Speaks docker's protocol for credential helpers.
fn ask(helper: &str, key: &str) -> Result<Option<Credentials>, String> {
    if helper.is_empty() || !helper.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)) {
        return Err(format!("`{}` cannot be the name of a helper", helper.escape_debug()));
    }
    let program = format!("docker-credential-{helper}");
    let failed = |error: io::Error| format!("{program}: {error}");
    let mut child = Command::new(&program)
        .arg("get")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(failed)?;
    if let Some(mut stdin) = child.stdin.take() {
        // A helper that does not read it answers, or fails, anyway.
        let _ = stdin.write_all(key.as_bytes());
    }
    let output = child.wait_with_output().map_err(failed)?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stdout);
        let has_none = said.contains("credentials not found");
        return if has_none { Ok(None) } else { Err(format!("{program} ended with {}", output.status)) };
    }
    // Its output is a secret even if it is invalid.
    let answer: HelperAnswer =
        serde_json::from_slice(&output.stdout).map_err(|_| format!("{program} gave an answer that is not valid"))?;
    Ok(Some(match &*answer.username {
        "<token>" => Credentials::IdentityToken(answer.secret),
        _ => Credentials::Password { user: answer.username, secret: answer.secret },
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(text: &str, registry: &str) -> Option<(String, String)> {
        let file: ConfigFile = serde_json::from_str(text).unwrap();
        let (registry, repository) = registry.split_once('/').unwrap_or((registry, "r"));
        match file.find(registry, repository).unwrap()? {
            Credentials::Password { user, secret } => Some((user, secret)),
            Credentials::IdentityToken(token) => Some(("<token>".into(), token)),
        }
    }

    #[test]
    fn a_mistake_is_told_without_the_text_around_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.json");
        for text in [r#"{"auths": {"ghcr.io": "c2VjcmV0"}}"#, r#"{"auths": {"ghcr.io": {"password": 12345678}}}"#] {
            fs_err::write(&path, text).unwrap();
            let error = CredentialFiles(vec![path.clone()]).find("ghcr.io", "r").err().unwrap().to_string();
            assert!(error.contains("line 1") && !error.contains("c2Vj") && !error.contains("1234"), "{error}");
        }
    }

    #[test]
    fn credentials_are_read_as_docker_writes_them() {
        let text = format!(
            r#"{{"auths": {{"https://index.docker.io/v1/": {{"auth": "{}"}}, "https://ghcr.io": {{"username": "u", "password": "p"}},
            "t.example.org:5000": {{"identitytoken": "t"}}, "empty.example.org": {{}}}}, "other": 1}}"#,
            STANDARD.encode("user:pass:word")
        );
        let pair = |user: &str, secret: &str| Some((user.to_owned(), secret.to_owned()));
        assert_eq!(find(&text, "docker.io"), pair("user", "pass:word"));
        assert_eq!(find(&text, "ghcr.io"), pair("u", "p"));
        assert_eq!(find(&text, "t.example.org:5000"), pair("<token>", "t"));
        let podman = |name: &str| format!("{{\"username\": \"{name}\", \"password\": \"p\"}}");
        let namespaces = format!(
            r#"{{"auths": {{"h.example.org/team": {}, "h.example.org/team/deep": {}, "h.example.org": {}}}}}"#,
            podman("team"),
            podman("deep"),
            podman("all")
        );
        for (place, user) in
            [("team/x", "team"), ("team", "team"), ("team/deep/x", "deep"), ("teams/x", "all"), ("other/team", "all")]
        {
            assert_eq!(find(&namespaces, &format!("h.example.org/{place}")), pair(user, "p"), "{place}");
        }
        for registry in ["t.example.org", "empty.example.org", "io", "evil-ghcr.io"] {
            assert_eq!(find(&text, registry), None, "{registry}");
        }
    }
}
