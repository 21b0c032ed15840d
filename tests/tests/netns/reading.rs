//! The tools that read without a browser.

use crate::canaries::{Canaries, PORTS, SECRET};
use crate::ground::DEAD;
use crate::hub::{BOTH, Hub, Rules, Said, kind};
use crate::names::{Names, Story};
use crate::site;
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

/// Nobody came, and nothing that a canary would have told is in any reply.
async fn untouched(canaries: &Canaries, said: &[Said]) -> Result<()> {
    let caught = canaries.caught().await?;
    ensure!(caught.is_empty(), "{} connections arrived: {:?}", caught.len(), &caught[..caught.len().min(20)]);
    for Said { tool, arguments, reply } in said {
        ensure!(!reply.to_string().contains(SECRET), "{tool} {arguments}: {reply}");
    }
    Ok(())
}

pub async fn spellings() -> Result<()> {
    let (canaries, names) = (Canaries::new().await?, Names::new().await?);
    names.tell("a.localhost", Story::always("127.0.0.1"));
    let hosts = crate::spellings::all();
    ensure!(hosts.len() >= 500, "only {} spellings", hosts.len());
    for rules in BOTH {
        canaries.forget();
        let hub = Hub::start(rules).await?;
        let mut calls = Vec::new();
        for (index, host) in hosts.iter().enumerate() {
            for (place, tool) in TOOLS.into_iter().enumerate() {
                let port = PORTS[(index + place) % PORTS.len()];
                let scheme = if port == 443 { "https" } else { "http" };
                let url = format!("{scheme}://{host}:{port}/{index}");
                calls.push((tool, arguments(tool, &url)));
                // The same, when somebody else has written it.
                if place == index % TOOLS.len() {
                    calls.push((tool, arguments(tool, &site::to("302", 0, &url))));
                }
            }
            // The hub itself is on loopback as well.
            let url = format!("http://{host}:{}/tools", hub.port()?);
            calls.push(("fetch_url", arguments("fetch_url", &url)));
        }
        let said = hub.calls(calls).await?;
        if rules == Rules::Off {
            let caught = canaries.caught().await?.len();
            println!("rules off: {} calls, {caught} connections", said.len());
            ensure!(caught >= 5 * hosts.len(), "only {caught} of {} calls are attacks", said.len());
            continue;
        }
        untouched(&canaries, &said).await?;
        for Said { tool, arguments, reply } in &said {
            ensure!(matches!(kind(reply), "denied" | "invalid"), "{tool} {arguments}: {reply}");
        }
        ensure!(
            canaries.visits() == hosts.len(),
            "the pages that redirect were asked {} times",
            canaries.visits()
        );
        println!("{} spellings, {} calls, 0 connections", hosts.len(), said.len());
    }
    Ok(())
}

/// Where redirects lead.
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

/// All that a server can send somebody on with; those that a client follows come first.
const WAYS: [&str; 11] = ["301", "302", "303", "307", "308", "300", "304", "305", "306", "meta", "refresh"];
const FOLLOWED: usize = 5;

pub async fn redirects() -> Result<()> {
    let (canaries, _names) = (Canaries::new().await?, Names::new().await?);
    for rules in BOTH {
        canaries.forget();
        let hub = Hub::start(rules).await?;
        let (mut calls, mut followed) = (Vec::new(), BTreeSet::new());
        for (index, way) in WAYS.iter().enumerate() {
            for (number, target) in TARGETS.iter().enumerate() {
                for (tool, hops) in TOOLS.iter().flat_map(|tool| [(*tool, 0), (*tool, 4)]) {
                    let label = format!("/{way}/{number}/{tool}/{hops}");
                    calls.push((
                        tool,
                        arguments(tool, &site::to(way, hops, &format!("http://{target}{label}"))),
                    ));
                    if index < FOLLOWED {
                        followed.insert(label);
                    }
                }
                let label = format!("/{way}/{number}/post/0");
                let url = site::to(way, 0, &format!("http://{target}{label}"));
                calls.push(("http_request", json!({"method": "POST", "url": url, "data": "x"})));
                if index < FOLLOWED {
                    followed.insert(label);
                }
            }
        }
        let said = hub.calls(calls).await?;
        ensure!(canaries.visits() >= said.len(), "the pages were asked only {} times", canaries.visits());
        if rules == Rules::Off {
            canaries.caught().await?;
            let missing: Vec<_> = followed.difference(&canaries.labels()).cloned().collect();
            ensure!(missing.is_empty(), "these did not arrive although they may: {missing:?}");
            continue;
        }
        untouched(&canaries, &said).await?;
        println!(
            "{} redirects, {} of them of a kind that is followed, 0 connections",
            said.len(),
            followed.len()
        );
    }
    Ok(())
}

