//! HTTP servers on loopback for the tasks.

use anyhow::Result;
use axum::Router;

/// Serves until the test ends; returns the URL without a trailing slash.
pub async fn serve(router: Router) -> Result<String> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let base = format!("http://{}", listener.local_addr()?);
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(base)
}
