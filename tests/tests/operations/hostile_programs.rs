//! Fifty programs that attack, over MCP: each ends with the error that says why, and the hub serves others meanwhile.

use super::{ANN_TOKEN, BOSS_TOKEN, ann_token, boss_token};
use anyhow::{Context, Result, ensure};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use octo_tests::eventually;
use octo_tests::hub_process::HubHome;
use octo_tests::mcp_clients::{Exchange, LEGACY, LegacyClient, ModernClient, answer_nothing};
use octo_tests::processes::{descendants, resident_mb};
use serde_json::json;
use std::time::{Duration, Instant};

/// Programs of one caller that run at once.
const CONCURRENT: usize = 3;
/// Programs that one caller starts at once, and how many of them run.
const SPINNING: usize = 12;
const MAX_PER_CALLER: usize = 4;
/// Time of a program with its processor time of ten seconds, on a busy machine: programs have a low priority.
const MAX_TIME: Duration = Duration::from_secs(240);
/// Time of another caller's call meanwhile.
const MAX_OTHER_TIME: Duration = Duration::from_secs(5);
const MAX_GROWTH_MB: f64 = 150.0;

/// Programs, and what one of their errors says.
const PROGRAMS: [(&str, &[&str]); 50] = [
    // Without end.
    ("while (true) {}", &["processor time"]),
    ("for (;;) await null", &["processor time"]),
    ("await new Promise(() => {})", &["can never be settled"]),
    (
        "const p = new Promise(() => {}); await Promise.all([p, tools.time_now({})])",
        &["can never be settled"],
    ),
    ("for (;;) await tools.time_now({})", &["more than 200 calls"]),
    ("while (true) tools.time_now({})", &["more than 200 calls"]),
    // Output and memory.
    ("while (true) console.log('x'.repeat(1000))", &["printed and returned more"]),
    ("return 'x'.repeat(3e6)", &["printed and returned more"]),
    ("console.log('x'.repeat(3e6))", &["printed and returned more"]),
    ("throw new Error('x'.repeat(1e6))", &["Uncaught error"]),
    ("let s = 'x'; while (true) s += s", &["memory", "Uncaught error"]),
    ("const a = []; while (true) a.push('x'.repeat(1e6) + a.length)", &["memory", "Uncaught error"]),
    ("new Uint8Array(2 ** 31)", &["memory", "Uncaught error"]),
    ("'x'.repeat(2 ** 30 - 1)", &["memory", "Uncaught error"]),
    ("const f = () => f(); f()", &["Uncaught error"]),
    ("JSON.parse('['.repeat(1e6))", &["Uncaught error"]),
    ("eval('('.repeat(1e6))", &["Uncaught error"]),
    ("let a = []; for (let i = 0; i < 1e5; i++) a = [a]; return a", &["Uncaught error", "crashed"]),
    // The world outside.
    ("return await fetch('http://127.0.0.1')", &["no network of its own"]),
    ("return require('fs').readFileSync('/etc/passwd')", &["no files or modules"]),
    ("return process.env", &["no files or modules"]),
    ("return Deno.env", &["no files or modules"]),
    ("return std.open('/etc/passwd')", &["no files or modules"]),
    ("return os.exec(['id'])", &["no files or modules"]),
    ("return new WebSocket('ws://127.0.0.1')", &["no network of its own"]),
    ("setTimeout(() => {}, 1)", &["no timers"]),
    ("return window.location", &["outside any browser"]),
    ("import fs from 'fs'", &["SyntaxError"]),
    ("return await import('fs')", &["Uncaught error", "SyntaxError"]),
    ("return import.meta", &["SyntaxError"]),
    ("return Buffer.from('x')", &["Only ECMAScript"]),
    // Tools that there are not, or not for programs.
    ("return await tools.run_code({code: 'return 1'})", &["There is no tool"]),
    ("return await tools.tools_call({name: 'time_now'})", &["There is no tool"]),
    ("return await tools.tools_find({query: 'x'})", &["There is no tool"]),
    ("return await call('run_code', {code: 'return 1'})", &["There is no tool"]),
    ("return await call('__proto__', {})", &["There is no tool"]),
    ("return await tools.__proto__({})", &["Uncaught error"]),
    ("return await tools.constructor('return 1')()", &["Uncaught error"]),
    // Arguments.
    ("return await tools.time_now('Asia/Tokyo')", &["must be one object"]),
    ("return await tools.time_now([1])", &["must be one object"]),
    ("return await tools.time_now({timezone: 'x'.repeat(2e6)})", &["longer than"]),
    ("return await tools.time_now({zone: 'UTC'})", &["declare const tools"]),
    ("const a = {}; a.a = a; return await tools.time_now(a)", &["Uncaught error"]),
    ("return await tools.time_now({toJSON() { return 5 }})", &["must be one object", "Uncaught error"]),
    // What is no program.
    ("return }", &["SyntaxError"]),
    ("enum A { B }", &["SyntaxError"]),
    ("namespace N { export const a = 1 }", &["SyntaxError"]),
    ("}); (async () => {", &["SyntaxError"]),
    ("return 1 /* ", &["SyntaxError"]),
    ("const a = {}; a.a = a; return a", &["Uncaught error"]),
];