/// Names, and whether somebody who believes them comes to a private address within a few calls.
fn stories() -> Vec<(&'static str, Story, bool)> {
    let [public, other, public6] = site::PUBLIC;
    let again = |story: Story| Story { again: true, ..story };
    let alias = |to, story: Story| Story { alias: Some(to), ..story };
    vec![
        ("first-public.example.org", Story::new(&[&[public], &["10.0.0.1"]]), true),
        ("twice-public.example.org", Story::new(&[&[public], &[other], &["169.254.169.254"]]), true),
        ("in-turns.example.org", again(Story::new(&[&[public], &["127.0.0.1"]])), true),
        ("changes-family.example.org", Story::new(&[&[public], &["fd00::1"]]), true),
        ("changes-family-too.example.org", Story::new(&[&[public6], &["10.0.0.1"]]), true),
        ("loopback-6.example.org", Story::new(&[&[public6], &["::1"]]), true),
        ("mapped.example.org", Story::new(&[&[public], &["::ffff:10.0.0.1"]]), true),
        ("nat64.example.org", Story::new(&[&[public6], &["64:ff9b::a9fe:a9fe"]]), true),
        ("6to4.example.org", Story::new(&[&[public6], &["2002:a00:1::1"]]), true),
        ("nobody-at-first.example.org", Story::new(&[&[], &["10.0.0.1"]]), true),
        ("private.example.org", Story::always("10.0.0.1"), true),
        ("anything.example.org", Story::always("0.0.0.0"), true),
        ("alias.example.org", alias("metadata.internal", Story::always("169.254.169.254")), true),
        ("alias-later.example.org", alias("db.internal", Story::new(&[&[public], &["10.0.0.1"]])), true),
        // The public address does not answer, the private one would.
        ("one-is-dead.example.org", Story::new(&[&[DEAD, "10.0.0.1"]]), true),
        ("other-is-dead.example.org", Story::new(&[&["10.0.0.1", DEAD]]), true),
        ("dead-and-6.example.org", Story::new(&[&[DEAD, "fd00::1", "::1"]]), true),
        // Somebody who believes these may take either.
        ("both.example.org", Story::new(&[&[public, "10.0.0.1"]]), false),
        ("both-families.example.org", Story::new(&[&[public, "fd00::1"]]), false),
        ("both-families-too.example.org", Story::new(&[&["127.0.0.1", public6]]), false),
    ]
}

pub async fn rebinding() -> Result<()> {
    let (canaries, names) = (Canaries::new().await?, Names::new().await?);
    let stories = stories();
    for (name, story, _) in &stories {
        names.tell(name, story.clone());
    }
    for rules in BOTH {
        canaries.forget();
        names.forget();
        let hub = Hub::start(rules).await?;
        let mut said = Vec::new();
        for (place, tool) in TOOLS.into_iter().enumerate() {
            names.forget();
            let port = [80, 8080, 47_808, 8080][place];
            // One after another, so that each is a new question for each name; by itself, and where a page leads.
            for round in 0..4 {
                let url = |name: &str| format!("http://{name}:{port}/{name}/{tool}");
                let plain = stories.iter().map(|(name, ..)| (tool, arguments(tool, &url(name))));
                said.extend(hub.calls(plain).await?);
                if round > 1 {
                    let led = stories
                        .iter()
                        .map(|(name, ..)| (tool, arguments(tool, &site::to("307", 4, &url(name)))));
                    said.extend(hub.calls(led).await?);
                }
            }
        }
        if rules == Rules::Off {
            canaries.caught().await?;
            let labels = canaries.labels();
            let wanted = stories.iter().filter(|(.., arrives)| *arrives);
            let wanted = wanted.flat_map(|(name, ..)| TOOLS.map(|tool| format!("/{name}/{tool}")));
            let missing: Vec<_> = wanted.filter(|label| !labels.contains(label)).collect();
            ensure!(missing.is_empty(), "these did not arrive although they may: {missing:?}");
            continue;
        }
        untouched(&canaries, &said).await?;
        // Where a name has a public address, that one is used.
        let fine = |name: &str| {
            said.iter()
                .filter(|said| {
                    said.arguments["url"].as_str().is_some_and(|url| url.contains(&format!("//{name}:")))
                        && kind(&said.reply).is_empty()
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
