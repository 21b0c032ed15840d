//! Who may speak on the bus of a fleet.

use crate::test_fleet::{RunningWorker, call, call_when_served};
use anyhow::{Context, Result, ensure};
use octo_tests::hub_process::HubHome;
use octo_tests::test_binaries::service_variable;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::{Child, Command};

const SECRET: &str = "the secret of a fleet that only tests use";

/// A NATS server with these lines in its configuration, in a directory of its own.
struct Nats {
    port: u16,
    _process: Child,
    _folder: tempfile::TempDir,
}

impl Nats {
    fn start(config: &str) -> Result<Self> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("nats.conf");
        std::fs::write(&file, format!("listen: \"127.0.0.1:{port}\"\n{config}\n"))?;
        let process = Command::new(service_variable("NATS_SERVER")?)
            .arg("--config")
            .arg(file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        Ok(Self { port, _process: process, _folder: folder })
    }

    fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    async fn wait(&self) -> Result<()> {
        octo_tests::eventually("NATS listens", async || TcpStream::connect(("127.0.0.1", self.port)).ok())
            .await
            .map(|_| ())
    }
}

/// Makes a user of NATS with the command; returns its public key and the seed.
async fn nkey(folder: &Path, name: &str) -> Result<(String, String)> {
    let home = HubHome::new(&json!({}))?;
    let file = folder.join(name);
    let path = file.display().to_string();
    let (code, public, error) = home.run(&["fleet", "nkey", &path]).await?;
    ensure!(code == 0, "{error}");
    let (code, _, error) = home.run(&["fleet", "nkey", &path]).await?;
    ensure!(code != 0 && error.contains("exists"), "a seed was replaced: {error}");
    Ok((public.trim().to_owned(), std::fs::read_to_string(file)?.trim().to_owned()))
}

#[tokio::test]
async fn a_bus_where_anybody_may_speak_is_refused() -> Result<()> {
    let far = "nats://192.0.2.7:4222";
    let near = "nats://127.0.0.1:9";
    let [credentials, secret] = ["SUAFAKESEEDTHATNOSERVERKNOWS", SECRET];
    let rows = [
        (json!({"nats": [near]}), "has no credentials"),
        (json!({"nats": [near], "secret": secret}), "has no credentials"),
        (json!({"nats": [near], "credentials": credentials}), "has no secret"),
        (json!({"nats": [far], "credentials": credentials, "secret": secret}), "without TLS"),
        (
            json!({"nats": ["nats://hub.example:4222"], "credentials": credentials, "secret": secret}),
            "without TLS",
        ),
        (json!({"nats": [near], "allow_open_bus": true, "secret": "too short"}), "fewer than 32 characters"),
        (json!({"nats": [near], "allow_open_bus": true, "secret": "worker:x"}), "not the key of a worker"),
    ];
    for (fleet, said) in rows {
        let home = HubHome::new(&json!({"fleet": fleet, "store": {"node": "one"}}))?;
        for command in [&["config", "check"][..], &["serve", "--port", "0"], &["worker"]] {
            let (code, out, error) = home.run(command).await?;
            let printed = out + &error;
            assert!(code != 0 && printed.contains(said), "{fleet} {command:?}: {code} {printed}");
            assert!(!printed.contains(secret) && !printed.contains(credentials), "{printed}");
        }
    }
    let allowed = [
        json!({"nats": [far], "allow_open_bus": true}),
        json!({"nats": [far], "credentials": credentials, "secret": secret, "allow_plain_text": true}),
        json!({"nats": ["tls://192.0.2.7:4222"], "credentials": credentials, "secret": secret}),
        json!({"nats": ["nats://localhost:4222", "nats://[::1]:4222"], "credentials": credentials, "secret": secret}),
    ];
    for fleet in allowed {
        let home = HubHome::new(&json!({"fleet": fleet}))?;
        let (code, out, error) = home.run(&["config", "check"]).await?;
        assert_eq!(code, 0, "{fleet}: {out} {error}");
    }
    Ok(())
}

