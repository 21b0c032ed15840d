//! What a call over the fabric costs beside a bare request of the same bytes.

use crate::fleet::{BusKind, Fleet, context, operation};
use async_nats::Client;
use futures_util::StreamExt;
use octo_toolkit::Source;
use std::time::{Duration, Instant};

const CALLS: usize = 2_000;
const ROUNDS: usize = 7;

async fn bare_requests(client: &Client, payload: &bytes::Bytes) -> Duration {
    let started = Instant::now();
    for _ in 0..CALLS {
        client.request("bare", payload.clone()).await.unwrap();
    }
    started.elapsed()
}

async fn remote_calls(fleet: &Fleet, params: &str) -> Duration {
    let cx = context();
    let started = Instant::now();
    for _ in 0..CALLS {
        fleet.remote.run(operation("echo", params), &cx).await.unwrap();
    }
    started.elapsed()
}

async fn local_calls(fleet: &Fleet, params: &str) -> Duration {
    let cx = context();
    let started = Instant::now();
    for _ in 0..CALLS {
        fleet.source.run(operation("echo", params), &cx).await.unwrap();
    }
    started.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement: run it alone, in release"]
async fn a_call_costs_little_more_than_a_request() {
    let fleet = Fleet::start(BusKind::Nats).await;
    let url = format!("nats://127.0.0.1:{}", fleet.nats.as_ref().unwrap().port);
    let client = async_nats::connect(&url).await.unwrap();
    let responder = async_nats::connect(&url).await.unwrap();
    let mut requests = responder.subscribe("bare").await.unwrap();
    responder.flush().await.unwrap();
    tokio::spawn(async move {
        while let Some(request) = requests.next().await {
            responder.publish(request.reply.unwrap(), request.payload).await.unwrap();
        }
    });
    for bytes in [100, 1_000, 10_000, 100_000] {
        let params = format!(r#"{{"arguments":{{"text":"{}"}}}}"#, "x".repeat(bytes));
        let payload = bytes::Bytes::from(params.clone());
        let [mut bare, mut remote, mut local] = [const { Vec::new() }; 3];
        for _ in 0..ROUNDS {
            bare.push(bare_requests(&client, &payload).await);
            remote.push(remote_calls(&fleet, &params).await);
            local.push(local_calls(&fleet, &params).await);
        }
        let [bare, remote, local] = [bare, remote, local].map(median);
        let per_call = |time: Duration| time.as_secs_f64() * 1e6 / CALLS as f64;
        let ratio = remote.as_secs_f64() / (bare + local).as_secs_f64();
        println!(
            "{bytes} bytes: bare {:.1} µs, remote {:.1} µs, local {:.1} µs, ratio {ratio:.2}",
            per_call(bare),
            per_call(remote),
            per_call(local),
        );
        assert!(ratio < 3.0, "{ratio}");
    }
}
