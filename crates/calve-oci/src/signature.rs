//! Signatures of images as cosign makes them: a manifest beside the image, whose blobs name the image and whose annotations sign the blobs.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P384_SHA256_ASN1, ED25519, UnparsedPublicKey, VerificationAlgorithm,
};
use rustls::pki_types::SubjectPublicKeyInfoDer;
use rustls::pki_types::pem::PemObject as _;
use serde::Deserialize;

use crate::address::Transport;
use crate::error::Error;
use crate::image::{Descriptor, ImageManifest};
use crate::operation::Operation;
use crate::reference::{Reference, is_digest};
use crate::registry::Registry;
use crate::spool::Spool;

const PAYLOAD_TYPE: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
const SIGNATURE: &str = "dev.cosignproject.cosign/signature";
const KIND: &str = "cosign container image signature";
/// More is not a signature.
const LARGEST_PAYLOAD_BYTES: u64 = 1 << 20;
/// More are not looked at.
const SIGNATURES: usize = 50;

/// The name that a signature must give to the image.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub(crate) enum Identity {
    MatchExact,
    MatchRepoDigestOrExact,
    MatchRepository,
    ExactReference {
        docker_reference: String,
    },
    ExactRepository {
        docker_repository: String,
    },
    #[serde(rename = "remapIdentity")]
    Remap {
        prefix: String,
        signed_prefix: String,
    },
}

impl Identity {
    /// Returns whether a signature for `signed` is one for `reference`.
    fn accepts(&self, signed: &str, reference: &Reference) -> bool {
        // Without a tag, as cosign writes it, it is a repository: no exact name of an image.
        let repository = Reference::parse(signed, Transport::Https).map(|signed| signed.repository_name());
        let is_in = |place: &str| repository.as_deref().is_ok_and(|repository| repository == place);
        let is_exactly = |name: &str| signed == name;
        let digest_or_exactly = |place: &str| match reference.digest() {
            // The signer has named an image, not a whole repository.
            Some(_) => is_in(place) && signed != place,
            None => is_exactly(&format!("{place}:{}", reference.version)),
        };
        match self {
            Self::MatchExact => reference.digest().is_none() && is_exactly(&reference.to_string()),
            Self::MatchRepoDigestOrExact => digest_or_exactly(&reference.repository_name()),
            Self::MatchRepository => is_in(&reference.repository_name()),
            Self::ExactReference { docker_reference } => is_exactly(docker_reference),
            Self::ExactRepository { docker_repository } => is_in(docker_repository),
            Self::Remap { prefix, signed_prefix } => {
                let place = reference.repository_name();
                let rest = place.strip_prefix(&**prefix).filter(|rest| rest.is_empty() || rest.starts_with('/'));
                digest_or_exactly(&rest.map_or(place.clone(), |rest| format!("{signed_prefix}{rest}")))
            }
        }
    }
}

/// A key that signatures are checked with.
pub(crate) struct PublicKey {
    algorithm: &'static dyn VerificationAlgorithm,
    bytes: Vec<u8>,
}

impl PublicKey {
    /// Reads a key as cosign writes it. The error says what is wrong with it.
    pub(crate) fn from_pem(text: &[u8]) -> Result<Self, &'static str> {
        // Before the key's own bytes, the structure SubjectPublicKeyInfo (RFC 5280) has the same ones for all keys of a kind (RFC 5480, RFC 8410).
        const KINDS: [(&[u8], usize, &dyn VerificationAlgorithm); 3] = [
            (
                b"\x30\x59\x30\x13\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07\x03\x42\x00",
                65,
                &ECDSA_P256_SHA256_ASN1,
            ),
            (
                b"\x30\x76\x30\x10\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x05\x2b\x81\x04\x00\x22\x03\x62\x00",
                97,
                &ECDSA_P384_SHA256_ASN1,
            ),
            (b"\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\x00", 32, &ED25519),
        ];
        let key = SubjectPublicKeyInfoDer::from_pem_slice(text).map_err(|_| "is no public key in PEM")?;
        let found = KINDS.into_iter().find_map(|(start, size, algorithm)| {
            let bytes = key.strip_prefix(start).filter(|bytes| bytes.len() == size)?;
            Some(Self { algorithm, bytes: bytes.to_vec() })
        });
        found.ok_or("is neither an ECDSA key (P-256, P-384) nor one of Ed25519")
    }

    fn has_signed(&self, bytes: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(self.algorithm, &self.bytes).verify(bytes, signature).is_ok()
    }
}

#[derive(Deserialize)]
struct Payload {
    critical: CriticalFields,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CriticalFields {
    identity: SignedIdentity,
    image: SignedDigest,
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct SignedIdentity {
    docker_reference: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct SignedDigest {
    docker_manifest_digest: String,
}

/// An image, with the registry that has its signatures.
pub(crate) struct SignedImage<'a> {
    pub(crate) reference: &'a Reference,
    pub(crate) registry: &'a Registry<'a>,
    /// The digest of its manifest.
    pub(crate) digest: &'a str,
}

impl SignedImage<'_> {
    /// Looks for a signature by one of these keys, for this image under this name. The inner error says why none counts.
    pub(crate) fn is_signed_by(&self, keys: &[PublicKey], identity: &Identity) -> Result<Result<(), String>, Error> {
        let tag = format!("{}.sig", self.digest.replace(':', "-"));
        let Some(bytes) = self.registry.other_manifest(&tag)? else {
            return Ok(Err("it demands a signature, and the image has none".into()));
        };
        let manifest: ImageManifest = serde_json::from_slice(&bytes)
            .map_err(|_| self.registry.wrong("a manifest of signatures that cannot be read"))?;
        let mut reason = "no signature of the image is by a key that it names".to_owned();
        for layer in manifest.layers.iter().filter(|layer| layer.media_type == PAYLOAD_TYPE).take(SIGNATURES) {
            let signature = layer.annotations.get(SIGNATURE).and_then(|text| STANDARD.decode(text).ok());
            let Some(signature) = signature else { continue };
            let payload = self.payload(layer)?;
            if !keys.iter().any(|key| key.has_signed(&payload, &signature)) {
                continue;
            }
            // From here on it is what the owner of the key has written.
            match serde_json::from_slice::<Payload>(&payload) {
                Ok(Payload { critical }) if critical.kind != KIND => reason = "a signature is of another kind".into(),
                Ok(Payload { critical }) if critical.image.docker_manifest_digest != self.digest => {
                    reason = "the signature is that of another image".into();
                }
                Ok(Payload { critical }) => {
                    let signed = critical.identity.docker_reference;
                    if identity.accepts(&signed, self.reference) {
                        return Ok(Ok(()));
                    }
                    reason = format!("the image is signed as `{}`", calve_core::ShownPath(&signed));
                }
                Err(_) => reason = "a signature cannot be read".into(),
            }
        }
        Ok(Err(reason))
    }

    fn payload(&self, layer: &Descriptor) -> Result<Vec<u8>, Error> {
        if !is_digest(&layer.digest) || layer.size > LARGEST_PAYLOAD_BYTES {
            return Err(self.registry.wrong("a signature that is none"));
        }
        let mut blob = self.registry.blob(layer, Spool::new(None))?;
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut blob.reader()?, &mut bytes)
            .map_err(|error| Error::io(Operation::ReadPart, "", error))?;
        Ok(bytes)
    }
}
