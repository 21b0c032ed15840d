//! Rate limits that hold across fronts.

use crate::test_fleet::TestFleet;
use anyhow::{Result, bail};
use octo_tests::http_client::HttpClient;
use octo_tests::hub_process::{HubHome, RunningHub};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const BURST: f64 = 100.0;
const PER_MINUTE: f64 = 1_200.0;
const LOAD_TIME: Duration = Duration::from_secs(4);
/// Clients of each front.
const CLIENTS: usize = 3;

fn limited() -> Value {
    json!({"limits": [{"tools": ["time_now"], "per_minute": PER_MINUTE as u32, "burst": BURST as u32}]})
}

/// Calls that one bucket permits within this time.
fn permitted(time: Duration) -> f64 {
    BURST + PER_MINUTE / 60.0 * time.as_secs_f64()
}

/// Whether a call was allowed. A refusal says when to come back.
async fn is_allowed(client: &HttpClient, base_url: &str) -> Result<bool> {
    let reply = client.post(&format!("{base_url}/tools/time_now"), &[], &json!({})).await?;
    let (status, retry_after) = (reply.status, reply.header("retry-after").map(str::to_owned));
    let body = reply.text().await?;
    match status {
        200 => Ok(true),
        429 => {
            assert_eq!(retry_after.as_deref(), Some("1"), "{body}");
            assert!(
                body.contains("rate_limited") && body.contains("Rate limit exceeded for time_now."),
                "{body}"
            );
            Ok(false)
        }
        _ => bail!("{status} {body}"),
    }
}

/// Calls as fast as a front answers, until the time is over; returns how many calls were allowed.
async fn load(front: &RunningHub, until: Instant) -> Result<u32> {
    let clients = (0..CLIENTS).map(|_| {
        let base_url = front.base_url.clone();
        tokio::spawn(async move {
            let (client, mut allowed) = (HttpClient::default(), 0);
            while Instant::now() < until {
                if is_allowed(&client, &base_url).await? {
                    allowed += 1;
                } else {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            }
            anyhow::Ok(allowed)
        })
    });
    let mut sum = 0;
    for client in clients.collect::<Vec<_>>() {
        sum += client.await??;
    }
    Ok(sum)
}

async fn two_fronts(fleet: &TestFleet) -> Result<[(HubHome, RunningHub); 2]> {
    let fronts = [fleet.front("one", limited()).await?, fleet.front("two", limited()).await?];
    // What is started on first use is started, without a count.
    for (_, front) in &fronts {
        crate::test_fleet::call(front, "time_diff", json!({"start": "2027-01-01", "end": "2027-01-31"}))
            .await?;
    }
    Ok(fronts)
}

fn check(allowed: u32, load_time: Duration, whole_time: Duration) {
    let (least, most) = (permitted(load_time) * 0.9, permitted(whole_time));
    let sum = f64::from(allowed);
    assert!(sum <= most, "{allowed} calls in {whole_time:?}, more than {most}");
    assert!(sum >= least, "{allowed} calls in {load_time:?}, less than {least}");
}

#[tokio::test]
async fn two_fronts_allow_no_more_than_one_would_and_nearly_as_much() -> Result<()> {
    let fleet = TestFleet::start().await?;
    let [(_home_1, one), (_home_2, two)] = two_fronts(&fleet).await?;
    let begun = Instant::now();
    let until = begun + LOAD_TIME;
    let (first, second) = tokio::try_join!(load(&one, until), load(&two, until))?;
    assert!(first > 10 && second > 10, "{first} and {second}");
    check(first + second, LOAD_TIME, begun.elapsed());
    Ok(())
}

#[tokio::test]
async fn one_front_can_use_nearly_the_whole_limit() -> Result<()> {
    let fleet = TestFleet::start().await?;
    let [(_home_1, one), (_home_2, two)] = two_fronts(&fleet).await?;
    let begun = Instant::now();
    assert!(is_allowed(&HttpClient::default(), &two.base_url).await?);
    let allowed = load(&one, begun + LOAD_TIME).await?;
    check(allowed + 1, LOAD_TIME, begun.elapsed());
    Ok(())
}
