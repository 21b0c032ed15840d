//! Baseline for benchmarks of the hub: an axum handler that returns fixed bytes.
//!
//!     baseline PORT LIST_FILE CALL_FILE

#![expect(clippy::disallowed_methods, reason = "a measuring aid, not part of the product")]

use axum::Router;
use axum::body::Bytes;
use axum::http::HeaderMap;
use axum::serve::ListenerExt;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let mut next = || args.next().ok_or("usage: baseline PORT LIST_FILE CALL_FILE");
    let port: u16 = next()?.parse()?;
    let list = Bytes::from(std::fs::read(next()?)?);
    let call = Bytes::from(std::fs::read(next()?)?);
    let app = Router::new().route(
        "/mcp",
        axum::routing::post(move |headers: HeaderMap, _body: Bytes| async move {
            let listing = headers.get("mcp-method").is_some_and(|method| method == "tools/list");
            ([("content-type", "application/json")], if listing { list } else { call })
        }),
    );
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    let listener = listener.tap_io(|stream| {
        let _ = stream.set_nodelay(true);
    });
    axum::serve(listener, app).await?;
    Ok(())
}
