//! `github_pull_request` with rate limits, private repositories, redirects and failing parts.

use super::github_pull_request::{FakeRepo, SECRET, settings, url};
use crate::fake_server::{FakeReply, FakeServer, RecordedRequest, bench, capabilities, now, silent_server};
use crate::{GithubSettings, github_toolbox};
use octo_toolkit::{CallContext, Caller, Json, Kind, Remedy, ToolError, ToolFixture};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

fn unknown(fake: &FakeServer) -> ToolFixture {
    bench(github_toolbox(GithubSettings { token: None, ..settings(fake) }))
}

fn with_token(fake: &FakeServer) -> ToolFixture {
    bench(github_toolbox(settings(fake)))
}

async fn refused(bench: &ToolFixture, fake: &FakeServer) -> ToolError {
    let error = bench.call("github_pull_request", json!({"url": url(fake)})).await.unwrap_err();
    assert!(!format!("{error:?}").contains("canary"), "{error:?}");
    error
}

async fn always(status: u16, body: Value, headers: &'static [(&'static str, &'static str)]) -> FakeServer {
    FakeServer::serve(move |_: &RecordedRequest| {
        headers.iter().fold(FakeReply::json(status, &body), |reply, (name, value)| reply.with(name, value))
    })
    .await
}

#[tokio::test]
async fn a_private_repository_is_told_from_a_missing_token() {
    let fake = always(404, json!({"message": "Not Found"}), &[]).await;
    let error = refused(&unknown(&fake), &fake).await;
    assert_eq!(error.kind, Kind::NotFound);
    assert!(
        error.text().contains("private and no token is set") && error.text().contains("github.token"),
        "{error}"
    );
    let error = refused(&with_token(&fake), &fake).await;
    assert!(error.kind == Kind::NotFound && error.text().contains("the token has no access"), "{error}");
    assert_eq!(fake.take_paths().len(), 2, "nothing is asked after that");
    let fake = always(
        403,
        json!({"message": "Resource protected by organization SAML enforcement."}),
        &[("x-github-sso", "required; url=https://x")],
    )
    .await;
    let error = refused(&with_token(&fake), &fake).await;
    assert!(error.kind == Kind::Unauthorized && error.text().contains("single sign-on"), "{error}");
    let fake = always(401, json!({"message": "Bad credentials"}), &[]).await;
    let error = refused(&with_token(&fake), &fake).await;
    assert!(error.kind == Kind::Unauthorized && error.text().contains("Bad credentials"), "{error}");
    let fake = always(401, json!({"message": "Requires authentication"}), &[]).await;
    let error = refused(&unknown(&fake), &fake).await;
    assert!(error.text().contains("requires a token") && error.text().contains("github.token"), "{error}");
    assert!(!error.text().contains("rejected the token"), "{error}");
}

#[tokio::test]
async fn the_hours_limit_is_told_with_its_end_and_not_asked_again() {
    let reset = now().as_second() + 1_500;
    let fake = FakeServer::serve(move |_: &RecordedRequest| {
        FakeReply::json(403, &json!({"message": "API rate limit exceeded for 192.0.2.1. (But here's the good news: Authenticated requests get a higher rate limit.)"}))
            .with("x-ratelimit-limit", 60)
            .with("x-ratelimit-remaining", 0)
            .with("x-ratelimit-reset", reset)
    })
    .await;
    let bench = unknown(&fake);
    let error = refused(&bench, &fake).await;
    assert_eq!((error.kind, error.retry_after.unwrap().as_secs()), (Kind::RateLimited, 1_500));
    assert!(error.text().contains("until 2026-11-15T10:25:00Z"), "{error}");
    assert!(error.text().contains("github.token"), "{error}");
    assert_eq!(error.remedy.as_deref(), Some(&Remedy::settings(&["github.token"])));
    let error = refused(&bench, &fake).await;
    assert!(error.kind == Kind::RateLimited && error.retry_after.unwrap().as_secs() >= 1_490, "{error}");
    assert_eq!(fake.take_paths().len(), 1);
}

