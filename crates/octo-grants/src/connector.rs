//! Outgoing connections, for every client in the binary.

use crate::net::Dialler;
use hyper_rustls::{ConfigBuilderExt, HttpsConnector, HttpsConnectorBuilder};
use rustls::ClientConfig;
use rustls::crypto::aws_lc_rs;
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

/// System root certificates, loaded once per process.
fn tls_config() -> io::Result<ClientConfig> {
    static SHARED: OnceLock<ClientConfig> = OnceLock::new();
    if let Some(ready) = SHARED.get() {
        return Ok(ready.clone());
    }
    let fresh = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_native_roots()?
        .with_no_client_auth();
    Ok(SHARED.get_or_init(|| fresh).clone())
}
