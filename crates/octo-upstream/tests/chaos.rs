//! Fault injection: what callers see when a server fails in any way, and that callers of another server are not
//! affected.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and plays the servers itself"
)]

mod common;
use axum::response::IntoResponse;
use common::mock_http::{MockServer, json_body, legacy_preamble, status, tools};
use common::process_helpers::*;
use common::*;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use octo_grants::exec::launcher;
use octo_model::{Kind, ToolError};
use octo_toolkit::{Source, SourceState};
use octo_upstream::{Upstream, UpstreamSpec};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinHandle;

/// Launcher for the other tests: this binary.
#[test]
#[ignore = "a process that other tests start"]
fn launcher() {
    launcher::main(std::env::args_os());
}

/// Of servers that do not answer: no call of the steady server waits that long.
const CALL_TIMEOUT: Duration = Duration::from_secs(3);

type CallResult = Result<Value, ToolError>;

/// A running server and the fault to inject: resolves to what the caller saw. Its creator ensures that the server works
/// again afterwards.
type FaultResult = BoxFuture<'static, CallResult>;

struct FaultCase {
    name: &'static str,
    /// Kind of the error, or a reply.
    kind: Option<Kind>,
    words: &'static str,
    set_up: fn() -> BoxFuture<'static, FaultResult>,
}

const fn fault_case(
    name: &'static str,
    kind: Option<Kind>,
    words: &'static str,
    set_up: fn() -> BoxFuture<'static, FaultResult>,
) -> FaultCase {
    FaultCase { name, kind, words, set_up }
}

const FAULT_CASES: [FaultCase; 9] = [
    fault_case("killed in a call", Some(Kind::Unavailable), "may have taken effect", || killed().boxed()),
    fault_case("hung", Some(Kind::Timeout), "did not answer within", || hung().boxed()),
    fault_case("1,000,000 frames of garbage", None, "", || garbage().boxed()),
    fault_case("a line of 1 GB", Some(Kind::TooLarge), "Request less data", || gigabyte().boxed()),
    fault_case("half-open TCP", Some(Kind::Timeout), "did not answer within", || silence().boxed()),
    fault_case("401 in the middle", Some(Kind::Unauthorized), "needs a login", || refusal().boxed()),
    fault_case("list changed in a call", None, "", || change().boxed()),
    fault_case("restarted with other tools", None, "", || restart().boxed()),
    fault_case("slow start", None, "", || slow_start().boxed()),
];

impl FaultCase {
    fn named(name: &str) -> &'static Self {
        static ROWS: [FaultCase; 9] = FAULT_CASES;
        ROWS.iter().find(|row| row.name == name).unwrap()
    }

    /// What the caller saw, in the terms of the table.
    fn check(&self, seen: CallResult) -> String {
        match (seen, self.kind) {
            (Ok(_), None) => "the answer".to_owned(),
            (Err(error), Some(kind)) => {
                let text = error.text();
                assert!(error.kind == kind && text.contains(self.words), "{}: {error:?}", self.name);
                format!("{}: {}", kind.as_str(), text.replace('\n', " "))
            }
            (seen, _) => panic!("{}: {seen:?}", self.name),
        }
    }
}

/// A healthy server under constant calls.
struct SteadyLoad {
    upstream: Arc<Upstream>,
    stop: Arc<AtomicBool>,
    took: Arc<Mutex<Vec<(Instant, Duration)>>>,
    calls: JoinHandle<()>,
}

