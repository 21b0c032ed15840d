//! Every path parameter of every tool, against every way out of the workspace. The list comes from the catalogue, so
//! that new tools are included.

use super::example_hub::{call, hub};
use super::example_workspace::ExampleWorkspace;
use super::tools;
use octo_model::Kind;
use octo_toolkit::ErasedTool;
use serde_json::{Value, json};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use tokio_util::sync::CancellationToken;

const SECRET: &str = "outside-4711";

/// Parameter names that always denote a path.
const PATH_PARAMETERS: [&str; 8] =
    ["path", "paths", "source", "destination", "cwd", "repo_path", "junit", "files"];

/// Tools whose `path` is that of an API.
const API_PATH_TOOLS: [&str; 4] =
    ["gitlab_openapi_operation", "gitlab_request", "openapi_call", "openapi_get_operation"];

/// Workspace with traps, beside a directory that must not be accessible.
struct TrapWorkspace {
    workspace: ExampleWorkspace,
    outside: PathBuf,
}

impl TrapWorkspace {
    fn new() -> Self {
        let ground = ExampleWorkspace::new();
        let root = ground.settings.workspace.clone().unwrap();
        let outside = root.with_file_name("workspace-evil");
        std::fs::create_dir_all(outside.join("folder")).unwrap();
        std::fs::write(outside.join("secret.txt"), format!("{SECRET}\nalpha\n")).unwrap();
        std::fs::write(outside.join("folder/inner.txt"), format!("{SECRET}\nalpha\n")).unwrap();
        symlink(outside.join("secret.txt"), root.join("to_file")).unwrap();
        symlink(&outside, root.join("to_folder")).unwrap();
        symlink("../workspace-evil/secret.txt", root.join("upwards")).unwrap();
        symlink(outside.join("new.txt"), root.join("dangling")).unwrap();
        symlink("to_file", root.join("chain")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, root.join("pipe"), rustix::fs::Mode::from_raw_mode(0o600))
            .unwrap();
        Self { workspace: ground, outside }
    }

    /// SEC-FS-01, SEC-FS-10, SEC-FS-11, SEC-FS-12, SEC-FS-14.
    fn escape_paths(&self) -> Vec<String> {
        let evil = self.outside.display();
        let mut ways: Vec<String> = [
            "../workspace-evil/secret.txt",
            "src/../../workspace-evil/secret.txt",
            "to_file",
            "to_folder/secret.txt",
            "to_folder/new.txt",
            "upwards",
            "dangling",
            "chain",
            "loop",
            "/etc/passwd",
            "/proc/self/root/etc/passwd",
            "/dev/fd/0",
            "../workspace",
            "nul\0byte",
            "",
        ]
        .map(str::to_owned)
        .into();
        ways.extend([format!("{evil}/secret.txt"), format!("/{evil}/secret.txt"), "x".repeat(5_000)]);
        ways
    }

    /// Content outside the workspace, to detect changes.
    fn outside_files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut all = Vec::new();
        let mut folders = vec![self.outside.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path.clone());
                }
                let bytes = if path.is_file() { std::fs::read(&path).unwrap() } else { Vec::new() };
                all.push((path, bytes));
            }
        }
        all.sort();
        all
    }
}

/// First example, with one parameter replaced.
fn input(tool: &ErasedTool, parameter: &str, path: &str) -> Value {
    let mut input: Value = tool.examples[0].input.to().unwrap();
    let definition: Value = tool.definition.to_json().to().unwrap();
    let is_list = definition["inputSchema"]["properties"][parameter]["type"] == "array";
    input[parameter] = if is_list { json!([path]) } else { json!(path) };
    input
}

#[tokio::test(flavor = "multi_thread")]
async fn no_tool_reaches_out_of_the_workspace() {
    let (mut tried, trap) = (0, TrapWorkspace::new());
    let (before, hub) = (trap.outside_files(), hub(&trap.workspace, 100_000));
    for tool in tools() {
        for parameter in &tool.path_params {
            for path in trap.escape_paths() {
                let what = format!("{} {parameter}={:.60}", tool.name, path.escape_debug());
                let began = std::time::Instant::now();
                let called = call(&hub, tool.name, input(&tool, parameter, &path), CancellationToken::new());
                let outcome = called.await.outcome;
                assert!(began.elapsed().as_secs() < 5, "{what} took {:?}", began.elapsed());
                let said = match &outcome {
                    Ok(result) => result.to_json().to_string(),
                    Err(error) => {
                        assert_ne!(error.kind, Kind::Internal, "{what}: {error:?}");
                        format!("{error:?}")
                    }
                };
                assert!(!said.contains(SECRET) && !said.contains("root:x:0"), "{what}: {said}");
                assert_eq!(trap.outside_files(), before, "{what} changed what is outside: {said}");
                tried += 1;
            }
        }
    }
    assert!(tried > 400, "only {tried} were tried");
}

