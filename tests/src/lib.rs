//! Black-box tests: the real binary, real upstream servers, clients that know only the protocol.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    reason = "tests start the programs they test, and a missing member of a JSON value reads as null"
)]

pub mod attached_user;
pub mod fixture_process;
pub mod http_client;
pub mod hub_process;
pub mod mcp_clients;
pub mod processes;
pub mod reader_home;
pub mod stdio_client;
pub mod test_binaries;
pub mod test_fleet;

/// Polls until the check succeeds or a deadline passes.
pub async fn eventually<T>(what: &str, mut check: impl AsyncFnMut() -> Option<T>) -> anyhow::Result<T> {
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(60);
    loop {
        if let Some(value) = check().await {
            return Ok(value);
        }
        anyhow::ensure!(tokio::time::Instant::now() < deadline, "it never came to be that {what}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}
