//! Sources of documents, and their persistence.

use super::*;
use octo_grants::Workspace;
use octo_grants::fs::{RootSpec, WorkspaceSpec};

#[tokio::test]
async fn a_file_of_the_workspace_is_loaded_and_one_outside_is_not() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("pets.json"), document("https://api.example/v1").to_string()).unwrap();
    let root = RootSpec { name: "w".into(), path: folder.path().into(), alias_path: None, writable: false };
    let workspace = Workspace::open(WorkspaceSpec { roots: vec![root], ..WorkspaceSpec::default() }).unwrap();
    let bench = ToolFixture::new(toolbox(), doors().with(workspace));
    let got = bench.call("openapi_load", json!({"name": "pets", "spec_path": "pets.json"})).await.unwrap();
    assert_eq!((&got["endpoint_count"], &got["base_url"]), (&json!(5), &json!("https://api.example/v1")));
    for path in ["missing.json", "../../etc/passwd", "/etc/passwd"] {
        let error = bench.call("openapi_load", json!({"name": "x", "spec_path": path})).await.unwrap_err();
        assert!(matches!(error.kind, Kind::NotFound | Kind::Denied | Kind::Invalid), "{path}: {error}");
    }
}

#[tokio::test]
async fn what_was_loaded_is_there_for_the_next_process_of_the_same_caller() {
    let server = RecordingServer::start().await;
    let doors = doors();
    let load = json!({"name": "pets", "spec_url": format!("{}/v1/openapi.json", server.url), "auth_header": "Bearer s3cret"});
    ToolFixture::new(toolbox(), doors.clone()).call("openapi_load", load).await.unwrap();
    let later = ToolFixture::new(toolbox(), doors);
    let got = call(&later, "/pets/{id}", "GET", json!({"path_params": {"id": 7}})).await.unwrap();
    assert_eq!(got["body"]["name"], "Rex");
    assert_eq!(server.requests().pop().unwrap().headers["authorization"], "Bearer s3cret");
}

#[tokio::test]
async fn other_files_are_fetched_only_when_that_is_allowed() {
    let server = RecordingServer::start().await;
    let bench = bench();
    let load = |external: bool| json!({"name": "split", "spec_url": format!("{}/v1/split.json", server.url), "external_refs": external});
    let error = bench.call("openapi_load", load(false)).await.unwrap_err();
    assert!(error.text().contains("external_refs"), "{error}");
    assert_eq!(server.requests().len(), 1, "a file was fetched that nobody asked for");
    let got = bench.call("openapi_load", load(true)).await.unwrap();
    assert_eq!(got["endpoint_count"], 1);
    let found = bench.call("openapi_list_endpoints", json!({"name": "split"})).await.unwrap();
    assert_eq!(found["endpoints"][0]["signature"], "part(id?: int)");
}
