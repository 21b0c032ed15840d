//! Browser attacks: what a page can try, and where a tab can be sent.

use super::canary_listeners::{CanaryListeners, SECRET};
use super::dns_server::{DnsAnswers, DnsServer};
use super::namespaces::HubPrivilege;
use super::netns_hub::{BOTH_RULES, EgressRules, NetnsHub, error_kind};
use super::public_site;
use anyhow::{Context, Result, ensure};
use octo_tests::eventually;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// Targets of pages, with their addresses.
const TARGETS: [(&str, &str); 7] = [
    ("169.254.169.254", "169.254.169.254"),
    ("10.0.0.1:8080", "10.0.0.1"),
    ("127.0.0.1:47808", "127.0.0.1"),
    ("localhost:8080", ""),
    ("[::1]", "[::1]"),
    ("[fd00::1]", "[fd00::1]"),
    ("private.example.org", "10.9.9.9"),
];

/// What `attack.html` and its workers try and what arrives if nothing is forbidden. They try more: what a browser does
/// only sometimes, or never without a user action.
const REDIRECTABLE_REQUESTS: &str = "audio background beacon dynamic embed eventsource fetch font fontface form icon iframe image import input \
    keepalive location meta module modulepreload object opaque picture poster prefetch preload refresh script \
    service-cache service-fetch service-install shared-eventsource shared-fetch shared-import srcdoc srcset stylesheet svg \
    track video worker-eventsource worker-fetch worker-import xhr";

/// The same, but direct requests only: browsers follow no redirect there.
const DIRECT_REQUESTS: &str =
    "preflight report websocket shared-websocket worker-websocket service-import blob";

/// Ways in which a tab is redirected, by itself or by a click.
const REDIRECT_KINDS: [&str; 10] =
    ["301", "302", "303", "307", "308", "meta", "refresh", "location", "replace", "form"];
const CLICK_KINDS: [&str; 3] = ["link", "window", "save"];

/// Number of targets for tabs.
const TAB_TARGETS: usize = 2;

pub async fn check_browser(power: HubPrivilege) -> Result<()> {
    let (canaries, names) = (CanaryListeners::new().await?, DnsServer::new().await?);
    names.set_answers("private.example.org", DnsAnswers::always("10.9.9.9"));
    names.set_answers(
        "turning.example.org",
        DnsAnswers::new(&[&[public_site::PUBLIC_ADDRESSES[1]], &["10.0.0.1"]]),
    );
    let mut delay = Duration::ZERO;
    for rules in BOTH_RULES {
        canaries.reset();
        names.reset();
        let hub = NetnsHub::start_with(rules, power).await?;
        let begun = Instant::now();
        let mut told = run_attacks(&hub).await?;
        check_network_namespace(power)?;
        let attacked = begun.elapsed();
        told.extend(redirect_tabs(&hub, rules).await?);
        println!("rules {rules:?}: pages took {attacked:?}, with tabs {:?}", begun.elapsed());
        told.push(check_rebinding_page(&hub).await?);
        ensure!(
            canaries.public_requests() > told.len(),
            "the public pages were read only {} times",
            canaries.public_requests()
        );
        if rules == EgressRules::Off {
            let since = Instant::now();
            let wanted = expected_requests();
            let all = eventually("all arrive", async || {
                wanted.is_subset(&canaries.forbidden_paths()).then_some(())
            })
            .await;
            let missing: Vec<_> = wanted.difference(&canaries.forbidden_paths()).cloned().collect();
            all.with_context(|| format!("these did not arrive although they may: {missing:?}"))?;
            delay = since.elapsed();
            println!("rules off: {} attacks arrive, the last after {delay:?}", wanted.len());
            continue;
        }
        // What needed this long to arrive when it could, has had the time now.
        tokio::time::sleep(3 * delay + Duration::from_secs(1)).await;
        let caught = canaries.forbidden_connections().await?;
        ensure!(
            caught.is_empty(),
            "{} connections arrived: {:?}",
            caught.len(),
            &caught[..caught.len().min(20)]
        );
        ensure!(canaries.datagrams() == 0, "{} datagrams arrived", canaries.datagrams());
        for reply in &told {
            ensure!(error_kind(reply) != "invalid" && !reply.to_string().contains(SECRET), "{reply}");
        }
        println!("{} attacks, {} calls, 0 connections, 0 datagrams", expected_requests().len(), told.len());
    }
    Ok(())
}

/// All requests that must arrive if nothing is forbidden.
fn expected_requests() -> BTreeSet<String> {
    let mut wanted = BTreeSet::from(["/turned".to_owned()]);
    for (number, (_, address)) in TARGETS.iter().enumerate() {
        wanted.extend(REDIRECTABLE_REQUESTS.split_whitespace().map(|part| format!("/led/{number}/{part}")));
        wanted.extend(REDIRECTABLE_REQUESTS.split_whitespace().map(|part| format!("/{number}/{part}")));
        wanted.extend(DIRECT_REQUESTS.split_whitespace().map(|part| format!("/{number}/{part}")));
        // A connection made in advance says nothing.
        wanted.extend((!address.is_empty()).then(|| format!("{address}:443")));
    }
    for number in 0..TAB_TARGETS {
        wanted.extend(
            REDIRECT_KINDS.iter().flat_map(|way| [0, 4].map(|hops| format!("/tab/{number}/{way}/{hops}"))),
        );
        wanted.extend(CLICK_KINDS.iter().map(|way| format!("/tab/{number}/{way}/0")));
        wanted.extend(["navigate", "new"].map(|way| format!("/tab/{number}/{way}/0")));
    }
    wanted
}

