//! Processes under measurement, each on a free loopback port.

use anyhow::{Context, Result, bail};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A server process, killed on drop.
pub struct ServerProcess {
    pub process: Child,
    pub port: u16,
}

impl ServerProcess {
    /// Starts it and waits until it accepts connections.
    pub fn start(mut command: Command, port: u16) -> Result<Self> {
        let process = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let running = Self { process, port };
        let deadline = Instant::now() + Duration::from_secs(10);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if Instant::now() > deadline {
                bail!("{command:?} does not listen on {port}");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(running)
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub fn free_port() -> Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

/// nginx as a plain proxy with keep-alive to the upstream, in its own directory.
pub fn start_nginx(folder: &Path, upstream: u16) -> Result<ServerProcess> {
    let program =
        std::env::var("NGINX").context("NGINX is not set: run eval \"$(scripts/services env)\" first")?;
    std::fs::create_dir_all(folder)?;
    let port = free_port()?;
    let at = folder.display();
    let settings = format!(
        "daemon off; worker_processes 2; pid {at}/pid; error_log {at}/error.log;
events {{ worker_connections 1024; }}
http {{
  access_log off; client_body_temp_path {at}/body; proxy_temp_path {at}/proxy;
  fastcgi_temp_path {at}/f; uwsgi_temp_path {at}/u; scgi_temp_path {at}/s;
  upstream up {{ server 127.0.0.1:{upstream}; keepalive 64; }}
  server {{
    listen 127.0.0.1:{port}; keepalive_requests 1000000;
    location / {{
      proxy_pass http://up; proxy_http_version 1.1; proxy_set_header Connection '';
      proxy_set_header Host 127.0.0.1:{upstream}; proxy_buffering off;
    }}
  }}
}}\n"
    );
    std::fs::write(folder.join("nginx.conf"), settings)?;
    let mut command = Command::new(program);
    command.env_remove("NGINX").arg("-p").arg(folder).arg("-c").arg(folder.join("nginx.conf"));
    ServerProcess::start(command, port)
}

/// Sends a request of the modern era; returns the body of the response.
pub fn post_modern(port: u16, method: &str, params: &str) -> Result<Vec<u8>> {
    let mut params: serde_json::Value = serde_json::from_str(params)?;
    let name = params.get("name").and_then(|name| name.as_str()).map(|name| format!("Mcp-Name: {name}\r\n"));
    if let Some(members) = params.as_object_mut() {
        members.insert(
            "_meta".to_owned(),
            serde_json::json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            }),
        );
    }
    let body = serde_json::json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    write!(
        stream,
        "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n{}Connection: close\r\nContent-Length: {}\r\n\r\n{body}",
        name.unwrap_or_default(),
        body.len()
    )?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let text = String::from_utf8(answer)?;
    let (_, body) = text.split_once("\r\n\r\n").context("no body")?;
    Ok(body.as_bytes().to_vec())
}

pub fn resident_mb(pid: u32) -> Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    let kb: f64 = line.trim().trim_end_matches(" kB").trim().parse()?;
    Ok(kb / 1024.0)
}
