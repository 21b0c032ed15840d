//! End-to-end tests of the binary.

#![expect(
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests start the binary, read its files and fail where it does"
)]

mod add_cli;
mod client_files;
mod doctor_cli;
mod import_cli;
mod init_cli;
mod init_protection;
#[path = "../../../octo-postgres/tests/postgres/postgres_schema.rs"]
mod postgres_schema;
mod secret_cli;
mod servers_cli;
mod store_cli;
mod test_home;
mod trust_cli;

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};
use test_home::TestHome;

#[test]
fn exit_codes_say_what_went_wrong() {
    let home = TestHome::new();
    home.write("octoprox.yaml", "policy: {rules: [{name: no, tools: [time_diff], decision: deny}]}");
    for (words, code, says) in [
        (&["call", "time_now"][..], 0, ""),
        (&["call", "time_now", "zone=UTC"], 2, "Unknown parameter `zone`."),
        (&["call", "time_now", "timezone"], 2, "`timezone` is not an argument."),
        (&["call", "no_such_tool"], 3, "Tool not found: `no_such_tool`."),
        (
            &["call", "time_diff", "start=2026-01-01", "end=2026-01-02"],
            4,
            "The policy rule `no` does not allow time_diff.",
        ),
        (&["call", "time_now", "--profile", "none"], 3, "Profile not found: `none`."),
        (&["call"], 2, "error:"),
        (&["audit", "verify", "--anchor", "x"], 2, "error:"),
        (&["tools", "--config", "gone.yaml"], 2, "gone.yaml: file not found."),
    ] {
        let output = home.run(words);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {said}");
        assert!(said.contains(says), "{words:?}: {said}");
    }
}

#[test]
fn the_build_and_the_man_pages_come_from_the_binary() {
    let home = TestHome::new();
    let facts = home.stdout(&["--version", "--verbose"]);
    for name in ["version: ", "commit: ", "target: ", "profile: ", "compiler: rustc ", "allocator: "] {
        assert!(facts.lines().any(|line| line.starts_with(name)), "{facts}");
    }
    assert_eq!(home.stdout(&["--version"]).lines().count(), 1);
    assert_eq!(home.run(&["--verbose", "tools"]).status.code(), Some(2));
    let folder = home.path("man/man1");
    home.stdout(&["man", folder.to_str().unwrap()]);
    let page = std::fs::read_to_string(folder.join("octoprox-serve.1")).unwrap();
    assert!(page.contains(".TH octoprox-serve 1") && page.contains("octoprox serve"), "{page}");
    assert!(!folder.join("octoprox-launch.1").exists(), "commands of the hub itself have no page");
}

