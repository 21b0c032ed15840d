//! Ten servers that many people use, from npm and PyPI, behind one hub: what they list, what they answer, and what is left of
//! them when nobody calls, and when the hub is killed.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    reason = "tests start the programs they test, and a missing member of a JSON value reads as null"
)]

#[path = "ten/cast.rs"]
mod cast;

use anyhow::{Context, Result, ensure};
use cast::Role;
use octo_tests::eventually;
use octo_tests::http::Http;
use octo_tests::hub::{Home, Server};
use octo_tests::mcp::{Modern, silent};
use octo_tests::processes::{self, Process};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

struct Stage {
    home: Home,
    roles: Vec<Role>,
    mark: String,
}

impl Stage {
    /// Programs end after so many seconds without a call.
    async fn new(idle_seconds: u64) -> Result<Self> {
        let home = Home::new(&json!({"admin": {"enabled": false}}))?;
        let ground = home.folder.path().join("ground");
        cast::ground(&ground)?;
        let roles = cast::cast(&ground, &cast::web().await?)?;
        let mark = format!("mark-{}", std::process::id());
        let list = cast::list(&roles, &mark, idle_seconds);
        std::fs::write(home.folder.path().join("servers.yaml"), list.to_string())?;
        Ok(Self { home, roles, mark })
    }

    /// Tools that must be listed.
    fn wanted(&self) -> BTreeSet<String> {
        let listed =
            |role: &Role| role.tools.iter().map(|tool| format!("{}__{tool}", role.name)).collect::<Vec<_>>();
        self.roles.iter().flat_map(listed).collect()
    }

    /// A hub of which every server has been listed: on the first start each is started once for that.
    async fn listed(&self) -> Result<Server> {
        let (hub, wanted) = (self.home.serve().await?, self.wanted());
        eventually("all tools are listed", async || {
            over_mcp(&hub).await.ok()?.is_superset(&wanted).then_some(())
        })
        .await?;
        Ok(hub)
    }

    /// One call to every server, each checked.
    async fn call_all(&self, hub: &Server) -> Result<()> {
        let client = Modern::new(&hub.mcp(), json!({}), silent);
        for role in &self.roles {
            let begun = Instant::now();
            let turn = client.tool(&role.tool(), role.arguments.clone()).await?;
            role.check(turn.result()?)?;
            println!("{}: {} ms", role.tool(), begun.elapsed().as_millis());
        }
        Ok(())
    }

    /// Programs of the servers and all that they have started, whoever is their parent by now.
    fn marked(&self) -> Vec<Process> {
        let mark = self.mark.as_bytes();
        let is_ours = |process: &Process| process.environment().windows(mark.len()).any(|part| part == mark);
        processes::all().into_iter().filter(is_ours).collect()
    }
}

fn names(tools: &Value) -> BTreeSet<String> {
    let tools = tools.as_array().into_iter().flatten();
    tools.filter_map(|tool| tool["name"].as_str().map(str::to_owned)).collect()
}

async fn over_rest(hub: &Server) -> Result<BTreeSet<String>> {
    let reply = Http::default().get(&format!("{}/tools", hub.base), &[]).await?.json().await?;
    Ok(names(&reply["tools"]))
}

async fn over_mcp(hub: &Server) -> Result<BTreeSet<String>> {
    let turn = Modern::new(&hub.mcp(), json!({}), silent).once("tools/list", json!({})).await?;
    Ok(names(&turn.result()?["tools"]))
}

fn pid(hub: &Server) -> Result<u32> {
    hub.process.id().context("the hub has ended")
}

async fn idle(hub: &Server) -> Result<()> {
    let pid = pid(hub)?;
    eventually("nothing runs below the hub", async || processes::below(pid).is_empty().then_some(())).await
}

#[tokio::test]
async fn ten_servers_are_listed_called_and_gone_when_nobody_needs_them() -> Result<()> {
    let stage = Stage::new(2).await?;
    let mut hub = stage.listed().await?;
    let listed = over_mcp(&hub).await?;
    assert_eq!(over_rest(&hub).await?, listed);
    stage.call_all(&hub).await?;
    ensure!(!stage.marked().is_empty(), "programs are not found by their mark");
    idle(&hub).await?;
    assert_eq!(stage.marked(), []);
    assert_eq!(processes::zombies(pid(&hub)?), 0);
    let (resident, own) = (processes::resident_mb(pid(&hub)?)?, processes::proportional_mb(pid(&hub)?)?);
    println!("idle hub: {resident:.1} MB resident, {own:.1} MB proportional");
    // What is promised of an optimised build; without optimisation the program's own text is many times as large.
    ensure!(cfg!(debug_assertions) || resident < 60.0, "{resident} MB");
    let stopped = std::process::Command::new("kill").arg(pid(&hub)?.to_string()).status()?;
    ensure!(stopped.success() && hub.process.wait().await?.success(), "the hub did not end well");

    // The second start: the lists are known, and nobody runs for them.
    let hub = stage.home.serve().await?;
    assert_eq!(over_mcp(&hub).await?, listed);
    assert_eq!(processes::below(pid(&hub)?), []);
    assert_eq!(stage.marked(), []);
    Ok(())
}

#[tokio::test]
async fn nothing_of_ten_servers_outlives_a_hub_that_is_killed() -> Result<()> {
    let stage = Stage::new(600).await?;
    let mut hub = stage.listed().await?;
    stage.call_all(&hub).await?;
    let mut running: BTreeSet<Process> = processes::below(pid(&hub)?).into_iter().collect();
    running.extend(stage.marked());
    let programs = running.iter().filter(|process| process.name == "chromium").count();
    ensure!(programs > 1, "the browser of a server is not among what runs: {running:?}");

    hub.process.start_kill()?;
    hub.process.wait().await?;
    let killed = Instant::now();
    let left = || {
        running.iter().filter(|process| process.is_alive()).cloned().chain(stage.marked()).collect::<Vec<_>>()
    };
    while !left().is_empty() {
        ensure!(killed.elapsed() < Duration::from_secs(2), "still there: {:?}", left());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    println!("{} processes gone {} ms after the hub", running.len(), killed.elapsed().as_millis());
    Ok(())
}
