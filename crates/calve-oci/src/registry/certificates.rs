//! The certificates that a registry's is checked with.

use std::env;
use std::sync::Arc;

use rustls_native_certs::load_native_certs;
use ureq::tls::{Certificate, RootCerts, TlsConfig, TlsProvider};

use crate::error::Error;

/// Returns the settings for TLS, with the certificates that the user names, and otherwise those that the system trusts.
pub(super) fn tls() -> Result<TlsConfig, Error> {
    let named = |variable| Some((variable, env::var_os(variable).filter(|value| !value.is_empty())?));
    let found = load_native_certs();
    // No registry could be trusted.
    if let Some((variable, value)) = ["SSL_CERT_FILE", "SSL_CERT_DIR"].into_iter().find_map(named)
        && found.certs.is_empty()
    {
        // A variable without a value names the path without a name there.
        let mut reasons = found.errors.iter().map(ToString::to_string).filter(|reason| !reason.ends_with("at ''"));
        let reason = reasons.next().unwrap_or_else(|| "it has no certificate".to_owned());
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
