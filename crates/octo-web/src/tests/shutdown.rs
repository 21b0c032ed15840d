//! Clients that disconnect, and hubs that stop.

use super::test_server::{read_until_silent, start_server, until_closed};
use super::web_fixture::WebFixture;
use crate::ListenerLimits;
use octo_ports::Outcome;
use std::time::Duration;
use tokio::io::AsyncWriteExt;

#[tokio::test]
async fn a_client_that_goes_away_cancels_its_call() {
    let bed = WebFixture::new();
    let port = start_server(bed.local(), ListenerLimits::default()).await;
    let mut waiting = bed.upstream.waiting.subscribe();
    let mut stream = port.connect().await;
    let head = format!("{}Content-Length: 0\r\n\r\n", port.head("POST", "/tools/up__slow"));
    stream.write_all(head.as_bytes()).await.unwrap();
    waiting.wait_for(|many| *many == 1).await.unwrap();
    drop(stream);
    tokio::time::timeout(Duration::from_secs(1), waiting.wait_for(|many| *many == 0)).await.unwrap().unwrap();
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert_eq!(*bed.audit_log.1.lock().unwrap(), [Outcome::Dropped]);
}

#[tokio::test]
async fn open_requests_end_before_the_hub_does() {
    let bed = WebFixture::new();
    let port = start_server(bed.local(), ListenerLimits::default()).await;
    let mut waiting = bed.upstream.waiting.subscribe();
    let (mut idle, mut busy) = (port.connect().await, port.connect().await);
    let head = port.head("POST", "/tools/up__slow");
    busy.write_all(format!("{head}X-Octoprox-Timeout-Ms: 400\r\n\r\n").as_bytes()).await.unwrap();
    idle.write_all(format!("{}\r\n", port.head("GET", "/health")).as_bytes()).await.unwrap();
    assert!(read_until_silent(&mut idle, Duration::from_millis(50)).await.starts_with("HTTP/1.1 200"));
    waiting.wait_for(|many| *many == 1).await.unwrap();
    port.shutdown.cancel();
    assert!(until_closed(&mut idle).await < Duration::from_millis(200));
    let text = read_until_silent(&mut busy, Duration::from_secs(2)).await;
    assert!(text.starts_with("HTTP/1.1 504"), "{text}");
    assert!(text.to_lowercase().contains("connection: close"));
    tokio::time::timeout(Duration::from_secs(1), port.task).await.unwrap().unwrap();
}

#[tokio::test]
async fn what_does_not_end_is_ended() {
    let bed = WebFixture::new();
    let port = start_server(
        bed.local(),
        ListenerLimits { drain_timeout: Duration::from_millis(300), ..ListenerLimits::default() },
    )
    .await;
    let mut waiting = bed.upstream.waiting.subscribe();
    let mut stuck = port.connect().await;
    stuck.write_all(format!("{}\r\n", port.head("POST", "/tools/up__slow")).as_bytes()).await.unwrap();
    waiting.wait_for(|many| *many == 1).await.unwrap();
    let silent = port.connect().await;
    port.shutdown.cancel();
    tokio::time::timeout(Duration::from_secs(2), port.task).await.unwrap().unwrap();
    assert_eq!(*waiting.borrow(), 0);
    drop(silent);
}

#[tokio::test]
async fn a_dropped_server_drops_its_connections() {
    let bed = WebFixture::new();
    let port = start_server(bed.local(), ListenerLimits::default()).await;
    let mut waiting = bed.upstream.waiting.subscribe();
    let mut stuck = port.connect().await;
    stuck.write_all(format!("{}\r\n", port.head("POST", "/tools/up__slow")).as_bytes()).await.unwrap();
    waiting.wait_for(|many| *many == 1).await.unwrap();
    port.task.abort();
    tokio::time::timeout(Duration::from_secs(1), waiting.wait_for(|many| *many == 0)).await.unwrap().unwrap();
}
