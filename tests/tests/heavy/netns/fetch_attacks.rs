//! Tools that fetch without a browser.

use super::canary_listeners::{CanaryListeners, PORTS, SECRET};
use super::dns_server::{DnsAnswers, DnsServer};
use super::namespaces::DEAD_ADDRESS;
use super::netns_hub::{BOTH_RULES, CallRecord, EgressRules, NetnsHub, error_kind};
use super::public_site;
use anyhow::{Result, ensure};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const TOOLS: [&str; 4] = ["fetch_url", "http_request", "fetch_json", "read_page"];

fn arguments(tool: &str, url: &str) -> Value {
    match tool {
        "http_request" => json!({"method": "GET", "url": url, "timeout_s": 10}),
        "read_page" => json!({"url": url, "timeout_s": 10, "use_cache": false}),
        _ => json!({"url": url, "timeout_s": 10}),
    }
}

/// Fails if there was a forbidden connection or a reply contains the canary's secret.
async fn ensure_unreached(canaries: &CanaryListeners, said: &[CallRecord]) -> Result<()> {
    let caught = canaries.forbidden_connections().await?;
    ensure!(caught.is_empty(), "{} connections arrived: {:?}", caught.len(), &caught[..caught.len().min(20)]);
    for CallRecord { tool, arguments, reply } in said {
        ensure!(!reply.to_string().contains(SECRET), "{tool} {arguments}: {reply}");
    }
    Ok(())
}

pub async fn check_spellings() -> Result<()> {
    let (canaries, names) = (CanaryListeners::new().await?, DnsServer::new().await?);
    names.set_answers("a.localhost", DnsAnswers::always("127.0.0.1"));
    let hosts = super::address_spellings::all_spellings();
    ensure!(hosts.len() >= 500, "only {} spellings", hosts.len());
    for rules in BOTH_RULES {
        canaries.reset();
        let hub = NetnsHub::start(rules).await?;
        let mut calls = Vec::new();
        for (index, host) in hosts.iter().enumerate() {
            for (place, tool) in TOOLS.into_iter().enumerate() {
                let port = PORTS[(index + place) % PORTS.len()];
                let scheme = if port == 443 { "https" } else { "http" };
                let url = format!("{scheme}://{host}:{port}/{index}");
                calls.push((tool, arguments(tool, &url)));
                // The same, when somebody else has written it.
                if place == index % TOOLS.len() {
                    calls.push((tool, arguments(tool, &public_site::redirect_url("302", 0, &url))));
                }
            }
            // The hub itself is on loopback as well.
            let url = format!("http://{host}:{}/tools", hub.port()?);
            calls.push(("fetch_url", arguments("fetch_url", &url)));
        }
        let said = hub.calls(calls).await?;
        if rules == EgressRules::Off {
            let caught = canaries.forbidden_connections().await?.len();
            println!("rules off: {} calls, {caught} connections", said.len());
            ensure!(caught >= 5 * hosts.len(), "only {caught} of {} calls are attacks", said.len());
            continue;
        }
        ensure_unreached(&canaries, &said).await?;
        for CallRecord { tool, arguments, reply } in &said {
            ensure!(matches!(error_kind(reply), "denied" | "invalid"), "{tool} {arguments}: {reply}");
        }
        ensure!(
            canaries.public_requests() == hosts.len(),
            "the pages that redirect were asked {} times",
            canaries.public_requests()
        );
        println!("{} spellings, {} calls, 0 connections", hosts.len(), said.len());
    }
    Ok(())
}

/// Targets of redirects.
const TARGETS: [&str; 8] = [
    "169.254.169.254",
    "10.0.0.1:8080",
    "127.0.0.1:47808",
    "localhost:8080",
    "[::1]",
    "[fd00::1]",
    "[::ffff:10.0.0.1]",
    "[64:ff9b::a9fe:a9fe]",
];

/// All ways in which a server can redirect; those that a client follows come first.
const REDIRECT_KINDS: [&str; 11] =
    ["301", "302", "303", "307", "308", "300", "304", "305", "306", "meta", "refresh"];
const FOLLOWED_KINDS: usize = 5;

pub async fn check_redirects() -> Result<()> {
    let (canaries, _names) = (CanaryListeners::new().await?, DnsServer::new().await?);
    for rules in BOTH_RULES {
        canaries.reset();
        let hub = NetnsHub::start(rules).await?;
        let (mut calls, mut followed) = (Vec::new(), BTreeSet::new());
        for (index, way) in REDIRECT_KINDS.iter().enumerate() {
            for (number, target) in TARGETS.iter().enumerate() {
                for (tool, hops) in TOOLS.iter().flat_map(|tool| [(*tool, 0), (*tool, 4)]) {
                    let label = format!("/{way}/{number}/{tool}/{hops}");
                    calls.push((
                        tool,
                        arguments(
                            tool,
                            &public_site::redirect_url(way, hops, &format!("http://{target}{label}")),
                        ),
                    ));
                    if index < FOLLOWED_KINDS {
                        followed.insert(label);
                    }
                }
                let label = format!("/{way}/{number}/post/0");
                let url = public_site::redirect_url(way, 0, &format!("http://{target}{label}"));
                calls.push(("http_request", json!({"method": "POST", "url": url, "data": "x"})));
                if index < FOLLOWED_KINDS {
                    followed.insert(label);
                }
            }
        }
        let said = hub.calls(calls).await?;
        ensure!(
            canaries.public_requests() >= said.len(),
            "the pages were asked only {} times",
            canaries.public_requests()
        );
        if rules == EgressRules::Off {
            canaries.forbidden_connections().await?;
            let missing: Vec<_> = followed.difference(&canaries.forbidden_paths()).cloned().collect();
            ensure!(missing.is_empty(), "these did not arrive although they may: {missing:?}");
            continue;
        }
        ensure_unreached(&canaries, &said).await?;
        println!(
            "{} redirects, {} of them of a kind that is followed, 0 connections",
            said.len(),
            followed.len()
        );
    }
    Ok(())
}