impl SteadyLoad {
    async fn start() -> Self {
        let spec = UpstreamSpec {
            name: "steady".into(),
            ..with_launcher(UpstreamSpec::stdio("stub", stub("legacy")))
        };
        let upstream = Upstream::start(spec);
        wait_ready(&upstream).await;
        let (its, stop) = (upstream.clone(), Arc::new(AtomicBool::new(false)));
        let took = Arc::new(Mutex::new(Vec::new()));
        let (over, times) = (stop.clone(), took.clone());
        let calls = tokio::spawn(async move {
            while !over.load(Ordering::Relaxed) {
                let begun = Instant::now();
                call(&its, &no_peer(), "echo", json!({})).await.expect("a call to the steady server failed");
                times.lock().unwrap().push((begun, begun.elapsed()));
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        });
        Self { upstream, stop, took, calls }
    }

    /// Durations of all calls started since then.
    fn since(&self, begun: Instant) -> Vec<Duration> {
        let took = self.took.lock().unwrap();
        took.iter().filter(|(at, _)| *at >= begun).map(|(_, took)| *took).collect()
    }

    /// All calls were answered.
    async fn end(self) -> usize {
        self.stop.store(true, Ordering::Relaxed);
        self.calls.await.unwrap();
        self.upstream.stop().await;
        self.took.lock().unwrap().len()
    }
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// One row, with a steady server beside it.
async fn check(name: &str) {
    let (row, steady) = (FaultCase::named(name), SteadyLoad::start().await);
    let chaos = (row.set_up)().await;
    let begun = Instant::now();
    row.check(chaos.await);
    let mut took = steady.since(begun);
    let (median, longest) = (median(&mut took), took[took.len() - 1]);
    assert!(median < Duration::from_millis(100) && longest < CALL_TIMEOUT, "{median:?} {longest:?}");
    steady.end().await;
}

#[tokio::test]
async fn killed_in_a_call() {
    check("killed in a call").await;
}

#[tokio::test]
async fn hung_for_ever() {
    check("hung").await;
}

#[tokio::test]
async fn a_million_frames_of_garbage() {
    check("1,000,000 frames of garbage").await;
}

#[tokio::test]
async fn a_line_of_a_gigabyte() {
    check("a line of 1 GB").await;
}

#[tokio::test]
async fn half_open_tcp() {
    check("half-open TCP").await;
}

#[tokio::test]
async fn a_401_in_the_middle() {
    check("401 in the middle").await;
}

#[tokio::test]
async fn a_list_that_changes_in_a_call() {
    check("list changed in a call").await;
}

#[tokio::test]
async fn restarted_with_other_tools() {
    check("restarted with other tools").await;
}

#[tokio::test]
async fn a_slow_start() {
    check("slow start").await;
}

/// Effect of one row on the calls of the steady server: the median of each valid round, without and with the fault.
#[derive(Default)]
struct Rounds {
    without: Vec<Duration>,
    with: Vec<Duration>,
    ratios: Vec<f64>,
    calls: usize,
    seen: String,
}

impl Rounds {
    /// Quiet, fault, quiet. A round is valid if the machine was as fast after it as before: only then is the difference
    /// due to the fault.
    async fn turn(&mut self, row: &FaultCase, steady: &SteadyLoad) {
        const WINDOW: Duration = Duration::from_millis(500);
        let quiet = async || {
            let begun = Instant::now();
            tokio::time::sleep(WINDOW).await;
            median(&mut steady.since(begun))
        };
        let chaos = (row.set_up)().await;
        let before = quiet().await;
        let begun = Instant::now();
        self.seen = row.check(tokio::join!(chaos, tokio::time::sleep(WINDOW)).0);
        let mut with = steady.since(begun);
        let after = quiet().await;
        if before.max(after) > before.min(after).mul_f64(1.10) {
            return;
        }
        self.calls += with.len();
        let (without, with) = ((before + after) / 2, median(&mut with));
        self.ratios.push(with.as_secs_f64() / without.as_secs_f64());
        self.without.push(without);
        self.with.push(with);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long"]
async fn chaos_beside_a_steady_server() {
    const ROUNDS: usize = 5;
    const TRIES: usize = 40;
    const WARM: Duration = Duration::from_secs(2);
    let steady = SteadyLoad::start().await;
    tokio::time::sleep(WARM).await;
    let (mut slowed, mut unknown) = (Vec::new(), Vec::new());
    println!("{:<27} |   without |      with | ratio | calls | what its caller sees", "one server");
    for row in &FAULT_CASES {
        let mut rounds = Rounds::default();
        for _ in 0..TRIES {
            rounds.turn(row, &steady).await;
            if rounds.ratios.len() == ROUNDS {
                break;
            }
        }
        if rounds.ratios.len() < ROUNDS {
            unknown.push(row.name);
            continue;
        }
        rounds.ratios.sort_by(f64::total_cmp);
        let (without, with) = (median(&mut rounds.without), median(&mut rounds.with));
        let (ratio, calls, seen) = (rounds.ratios[ROUNDS / 2], rounds.calls, rounds.seen);
        println!("{:<27} | {without:>9.1?} | {with:>9.1?} | {ratio:>5.2} | {calls:>5} | {seen}", row.name);
        if ratio > 1.10 {
            slowed.push(row.name);
        }
    }
    println!("all {} calls to the steady server were answered", steady.end().await);
    assert!(slowed.is_empty(), "slowed the steady server: {slowed:?}");
    assert!(unknown.is_empty(), "the machine was too restless to measure: {unknown:?}");
}

async fn start(change: impl FnOnce(&mut UpstreamSpec)) -> Arc<Upstream> {
    let mut spec = with_launcher(UpstreamSpec::stdio("stub", stub("legacy")));
    change(&mut spec);
    let upstream = Upstream::start(spec);
    wait_ready(&upstream).await;
    upstream
}

fn begin(upstream: &Arc<Upstream>, tool: &'static str, arguments: Value) -> JoinHandle<CallResult> {
    let upstream = upstream.clone();
    tokio::spawn(async move { call(&upstream, &no_peer(), tool, arguments).await })
}

async fn works(upstream: &Upstream) {
    works_as(upstream, "echo").await;
}

async fn works_as(upstream: &Upstream, tool: &str) {
    call(upstream, &no_peer(), tool, json!({})).await.expect("the server works again");
}

async fn killed() -> FaultResult {
    let upstream = start(|_| ()).await;
    let victim = pid(&upstream).await;
    let waiting = begin(&upstream, "hold", json!({}));
    wait_until("the call is under way", || upstream.report().calls == 1).await;
    async move {
        tokio::time::sleep(Duration::from_millis(200)).await;
        kill(victim);
        let seen = waiting.await.unwrap();
        works(&upstream).await;
        upstream.stop().await;
        seen
    }
    .boxed()
}

async fn hung() -> FaultResult {
    let upstream = start(|spec| {
        spec.call_timeout = CALL_TIMEOUT;
        spec.breaker.max_failures = 2;
        spec.breaker.pause = CALL_TIMEOUT;
        spec.ping_interval = None;
    })
    .await;
    let first = pid(&upstream).await;
    async move {
        call(&upstream, &no_peer(), "deaf", json!({})).await.unwrap();
        let seen = call(&upstream, &no_peer(), "echo", json!({})).await;
        assert_eq!(call(&upstream, &no_peer(), "echo", json!({})).await.unwrap_err().kind, Kind::Timeout);
        // Several calls in a row timed out: refused immediately, and restarted meanwhile.
        let begun = Instant::now();
        let error = call(&upstream, &no_peer(), "echo", json!({})).await.unwrap_err();
        assert!(error.kind == Kind::Unavailable && error.message.contains("calls are refused"), "{error:?}");
        assert!(begun.elapsed() < CALL_TIMEOUT);
        wait_until("the deaf one is ended", || !is_alive(first)).await;
        wait_until("it is up again", || upstream.is_connected()).await;
        tokio::time::sleep(error.retry_after.unwrap()).await;
        works(&upstream).await;
        upstream.stop().await;
        seen
    }
    .boxed()
}

async fn garbage() -> FaultResult {
    let upstream = start(|_| ()).await;
    async move {
        let seen = call(&upstream, &no_peer(), "rubbish", json!({"lines": 1_000_000})).await;
        assert_eq!(first_text_json(seen.as_ref().unwrap()), "through");
        works(&upstream).await;
        upstream.stop().await;
        seen
    }
    .boxed()
}

async fn gigabyte() -> FaultResult {
    let upstream = start(|spec| spec.max_message_bytes = 16 << 20).await;
    let first = pid(&upstream).await;
    async move {
        let seen = call(&upstream, &no_peer(), "flood", json!({"megabytes": 1024})).await;
        wait_until("the flood is ended", || !is_alive(first)).await;
        works(&upstream).await;
        upstream.stop().await;
        seen
    }
    .boxed()
}

/// Speaks enough HTTP to connect, then accepts everything and stays silent, like a peer with its cable pulled.
async fn half_open(silent: Arc<AtomicBool>) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let server = MockServer::start(|hit| async move {
        legacy_preamble(&hit, json!({"tools": {}})).unwrap_or_else(|| match hit.rpc_method() {
            "tools/list" => tools(&hit, &["a"]),
            _ => json_body(hit.result(json!({"content": []}))),
        })
    })
    .await;
    tokio::spawn(async move {
        let behind = server.url.trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
        while let Ok((mut near, _)) = listener.accept().await {
            let (behind, silent) = (behind.clone(), silent.clone());
            tokio::spawn(async move {
                let mut far = tokio::net::TcpStream::connect(&behind).await.unwrap();
                let (mut up, mut down) = ([0; 4096], [0; 4096]);
                loop {
                    tokio::select! {
                        count = near.read(&mut up) => match count {
                            Ok(count) if count > 0 && !silent.load(Ordering::SeqCst) => far.write_all(&up[..count]).await.unwrap(),
                            // No response ever comes, and the connection stays open.
                            Ok(count) if count > 0 => {}
                            _ => return,
                        },
                        count = far.read(&mut down) => match count {
                            Ok(count) if count > 0 => near.write_all(&down[..count]).await.unwrap(),
                            _ => return,
                        },
                    }
                }
            });
        }
        drop(server);
    });
    url
}

async fn silence() -> FaultResult {
    let silent = Arc::new(AtomicBool::new(false));
    let mut spec = UpstreamSpec::http("s", half_open(silent.clone()).await);
    spec.call_timeout = CALL_TIMEOUT;
    let upstream = Upstream::start(spec);
    wait_ready(&upstream).await;
    works_as(&upstream, "a").await;
    async move {
        silent.store(true, Ordering::SeqCst);
        let begun = Instant::now();
        let seen = call(&upstream, &no_peer(), "a", json!({})).await;
        assert!(begun.elapsed() < CALL_TIMEOUT * 3);
        // The line is back: the dead connection is not used again.
        silent.store(false, Ordering::SeqCst);
        works_as(&upstream, "a").await;
        upstream.stop().await;
        seen
    }
    .boxed()
}

async fn refusal() -> FaultResult {
    let refuses = Arc::new(AtomicBool::new(false));
    let now = refuses.clone();
    let server = MockServer::start(move |hit| {
        let refuses = now.load(Ordering::SeqCst);
        async move {
            if refuses {
                return status(401);
            }
            legacy_preamble(&hit, json!({"tools": {}})).unwrap_or_else(|| match hit.rpc_method() {
                "tools/list" => tools(&hit, &["a"]),
                _ => json_body(hit.result(json!({"content": []}))),
            })
        }
    })
    .await;
    let upstream = Upstream::start(UpstreamSpec::http("s", &server.url));
    wait_ready(&upstream).await;
    works_as(&upstream, "a").await;
    async move {
        refuses.store(true, Ordering::SeqCst);
        let seen = call(&upstream, &no_peer(), "a", json!({})).await;
        wait_listing(
            &upstream,
            |now| matches!(&now.state, SourceState::Down(why) if why.contains("needs a login")),
        )
        .await;
        refuses.store(false, Ordering::SeqCst);
        upstream.connect(&call_context(20)).await.unwrap();
        works_as(&upstream, "a").await;
        upstream.stop().await;
        drop(server);
        seen
    }
    .boxed()
}

async fn change() -> FaultResult {
    let upstream = start(|_| ()).await;
    async move {
        let before = upstream.listing().borrow().version;
        let slow = begin(&upstream, "sleep", json!({"ms": 500}));
        assert_eq!(
            first_text_json(&call(&upstream, &no_peer(), "change", json!({})).await.unwrap()),
            "changed"
        );
        let listing = wait_listing(&upstream, |now| now.version > before).await;
        assert!(tool_names(&listing).contains(&"extra2".to_owned()));
        let seen = slow.await.unwrap();
        upstream.stop().await;
        seen
    }
    .boxed()
}

async fn restart() -> FaultResult {
    static ROUND: AtomicUsize = AtomicUsize::new(0);
    let folder = folder(&format!("starts-{}", ROUND.fetch_add(1, Ordering::SeqCst)));
    let count = folder.join("count").to_string_lossy().into_owned();
    let upstream = start(|spec| {
        if let octo_upstream::TransportSpec::Stdio(command) = &mut spec.transport {
            command.env.insert("STUB_STARTS".into(), count);
        }
        spec.era = Some(octo_wire::Era::Legacy);
    })
    .await;
    assert!(!tool_names(&upstream.listing().borrow()).contains(&"newer".to_owned()));
    let victim = pid(&upstream).await;
    async move {
        kill(victim);
        wait_until("the end is noticed", || !upstream.report().pids.contains(&(victim as u32))).await;
        // Calls meanwhile wait for it.
        let seen = call(&upstream, &no_peer(), "echo", json!({})).await;
        let listing =
            wait_listing(&upstream, |now| now.listing.tools.iter().any(|tool| tool.key == "newer")).await;
        assert_eq!(listing.state, SourceState::Ready);
        upstream.stop().await;
        std::fs::remove_dir_all(folder).unwrap();
        seen
    }
    .boxed()
}

async fn slow_start() -> FaultResult {
    let lists = octo_ports::in_memory::listings();
    let spec = || UpstreamSpec {
        listing_cache: Some(lists.clone()),
        ..with_launcher(on_demand("slow", Duration::from_secs(600)))
    };
    let first = Upstream::start(spec());
    wait_ready(&first).await;
    first.stop().await;
    let upstream = Upstream::start(spec());
    wait_ready(&upstream).await;
    async move {
        let begun = Instant::now();
        let seen = call(&upstream, &no_peer(), "echo", json!({})).await;
        assert!(begun.elapsed() >= Duration::from_secs(2), "it was not slow");
        assert_eq!(upstream.listing().borrow().state, SourceState::Ready, "nobody was told of a loss");
        upstream.stop().await;
        seen
    }
    .boxed()
}

#[tokio::test]
async fn a_server_that_answers_with_errors_is_busy_and_well_again() {
    let hits = Arc::new(AtomicUsize::new(0));
    let count = hits.clone();
    let server = MockServer::start(move |hit| {
        let count = count.clone();
        async move {
            legacy_preamble(&hit, json!({"tools": {}})).unwrap_or_else(|| match hit.rpc_method() {
                "tools/list" => tools(&hit, &["a"]),
                _ if count.fetch_add(1, Ordering::SeqCst) < 3 => status(502).into_response(),
                _ => json_body(hit.result(json!({"content": []}))),
            })
        }
    })
    .await;
    let mut spec = UpstreamSpec::http("s", &server.url);
    spec.breaker.max_failures = 3;
    spec.breaker.pause = Duration::from_millis(500);
    let upstream = Upstream::start(spec);
    wait_ready(&upstream).await;
    for _ in 0..3 {
        assert_eq!(call(&upstream, &no_peer(), "a", json!({})).await.unwrap_err().kind, Kind::Unavailable);
    }
    assert!(
        call(&upstream, &no_peer(), "a", json!({})).await.unwrap_err().message.contains("calls are refused")
    );
    assert_eq!(hits.load(Ordering::SeqCst), 3, "it was asked all the same");
    tokio::time::sleep(Duration::from_millis(500)).await;
    works_as(&upstream, "a").await;
    upstream.stop().await;
}
