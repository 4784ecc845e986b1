//! The policy that says which images are let in: `policy.json`, as podman and skopeo read it (containers-policy.json(5)).

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use crate::error::Error;
use crate::reference::Reference;
use crate::signature::{Identity, PublicKey, SignedImage};

/// Where the policy may be, in the order in which it is looked for: the first file that exists counts. Without one, every image is let in.
#[derive(Debug, Clone, Default)]
pub struct PolicyFiles(pub Vec<PathBuf>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicyFile {
    default: Vec<Requirement>,
    #[serde(default)]
    transports: HashMap<String, serde_json::Value>,
}

#[derive(Deserialize, Clone)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
enum Requirement {
    InsecureAcceptAnything,
    Reject,
    SigstoreSigned {
        key_path: Option<PathBuf>,
        key_paths: Option<Vec<PathBuf>>,
        key_data: Option<String>,
        key_datas: Option<Vec<String>>,
        signed_identity: Option<Identity>,
        /// Fields that Calve cannot check.
        #[serde(flatten)]
        more: HashMap<String, serde_json::Value>,
    },
    #[serde(other)]
    Unknown,
}

/// The requirements that an image must meet.
pub(crate) struct Policy {
    path: PathBuf,
    requirements: Vec<Requirement>,
}

impl PolicyFiles {
    /// Returns the requirements for an image. `None` if there is no policy.
    pub(crate) fn of(&self, reference: &Reference) -> Result<Option<Policy>, Error> {
        for path in &self.0 {
            let failed = |reason: String| Error::Policy { path: path.clone(), reason };
            let text = match fs_err::read(path) {
                Ok(text) => text,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Err(error) => return Err(failed(calve_core::without_path(error).to_string())),
            };
            let requirements = read(&text, reference).map_err(|error| failed(error.to_string()))?;
            if requirements.is_empty() {
                return Err(failed("it has an empty list of requirements".into()));
            }
            return Ok(Some(Policy { path: path.clone(), requirements }));
        }
        Ok(None)
    }
}

/// Returns the requirements of the narrowest scope that has an image.
fn read(text: &[u8], reference: &Reference) -> Result<Vec<Requirement>, serde_json::Error> {
    let mut file: PolicyFile = serde_json::from_slice(text)?;
    let Some(docker) = file.transports.remove("docker") else { return Ok(file.default) };
    let mut scopes: HashMap<String, Vec<Requirement>> = serde_json::from_value(docker)?;
    let scope = scopes_of(reference).into_iter().find(|scope| scopes.contains_key(scope));
    Ok(scope.and_then(|scope| scopes.remove(&scope)).unwrap_or(file.default))
}

/// Returns the scopes that have an image, the narrowest first.
fn scopes_of(reference: &Reference) -> Vec<String> {
    let mut scopes = vec![reference.to_string()];
    let place = reference.repository_name();
    let ends = place.rmatch_indices('/').map(|(end, _)| end);
    scopes.extend(std::iter::once(place.len()).chain(ends).map(|end| place[..end].to_owned()));
    // Subdomains are written without a port.
    let host = reference.registry.rsplit_once(':').map_or(&*reference.registry, |(host, _)| host);
    scopes.extend(host.match_indices('.').map(|(dot, _)| format!("*{}", &host[dot..])));
    scopes.push(String::new());
    scopes
}

impl Policy {
    /// Fails unless the image meets all requirements. `signatures` fetches those that it has, each of which may be forged.
    pub(crate) fn check(&self, image: &SignedImage<'_>) -> Result<(), Error> {
        let refused = |reason: String| {
            Err(Error::NotAllowed { reference: image.reference.to_string(), path: self.path.clone(), reason })
        };
        for requirement in &self.requirements {
            match requirement {
                Requirement::InsecureAcceptAnything => {}
                Requirement::Reject => return refused("it lets in no image from there".into()),
                Requirement::Unknown => return refused("it demands a check that is not known here".into()),
                Requirement::SigstoreSigned { more, .. } if !more.is_empty() => {
                    let names: Vec<_> = more.keys().map(|name| format!("`{name}`")).collect();
                    return refused(format!("it demands a check that is not known here: {}", names.join(", ")));
                }
                Requirement::SigstoreSigned { key_path, key_paths, key_data, key_datas, signed_identity, .. } => {
                    let paths = key_path.iter().chain(key_paths.iter().flatten()).map(|path| self.key_at(path));
                    let texts = key_data.iter().chain(key_datas.iter().flatten()).map(|text| self.key_in(text));
                    let keys = paths.chain(texts).collect::<Result<Vec<_>, _>>()?;
                    if keys.is_empty() {
                        return Err(self.bad("it names no key".into()));
                    }
                    let identity = signed_identity.as_ref().unwrap_or(&Identity::MatchRepoDigestOrExact);
                    if let Err(reason) = image.is_signed_by(&keys, identity)? {
                        return refused(reason);
                    }
                }
            }
        }
        Ok(())
    }

    fn key_at(&self, path: &Path) -> Result<PublicKey, Error> {
        let text = fs_err::read(path).map_err(|error| self.bad(error.to_string()))?;
        PublicKey::from_pem(&text).map_err(|what| self.bad(format!("the key `{}` {what}", path.display())))
    }

    fn key_in(&self, text: &str) -> Result<PublicKey, Error> {
        let bytes = STANDARD.decode(text).map_err(|_| self.bad("a key in it is not valid base64".into()))?;
        PublicKey::from_pem(&bytes).map_err(|what| self.bad(format!("a key in it {what}")))
    }

    fn bad(&self, reason: String) -> Error {
        Error::Policy { path: self.path.clone(), reason }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::Transport;

    #[test]
    fn scopes_go_from_the_image_to_everything() {
        let reference = Reference::parse("quay.example.com:5000/team/shop/deps:v1", Transport::Https).unwrap();
        let expected = [
            "quay.example.com:5000/team/shop/deps:v1",
            "quay.example.com:5000/team/shop/deps",
            "quay.example.com:5000/team/shop",
            "quay.example.com:5000/team",
            "quay.example.com:5000",
            "*.example.com",
            "*.com",
            "",
        ];
        assert_eq!(scopes_of(&reference), expected);
        let text = br#"{"default": [{"type": "reject"}], "transports": {"dir": {"": []}, "docker": {
            "quay.example.com:5000/team": [{"type": "insecureAcceptAnything"}], "*.com": [{"type": "reject"}]}}}"#;
        assert!(matches!(read(text, &reference).unwrap()[..], [Requirement::InsecureAcceptAnything]));
        let other = Reference::parse("quay.example.com:5000/teams/deps:v1", Transport::Https).unwrap();
        assert!(matches!(read(text, &other).unwrap()[..], [Requirement::Reject]));
    }
}