#[tokio::test]
async fn fifty_hostile_programs_leave_the_hub_as_it_was() -> Result<()> {
    let home = HubHome::new(&json!({"calls": {"timeout_seconds": 300}}))?;
    let hub = home.serve().await?;
    let pid = hub.process.id().context("the hub has ended")?;
    let url = hub.mcp_url();
    let run = async |code: &str| -> Result<(bool, String)> {
        let client = ModernClient::new(&url, json!({}), answer_nothing);
        let reply = client.call_tool("run_code", json!({"code": code})).await?;
        let result = reply.result()?;
        let text = result["content"][0]["text"].as_str().unwrap_or_default().to_owned();
        Ok((result["isError"] == true, text))
    };
    assert_eq!(run("return 1 + 1").await?, (false, "2".to_owned()));
    let idle_mb = resident_mb(pid)?;
    let attack = async |(code, expected): (&str, &[&str])| -> Result<Option<String>> {
        let begun = Instant::now();
        let (is_error, text) = run(code).await?;
        let is_right = is_error && expected.iter().any(|part| text.contains(part)) && text.len() < 12_000;
        let shown: String = text.chars().take(300).collect();
        let took = begun.elapsed();
        Ok((!is_right || took > MAX_TIME)
            .then(|| format!("{code}: {shown} in {took:?}, {expected:?} expected")))
    };
    let attacks = futures_util::stream::iter(PROGRAMS).map(attack).buffer_unordered(CONCURRENT);
    let mut attacks = std::pin::pin!(attacks);
    let other = ModernClient::new(&url, json!({}), answer_nothing);
    let (mut wrong, mut slowest) = (Vec::new(), Duration::ZERO);
    while let Some(ended) = attacks.next().await {
        wrong.extend(ended?);
        let begun = Instant::now();
        other.call_tool("time_now", json!({"timezone": "UTC"})).await?.result()?;
        slowest = slowest.max(begun.elapsed());
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    ensure!(slowest < MAX_OTHER_TIME, "another call took {slowest:?}");
    // What is too long is truncated and stored, with its shape.
    let (is_error, text) =
        run("return Array.from({length: 5000}, (_, id) => ({id, name: 'row ' + id}))").await?;
    let is_truncated = text.starts_with("[{\"id\":0,") && text.len() < 9_000;
    ensure!(!is_error && is_truncated, "{text}");
    // No process is left, and the hub still runs programs.
    all_programs_ended(pid).await?;
    let growth = resident_mb(pid)? - idle_mb;
    ensure!(growth < MAX_GROWTH_MB, "the hub has grown by {growth:.0} MB");
    assert_eq!(
        run("return await tools.time_now({timezone: 'UTC'}).then(time => time.timezone)").await?.1,
        "UTC"
    );
    Ok(())
}

/// Waits until a hub has no process of a program.
async fn all_programs_ended(pid: u32) -> Result<()> {
    let is_program = |line: &[u8]| line.windows(10).any(|part| part == b"code-child");
    eventually("all processes of programs have ended", async || {
        let programs = descendants(pid).into_iter().filter(|process| is_program(&process.command_line()));
        (programs.count() == 0).then_some(())
    })
    .await
}

#[tokio::test]
async fn programs_of_one_caller_leave_others_served() -> Result<()> {
    let home = HubHome::new(&json!({"auth": {"tokens": [ann_token(), boss_token()]}}))?;
    let hub = home.serve().await?;
    let pid = hub.process.id().context("the hub has ended")?;
    let url = hub.mcp_url();
    let connect = async |token: &str| {
        let bearer = format!("Bearer {token}");
        let headers = [("authorization", bearer.as_str())];
        LegacyClient::connect_as(&url, LEGACY, json!({}), answer_nothing, &headers).await
    };
    let (attacker, other) = (connect(ANN_TOKEN).await?, connect(BOSS_TOKEN).await?);
    let text = |reply: &Exchange| -> Result<String> {
        Ok(reply.result()?["content"][0]["text"].as_str().unwrap_or_default().to_owned())
    };
    let spin = |id: usize| {
        let call = json!({"name": "run_code", "arguments": {"code": "while (true) {}"}});
        attacker.call_with_id(json!(format!("spin {id}")), "tools/call", call)
    };
    let mut spinning: FuturesUnordered<_> = (0..SPINNING).map(spin).collect();
    for _ in MAX_PER_CALLER..SPINNING {
        let refused = text(&spinning.next().await.context("no answer")??)?;
        ensure!(refused.contains("oo many programs of this caller"), "{refused}");
    }
    let mut slowest = Duration::ZERO;
    for _ in 0..3 {
        let begun = Instant::now();
        other.call_tool("time_now", json!({"timezone": "UTC"})).await?.result()?;
        let sum = other.call_tool("run_code", json!({"code": "return 1 + 1"})).await?;
        assert_eq!(text(&sum)?, "2");
        slowest = slowest.max(begun.elapsed());
    }
    ensure!(slowest < MAX_OTHER_TIME, "another caller waited for {slowest:?}");
    for id in 0..SPINNING {
        attacker.notify("notifications/cancelled", json!({"requestId": format!("spin {id}")})).await?;
    }
    all_programs_ended(pid).await
}