#[tokio::test]
async fn other_limits_are_told_as_well() {
    const TOO_FAST: &str =
        "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.";
    for (status, headers, wait) in [
        (429, &[("retry-after", "77")] as &[_], 77),
        (403, &[("retry-after", "30"), ("x-ratelimit-remaining", "41")], 30),
        (403, &[("x-ratelimit-remaining", "41"), ("x-ratelimit-reset", "1794740400")], 60),
    ] {
        let fake = always(status, json!({"message": TOO_FAST}), headers).await;
        let error = refused(&with_token(&fake), &fake).await;
        assert_eq!((error.kind, error.retry_after.unwrap().as_secs()), (Kind::RateLimited, wait), "{error}");
        assert!(!error.text().contains("set github.token"), "one is set: {error}");
    }
    let fake = always(
        403,
        json!({"message": "Resource not accessible by personal access token"}),
        &[("x-ratelimit-remaining", "41")],
    )
    .await;
    assert_eq!(refused(&with_token(&fake), &fake).await.kind, Kind::Denied);
}

#[tokio::test]
async fn a_part_that_fails_is_named_and_the_rest_is_given() {
    let repo = FakeRepo::default();
    let fake = FakeServer::serve(move |seen: &RecordedRequest| {
        if seen.path.ends_with("/check-runs") {
            return FakeReply::json(403, &json!({"message": "Resource not accessible by integration"}));
        }
        if seen.path.ends_with("/reviews") {
            return FakeReply::text(200, "<html>");
        }
        repo.answer(seen)
    })
    .await;
    let told = with_token(&fake).call("github_pull_request", json!({"url": url(&fake)})).await.unwrap();
    assert_eq!(told["truncated"], true);
    let missing: Vec<&str> =
        told["missing"].as_array().unwrap().iter().map(|one| one["part"].as_str().unwrap()).collect();
    assert_eq!(missing, ["reviews", "checks"]);
    assert!(told["missing"][1]["reason"].as_str().unwrap().contains("not accessible by integration"));
    assert!(!told["diff"].as_str().unwrap().is_empty() && told["comments"].as_array().unwrap().len() == 4);
}

#[tokio::test]
async fn it_works_without_a_token() {
    let (fake, _) = FakeRepo::default().serve().await;
    let told = unknown(&fake).call("github_pull_request", json!({"url": url(&fake)})).await.unwrap();
    assert_eq!((&told["title"], &told["requests_left"]), (&json!("Add a hub"), &json!(41)));
    assert!(fake.requests().iter().all(|seen| seen.header("authorization").is_none()));
}

#[tokio::test]
async fn the_token_stays_with_its_origin() {
    let repo = FakeRepo::default();
    let elsewhere = FakeServer::serve(move |seen: &RecordedRequest| repo.answer(seen)).await;
    let target = elsewhere.url.clone();
    let fake = FakeServer::serve(move |seen: &RecordedRequest| {
        FakeReply::text(301, "").with("location", target.join(&seen.path).unwrap())
    })
    .await;
    let told = with_token(&fake).call("github_pull_request", json!({"url": url(&fake)})).await.unwrap();
    assert_eq!(told["number"], 7);
    assert!(
        fake.requests()
            .iter()
            .all(|seen| seen.header("authorization").is_some_and(|sent| sent.contains(SECRET)))
    );
    let asked = elsewhere.requests();
    assert!(asked.len() >= 5);
    assert!(asked.iter().all(|seen| !format!("{:?}", seen.headers).contains(SECRET)));
    assert!(!told.to_string().contains("canary"));
    // A pull request on another server is not requested at all.
    let before = elsewhere.requests().len();
    let error =
        with_token(&fake).call("github_pull_request", json!({"url": url(&elsewhere)})).await.unwrap_err();
    assert_eq!((error.kind, elsewhere.requests().len()), (Kind::Denied, before));
}

#[tokio::test]
async fn a_cancelled_call_ends_at_once() {
    let (server, reached) = silent_server().await;
    let url = Some(server.join("/api/v3").unwrap());
    let toolbox = github_toolbox(GithubSettings { url, token: None });
    let cancel = CancellationToken::new();
    let cx =
        CallContext::new(Arc::new(Caller::local()), Instant::now() + Duration::from_secs(20), cancel.clone());
    let doors = capabilities();
    let input = Json::from(json!({"url": server.join("/octo/hub/pull/7").unwrap().as_str()}));
    let call = toolbox.tools[0].run(input, &doors, &cx);
    let both = async {
        tokio::join!(call, async {
            reached.notified().await;
            cancel.cancel();
        })
    };
    let (outcome, ()) = tokio::time::timeout(Duration::from_secs(5), both).await.unwrap();
    assert_eq!(outcome.unwrap_err().kind, Kind::Cancelled);
}
