//! `tools/list` against the same bytes from memory.

use super::super::raw_http_client::RawHttpClient;
use super::super::server_processes::ServerProcess;
use super::{Bench, median_of};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Duration of a round of one side.
const ROUND_DURATION: Duration = Duration::from_secs(2);
/// Concurrent connections, with one request in flight on each.
const CONNECTIONS: usize = 4;
const HEADERS: &str = "Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/list\r\n";

/// A request for a page of the list, and its response.
pub struct ListPage {
    request: String,
    bytes: Vec<u8>,
    pub tools: usize,
}

fn request(cursor: Option<&str>) -> String {
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}});
    let params = match cursor {
        Some(cursor) => json!({"_meta": meta, "cursor": cursor}),
        None => json!({"_meta": meta}),
    };
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params}).to_string()
}

/// The whole list, page by page.
pub fn fetch_pages(port: u16) -> Result<Vec<ListPage>> {
    let mut client = RawHttpClient::connect(port)?;
    let (mut pages, mut cursor) = (Vec::new(), None);
    loop {
        let request = request(cursor.as_deref());
        let (bytes, _) = client.send_with("POST", "/mcp", HEADERS, &request)?;
        let answer: Value = serde_json::from_slice(&bytes)?;
        let tools = answer
            .pointer("/result/tools")
            .and_then(Value::as_array)
            .with_context(|| format!("no tools: {answer}"))?
            .len();
        cursor = answer.pointer("/result/nextCursor").and_then(Value::as_str).map(str::to_owned);
        pages.push(ListPage { request, bytes, tools });
        if cursor.is_none() {
            return Ok(pages);
        }
    }
}

/// Complete lists per second: every page of each, on all connections.
fn lists_per_second(port: u16, pages: &[ListPage]) -> Result<f64> {
    let begun = Instant::now();
    let work = || -> Result<u32> {
        let (mut client, mut lists) = (RawHttpClient::connect(port)?, 0);
        while begun.elapsed() < ROUND_DURATION {
            for page in pages {
                let (bytes, _) = client.send_with("POST", "/mcp", HEADERS, &page.request)?;
                ensure!(bytes.len() == page.bytes.len(), "a response of {} bytes", bytes.len());
            }
            lists += 1;
        }
        Ok(lists)
    };
    let lists = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..CONNECTIONS).map(|_| scope.spawn(work)).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| anyhow::bail!("a thread panicked")))
            .sum::<Result<u32>>()
    })?;
    Ok(f64::from(lists) / begun.elapsed().as_secs_f64())
}

/// All pages against one file of their total size, and one page against a file of its size. The former includes the
/// cost of paging.
pub fn compare_with_baseline(bench: &Bench, hub: &ServerProcess, rounds: usize) -> Result<()> {
    let pages = fetch_pages(hub.port)?;
    let whole = ListPage {
        request: request(None),
        bytes: pages.iter().flat_map(|page| page.bytes.iter().copied()).collect(),
        tools: pages.iter().map(|page| page.tools).sum(),
    };
    let first = pages.first().context("no page")?;
    let one = ListPage { request: first.request.clone(), bytes: first.bytes.clone(), tools: first.tools };
    for (what, asked, plain) in [("whole list", pages.as_slice(), &whole), ("first page", &[one], first)] {
        let bare = bench.start_baseline(&plain.bytes)?;
        let (mut ours, mut theirs, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..rounds {
            let (list, file) = (
                lists_per_second(hub.port, asked)?,
                lists_per_second(bare.port, std::slice::from_ref(plain))?,
            );
            ours.push(list);
            theirs.push(file);
            ratios.push(list / file);
        }
        println!(
            "| {what}, {} tools, {} requests, {} KB: per second | {:.0} from axum | {:.0} | {:.2} | at least 0.5 |",
            plain.tools,
            asked.len(),
            plain.bytes.len() / 1024,
            median_of(&theirs),
            median_of(&ours),
            median_of(&ratios)
        );
    }
    Ok(())
}
