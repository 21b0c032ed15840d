//! TLS for clients of configured servers that do not use HTTP.

use hyper_rustls::ConfigBuilderExt;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Trusts the certificates of a file, or those of the system.
pub fn verified_tls(ca_file: Option<&Path>) -> io::Result<ClientConfig> {
    let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?;
    Ok(match ca_file {
        Some(file) => builder.with_root_certificates(load_roots(file)?).with_no_client_auth(),
        None => builder.with_native_roots()?.with_no_client_auth(),
    })
}

fn load_roots(file: &Path) -> io::Result<RootCertStore> {
    let mut store = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(file).map_err(io::Error::other)? {
        store.add(certificate.map_err(io::Error::other)?).map_err(io::Error::other)?;
    }
    Ok(store)
}
