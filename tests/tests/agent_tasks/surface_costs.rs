//! One task on each surface. Its cost in tokens is what the guide says.

use crate::cost_agent::Agent;
use crate::programs::ZONES;
use anyhow::{Context, Result, ensure};
use octo_tests::hub_process::HubHome;
use octo_tests::mcp_clients::answer_nothing;
use octo_tests::test_binaries::service_variable;
use serde_json::json;
use std::process::Stdio;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

const GUIDE: &str = include_str!("../../../docs/guide/tool-search.md");
/// Permitted difference between the guide and the measurement, in percent.
const MAX_DIFFERENCE: usize = 3;
const MOMENT: &str = "2027-03-05T14:30";
const PROGRAM: &str = "const zones = 'Asia/Tokyo Asia/Kolkata Asia/Dubai Europe/Paris Africa/Cairo America/Lima America/Chicago Pacific/Auckland Australia/Sydney Europe/London America/Bogota Asia/Seoul'.split(' ');
const times = await Promise.all(zones.map(to_timezone => tools.time_convert({datetime: '2027-03-05T14:30', to_timezone})));
return times.filter(time => time.converted.slice(11, 13) >= '18').map(time => time.to_timezone);";
/// Those where it is 18:00 or later, on the same day.
const LATE: [&str; 4] = ["Asia/Tokyo", "Asia/Kolkata", "Asia/Dubai", "Asia/Seoul"];

/// Counts o200k tokens of texts.
async fn count_tokens(texts: &[String]) -> Result<Vec<usize>> {
    let script = "const {countTokens} = require(process.argv[1]);
        const texts = JSON.parse(require('fs').readFileSync(0));
        console.log(JSON.stringify(texts.map(text => countTokens(text))))";
    let mut node = Command::new(service_variable("NODE24")?)
        .args(["-e", script, &service_variable("TOKENIZER")?])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut stdin = node.stdin.take().context("no standard input")?;
    stdin.write_all(serde_json::to_string(texts)?.as_bytes()).await?;
    drop(stdin);
    Ok(serde_json::from_slice(&node.wait_with_output().await?.stdout)?)
}

/// What a model is shown of the listed tools.
async fn definitions(agent: &mut Agent) -> Result<Vec<String>> {
    let mut shown = Vec::new();
    let mut params = json!({});
    loop {
        let page = agent.pipes.call("tools/list", params, answer_nothing).await?;
        for tool in page["result"]["tools"].as_array().context("no tools")? {
            let definition = json!({"name": tool["name"], "description": tool["description"], "inputSchema": tool["inputSchema"]});
            shown.push(definition.to_string());
        }
        match page["result"]["nextCursor"].as_str() {
            Some(cursor) => params = json!({"cursor": cursor}),
            None => return Ok(shown),
        }
    }
}

async fn solve(agent: &mut Agent, surface: &str) -> Result<()> {
    if surface != "full" {
        let found =
            agent.try_call("tools_find", json!({"query": "convert a time to another time zone"})).await?;
        ensure!(found.text.contains("time_convert("), "{}", found.text);
    }
    if surface == "code" {
        let reply = agent.try_call("run_code", json!({"code": PROGRAM})).await?;
        assert_eq!(serde_json::from_str::<Vec<String>>(&reply.text)?, LATE);
        return Ok(());
    }
    let mut late = Vec::new();
    for zone in ZONES {
        let arguments = json!({"datetime": MOMENT, "to_timezone": zone});
        let reply = match surface {
            "full" => agent.try_call("time_convert", arguments).await?,
            _ => {
                agent.try_call("tools_call", json!({"name": "time_convert", "arguments": arguments})).await?
            }
        };
        let hour = reply
            .text
            .split("converted: ")
            .nth(1)
            .and_then(|text| text.get(11..13))
            .context(reply.text.clone())?;
        if hour >= "18" {
            late.push(zone);
        }
    }
    assert_eq!(late, LATE);
    Ok(())
}

/// The numbers of a row of the table in the guide.
fn documented(surface: &str) -> Option<Vec<usize>> {
    let row = GUIDE.split("## One task on each surface").nth(1)?;
    let row = row.lines().find(|line| line.starts_with(&format!("| `{surface}` |")))?;
    row.split('|')
        .skip(2)
        .filter(|cell| !cell.trim().is_empty())
        .map(|cell| cell.trim().replace(',', "").parse().ok())
        .collect()
}

#[tokio::test]
async fn a_task_costs_on_each_surface_what_the_guide_says() -> Result<()> {
    let mut wrong = Vec::new();
    for surface in ["full", "profile", "find", "code"] {
        let home = HubHome::new(&json!({}))?;
        let mut agent = Agent::at_surface(&home, surface).await?;
        let listed = definitions(&mut agent).await?;
        solve(&mut agent, surface).await?;
        let counts = count_tokens(&listed).await?;
        let (texts, calls) = (agent.transcript(), agent.calls());
        let (definitions, used) =
            (counts.iter().sum::<usize>(), count_tokens(&texts).await?.iter().sum::<usize>());
        let measured = vec![definitions, calls, used, definitions + used];
        let row = measured.iter().map(|number| format!(" {number} |")).collect::<String>();
        println!("| `{surface}` |{row}");
        let known = documented(surface).unwrap_or_default();
        let is_close = |(known, measured): (&usize, &usize)| {
            known.abs_diff(*measured) * 100 <= measured * MAX_DIFFERENCE
        };
        if known.len() != measured.len() || !known.iter().zip(&measured).all(is_close) {
            wrong.push(format!("| `{surface}` |{row} not {known:?}"));
        }
    }
    ensure!(wrong.is_empty(), "docs/guide/tool-search.md has other numbers:\n{}", wrong.join("\n"));
    Ok(())
}
