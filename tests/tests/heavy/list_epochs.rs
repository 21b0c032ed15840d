//! The lists of clients while their server crashes, hangs, starts slowly and changes its tools. `LIST_EPOCHS` sets how
//! often.

use octo_tests::attached_user::AttachedUser;
use octo_tests::mcp_clients::answer_nothing;
use octo_tests::stdio_client::StdioClient;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

const DEFAULT_ROUNDS: usize = 100;

/// An MCP server that reads at its start what it should do.
const SERVER: &str = r#"
import json, os, sys, time
folder = sys.argv[1]
mode = open(f"{folder}/mode").read()
with open(f"{folder}/pid", "w") as file:
    file.write(f"{os.getpid()} {mode}")
if mode == "slow":
    time.sleep(0.7)
if mode == "crash":
    sys.exit(3)
names = {"fewer": ["alpha"], "none": [], "more": ["alpha", "beta", "aaa"]}.get(mode, ["alpha", "beta"])
about = "Another text." if mode == "changed" else "A text."
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method = message["method"]
    if mode == "hang" and method == "tools/list":
        time.sleep(3600)
    if mode == "die" and method == "tools/list":
        sys.exit(4)
    result = {}
    if method == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [{"name": name, "description": about, "inputSchema": {"type": "object"}} for name in names]}
    elif method == "tools/call":
        result = {"content": [{"type": "text", "text": "done"}]}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"#;

fn set_mode(folder: &Path, mode: &str) {
    std::fs::write(folder.join("mode.new"), mode).unwrap();
    std::fs::rename(folder.join("mode.new"), folder.join("mode")).unwrap();
}

/// Ends the server without warning, unless it started in the given mode.
fn kill_server(folder: &Path, unless: &str) {
    let text = std::fs::read_to_string(folder.join("pid")).unwrap_or_default();
    let Some((pid, mode)) = text.split_once(' ') else { return };
    if mode != unless {
        let pid = pid.parse().ok().and_then(rustix::process::Pid::from_raw).unwrap();
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        let _ = std::fs::remove_file(folder.join("pid"));
    }
}

/// A legacy client, a modern one, and a profile of its own for the latter.
struct Clients {
    legacy: StdioClient,
    modern: StdioClient,
}

impl Clients {
    async fn lists(&mut self) -> [String; 2] {
        let legacy = self.legacy.call("tools/list", json!({}), answer_nothing).await.unwrap();
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
        });
        let modern = self.modern.call("tools/list", json!({"_meta": meta}), answer_nothing).await.unwrap();
        [legacy, modern].map(|reply| {
            assert!(reply["result"]["tools"].is_array(), "{reply}");
            reply["result"]["tools"].to_string()
        })
    }

    /// Calls the server, which starts it, without waiting for the reply.
    async fn begin_call(&mut self, number: usize) {
        let params = json!({"name": "up__alpha", "arguments": {}});
        let id = format!("call {number}");
        let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
        self.legacy.send(&call).await.unwrap();
    }
}

fn names(list: &str) -> Vec<String> {
    let tools: Vec<Value> = serde_json::from_str(list).unwrap();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn no_byte_changes_whatever_a_server_does() {
    let rounds =
        std::env::var("LIST_EPOCHS").ok().and_then(|text| text.parse().ok()).unwrap_or(DEFAULT_ROUNDS);
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("server.py"), SERVER).unwrap();
    set_mode(folder.path(), "usual");
    let settings = json!({
        "servers": {"up": {
            "command": "python3", "args": [folder.path().join("server.py"), folder.path()],
            "trust": "follow", "timeout_seconds": 2, "start_timeout_seconds": 2, "connect": "always",
        }},
        "profiles": {"few": {"tools": ["up__*", "time_now"]}},
    });
    let user = AttachedUser::new(&settings).unwrap();
    let mut clients = Clients {
        legacy: StdioClient::open(user.command(&["stdio"]).unwrap()).unwrap(),
        modern: StdioClient::open(user.command(&["stdio", "--profile", "few"]).unwrap()).unwrap(),
    };
    clients.legacy.initialize(json!({})).await.unwrap();
    octo_tests::eventually("the server is listed", async || {
        let lists = clients.lists().await;
        lists.iter().all(|list| list.contains("up__beta")).then_some(())
    })
    .await
    .unwrap();
    let before = clients.lists().await;
    let modes = ["usual", "crash", "slow", "fewer", "hang", "none", "changed", "die"];
    for round in 0..rounds {
        let mode = modes[round % modes.len()];
        set_mode(folder.path(), mode);
        kill_server(folder.path(), "");
        clients.begin_call(round).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert_eq!(clients.lists().await, before, "round {round}: {mode}");
    }
    set_mode(folder.path(), "more");
    let after = octo_tests::eventually("the new tool is listed", async || {
        // One that was about to start in the last round may run.
        kill_server(folder.path(), "more");
        clients.begin_call(rounds).await;
        tokio::time::sleep(Duration::from_millis(200)).await;
        let lists = clients.lists().await;
        lists.iter().all(|list| list.contains("up__aaa")).then_some(lists)
    })
    .await
    .unwrap();
    for (before, after) in before.iter().zip(&after) {
        assert!(after.starts_with(before.strip_suffix(']').unwrap()), "{after}");
        assert_eq!(names(after).len(), names(before).len() + 1);
        assert_eq!(names(after).last().map(String::as_str), Some("up__aaa"));
    }
}
