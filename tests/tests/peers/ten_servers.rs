//! Ten widely used servers from npm and PyPI behind one hub: what they list, what they reply, and what is left of them
//! when they are idle and when the hub is killed.

pub mod public_servers;

use anyhow::{Context, Result, ensure};
use octo_tests::eventually;
use octo_tests::http_client::HttpClient;
use octo_tests::hub_process::{HubHome, RunningHub};
use octo_tests::mcp_clients::{ModernClient, answer_nothing};
use octo_tests::processes::{self, Process};
use public_servers::PublicServer;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

struct TenServerHub {
    home: HubHome,
    servers: Vec<PublicServer>,
    env_marker: String,
}

impl TenServerHub {
    /// Programs stop after this many seconds without a call.
    async fn new(idle_timeout_seconds: u64) -> Result<Self> {
        let home = HubHome::new(&json!({"admin": {"enabled": false}}))?;
        let ground = home.dir.path().join("ground");
        public_servers::create_workspace(&ground)?;
        let servers = public_servers::all_servers(&ground, &public_servers::start_web().await?)?;
        let env_marker = format!("mark-{}", std::process::id());
        let list = public_servers::servers_file(&servers, &env_marker, idle_timeout_seconds);
        std::fs::write(home.dir.path().join("servers.yaml"), list.to_string())?;
        Ok(Self { home, servers, env_marker })
    }

    /// Tools that must be listed.
    fn expected_tools(&self) -> BTreeSet<String> {
        let listed = |role: &PublicServer| {
            role.tools.iter().map(|tool| format!("{}__{tool}", role.name)).collect::<Vec<_>>()
        };
        self.servers.iter().flat_map(listed).collect()
    }

    /// A hub after every server has been listed: on the first start each is started once for that.
    async fn start_and_list(&self) -> Result<RunningHub> {
        let (hub, wanted) = (self.home.serve().await?, self.expected_tools());
        eventually("all tools are listed", async || {
            over_mcp(&hub).await.ok()?.is_superset(&wanted).then_some(())
        })
        .await?;
        Ok(hub)
    }

    /// Makes one call to every server and checks it.
    async fn call_all(&self, hub: &RunningHub) -> Result<()> {
        let client = ModernClient::new(&hub.mcp_url(), json!({}), answer_nothing);
        for role in &self.servers {
            let begun = Instant::now();
            let turn = client.call_tool(&role.tool(), role.arguments.clone()).await?;
            role.check(turn.result()?)?;
            println!("{}: {} ms", role.tool(), begun.elapsed().as_millis());
        }
        Ok(())
    }

    /// Processes of the servers and all their descendants, even if reparented.
    fn marked_processes(&self) -> Vec<Process> {
        let mark = self.env_marker.as_bytes();
        let is_ours = |process: &Process| process.environment().windows(mark.len()).any(|part| part == mark);
        processes::all_processes().into_iter().filter(is_ours).collect()
    }
}

fn names(tools: &Value) -> BTreeSet<String> {
    let tools = tools.as_array().into_iter().flatten();
    tools.filter_map(|tool| tool["name"].as_str().map(str::to_owned)).collect()
}

async fn over_rest(hub: &RunningHub) -> Result<BTreeSet<String>> {
    let reply = HttpClient::default().get(&format!("{}/tools", hub.base_url), &[]).await?.json().await?;
    let mut names = names(&reply["tools"]);
    // Over MCP, where all tools are listed, these are not.
    ensure!(names.remove("tools_find") && names.remove("tools_call"), "the tools of the hub are not listed");
    Ok(names)
}

async fn over_mcp(hub: &RunningHub) -> Result<BTreeSet<String>> {
    let turn =
        ModernClient::new(&hub.mcp_url(), json!({}), answer_nothing).request("tools/list", json!({})).await?;
    Ok(names(&turn.result()?["tools"]))
}

fn pid(hub: &RunningHub) -> Result<u32> {
    hub.process.id().context("the hub has ended")
}

async fn wait_until_idle(hub: &RunningHub) -> Result<()> {
    let pid = pid(hub)?;
    eventually("nothing runs below the hub", async || processes::descendants(pid).is_empty().then_some(()))
        .await
}

#[tokio::test]
async fn ten_servers_are_listed_called_and_gone_when_nobody_needs_them() -> Result<()> {
    let stage = TenServerHub::new(2).await?;
    let mut hub = stage.start_and_list().await?;
    let listed = over_mcp(&hub).await?;
    assert_eq!(over_rest(&hub).await?, listed);
    stage.call_all(&hub).await?;
    ensure!(!stage.marked_processes().is_empty(), "programs are not found by their mark");
    wait_until_idle(&hub).await?;
    assert_eq!(stage.marked_processes(), []);
    let hub_pid = pid(&hub)?;
    eventually("no process is left to reap", async || (processes::zombies(hub_pid) == 0).then_some(()))
        .await?;
    let (resident, own) = (processes::resident_mb(pid(&hub)?)?, processes::proportional_mb(pid(&hub)?)?);
    println!("idle hub: {resident:.1} MB resident, {own:.1} MB proportional");
    // What is promised of an optimised build; without optimisation the program's own text is many times as large.
    ensure!(cfg!(debug_assertions) || resident < 60.0, "{resident} MB");
    let stopped = std::process::Command::new("kill").arg(pid(&hub)?.to_string()).status()?;
    ensure!(stopped.success() && hub.process.wait().await?.success(), "the hub did not end well");

    // The second start: the lists are known, and nobody runs for them.
    let hub = stage.home.serve().await?;
    assert_eq!(over_mcp(&hub).await?, listed);
    assert_eq!(processes::descendants(pid(&hub)?), []);
    assert_eq!(stage.marked_processes(), []);
    Ok(())
}

#[tokio::test]
async fn nothing_of_ten_servers_outlives_a_hub_that_is_killed() -> Result<()> {
    let stage = TenServerHub::new(600).await?;
    let mut hub = stage.start_and_list().await?;
    stage.call_all(&hub).await?;
    let mut running: BTreeSet<Process> = processes::descendants(pid(&hub)?).into_iter().collect();
    running.extend(stage.marked_processes());
    let programs = running.iter().filter(|process| process.name == "chromium").count();
    ensure!(programs > 1, "the browser of a server is not among what runs: {running:?}");

    hub.process.start_kill()?;
    hub.process.wait().await?;
    let killed = Instant::now();
    let left = || {
        running
            .iter()
            .filter(|process| process.is_alive())
            .cloned()
            .chain(stage.marked_processes())
            .collect::<Vec<_>>()
    };
    while !left().is_empty() {
        ensure!(killed.elapsed() < Duration::from_secs(2), "still there: {:?}", left());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    println!("{} processes gone {} ms after the hub", running.len(), killed.elapsed().as_millis());
    Ok(())
}
