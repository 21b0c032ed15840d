//! A fleet of one test: its own NATS server and its own schema in PostgreSQL.

use crate::http_client::HttpClient;
use crate::hub_process::{HubHome, RunningHub};
use crate::test_binaries::service_variable;
use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use std::net::TcpListener;
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::process::{Child, Command};

const SECRET: &str = "the secret of a fleet that only tests use";

pub struct TestFleet {
    nats_url: String,
    schema: Option<String>,
    nats: Child,
}

/// Whether a node may use the database.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Database {
    Shared,
    None,
}

/// A worker process, killed on drop.
pub struct RunningWorker {
    pub home: HubHome,
    pub process: Child,
}

impl TestFleet {
    pub async fn start() -> Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let schema = format!("fleet_{}_{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let mut fleet = Self::without_database("127.0.0.1")?;
        fleet.schema = Some(schema);
        let (code, _, err) = fleet.home("migrate", Database::Shared, json!({}))?.run(&["migrate"]).await?;
        ensure!(code == 0, "{err}");
        Ok(fleet)
    }

    /// NATS listens on this address.
    pub fn without_database(address: &str) -> Result<Self> {
        let port = TcpListener::bind((address, 0))?.local_addr()?.port();
        let process = Command::new(service_variable("NATS_SERVER")?)
            .args(["--addr", address, "--port", &port.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        Ok(Self { nats_url: format!("nats://{address}:{port}"), schema: None, nats: process })
    }

    /// A home for a node of the fleet.
    pub fn home(&self, node: &str, database: Database, settings: Value) -> Result<HubHome> {
        HubHome::new(&self.settings(node, database, settings)?)
    }

    /// Settings of a node of the fleet.
    pub fn settings(&self, node: &str, database: Database, mut settings: Value) -> Result<Value> {
        // Who may speak on the bus is a matter of other tests.
        let mut fleet = json!({
            "nats": [self.nats_url], "secret": SECRET, "allow_open_bus": true, "workspace_files": "shared",
        });
        if let (Some(fleet), Some(own)) = (fleet.as_object_mut(), settings["fleet"].as_object()) {
            fleet.extend(own.clone());
        }
        settings["fleet"] = fleet;
        let address = settings["store"]["postgres"].take();
        settings["store"] = json!({"node": node});
        if database == Database::Shared {
            let shared = if address.is_null() { service_variable("POSTGRES")?.into() } else { address };
            settings["store"]["postgres"] = shared;
            settings["store"]["schema"] = self.schema.as_deref().context("no database")?.into();
            settings["logins"]["secret"] = SECRET.into();
        }
        Ok(settings)
    }

    pub async fn stop_nats(&mut self) -> Result<()> {
        Ok(self.nats.kill().await?)
    }

    pub async fn front(&self, node: &str, settings: Value) -> Result<(HubHome, RunningHub)> {
        self.front_with(node, Database::Shared, settings).await
    }

    pub async fn front_with(
        &self,
        node: &str,
        database: Database,
        settings: Value,
    ) -> Result<(HubHome, RunningHub)> {
        let home = self.home(node, database, settings)?;
        let hub = home.serve_with(&["--roles", "front"]).await?;
        Ok((home, hub))
    }

    pub fn worker(&self, node: &str, database: Database, settings: Value) -> Result<RunningWorker> {
        let home = self.home(node, database, settings)?;
        let log = std::fs::File::create(home.dir.path().join("worker.log"))?;
        let mut command = home.command(&["worker"])?;
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let process = command.spawn()?;
        Ok(RunningWorker { home, process })
    }
}

impl Drop for TestFleet {
    fn drop(&mut self) {
        let (Ok(address), Some(schema)) = (std::env::var("POSTGRES"), &self.schema) else { return };
        let drop_schema = format!("DROP SCHEMA IF EXISTS {schema} CASCADE");
        let _ = std::process::Command::new("psql")
            .args(["-qX", &address, "-c", "SET client_min_messages = warning", "-c", &drop_schema])
            .stdin(Stdio::null())
            .status();
    }
}

impl RunningWorker {
    pub fn pid(&self) -> i32 {
        self.process.id().and_then(|pid| i32::try_from(pid).ok()).unwrap_or(0)
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.home.dir.path().join("worker.log")).unwrap_or_default()
    }

    pub fn signal(&self, signal: rustix::process::Signal) -> Result<()> {
        let pid = rustix::process::Pid::from_raw(self.pid()).context("the worker has ended")?;
        Ok(rustix::process::kill_process(pid, signal)?)
    }
}

/// Calls a tool over REST.
pub async fn call(hub: &RunningHub, tool: &str, arguments: Value) -> Result<Value> {
    let reply =
        HttpClient::default().post(&format!("{}/tools/{tool}", hub.base_url), &[], &arguments).await?;
    let status = reply.status;
    let body = reply.text().await?;
    if !(200..300).contains(&status) {
        bail!("{tool}: {status} {body}");
    }
    Ok(serde_json::from_str(&body)?)
}

/// Calls a tool until it succeeds, as long as a worker is not there yet.
pub async fn call_when_served(hub: &RunningHub, tool: &str, arguments: &Value) -> Result<Value> {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
    loop {
        match call(hub, tool, arguments.clone()).await {
            Ok(reply) => return Ok(reply),
            Err(error) if tokio::time::Instant::now() > deadline => return Err(error),
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}
