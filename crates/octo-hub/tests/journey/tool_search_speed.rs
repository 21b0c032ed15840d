//! `tools_find` with ten thousand tools beside the bare index, and a server whose list changes meanwhile:
//! `cargo test --release -p octo-hub --test journey -- --ignored --nocapture tool_search_speed`.

use crate::hub_fixture::{HubFixture, ScriptedSource};
use octo_search::{Document, FieldIndex, Group, parameter_texts};
use octo_toolkit::{Source, SourceState};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const SERVERS: usize = 100;
const TOOLS: usize = 100;
const QUERIES: usize = 2_000;
const MAX_P99: Duration = Duration::from_millis(2);
const MAX_REINDEXING: Duration = Duration::from_millis(20);

/// Words in the proportions of a language: the n-th is used about 1/n as often as the first.
struct Words {
    state: u64,
}

impl Words {
    const COUNT: u64 = 4_000;

    fn number(&mut self, below: u64) -> u64 {
        self.state =
            self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 33) % below
    }

    fn word(&mut self) -> String {
        let most = self.number(Self::COUNT) + 1;
        let mut number = self.number(most) + 20;
        let mut word = String::new();
        while number > 0 {
            word.push_str(
                ["ba", "ce", "di", "fo", "gu", "ka", "le", "mi", "no", "pu"][(number % 10) as usize],
            );
            number /= 10;
        }
        word
    }

    fn text(&mut self, words: u64) -> String {
        (0..words).map(|_| self.word()).collect::<Vec<_>>().join(" ")
    }

    fn tool(&mut self, number: usize) -> Value {
        let parameters: serde_json::Map<String, Value> =
            (0..4).map(|_| (self.word(), json!({"type": "string", "description": self.text(8)}))).collect();
        json!({
            "name": format!("{}_{}_{number}", self.word(), self.word()),
            "description": self.text(25),
            "inputSchema": {"type": "object", "properties": parameters},
        })
    }

    fn tools(&mut self) -> Vec<Value> {
        (0..TOOLS).map(|number| self.tool(number)).collect()
    }
}

fn group(name: &str, tools: &[Value]) -> Group {
    let document = |tool: &Value| {
        let parameters = parameter_texts(&tool["inputSchema"]);
        Document {
            name: tool["name"].as_str().unwrap().to_owned(),
            description: tool["description"].as_str().unwrap().to_owned(),
            parameter_names: parameters.names,
            parameter_texts: parameters.descriptions,
            aliases: String::new(),
        }
    };
    Group { name: name.to_owned(), text: String::new(), documents: tools.iter().map(document).collect() }
}

fn bare_index(lists: &[Vec<Value>]) -> FieldIndex {
    let groups = lists.iter().enumerate().map(|(number, tools)| group(&format!("s{number}"), tools));
    FieldIndex::default().with_groups(groups)
}

/// The time below which this share of the calls took.
fn quantile(times: &mut [Duration], share: f64) -> Duration {
    times.sort();
    times[((times.len() - 1) as f64 * share) as usize]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement: run it alone, in release"]
async fn a_search_takes_little_more_than_in_the_bare_index() {
    let mut words = Words { state: 1 };
    let lists: Vec<Vec<Value>> = (0..SERVERS).map(|_| words.tools()).collect();
    let index = bare_index(&lists);
    let sources: Vec<Arc<ScriptedSource>> = (0..)
        .zip(lists)
        .map(|(number, tools)| ScriptedSource::new(Box::leak(format!("s{number}").into_boxed_str()), tools))
        .collect();
    let bench =
        HubFixture::new(sources.iter().map(|source| Arc::clone(source) as Arc<dyn Source>).collect(), |_| {});
    bench.call("tools_find", json!({"query": words.text(1)})).await.unwrap();
    let [mut bare, mut hub] = [const { Vec::new() }; 2];
    let mut replies = Vec::new();
    for _ in 0..QUERIES {
        let length = 3 + words.number(6);
        let query = words.text(length);
        let started = Instant::now();
        assert!(index.rank(&query).hits().take(5).count() > 0);
        bare.push(started.elapsed());
        let started = Instant::now();
        let reply = bench.call("tools_find", json!({"query": query})).await.unwrap();
        hub.push(started.elapsed());
        replies.push(reply.list("content")[0].bytes().len());
    }
    replies.sort_unstable();
    for (name, times) in [("bare index", &mut bare), ("tools_find", &mut hub)] {
        let [p50, p99] = [0.5, 0.99].map(|share| quantile(times, share));
        println!("{name}: p50 {p50:.1?}, p99 {p99:.1?}");
    }
    println!("replies: p50 {} bytes, p95 {}", replies[QUERIES / 2], replies[QUERIES * 95 / 100]);

    // The list of one server changes, while others are called.
    let stop = Arc::new(AtomicBool::new(false));
    let caller = tokio::spawn({
        let (stop, hub) = (Arc::clone(&stop), Arc::clone(&bench.hub));
        async move {
            let mut times = Vec::new();
            while !stop.load(Ordering::Relaxed) {
                let started = Instant::now();
                hub.call(HubFixture::request("results:result_read", json!({"handle": "r_none"}))).await;
                times.push(started.elapsed());
            }
            times
        }
    });
    let [mut updates, mut bare_updates] = [const { Vec::new() }; 2];
    for (number, source) in sources.iter().enumerate().take(50) {
        let mut tools = words.tools();
        let name = format!("entirely_new_{number}");
        tools[0]["name"] = json!(name);
        let started = Instant::now();
        let changed = index.with_groups([group(&format!("s{number}"), &tools)]);
        bare_updates.push(started.elapsed());
        assert_eq!(changed.len(), SERVERS * TOOLS);
        let started = Instant::now();
        source.relist(SourceState::Ready, tools);
        while !found(&bench, &name).await {
            assert!(started.elapsed() < Duration::from_secs(10));
        }
        updates.push(started.elapsed());
    }
    stop.store(true, Ordering::Relaxed);
    let mut calls = caller.await.unwrap();
    for (name, times) in [("index", &mut bare_updates), ("list, catalogue and index", &mut updates)] {
        let [p50, most] = [0.5, 1.0].map(|share| quantile(times, share));
        println!("a change of 100 tools, {name}: p50 {p50:.1?}, at most {most:.1?}");
    }
    let [p50, p99] = [0.5, 0.99].map(|share| quantile(&mut calls, share));
    println!("calls meanwhile: p50 {p50:.1?}, p99 {p99:.1?}, at most {:.1?}", calls[calls.len() - 1]);

    assert!(quantile(&mut hub, 0.99) < MAX_P99);
    assert!(quantile(&mut bare_updates, 0.5) < MAX_REINDEXING);
}

async fn found(bench: &HubFixture, name: &str) -> bool {
    let reply = bench.call("tools_find", json!({"query": name, "limit": 1})).await.unwrap();
    let found: Value = reply.get("structuredContent").unwrap().to().unwrap();
    found["tools"][0]["tool"] == name
}
