//! A machine without free descriptors.
#![allow(clippy::disallowed_methods, reason = "takes every descriptor of its own process")]

use super::test_server::{read_until_silent, start_server};
use super::web_fixture::WebFixture;
use crate::ListenerLimits;
use std::fs::File;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpSocket;

/// Clock ticks used by this process.
fn cpu_ticks() -> u64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap();
    let after = text.rsplit(')').next().unwrap();
    after.split_whitespace().skip(11).take(2).map(|field| field.parse::<u64>().unwrap()).sum()
}

#[tokio::test]
async fn waits_without_descriptors_and_goes_on_with_them() {
    // Other runners run all tests in one process, where this one would disturb the rest.
    if std::env::var_os("NEXTEST").is_none() {
        return;
    }
    let port = start_server(WebFixture::new().local(), ListenerLimits::default()).await;
    let client = TcpSocket::new_v4().unwrap();
    let before = cpu_ticks();
    let mut taken = Vec::new();
    while taken.len() < 100_000 {
        match File::open("/dev/null") {
            Ok(file) => taken.push(file),
            Err(_) => break,
        }
    }
    if taken.len() == 100_000 {
        return;
    }
    let mut stream = client.connect(port.address).await.unwrap();
    stream.write_all(format!("{}\r\n", port.head("GET", "/health")).as_bytes()).await.unwrap();
    assert_eq!(read_until_silent(&mut stream, Duration::from_millis(700)).await, "");
    drop(taken);
    assert!(cpu_ticks() - before < 40, "it was busy for {} ticks", cpu_ticks() - before);
    assert!(read_until_silent(&mut stream, Duration::from_millis(1_500)).await.starts_with("HTTP/1.1 200"));
}
