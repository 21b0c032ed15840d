//! The reverse proxies of the guide, with the configuration as written there, except for ports, certificates and
//! directories.

use super::{PUBLIC_HOST, TOKEN, run_program, start_hub};
use anyhow::{Context, Result};
use octo_tests::eventually;
use octo_tests::test_binaries::service_variable;
use std::path::Path;
use std::process::Stdio;
use tokio::process::{Child, Command};

const GUIDE: &str = include_str!("../../../docs/guide/deployment.md");
/// Address of the hub in the guide.
const GUIDE_HUB: &str = "127.0.0.1:7000";

/// First request of an MCP client.
const INITIALIZE_REQUEST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;

/// The block of the guide in a language.
fn guide_block(language: &str) -> Result<&'static str> {
    let start = format!("```{language}\n");
    let rest = GUIDE.split(&start).nth(1).with_context(|| format!("the guide has no {language}"))?;
    rest.split("```").next().context("the block does not end")
}

fn free_port() -> Result<u16> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

fn start_proxy(mut command: Command, folder: &Path) -> Result<Child> {
    let log = std::fs::File::create(folder.join("log"))?;
    Ok(command
        .env("HOME", folder)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .kill_on_drop(true)
        .spawn()?)
}

/// Calls a tool over TLS by the public name until the proxy is ready, and then starts an MCP session.
async fn call_through(port: u16, folder: &Path) -> Result<()> {
    let resolve = format!("{PUBLIC_HOST}:{port}:127.0.0.1");
    let bearer = format!("Authorization: Bearer {TOKEN}");
    let base = format!("https://{PUBLIC_HOST}:{port}");
    let (tool, mcp) = (format!("{base}/tools/time_now"), format!("{base}/mcp"));
    let curl = ["-sSk", "--fail-with-body", "--resolve", &resolve, "-H", &bearer];
    let rest = [&curl[..], &["-X", "POST", &tool]].concat();
    let said = eventually("the proxy answers", async || run_program("curl", &rest, folder).await.ok()).await;
    let said = said.with_context(|| std::fs::read_to_string(folder.join("log")).unwrap_or_default())?;
    assert!(said.contains("\"success\":true"), "{said}");
    let json = ["-H", "Content-Type: application/json", "-H", "Accept: application/json, text/event-stream"];
    let hello = [&curl[..], &json, &["-d", INITIALIZE_REQUEST, &mcp]].concat();
    let said = run_program("curl", &hello, folder).await?;
    assert!(said.contains("\"protocolVersion\":\"2025-11-25\""), "{said}");
    Ok(())
}

#[tokio::test]
async fn nginx_of_the_guide_leads_to_the_hub() -> Result<()> {
    let (home, hub) = start_hub().await?;
    let folder = home.dir.path().join("nginx");
    std::fs::create_dir(&folder)?;
    let subject = format!("/CN={PUBLIC_HOST}");
    let key = ["req", "-x509", "-nodes", "-newkey", "rsa:2048", "-days", "2", "-subj", &subject];
    run_program("openssl", &[&key[..], &["-keyout", "key.pem", "-out", "cert.pem"]].concat(), &folder)
        .await?;
    let (port, at) = (free_port()?, folder.display());
    let server = guide_block("nginx")?
        .replace("listen 443 ssl", &format!("listen 127.0.0.1:{port} ssl"))
        .replace("/etc/ssl/hub.example.com.pem", &format!("{at}/cert.pem"))
        .replace("/etc/ssl/hub.example.com.key", &format!("{at}/key.pem"))
        .replace(GUIDE_HUB, hub.base_url.trim_start_matches("http://"));
    let settings = format!(
        "daemon off; master_process off; pid {at}/pid; error_log {at}/error.log;
events {{}}
http {{
  access_log off; client_body_temp_path {at}/body; proxy_temp_path {at}/proxy;
  fastcgi_temp_path {at}/f; uwsgi_temp_path {at}/u; scgi_temp_path {at}/s;
  {server}
}}\n"
    );
    std::fs::write(folder.join("nginx.conf"), settings)?;
    let mut nginx = Command::new(service_variable("NGINX")?);
    // nginx takes a variable of this name for sockets that it inherits.
    nginx.env_remove("NGINX").arg("-p").arg(&folder).arg("-c").arg(folder.join("nginx.conf"));
    let _nginx = start_proxy(nginx, &folder)?;
    call_through(port, &folder).await
}

#[tokio::test]
async fn caddy_of_the_guide_leads_to_the_hub() -> Result<()> {
    let (home, hub) = start_hub().await?;
    let folder = home.dir.path().join("caddy");
    std::fs::create_dir(&folder)?;
    let port = free_port()?;
    let site = guide_block("caddyfile")?.replace(GUIDE_HUB, hub.base_url.trim_start_matches("http://"));
    // A certificate of its own, and nothing outside of the folder.
    let settings = format!(
        "{{\n\tadmin off\n\tlocal_certs\n\tskip_install_trust\n\tauto_https disable_redirects\n\thttps_port {port}\n\tdefault_bind 127.0.0.1\n\tstorage file_system {}\n}}\n{site}",
        folder.join("data").display()
    );
    std::fs::write(folder.join("Caddyfile"), settings)?;
    let mut caddy = Command::new(service_variable("CADDY")?);
    caddy.arg("run").arg("--config").arg(folder.join("Caddyfile"));
    let _caddy = start_proxy(caddy, &folder)?;
    call_through(port, &folder).await
}
