//! Tools for GitLab's OpenAPI document: its sources, and the replies.

use super::tool_schemas::assert_fits;
use crate::fake_server::{FakeReply, FakeServer, RecordedRequest, bench};
use crate::gitlab::{Instance, tools};
use crate::{GitlabSettings, gitlab_toolbox};
use octo_toolkit::{Kind, Remedy, Secret, ToolFixture};
use serde_json::{Value, json};
use std::sync::Arc;

const DOCUMENT: &str = include_str!("openapi_v3.yaml");

async fn served() -> (FakeServer, ToolFixture) {
    let server = FakeServer::serve(|seen: &RecordedRequest| match seen.path.as_str() {
        "/openapi.yaml" => FakeReply::text(200, DOCUMENT),
        _ => FakeReply::text(404, ""),
    })
    .await;
    let bench = bench(gitlab_toolbox(GitlabSettings {
        openapi_url: Some(server.url_for("/openapi.yaml")),
        ..GitlabSettings::default()
    }));
    (server, bench)
}

async fn call(bench: &ToolFixture, name: &str, input: Value) -> Value {
    let answer = bench.call(name, input).await.unwrap();
    assert_fits(bench.tools(), name, &answer);
    answer
}

#[tokio::test]
async fn the_document_is_fetched_once_and_read_in_parts() {
    let (server, bench) = served().await;
    let (mut whole, mut next) = (String::new(), Some(json!(0)));
    while let Some(offset) = next {
        let part = call(&bench, "gitlab_openapi_spec", json!({"offset": offset, "limit": 700})).await;
        assert_eq!(part["total"], DOCUMENT.len());
        whole.push_str(part["content"].as_str().unwrap());
        next = part.get("next_offset").cloned();
    }
    assert_eq!(whole, DOCUMENT);
    assert_eq!(call(&bench, "gitlab_openapi_spec", json!({})).await["content"], DOCUMENT);
    assert_eq!(server.take_paths(), ["/openapi.yaml"]);
    for limit in [0, 500_001] {
        let error = bench.call("gitlab_openapi_spec", json!({"limit": limit})).await.unwrap_err();
        assert_eq!(error.kind, Kind::Invalid);
    }
}

#[tokio::test]
async fn callers_at_the_same_time_share_one_request() {
    let (server, bench) = served().await;
    let calls = (0..8).map(|_| bench.call("gitlab_openapi_paths", json!({})));
    for answer in futures_util::future::join_all(calls).await {
        assert_eq!(answer.unwrap()["total"], 6);
    }
    assert_eq!(server.take_paths(), ["/openapi.yaml"]);
}

#[tokio::test]
async fn operations_are_listed_and_explained() {
    let (_server, bench) = served().await;
    let page = call(&bench, "gitlab_openapi_paths", json!({"limit": 4})).await;
    assert_eq!(
        (page["paths"].as_array().unwrap().len(), &page["total"], &page["next_offset"]),
        (4, &json!(6), &json!(4))
    );
    let page = call(&bench, "gitlab_openapi_paths", json!({"limit": 4, "offset": 4})).await;
    assert_eq!((page["paths"].as_array().unwrap().len(), page.get("next_offset")), (2, None));
    let found = call(&bench, "gitlab_openapi_paths", json!({"filter": "approve merge"})).await;
    assert_eq!(
        found["paths"],
        json!([{"path": "/api/v4/projects/{id}/merge_requests/{merge_request_iid}/approve", "method": "POST", "summary": "Approve a merge request"}])
    );
    let told =
        call(&bench, "gitlab_openapi_operation", json!({"path": "projects/{id}/issues", "method": "post"}))
            .await;
    assert_eq!((&told["path"], &told["method"]), (&json!("/api/v4/projects/{id}/issues"), &json!("POST")));
    assert!(told["operation"].to_string().contains("The title of the issue"));
    let error =
        bench.call("gitlab_openapi_operation", json!({"path": "/nope", "method": "GET"})).await.unwrap_err();
    assert!(error.kind == Kind::NotFound && error.hint.is_some(), "{error}");
}

/// An instance of a version, and GitLab's repository with these files.
async fn instance(
    version: &'static str,
    files: &'static [&'static str],
) -> (FakeServer, FakeServer, ToolFixture) {
    let forge = FakeServer::serve(move |seen: &RecordedRequest| {
        match (seen.path.as_str(), seen.header("private-token")) {
            ("/api/v4/version", Some("glpat-1")) => {
                FakeReply::json(200, &json!({"version": version, "revision": "abc"}))
            }
            _ => FakeReply::json(401, &json!({"message": "401 Unauthorized"})),
        }
    })
    .await;
    let repository = FakeServer::serve(move |seen: &RecordedRequest| {
        let known = files.contains(&seen.path.trim_start_matches("/raw/"));
        if known { FakeReply::text(200, DOCUMENT) } else { FakeReply::text(404, "") }
    })
    .await;
    let settings = GitlabSettings {
        url: Some(forge.url.clone()),
        token: Some(Secret::new("glpat-1")),
        ..GitlabSettings::default()
    };
    let instance = Instance::with_repository(settings, repository.url_for("/raw/").to_string());
    (forge, repository, bench(tools(Arc::new(instance))))
}

#[tokio::test]
async fn the_document_of_the_instances_own_version_is_preferred() {
    let (forge, repository, bench) =
        instance("17.5.2-ee", &["v17.5.2-ee/doc/api/openapi/openapi_v2.yaml"]).await;
    let spec = call(&bench, "gitlab_openapi_spec", json!({})).await;
    assert!(
        spec["source"].as_str().unwrap().ends_with("/raw/v17.5.2-ee/doc/api/openapi/openapi_v2.yaml"),
        "{}",
        spec["source"]
    );
    assert_eq!(forge.take_paths(), ["/api/v4/version"]);
    for seen in repository.requests() {
        assert!(seen.header("private-token").is_none(), "the token is the instance's");
    }
    let (_, repository, bench) = instance("19.0.0-pre", &["master/doc/api/openapi/openapi_v3.yaml"]).await;
    assert_eq!(call(&bench, "gitlab_openapi_paths", json!({})).await["total"], 6);
    assert_eq!(repository.take_paths(), ["/raw/master/doc/api/openapi/openapi_v3.yaml"]);
}

#[tokio::test]
async fn without_a_document_the_answer_says_what_to_set() {
    let (_, repository, bench) = instance("17.5.2", &[]).await;
    let error = bench.call("gitlab_openapi_paths", json!({})).await.unwrap_err();
    assert_eq!(error.kind, Kind::Unavailable);
    assert!(error.text().contains("gitlab.openapi_url"), "{error}");
    assert_eq!(error.remedy.as_deref(), Some(&Remedy::settings(&["gitlab.openapi_url"])));
    assert_eq!(repository.take_paths().len(), 4);
    let page = FakeServer::serve(|_: &RecordedRequest| {
        FakeReply::text(200, "<!doctype html><title>Sign in</title>")
    })
    .await;
    let settings = GitlabSettings { openapi_url: Some(page.url.clone()), ..GitlabSettings::default() };
    let error = crate::fake_server::bench(gitlab_toolbox(settings))
        .call("gitlab_openapi_spec", json!({}))
        .await
        .unwrap_err();
    assert!(error.kind == Kind::Unavailable && error.text().contains("gitlab.openapi_url"), "{error}");
    // A failure is not cached.
    assert!(bench.call("gitlab_openapi_paths", json!({})).await.is_err());
    assert_eq!(repository.take_paths().len(), 4);
}
