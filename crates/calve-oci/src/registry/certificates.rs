use std::env;
use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;

use rustls_native_certs::{ErrorKind, load_native_certs};
use ureq::tls::{Certificate, RootCerts, TlsConfig, TlsProvider};

use crate::error::Error;

/// Configures TLS with the user's certificates, or else the system's.
pub(super) fn tls() -> Result<TlsConfig, Error> {
    let named = |variable| Some((variable, env::var_os(variable).filter(|value| !value.is_empty())?));
    let is_nameless = |path: &Path| path.as_os_str().is_empty();
    let found = load_native_certs();
    // Without any, no registry could be trusted. For a list of empty names, the system's would be instead.
    let has_none = |value: &OsStr| found.certs.is_empty() || env::split_paths(value).all(|path| is_nameless(&path));
    if let Some((variable, value)) = ["SSL_CERT_FILE", "SSL_CERT_DIR"].into_iter().find_map(named)
        && has_none(&value)
    {
        // The loader takes an empty `SSL_CERT_FILE` for a file without a name.
        let is_reported = |error: &&rustls_native_certs::Error| !matches!(&error.kind, ErrorKind::Io { path, .. } if is_nameless(path));
        let reason = found.errors.iter().find(is_reported);
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