#[tokio::test]
async fn nodes_do_not_start_on_a_server_that_accepts_anybody() -> Result<()> {
    let nats = Nats::start("")?;
    nats.wait().await?;
    let folder = tempfile::tempdir()?;
    let (_, seed) = nkey(folder.path(), "seed").await?;
    let fleet = json!({"nats": [nats.url()], "credentials": seed, "secret": SECRET});
    let home = HubHome::new(&json!({"fleet": fleet, "store": {"node": "one"}}))?;
    for command in [&["serve", "--port", "0"][..], &["worker"], &["fleet", "status"]] {
        let (code, _, error) = home.run(command).await?;
        assert!(code != 0 && error.contains("accepts anybody"), "{command:?}: {error}");
        assert!(error.contains("allow_open_bus"), "{error}");
    }
    let (_, printed, _) = home.run(&["doctor", "--json"]).await?;
    let found: Value = serde_json::from_str(&printed)?;
    let checks = found["checks"].as_array().context("no checks")?;
    let check = checks.iter().find(|check| check["name"] == "nats").context("no check")?;
    assert_eq!(check["state"], "fail", "{check}");
    assert!(check["hint"].to_string().contains("allow_open_bus"), "{check}");
    Ok(())
}

#[tokio::test]
async fn nodes_with_keys_of_their_own_work_together() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (front_key, front_seed) = nkey(folder.path(), "front").await?;
    let (worker_key, worker_seed) = nkey(folder.path(), "worker").await?;
    let nats =
        Nats::start(&format!("authorization: {{users: [{{nkey: {front_key}}}, {{nkey: {worker_key}}}]}}"))?;
    nats.wait().await?;
    let front_fleet =
        json!({"nats": [nats.url()], "credentials": front_seed, "secret": SECRET, "workspace": "desk"});
    let home = HubHome::new(&json!({"fleet": front_fleet, "store": {"node": "front"}}))?;
    let (code, key, error) = home.run(&["fleet", "key", "desk"]).await?;
    ensure!(code == 0, "{error}");
    let fleet = json!({
        "nats": [nats.url()], "credentials": worker_seed, "secret": key.trim(), "workspace": "desk",
    });
    let worker = HubHome::new(&json!({"fleet": fleet, "store": {"node": "laptop"}}))?;
    let (code, _, error) = worker.run(&["serve", "--port", "0"]).await?;
    assert!(code != 0 && error.contains("is the key of a worker"), "{error}");
    let (code, _, error) = worker.run(&["fleet", "key", "other"]).await?;
    assert!(code != 0 && error.contains("is the key of a worker"), "{error}");
    let process = worker.command(&["worker"])?.stdin(Stdio::null()).spawn()?;
    let _running = RunningWorker { home: worker, process };
    let front = home.serve_with(&["--roles", "front"]).await?;
    call_when_served(&front, "fs_list", &json!({"path": "."})).await?;
    let (code, status, error) = home.run(&["fleet", "status"]).await?;
    assert!(code == 0 && status.contains("workspace/desk  serving"), "{status} {error}");
    Ok(())
}

/// A program on the bus that is no node.
struct Stranger {
    bus: TcpStream,
    lines: BufReader<TcpStream>,
}

impl Stranger {
    fn connect(nats: &Nats) -> Result<Self> {
        let bus = TcpStream::connect(("127.0.0.1", nats.port))?;
        bus.set_read_timeout(Some(Duration::from_secs(60)))?;
        let mut lines = BufReader::new(bus.try_clone()?);
        lines.read_line(&mut String::new())?;
        let mut stranger = Self { bus, lines };
        stranger.bus.write_all(b"CONNECT {\"verbose\":false,\"headers\":true,\"no_responders\":true}\r\n")?;
        Ok(stranger)
    }

    fn subscribe(&mut self, subject: &str) -> Result<()> {
        Ok(self.bus.write_all(format!("SUB {subject} 1\r\n").as_bytes())?)
    }

    fn publish(&mut self, subject: &str, reply: &str, payload: &[u8]) -> Result<()> {
        let head = format!("PUB {subject} {reply} {}\r\n", payload.len());
        Ok(self.bus.write_all(&[head.as_bytes(), payload, b"\r\n"].concat())?)
    }

    /// What arrived until now.
    fn heard(&mut self) -> Result<Vec<u8>> {
        self.bus.write_all(b"PING\r\n")?;
        let mut heard = Vec::new();
        loop {
            let mut line = Vec::new();
            ensure!(self.lines.read_until(b'\n', &mut line)? > 0, "NATS closed the connection");
            match line.as_slice() {
                b"PONG\r\n" => return Ok(heard),
                b"PING\r\n" => self.bus.write_all(b"PONG\r\n")?,
                _ => heard.extend(line),
            }
        }
    }
}

fn frame(kind: u8, body: &str) -> Vec<u8> {
    [&[2, 1, 0, 0, 0, 0, kind], body.as_bytes()].concat()
}

