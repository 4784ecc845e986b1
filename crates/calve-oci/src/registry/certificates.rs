//! The certificates that a registry's is checked with.

use std::env;
use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;

use rustls_native_certs::{ErrorKind, load_native_certs};
use ureq::tls::{Certificate, RootCerts, TlsConfig, TlsProvider};

use crate::error::Error;

/// Returns the settings for TLS, with the certificates that the user names, and otherwise those that the system trusts.
pub(super) fn tls() -> Result<TlsConfig, Error> {
    let named = |variable| Some((variable, env::var_os(variable).filter(|value| !value.is_empty())?));
    let is_nameless = |path: &Path| path.as_os_str().is_empty();
    let found = load_native_certs();
    // No registry could be trusted; or the system's would be, in place of those in a list of empty names.
    let has_none = |value: &OsStr| found.certs.is_empty() || env::split_paths(value).all(|path| is_nameless(&path));
    if let Some((variable, value)) = ["SSL_CERT_FILE", "SSL_CERT_DIR"].into_iter().find_map(named)
        && has_none(&value)
    {
        // `SSL_CERT_FILE` without a value is a file without a name there.
        let is_told = |error: &&rustls_native_certs::Error| !matches!(&error.kind, ErrorKind::Io { path, .. } if is_nameless(path));
        let reason = found.errors.iter().find(is_told);
        let reason = reason.map_or_else(|| "it has no certificate".to_owned(), ToString::to_string);
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
