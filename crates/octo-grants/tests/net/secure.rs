//! Pages over TLS: certificates are checked, and HTTP/2 is used if the server supports it.

use crate::ground::{ScriptedResolver, ask, spec};
use axum::Router;
use axum::http::Version;
use axum::routing::get;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use octo_grants::Net;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// A self-signed certificate for `secure.test`.
fn certify(folder: &Path) {
    let made = Command::new("openssl")
        .args(
            "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout key.pem -out cert.pem"
                .split(' '),
        )
        .args("-days 2 -subj /CN=secure.test -addext subjectAltName=DNS:secure.test".split(' '))
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
}

/// Returns the protocol of the request.
async fn serve(folder: &Path, protocols: &[&str]) -> u16 {
    let cert = CertificateDer::from_pem_file(folder.join("cert.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(folder.join("key.pem")).unwrap();
    let mut config =
        ServerConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![cert], key)
            .unwrap();
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    let tls = TlsAcceptor::from(Arc::new(config));
    let router = Router::new().route("/", get(|version: Version| async move { format!("{version:?}") }));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let (tls, service) = (tls.clone(), TowerToHyperService::new(router.clone()));
            tokio::spawn(async move {
                let Ok(stream) = tls.accept(stream).await else { return };
                let _ = auto::Builder::new(TokioExecutor::new())
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            });
        }
    });
    port
}

/// Sends the request in a separate process, because root certificates are set by the environment.
async fn asked(url: String, roots: Option<&Path>) -> String {
    let mut client = tokio::process::Command::new(std::env::current_exe().unwrap());
    client.args(["secure::client", "--exact", "--ignored", "--nocapture"]).env("NET_TEST_URL", url);
    if let Some(roots) = roots {
        client.env("SSL_CERT_FILE", roots).env_remove("SSL_CERT_DIR");
    }
    String::from_utf8(client.output().await.unwrap().stdout).unwrap()
}

#[tokio::test]
#[ignore = "a process that other tests start"]
async fn client() {
    let here: &[&[&str]] = &[&["127.0.0.1"]];
    let names = ScriptedResolver::new(&[("secure.test", here), ("other.test", here)]);
    let net = Net::with_resolver(spec(&["127.0.0.1"]), names).unwrap();
    match net.send(ask(&std::env::var("NET_TEST_URL").unwrap())).await {
        Ok(answer) => println!("said: {}", String::from_utf8_lossy(&answer.body)),
        Err(error) => println!("failed: {error}"),
    }
}

#[tokio::test]
async fn certificates_are_checked_and_the_best_protocol_is_spoken() {
    let folder = tempfile::tempdir().unwrap();
    certify(folder.path());
    let roots = folder.path().join("cert.pem");
    for (protocols, host, trusted, said) in [
        (&["h2", "http/1.1"][..], "secure.test", true, "said: HTTP/2.0"),
        (&["http/1.1"][..], "secure.test", true, "said: HTTP/1.1"),
        (&[][..], "secure.test", true, "said: HTTP/1.1"),
        (&["h2"][..], "other.test", true, "failed: unavailable: The TLS connection to `other.test` failed"),
        (&["h2"][..], "127.0.0.1", true, "failed: unavailable: The TLS connection to `127.0.0.1` failed"),
        (&["h2"][..], "secure.test", false, "failed: unavailable"),
    ] {
        let port = serve(folder.path(), protocols).await;
        let answer = asked(format!("https://{host}:{port}/"), trusted.then_some(&*roots)).await;
        assert!(answer.contains(said), "{protocols:?} {host}: {answer}");
    }
}