/// The call of a tool as a node writes it, by a caller that the stranger names.
fn forged_call(tool: &str, arguments: &Value) -> Vec<u8> {
    let caller = json!({"principal": {"tenant": "default", "subject": "local"}, "scopes": ["admin"]});
    let header = json!({
        "id": "0123456789abcdef0123456789abcdef", "caller": caller, "frontend": "http", "profile": "",
        "remaining_ms": 60_000, "reply": 100_000, "depth": 0,
    });
    let envelope = json!({"header": header, "method": "tools/call", "name": tool, "client": 7}).to_string();
    let params = json!({"name": tool, "arguments": arguments}).to_string();
    let len = u32::try_from(envelope.len()).unwrap_or_default().to_be_bytes();
    [&[2, 1, 0, 0, 0, 0, 4], len.as_slice(), envelope.as_bytes(), params.as_bytes()].concat()
}

#[tokio::test]
async fn a_stranger_on_an_open_bus_reaches_nothing() -> Result<()> {
    let nats = Nats::start("")?;
    nats.wait().await?;
    let settings = |node: &str| {
        json!({
            "fleet": {"nats": [nats.url()], "secret": SECRET, "allow_open_bus": true},
            "store": {"node": node}, "toolboxes": {"shell": true},
        })
    };
    let worker = HubHome::new(&settings("laptop"))?;
    let workspace = worker.workspace();
    std::fs::write(workspace.join("tea.txt"), "secret of alice")?;
    let process = worker.command(&["worker"])?.stdin(Stdio::null()).spawn()?;
    let _running = RunningWorker { home: worker, process };
    let home = HubHome::new(&settings("front"))?;
    let mut stranger = Stranger::connect(&nats)?;
    stranger.subscribe("octoprox.>")?;
    let front = home.serve_with(&["--roles", "front"]).await?;
    call_when_served(&front, "fs_read_text", &json!({"path": "tea.txt"})).await?;
    let heard = stranger.heard()?;
    let text = String::from_utf8_lossy(&heard).into_owned();
    assert!(!text.contains("secret of alice") && !text.contains("tea.txt"), "{text}");
    // The subjects of calls name the processes that take them.
    let mut subjects: Vec<&str> =
        text.split_whitespace().filter(|word| word.starts_with("octoprox.1.call.")).collect();
    subjects.extend(["octoprox.1.call.workspace=2fdefault.filesystem", "octoprox.1.call.front=2ffront.mcp"]);
    subjects.sort_unstable();
    subjects.dedup();
    assert!(subjects.len() > 3, "{subjects:?}");

    let mut stranger = Stranger::connect(&nats)?;
    stranger.subscribe("stranger.>")?;
    let relayed = json!({
        "caller": {"principal": {"tenant": "default", "subject": "local"}, "scopes": ["admin"]},
        "profile": "", "options": {}, "capabilities": {}, "method": "tools/call",
        "params": {"name": "memory_upsert_entities", "arguments": {"entities": [{"name": "planted", "type": "x"}]}},
    });
    let messages = [
        frame(2, r#"{"node":"stranger"}"#),
        forged_call("fs_read_text", &json!({"path": "tea.txt"})),
        forged_call("fs_write_text", &json!({"path": "planted.txt", "text": "x"})),
        forged_call("shell_exec", &json!({"command": "touch planted.txt"})),
        forged_call("tools/call", &relayed),
    ];
    stranger.publish("octoprox.1.status", "stranger.status", b"")?;
    for subject in &subjects {
        for message in &messages {
            stranger.publish(subject, "stranger.call", message)?;
        }
    }
    stranger.heard()?;
    // Honest calls come after them and are answered.
    for _ in 0..3 {
        call(&front, "fs_read_text", json!({"path": "tea.txt"})).await?;
    }
    let answered = String::from_utf8_lossy(&stranger.heard()?).into_owned();
    // Of a process that has ended, the server itself says that nobody receives.
    let answers = answered.lines().filter(|line| line.starts_with("MSG "));
    assert_eq!(answers.count(), 0, "{answered}");
    assert!(!workspace.join("planted.txt").try_exists()?);
    let records = home.audit_tail(50).await?;
    let calls = records.iter().filter(|record| record["kind"] == "open");
    let is_honest = |call: &Value| call["name"] == "fs_read_text" && call["frontend"] == "rest";
    assert!(calls.clone().count() >= 4 && calls.clone().all(is_honest), "{records:?}");
    Ok(())
}
