//! Logs in at one server with a browser, uses it, and logs out: `login URL`. Prints the URL to open and the results as
//! JSON lines.
//!
//! Shows how little a frontend needs: begin, a callback, and the account of an upstream.

#![expect(clippy::disallowed_methods, reason = "the callback of a login is a listener")]

use axum::extract::RawQuery;
use axum::routing::get;
use octo_grants::Net;
use octo_grants::net::NetSpec;
use octo_model::{Caller, Operation};
use octo_oauth::{ClientIdentity, LoginPrompt, LoginSpec, Logins};
use octo_ports::{Owner, Stores};
use octo_toolkit::{CallContext, Source, SourceState};
use octo_upstream::{Upstream, UpstreamSpec};
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let url = std::env::args().nth(1).ok_or("name the server's address")?;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let redirect = format!("http://{}/auth/callback", listener.local_addr()?);
    let net = Net::new(NetSpec { allow: vec!["127.0.0.1".to_owned()], ..NetSpec::default() })?;
    let logins = Logins::new(&Stores::in_memory(), ClientIdentity::new(redirect))?;
    logins.register(LoginSpec { net: net.clone(), ..LoginSpec::oauth("server", &url) });
    let waiting = logins.clone();
    let callback = move |RawQuery(query): RawQuery| {
        let logins = waiting.clone();
        async move {
            match logins.callback(&query.unwrap_or_default(), None).await {
                Ok(done) => format!("Logged in at {}.", done.server),
                Err(error) => error.text(),
            }
        }
    };
    let app = axum::Router::new().route("/auth/callback", get(callback));
    tokio::spawn(async move { axum::serve(listener, app).await });

    let me = Caller::local();
    let mut spec = UpstreamSpec::http("server", &url);
    spec.accounts = Some(logins.account(Owner::from(&me), "server")?.into());
    let upstream = Upstream::start(spec);
    let LoginPrompt::Open { url, .. } = logins.begin(&me, "server").await? else {
        return Err("no browser".into());
    };
    println!("{}", json!({"open": url}));
    let mut listing = upstream.listing();
    let ready = listing.wait_for(|now| now.state == SourceState::Ready);
    let tools: Vec<String> = tokio::time::timeout(Duration::from_secs(60), ready)
        .await??
        .listing
        .tools
        .iter()
        .map(|tool| tool.key.clone())
        .collect();
    let cx = CallContext::new(
        Arc::new(me.clone()),
        Instant::now() + Duration::from_secs(20),
        CancellationToken::new(),
    );
    let first = tools.first().ok_or("no tools")?;
    let answer = upstream.run(Operation::tool(first, json!({}).into()), &cx).await?;
    println!("{}", json!({"tools": tools, "answer": answer.to_json().to::<serde_json::Value>()?}));
    let left = logins.logout(&me, "server").await?;
    println!("{}", json!({"left": format!("{left:?}")}));
    upstream.stop().await;
    Ok(())
}