/// Names, and whether a client that trusts them reaches a private address within a few calls.
fn rebinding_cases() -> Vec<(&'static str, DnsAnswers, bool)> {
    let [public, other, public6] = public_site::PUBLIC_ADDRESSES;
    let again = |story: DnsAnswers| DnsAnswers { repeats: true, ..story };
    let alias = |to, story: DnsAnswers| DnsAnswers { alias: Some(to), ..story };
    vec![
        ("first-public.example.org", DnsAnswers::new(&[&[public], &["10.0.0.1"]]), true),
        ("twice-public.example.org", DnsAnswers::new(&[&[public], &[other], &["169.254.169.254"]]), true),
        ("in-turns.example.org", again(DnsAnswers::new(&[&[public], &["127.0.0.1"]])), true),
        ("changes-family.example.org", DnsAnswers::new(&[&[public], &["fd00::1"]]), true),
        ("changes-family-too.example.org", DnsAnswers::new(&[&[public6], &["10.0.0.1"]]), true),
        ("loopback-6.example.org", DnsAnswers::new(&[&[public6], &["::1"]]), true),
        ("mapped.example.org", DnsAnswers::new(&[&[public], &["::ffff:10.0.0.1"]]), true),
        ("nat64.example.org", DnsAnswers::new(&[&[public6], &["64:ff9b::a9fe:a9fe"]]), true),
        ("6to4.example.org", DnsAnswers::new(&[&[public6], &["2002:a00:1::1"]]), true),
        ("nobody-at-first.example.org", DnsAnswers::new(&[&[], &["10.0.0.1"]]), true),
        ("private.example.org", DnsAnswers::always("10.0.0.1"), true),
        ("anything.example.org", DnsAnswers::always("0.0.0.0"), true),
        ("alias.example.org", alias("metadata.internal", DnsAnswers::always("169.254.169.254")), true),
        ("alias-later.example.org", alias("db.internal", DnsAnswers::new(&[&[public], &["10.0.0.1"]])), true),
        // The public address does not answer, the private one would.
        ("one-is-dead.example.org", DnsAnswers::new(&[&[DEAD_ADDRESS, "10.0.0.1"]]), true),
        ("other-is-dead.example.org", DnsAnswers::new(&[&["10.0.0.1", DEAD_ADDRESS]]), true),
        ("dead-and-6.example.org", DnsAnswers::new(&[&[DEAD_ADDRESS, "fd00::1", "::1"]]), true),
        // Somebody who believes these may take either.
        ("both.example.org", DnsAnswers::new(&[&[public, "10.0.0.1"]]), false),
        ("both-families.example.org", DnsAnswers::new(&[&[public, "fd00::1"]]), false),
        ("both-families-too.example.org", DnsAnswers::new(&[&["127.0.0.1", public6]]), false),
    ]
}

pub async fn check_rebinding() -> Result<()> {
    let (canaries, names) = (CanaryListeners::new().await?, DnsServer::new().await?);
    let stories = rebinding_cases();
    for (name, story, _) in &stories {
        names.set_answers(name, story.clone());
    }
    for rules in BOTH_RULES {
        canaries.reset();
        names.reset();
        let hub = NetnsHub::start(rules).await?;
        let mut said = Vec::new();
        for (place, tool) in TOOLS.into_iter().enumerate() {
            names.reset();
            let port = [80, 8080, 47_808, 8080][place];
            // One after another, so that each is a new question for each name; by itself, and where a page leads.
            for round in 0..4 {
                let url = |name: &str| format!("http://{name}:{port}/{name}/{tool}");
                let plain = stories.iter().map(|(name, ..)| (tool, arguments(tool, &url(name))));
                said.extend(hub.calls(plain).await?);
                if round > 1 {
                    let led = stories.iter().map(|(name, ..)| {
                        (tool, arguments(tool, &public_site::redirect_url("307", 4, &url(name))))
                    });
                    said.extend(hub.calls(led).await?);
                }
            }
        }
        if rules == EgressRules::Off {
            canaries.forbidden_connections().await?;
            let labels = canaries.forbidden_paths();
            let wanted = stories.iter().filter(|(.., arrives)| *arrives);
            let wanted = wanted.flat_map(|(name, ..)| TOOLS.map(|tool| format!("/{name}/{tool}")));
            let missing: Vec<_> = wanted.filter(|label| !labels.contains(label)).collect();
            ensure!(missing.is_empty(), "these did not arrive although they may: {missing:?}");
            continue;
        }
        ensure_unreached(&canaries, &said).await?;
        // Where a name has a public address, that one is used.
        let fine = |name: &str| {
            said.iter()
                .filter(|said| {
                    said.arguments["url"].as_str().is_some_and(|url| url.contains(&format!("//{name}:")))
                        && error_kind(&said.reply).is_empty()
                })
                .count()
        };
        for name in ["both.example.org", "both-families.example.org", "both-families-too.example.org"] {
            ensure!(fine(name) > 0, "{name} was not read at all");
        }
        println!("{} names, {} calls, 0 connections", stories.len(), said.len());
    }
    Ok(())
}
