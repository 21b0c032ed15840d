//! Outgoing connections, for every client in the binary.

use crate::net::Dialler;
use hyper_rustls::{ConfigBuilderExt, HttpsConnector, HttpsConnectorBuilder};
use rustls::crypto::aws_lc_rs;
use rustls::{ClientConfig, RootCertStore};
use std::io;
use std::sync::{Arc, OnceLock};

/// Connects to `http` and `https` addresses with TCP_NODELAY.
pub type Connector = HttpsConnector<Dialler>;

/// TLS on top of a dialler's connections.
pub(crate) fn tls_connector(dialler: Dialler) -> io::Result<Connector> {
    Ok(HttpsConnectorBuilder::new()
        .with_tls_config(tls_config()?)
        .https_or_http()
        .enable_http1()
        .enable_http2()
        .wrap_connector(dialler))
}

/// System root certificates, loaded once per process. Without any, plain HTTP works and no certificate is trusted.
fn tls_config() -> io::Result<ClientConfig> {
    static SHARED: OnceLock<ClientConfig> = OnceLock::new();
    if let Some(ready) = SHARED.get() {
        return Ok(ready.clone());
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?;
    let roots = builder.clone().with_native_roots().unwrap_or_else(|error| {
        tracing::warn!(%error, "HTTPS is not possible: install the system's ca-certificates and restart");
        builder.with_root_certificates(RootCertStore::empty())
    });
    Ok(SHARED.get_or_init(|| roots.with_no_client_auth()).clone())
}