/// Pages that try everything, on a target itself and through a redirect.
async fn run_attacks(hub: &NetnsHub) -> Result<Vec<Value>> {
    let mut told = Vec::new();
    for (number, (target, _)) in TARGETS.iter().enumerate() {
        let led = public_site::redirect_base(&format!("http://{target}/led/{number}"));
        let [direct, led] =
            [format!("http://{target}/{number}"), led].map(|base| public_site::attack_url(number, &base));
        let (direct, led) = tokio::join!(attack(hub, "direct", &direct), attack(hub, "led", &led));
        told.extend(direct?.into_iter().chain(led?));
    }
    Ok(told)
}

async fn attack(hub: &NetnsHub, session: &str, url: &str) -> Result<[Value; 2]> {
    let ask = json!({"url": url, "session": session, "wait_until": "domcontentloaded"});
    let reply = hub.call("browser_navigate", &ask).await?;
    ensure!(reply["result"]["status"] == 200, "{url}: {reply}");
    let script =
        "while (document.title !== 'done') await new Promise(done => setTimeout(done, 20)); return said";
    let ask = json!({"script": script, "session": session, "timeout_ms": 20_000});
    let tried = hub.call("browser_execute_js", &ask).await?;
    ensure!(tried["result"]["result"]["service"] == "done", "{url}: {tried}");
    Ok([reply, tried])
}

/// Redirects tabs, a few at a time, each in its own session.
async fn redirect_tabs(hub: &NetnsHub, rules: EgressRules) -> Result<Vec<Value>> {
    let mut told = Vec::new();
    for (number, (target, _)) in TARGETS.iter().take(TAB_TARGETS).enumerate() {
        let mut running = JoinSet::new();
        let ways: Vec<_> = REDIRECT_KINDS.into_iter().chain(CLICK_KINDS).collect();
        for (lane, ways) in ways.chunks(4).enumerate() {
            let (hub, ways) = (hub.clone(), ways.to_vec());
            running.spawn(async move {
                let mut told = Vec::new();
                for way in ways {
                    told.extend(
                        redirect_tab(&hub, &format!("lane-{lane}"), way, &tab(target, number, way)).await?,
                    );
                }
                anyhow::Ok(told)
            });
        }
        while let Some(done) = running.join_next().await {
            told.extend(done??);
        }
        let direct =
            hub.call("browser_navigate", &json!({"url": tab(target, number, "navigate") + "0"})).await?;
        ensure!((error_kind(&direct) == "denied") == (rules == EgressRules::On), "{direct}");
        let new = json!({"action": "new", "url": tab(target, number, "new") + "0"});
        told.extend([direct, hub.call("browser_tabs", &new).await?]);
        hub.call("browser_tabs", &json!({"action": "close", "index": 1})).await?;
    }
    Ok(told)
}

fn tab(target: &str, number: usize, way: &str) -> String {
    format!("http://{target}/tab/{number}/{way}/")
}

/// One redirect, directly and through four pages in between; one that needs a click, directly only.
async fn redirect_tab(hub: &NetnsHub, session: &str, way: &str, to: &str) -> Result<Vec<Value>> {
    let mut told = Vec::new();
    let clicks = CLICK_KINDS.contains(&way);
    for hops in if clicks { &[0][..] } else { &[0, 4] } {
        let url = public_site::redirect_url(way, *hops, &format!("{to}{hops}"));
        told.push(
            hub.call("browser_navigate", &json!({"url": url, "session": session, "timeout_ms": 10_000}))
                .await?,
        );
        if clicks {
            told.push(hub.call("browser_click", &json!({"text": "go", "session": session})).await?);
        }
    }
    Ok(told)
}

/// A page whose name becomes a private address while it is open.
async fn check_rebinding_page(hub: &NetnsHub) -> Result<Value> {
    let reply = hub.call("browser_navigate", &json!({"url": "http://turning.example.org:8080/"})).await?;
    ensure!(reply["result"]["title"] == "outside", "{reply}");
    let script = "const all = []; \
        for (let n = 0; n < 5; n++) all.push(await fetch('/turned').then(answer => answer.text(), String)); return all";
    hub.call("browser_execute_js", &json!({"script": script})).await
}

/// Checks whether the browser is in the network of this test, which distinguishes the two cases.
fn check_network_namespace(power: HubPrivilege) -> Result<()> {
    let here = std::fs::read_link("/proc/self/ns/net")?;
    let processes = std::fs::read_dir("/proc")?.filter_map(|entry| Some(entry.ok()?.path()));
    let browsers = processes.filter(|process| {
        let command = std::fs::read(process.join("cmdline")).unwrap_or_default();
        let command = String::from_utf8_lossy(&command);
        command.contains("chromium") && command.contains("--type=")
    });
    let shared = browsers
        .filter(|process| std::fs::read_link(process.join("ns/net")).is_ok_and(|there| there == here));
    let shared = shared.count();
    ensure!(
        (shared > 0) == (power == HubPrivilege::Unprivileged),
        "{shared} processes of the browser are in the hub's network"
    );
    Ok(())
}
