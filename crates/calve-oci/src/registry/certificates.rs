//! The certificates that a registry's is checked with.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::Arc;

use rustls_native_certs::{CertificateResult, load_certs_from_paths, load_native_certs};
use ureq::tls::{Certificate, RootCerts, TlsConfig, TlsProvider};

use crate::error::Error;

/// Returns the settings for TLS, with the certificates that the user names, and otherwise those that the system trusts.
pub(super) fn tls() -> Result<TlsConfig, Error> {
    let (file, list) = (named("SSL_CERT_FILE"), named("SSL_CERT_DIR"));
    let first = [("SSL_CERT_FILE", &file), ("SSL_CERT_DIR", &list)];
    let first = first.into_iter().find_map(|(variable, value)| Some((variable, value.as_ref()?)));
    let found = match first {
        Some(_) => load(file.as_deref(), list.as_deref()),
        None => load_native_certs(),
    };
    // No registry could be trusted.
    if let (Some((variable, value)), true) = (first, found.certs.is_empty()) {
        let reason = found.errors.first().map_or_else(|| "it has no certificate".to_owned(), ToString::to_string);
        return Err(Error::Certificates { variable, value: value.into(), reason });
    }
    let certificates: Vec<_> =
        found.certs.iter().map(|certificate| Certificate::from_der(certificate).to_owned()).collect();
    Ok(TlsConfig::builder()
        .provider(TlsProvider::Rustls)
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .root_certs(RootCerts::new_with_certs(&certificates))
        .build())
}

fn named(variable: &str) -> Option<OsString> {
    env::var_os(variable).filter(|value| !value.is_empty())
}

/// Reads the file, and the directories in the list.
fn load(file: Option<&OsStr>, list: Option<&OsStr>) -> CertificateResult {
    let mut found = load_certs_from_paths(file.map(Path::new), None);
    for directory in list.map(env::split_paths).into_iter().flatten() {
        let more = load_certs_from_paths(None, Some(&directory));
        found.certs.extend(more.certs);
        found.errors.extend(more.errors);
    }
    found
}