/// Walks check every entry: SEC-FS-15.
#[tokio::test(flavor = "multi_thread")]
async fn no_walk_follows_a_link() {
    let trap = TrapWorkspace::new();
    let hub = hub(&trap.workspace, 1_000_000);
    for (tool, input) in [
        ("fs_search", json!({"pattern": "outside|alpha", "ignored": true, "hidden": true})),
        ("fs_glob", json!({"pattern": "**/*"})),
        ("fs_tree", json!({"max_depth": 10, "include_hidden": true})),
        ("fs_list", json!({"recursive": true, "long_format": true})),
        ("git_status", json!({})),
        ("git", json!({"command": "add", "args": ["--all"]})),
        ("git_changes", json!({})),
    ] {
        let result = call(&hub, tool, input, CancellationToken::new()).await.outcome;
        let said = result.unwrap_or_else(|error| panic!("{tool}: {error:?}")).to_json().to_string();
        assert!(!said.contains(SECRET) && !said.contains("inner.txt"), "{tool}: {said}");
    }
}

/// A file whose opening would block is refused at once: SEC-FS-14.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_waits_for_a_pipe() {
    let trap = TrapWorkspace::new();
    let hub = hub(&trap.workspace, 100_000);
    for tool in ["fs_read_text", "fs_read_bytes", "fs_append", "fs_search", "fs_copy"] {
        let input = match tool {
            "fs_append" => json!({"path": "pipe", "text": "x"}),
            "fs_search" => json!({"path": "pipe", "pattern": "x"}),
            "fs_copy" => json!({"source": "pipe", "destination": "copy"}),
            _ => json!({"path": "pipe"}),
        };
        let began = std::time::Instant::now();
        let outcome = call(&hub, tool, input, CancellationToken::new()).await.outcome;
        assert!(began.elapsed().as_millis() < 1_000, "{tool} waited {:?}", began.elapsed());
        assert!(outcome.is_err(), "{tool}: {outcome:?}");
    }
}

#[test]
fn what_is_called_like_a_path_is_one() {
    for tool in tools() {
        let definition: Value = tool.definition.to_json().to().unwrap();
        for (name, schema) in definition["inputSchema"]["properties"].as_object().unwrap() {
            let is_text = schema["type"] == "string" || schema["type"] == "array";
            let is_address = name == "path" && API_PATH_TOOLS.contains(&tool.name);
            if PATH_PARAMETERS.contains(&name.as_str()) && is_text && !is_address {
                assert!(
                    tool.path_params.contains(name),
                    "{}: {name} is a path and not a WorkPath",
                    tool.name
                );
            }
            assert_ne!(schema["format"], "workspace-path", "{}: the mark of {name} is listed", tool.name);
        }
    }
}

/// Without a root, no file is accessible: SEC-FS-02.
#[tokio::test]
async fn without_a_workspace_files_are_refused() {
    let mut ground = ExampleWorkspace::new();
    ground.settings.workspace = None;
    let hub = hub(&ground, 100_000);
    for (tool, input) in
        [("fs_read_text", json!({"path": "notes.txt"})), ("fs_list", json!({})), ("git_status", json!({}))]
    {
        let error = call(&hub, tool, input, CancellationToken::new()).await.outcome.unwrap_err();
        assert_eq!(error.kind, Kind::Denied, "{tool}: {error:?}");
    }
}

#[test]
fn the_trap_is_one() {
    let trap = TrapWorkspace::new();
    let root = trap.workspace.settings.workspace.clone().unwrap();
    assert!(std::fs::read_to_string(root.join("to_file")).unwrap().contains(SECRET));
    assert!(Path::new(&root).join("to_folder/folder/inner.txt").is_file());
}