#[test]
fn a_call_is_printed_for_programs_and_for_people() {
    let home = TestHome::new();
    let reply: Value =
        serde_json::from_str(&home.stdout(&["call", "time_now", "timezone=Asia/Tokyo", "--json"])).unwrap();
    assert_eq!(reply["success"], json!(true));
    assert_eq!(reply["result"]["timezone"], json!("Asia/Tokyo"));
    assert_eq!(reply["metadata"]["server"], json!("time"));
    assert!(reply["execution_time_ms"].as_f64().unwrap() > 0.0);
    let refused = home.run(&["call", "time_now", "timezone=Nowhere", "--json"]);
    let reply: Value = serde_json::from_slice(&refused.stdout).unwrap();
    assert_eq!((&reply["success"], &reply["error"]["kind"]), (&json!(false), &json!("invalid")));
    assert!(
        home.stdout(&["call", "time_now", "--args", r#"{"timezone": "Asia/Tokyo"}"#])
            .contains("timezone: Asia/Tokyo\n")
    );
}

#[test]
fn switched_off_tools_are_listed_only_on_request() {
    let home = TestHome::new();
    home.write("octoprox.yaml", "toolboxes: {time: false}");
    assert!(!home.stdout(&["tools"]).contains("time_now"));
    assert!(
        home.stdout(&["tools", "--all"])
            .lines()
            .any(|line| line.starts_with("time_now") && line.contains("(off)"))
    );
    let listed: Value = serde_json::from_str(&home.stdout(&["tools", "--all", "--json"])).unwrap();
    let now = listed["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "time_now").unwrap();
    assert_eq!(now["_meta"]["octoprox/toolbox"], json!("time"));
    assert!(home.stdout(&["tools", "--all"]).lines().all(|line| line.chars().count() <= 80));
    let output = home.run(&["call", "time_now"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("OCTOPROX_ENABLE_TIME=true"));
    let output = home.command(&["call", "time_now"]).env("OCTOPROX_ENABLE_TIME", "yes").output().unwrap();
    assert!(output.status.success());
}

#[test]
fn errors_name_the_variable_that_helps() {
    let home = TestHome::new();
    let (code, _, said) = home.run_text(&["call", "read_page", "url=http://10.0.0.1/"]);
    assert!(code == Some(4) && said.contains("OCTOPROX_NET_ALLOW=10.0.0.1."), "{said}");
    let reply = home.run(&["call", "read_page", "url=http://10.0.0.1/", "--json"]);
    let reply: Value = serde_json::from_slice(&reply.stdout).unwrap();
    assert!(reply["error"]["hint"].as_str().unwrap().contains("OCTOPROX_NET_ALLOW=10.0.0.1."), "{reply}");
}

#[test]
fn settings_are_checked_shown_and_described() {
    let home = TestHome::new();
    assert_eq!(home.stdout(&["config", "check"]), "ok\n");
    let schema: Value = serde_json::from_str(&home.stdout(&["config", "schema"])).unwrap();
    assert!(schema["properties"]["servers"].is_object());
    home.write(
        "octoprox.yaml",
        "servers: {a: {url: 'https://x/mcp', headers: {Authorization: 'Bearer s3cr3t-s3cr3t'}}}",
    );
    let shown = home.stdout(&["config", "show"]);
    assert!(shown.contains("servers.a.headers.Authorization: \"***\"  # "), "{shown}");
    assert!(!shown.contains("s3cr3t") && !home.stdout(&["config", "show", "--json"]).contains("s3cr3t"));
    home.write("octoprox.yaml", "listen: {prot: 1}\nshell: 5");
    let output = home.run(&["config", "check"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(String::from_utf8_lossy(&output.stderr).lines().count(), 2);
}

#[test]
fn the_audit_can_be_read_and_believed() {
    let home = TestHome::new();
    assert_eq!(home.stdout(&["audit", "tail"]), "");
    assert_eq!(home.run(&["audit", "verify"]).status.code(), Some(3));
    home.stdout(&["call", "time_now"]);
    let tail = home.stdout(&["audit", "tail", "--json"]);
    let records: Vec<Value> = tail.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&records[0]["kind"], &records[1]["outcome"]), (&json!("open"), &json!("ok")));
    assert_eq!((&records[0]["frontend"], &records[0]["subject"]), (&json!("cli"), &json!("local")));
    let verified = home.stdout(&["audit", "verify"]);
    let anchor = verified.trim().rsplit(' ').next().unwrap().to_owned();
    assert!(verified.starts_with("ok: 2 records, head 2:"), "{verified}");
    home.stdout(&["call", "time_now"]);
    assert!(home.stdout(&["audit", "verify", "--anchor", &anchor]).starts_with("ok: 4 records"));
    let wrong = format!("9:{}", anchor.split_once(':').unwrap().1);
    assert_eq!(home.run(&["audit", "verify", "--anchor", &wrong]).status.code(), Some(1));
}

#[test]
fn a_token_is_printed_once_and_its_hash_lets_in() {
    let home = TestHome::new();
    let output = home.run(&["token", "new", "ada"]);
    let token = String::from_utf8(output.stdout).unwrap().trim().to_owned();
    let said = String::from_utf8(output.stderr).unwrap();
    let lines = said.split_once("octoprox.yaml:").unwrap().1;
    home.write("octoprox.yaml", lines);
    let server = home.serve(&["--host", "0.0.0.0"]);
    assert_eq!(server.get("/tools", None).0, 401);
    assert_eq!(server.get("/tools", Some(&token)).0, 200);
    assert_eq!(server.get("/health", None).0, 200);
    drop(server);
    home.stdout(&["audit", "verify"]);
}

#[test]
fn others_are_let_in_only_with_tokens() {
    let home = TestHome::new();
    let output = home.run(&["serve", "--host", "0.0.0.0"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("octoprox token new NAME"));
}

#[test]
fn serves_and_stops_when_told() {
    let home = TestHome::new();
    let server = home.serve(&[]);
    assert!(server.ready_line.starts_with("octoprox 0.1.0 · MCP http://127.0.0.1:"), "{}", server.ready_line);
    let (status, listed) = server.get("/tools", None);
    assert_eq!(status, 200);
    let listed = serde_json::from_str::<Value>(&listed).unwrap()["tools"].as_array().unwrap().len();
    assert!(
        listed > 5 && server.ready_line.trim_end().ends_with(&format!("{listed} tools")),
        "{}",
        server.ready_line
    );
    assert!(server.get("/metrics", None).1.contains("octoprox_"));
    let begun = Instant::now();
    let (code, log) = server.stop();
    assert_eq!(code, Some(0));
    assert!(begun.elapsed() < Duration::from_secs(5));
    assert!(log.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{log}");
}

#[test]
fn speaks_mcp_on_its_pipes_and_nothing_else() {
    let home = TestHome::new();
    let mut child = home
        .command(&["stdio"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut ask = |message: Value| {
        writeln!(stdin, "{message}").unwrap();
        serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap()
    };
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let answer = ask(json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}));
    assert_eq!(answer["result"]["protocolVersion"], json!("2025-11-25"));
    let call = json!({"name": "time_now", "arguments": {}});
    let answer = ask(json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}));
    assert_eq!(answer["result"]["structuredContent"]["timezone"], json!("UTC"));
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let home = TestHome::new();
    for words in
        [&["tools", "--json", "--all"][..], &["completions", "zsh"], &["config", "schema"], &["--help"]]
    {
        let mut child = home
            .command(words)
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert!(child.wait().unwrap().success() && said.is_empty(), "{words:?}: {said}");
    }
}

#[test]
fn a_cut_result_is_read_with_jq() {
    let home = TestHome::new();
    home.write("octoprox.yaml", "results: {max_bytes: 2000}");
    let reply: Value =
        serde_json::from_str(&home.stdout(&["call", "time_list_timezones", "--json"])).unwrap();
    assert_eq!(reply["metadata"]["truncated"], json!(true));
    let handle = format!("handle={}", reply["metadata"]["result_handle"].as_str().unwrap());
    let read = |jq: &str| home.run(&["call", "result_read", &handle, jq, "--json"]);
    let reply: Value = serde_json::from_slice(&read("jq=.timezones | length").stdout).unwrap();
    assert!(reply["result"]["text"].as_str().unwrap().trim().parse::<u32>().unwrap() > 300, "{reply}");
    assert_eq!(read("jq=.[").status.code(), Some(2));
}

#[test]
fn a_search_engine_on_a_private_address_is_for_searching_only() {
    let home = TestHome::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = [0; 4_096];
            let _ = stream.read(&mut head);
            let hit = json!({"url": "https://found.test/", "title": "Found", "content": "it"});
            let body = json!({"query": "x", "results": [hit]}).to_string();
            let length = body.len();
            let head =
                format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}");
            let _ = write!(stream, "{head}\r\nConnection: close\r\n\r\n{body}");
        }
    });
    home.write("octoprox.yaml", &format!("search: {{searxng_url: 'http://{address}'}}\n"));
    let (code, printed, said) = home.run_text(&["call", "web_search", "query=x"]);
    assert!(code == Some(0) && printed.contains("found.test"), "{printed}{said}");
    let url = format!("url=http://{address}/");
    for words in [&["fetch_url"][..], &["fetch_json"], &["http_request", "method=GET"], &["read_page"]] {
        let (code, _, said) = home.run_text(&[&["call"], words, &[url.as_str()]].concat());
        assert_eq!(code, Some(4), "{words:?}: {said}");
    }
}

#[test]
fn no_secret_reaches_log_or_screen() {
    let home = TestHome::new();
    let canary = "canary-8675309-long-enough";
    home.write("octoprox.yaml", "telemetry: {log_level: trace, log_file: log}\nservers: {a: {url: 'http://127.0.0.1:9/mcp?key=${MY_KEY}', headers: {X-Token: '${MY_KEY}'}}}");
    let mut command = home.command(&["serve", "--port", "0"]);
    command.env("MY_KEY", canary).env("TOOL_GATEWAY_SECRET", canary);
    let server = home.start(command);
    server.get("/ready", None);
    server.get(&format!("/tools?password={canary}"), Some(canary));
    let (_, log) = server.stop();
    let file = home.read("log");
    assert!(!log.is_empty() && !file.is_empty());
    assert!(!log.contains(canary) && !file.contains(canary));
}

/// Sends a request on a new connection.
pub fn get(port: u16, path: &str, token: Option<&str>) -> (u16, String) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let token = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost:{port}\r\n{token}Connection: close\r\n\r\n")
        .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}
