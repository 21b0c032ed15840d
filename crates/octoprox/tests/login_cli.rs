//! `octoprox login`, `logout` and the login of a bridge: the real binary against a real authorization server
//! (oidc-provider), with a simulated browser.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests start the programs that they test, and fail where they must"
)]

use http::{HeaderMap, Method};
use octo_grants::Net;
use octo_grants::net::{NetRequest, NetResponse, NetSpec};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use url::Url;

/// Timeout of every wait.
const TEST_TIMEOUT: Duration = Duration::from_secs(30);

fn service_path(name: &str) -> String {
    std::env::var(name)
        .unwrap_or_else(|_| panic!("{name} is not set: run eval \"$(scripts/services env)\" first"))
}

/// Authorization server and protected MCP server.
struct OidcServers {
    mcp: String,
    _process: Child,
}

impl OidcServers {
    async fn start() -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/oidc/serve.mjs");
        let mut process = Command::new(service_path("NODE24"))
            .arg(script)
            .env("OIDC_PROVIDER", service_path("OIDC_PROVIDER"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).await.unwrap();
        let said: Value = serde_json::from_str(&line).unwrap();
        Self { mcp: said["mcp"].as_str().unwrap().to_owned(), _process: process }
    }
}

struct Browser {
    net: Net,
    cookies: BTreeMap<String, String>,
    /// Redirect URL of the login; it is not followed.
    callback_path: String,
}

/// Text after `before`, up to the next quotation mark.
fn attribute(page: &str, before: &str) -> Option<String> {
    let rest = page.split_once(before)?.1;
    Some(rest.split_once('"')?.0.replace("&amp;", "&"))
}

impl Browser {
    fn new() -> Self {
        let spec = NetSpec { allow: vec!["127.0.0.1".to_owned()], ..NetSpec::default() };
        Self {
            net: Net::new(spec).unwrap(),
            cookies: BTreeMap::new(),
            callback_path: "/auth/callback".to_owned(),
        }
    }

    async fn send(&mut self, url: &Url, form: Option<&[(String, String)]>) -> NetResponse {
        let mut headers = HeaderMap::new();
        let cookies: Vec<String> =
            self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        if !cookies.is_empty() {
            headers.insert("cookie", cookies.join("; ").parse().unwrap());
        }
        let mut ask = NetRequest { headers, max_redirects: 0, ..NetRequest::get(url.clone()) };
        if let Some(form) = form {
            ask.method = Method::POST;
            ask.headers.insert("content-type", "application/x-www-form-urlencoded".parse().unwrap());
            let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
            ask.body = Some(body.into());
        }
        let answer = self.net.send(ask).await.unwrap();
        for cookie in answer.headers.get_all("set-cookie") {
            let pair = cookie.to_str().unwrap().split(';').next().unwrap();
            let (name, value) = pair.split_once('=').unwrap();
            self.cookies.insert(name.to_owned(), value.to_owned());
        }
        answer
    }

    /// Logs in as Ada and approves everything, until the browser is redirected or nothing is left to do.
    async fn log_in(&mut self, url: &str) -> Url {
        let mut url: Url = url.parse().unwrap();
        let mut form: Option<Vec<(String, String)>> = None;
        for _ in 0..20 {
            let answer = self.send(&url, form.take().as_deref()).await;
            if let Some(next) = answer.headers.get("location") {
                url = url.join(next.to_str().unwrap()).unwrap();
                if url.path() == self.callback_path {
                    return url;
                }
                continue;
            }
            let page = String::from_utf8_lossy(&answer.body).into_owned();
            let Some(action) = attribute(&page, "action=\"") else { return url };
            let hidden = ["prompt", "xsrf", "user_code", "confirm"].into_iter();
            let hidden = hidden.filter_map(|name| {
                Some((name.to_owned(), attribute(&page, &format!("name=\"{name}\" value=\""))?))
            });
            let known =
                [("login", "ada"), ("password", "x")].map(|(name, text)| (name.to_owned(), text.to_owned()));
            let mut pairs: Vec<(String, String)> = hidden.chain(known).collect();
            if page.contains("user_code") {
                pairs.push(("confirm".to_owned(), "yes".to_owned()));
            }
            url = url.join(&action).unwrap();
            form = Some(pairs);
        }
        panic!("the login does not end: {url}");
    }

    /// Opens the callback page, like a browser on this machine.
    async fn open_callback(&mut self, url: &Url) -> (u16, String) {
        let mut url = url.clone();
        url.set_host(Some("127.0.0.1")).unwrap();
        let answer = self.send(&url, None).await;
        (answer.status.as_u16(), String::from_utf8_lossy(&answer.body).into_owned())
    }
}

/// Home directory with settings, and the callback port.
struct LoginHome {
    folder: tempfile::TempDir,
    port: u16,
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

impl LoginHome {
    fn new(servers: &Value) -> Self {
        let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
        let settings = json!({"net": {"allow": ["127.0.0.1"]}, "admin": {"port": port}, "servers": servers});
        std::fs::write(folder.path().join("octoprox.yaml"), settings.to_string()).unwrap();
        Self { folder, port }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_octoprox"));
        command
            .args(args)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.folder.path())
            .env("OCTOPROX_CONFIG", self.folder.path().join("octoprox.yaml"))
            .env("OCTOPROX_STATE_DIR", self.folder.path().join("state"))
            .env("OCTOPROX_STANDALONE", "true")
            .current_dir(self.folder.path())
            .kill_on_drop(true);
        command
    }

    fn start(&self, args: &[&str]) -> RunningCommand {
        let mut command = self.command(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let out = BufReader::new(process.stdout.take().unwrap()).lines();
        let err = BufReader::new(process.stderr.take().unwrap()).lines();
        RunningCommand { input: process.stdin.take(), out, err, process }
    }

    /// Exit code, standard output, standard error.
    async fn run(&self, args: &[&str], input: &str) -> (i32, String, String) {
        let mut running = self.start(args);
        running.write_input(input).await;
        drop(running.input.take());
        running.wait_for_exit().await
    }

    /// Calls `whoami` of the protected server; returns the exit code and the output.
    async fn whoami(&self, server: &str) -> (i32, String) {
        let (code, out, err) = self.run(&["call", &format!("{server}__whoami")], "").await;
        (code, out + &err)
    }
}

struct RunningCommand {
    process: Child,
    input: Option<ChildStdin>,
    out: Lines<BufReader<ChildStdout>>,
    err: Lines<BufReader<ChildStderr>>,
}

impl RunningCommand {
    async fn write_input(&mut self, text: &str) {
        self.input.as_mut().unwrap().write_all(text.as_bytes()).await.unwrap();
    }

    async fn read_line(&mut self) -> String {
        tokio::time::timeout(TEST_TIMEOUT, self.out.next_line()).await.unwrap().unwrap().unwrap()
    }

    /// Reads standard error until it contains `part`.
    async fn read_stderr_until(&mut self, part: &str) -> String {
        let mut all = String::new();
        while !all.contains(part) {
            let line = tokio::time::timeout(TEST_TIMEOUT, self.err.next_line()).await;
            let line = line.unwrap_or_else(|_| panic!("`{part}` was not said: {all}")).unwrap();
            all += &line.unwrap_or_else(|| panic!("`{part}` was not said: {all}"));
        }
        all
    }

    async fn wait_for_exit(&mut self) -> (i32, String, String) {
        let (mut out, mut err) = (String::new(), String::new());
        let all = async {
            while let Some(line) = self.out.next_line().await.unwrap() {
                out += &(line + "\n");
            }
            while let Some(line) = self.err.next_line().await.unwrap() {
                err += &(line + "\n");
            }
            self.process.wait().await.unwrap()
        };
        let status = tokio::time::timeout(TEST_TIMEOUT, all).await.unwrap();
        (status.code().unwrap_or(-1), out, err)
    }

    fn pid(&self) -> String {
        self.process.id().unwrap().to_string()
    }
}

/// Settings with a shared login, with which the next process lists the server's tools at startup.
fn oauth(servers: &OidcServers) -> Value {
    json!({"s": {"url": servers.mcp, "auth": {"type": "oauth2-pkce", "shared": true}}})
}

#[tokio::test]
async fn a_browser_comes_back_to_this_machine() {
    let servers = OidcServers::start().await;
    let home = LoginHome::new(&oauth(&servers));
    let (code, said) = home.whoami("s").await;
    assert!(code != 0 && said.contains("needs a login"), "{code} {said}");
    let mut login = home.start(&["login", "s"]);
    let url = login.read_line().await;
    let mut browser = Browser::new();
    let back = browser.log_in(&url).await;
    assert_eq!(back.port(), Some(home.port));
    // The callback of another login changes nothing.
    let mut wrong = back.clone();
    wrong.set_query(Some("code=stolen&state=guessed"));
    let (status, page) = browser.open_callback(&wrong).await;
    assert!(status == 400 && page.contains("No pending login"), "{status} {page}");
    let (status, page) = browser.open_callback(&back).await;
    assert!(status == 200 && page.contains("You are logged in"), "{status} {page}");
    let (code, out, err) = login.wait_for_exit().await;
    assert!(code == 0 && out.is_empty() && err.contains("Logged in to s."), "{code} {out} {err}");
    assert!(std::net::TcpListener::bind(("127.0.0.1", home.port)).is_ok(), "the port is still taken");
    let (code, said) = home.whoami("s").await;
    assert!(code == 0 && said.contains("ada"), "{code} {said}");
    let (code, _, err) = home.run(&["logout", "s"], "").await;
    assert!(code == 0 && err.contains("Logged out of s."), "{code} {err}");
    assert_ne!(home.whoami("s").await.0, 0);
    let (code, out, _) = home.run(&["logout", "s", "--json"], "").await;
    assert_eq!(
        (code, serde_json::from_str::<Value>(&out).unwrap()["outcome"].as_str()),
        (0, Some("not_logged_in"))
    );
}

#[tokio::test]
async fn a_person_has_a_login_of_their_own() {
    let servers = OidcServers::start().await;
    let home = LoginHome::new(&json!({"s": {"url": servers.mcp, "auth": {"type": "oauth2-pkce"}}}));
    let logout = async || home.run(&["logout", "s", "--json"], "").await.1;
    assert!(logout().await.contains("not_logged_in"));
    let mut login = home.start(&["login", "s"]);
    let back = Browser::new().log_in(&login.read_line().await).await;
    login.write_input(&format!("{back}\n")).await;
    assert_eq!(login.wait_for_exit().await.0, 0);
    assert!(logout().await.contains("revoked"));
    assert!(logout().await.contains("not_logged_in"));
}

#[tokio::test]
async fn the_last_address_is_pasted_after_a_wrong_one() {
    let servers = OidcServers::start().await;
    let home = LoginHome::new(&oauth(&servers));
    let mut login = home.start(&["login", "s", "--json"]);
    let begun: Value = serde_json::from_str(&login.read_line().await).unwrap();
    assert_eq!(begun["action"], "open_url");
    let back = Browser::new().log_in(begun["url"].as_str().unwrap()).await;
    for wrong in
        ["two words\n", "http://evil.example/auth/callback?code=x&state=y\n", "code=x&state=guessed\n"]
    {
        login.write_input(wrong).await;
        login.read_stderr_until("The login is still pending.").await;
    }
    login.write_input(&format!("{back}\n")).await;
    let done: Value = serde_json::from_str(&login.read_line().await).unwrap();
    assert_eq!((done["server"].as_str(), done["state"].as_str()), (Some("s"), Some("connected")));
    assert_eq!(login.wait_for_exit().await.0, 0);
    assert_eq!(home.whoami("s").await.0, 0);
}

#[tokio::test]
async fn a_login_that_was_declined_ends_with_the_reason() {
    let servers = OidcServers::start().await;
    let home = LoginHome::new(&oauth(&servers));
    let mut login = home.start(&["login", "s"]);
    let url: Url = login.read_line().await.parse().unwrap();
    let state = url.query_pairs().find(|(name, _)| name == "state").unwrap().1.into_owned();
    let issuer = format!("{}://{}:{}", url.scheme(), url.host_str().unwrap(), url.port().unwrap());
    let query = url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs([("error", "access_denied"), ("state", &state), ("iss", &issuer)])
        .finish();
    login.write_input(&format!("{query}\n")).await;
    let (code, _, err) = login.wait_for_exit().await;
    assert!(code == 1 && err.contains("declined") && err.contains("Start it again"), "{code} {err}");
}

#[tokio::test]
async fn a_running_hub_has_the_port_and_finishes_it() {
    let servers = OidcServers::start().await;
    let home = LoginHome::new(&oauth(&servers));
    let mut hub = home.start(&["serve", "--port", "0"]);
    hub.read_stderr_until("octoprox").await;
    let mut login = home.start(&["login", "s"]);
    let url = login.read_line().await;
    login.read_stderr_until("A running hub receives the callback.").await;
    let mut browser = Browser::new();
    let back = browser.log_in(&url).await;
    let (status, page) = browser.open_callback(&back).await;
    assert_eq!(status, 200, "{page}");
    let (code, _, err) = login.wait_for_exit().await;
    assert!(code == 0 && err.contains("Logged in to s."), "{code} {err}");
}

#[tokio::test]
async fn a_code_is_entered_on_another_device() {
    let servers = OidcServers::start().await;
    let home = LoginHome::new(&oauth(&servers));
    let mut login = home.start(&["login", "s", "--device", "--json"]);
    let begun: Value = serde_json::from_str(&login.read_line().await).unwrap();
    assert_eq!(begun["action"], "enter_code");
    assert!(begun["user_code"].as_str().is_some_and(|code| !code.is_empty()), "{begun}");
    Browser::new().log_in(begun["url_with_code"].as_str().unwrap()).await;
    let done: Value = serde_json::from_str(&login.read_line().await).unwrap();
    assert_eq!(done["state"], "connected");
    assert_eq!(login.wait_for_exit().await.0, 0);
    assert_eq!(home.whoami("s").await.0, 0);
}

#[tokio::test]
async fn a_key_is_read_from_the_input_and_stands_nowhere() {
    let canary = "canary-9f2c-key-of-nobody";
    let home = LoginHome::new(
        &json!({"k": {"url": "http://127.0.0.1:9/mcp", "auth": {"type": "api-key", "header": "X-Key"}}}),
    );
    let (code, _, err) = home.run(&["login", "k"], "\n").await;
    assert!(code == 2 && err.contains("not an API key"), "{code} {err}");
    let (code, _, err) = home.run(&["login", "k"], "").await;
    assert!(code == 2 && err.contains("No value given"), "{code} {err}");
    let mut login = home.start(&["login", "k"]);
    let words = std::fs::read(format!("/proc/{}/cmdline", login.pid())).unwrap();
    assert!(!String::from_utf8_lossy(&words).contains(canary));
    login.write_input(&format!("{canary}\n")).await;
    let (code, out, err) = login.wait_for_exit().await;
    assert!(code == 0 && err.contains("Logged in to k."), "{code} {err}");
    assert!(!out.contains(canary) && !err.contains(canary));
    for file in std::fs::read_dir(home.folder.path().join("state")).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap_or_default();
        assert!(!bytes.windows(canary.len()).any(|part| part == canary.as_bytes()));
    }
}

/// Runs the program on a terminal and types after its prompt; returns its output.
fn type_on_terminal(mut command: std::process::Command, after: &str, typed: &str) -> String {
    let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&controller).unwrap();
    unlockpt(&controller).unwrap();
    let name = ptsname(&controller, Vec::new()).unwrap();
    let terminal = std::fs::OpenOptions::new().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    let end = || Stdio::from(OwnedFd::from(terminal.try_clone().unwrap()));
    let mut child = command.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
    // Only the child holds the terminal now, so that it closes with the child.
    drop(command);
    drop(terminal);
    let mut controller = std::fs::File::from(controller);
    let (mut shown, mut part, mut has_typed) = (String::new(), [0; 4096], false);
    while let Ok(read @ 1..) = controller.read(&mut part) {
        shown += &String::from_utf8_lossy(&part[..read]);
        if !has_typed && shown.contains(after) {
            has_typed = true;
            controller.write_all(typed.as_bytes()).unwrap();
        }
    }
    assert!(child.wait().unwrap().success(), "{shown}");
    shown
}

#[test]
fn a_key_is_not_shown_while_it_is_typed() {
    let home = LoginHome::new(
        &json!({"k": {"url": "http://127.0.0.1:9/mcp", "auth": {"type": "api-key", "header": "X-Key"}}}),
    );
    let command = home.command(&["login", "k"]).into_std();
    let shown = type_on_terminal(command, "API key for k: ", "canary-typed-by-hand\n");
    assert!(shown.contains("Logged in to k.") && !shown.contains("canary"), "{shown}");
}

#[tokio::test]
async fn giving_up_ends_the_waiting_and_nothing_else() {
    let servers = OidcServers::start().await;
    let home = LoginHome::new(&oauth(&servers));
    let mut login = home.start(&["login", "s"]);
    let url = login.read_line().await;
    login.read_stderr_until("Ctrl-C").await;
    let sent = std::process::Command::new("kill").args(["-INT", &login.pid()]).status().unwrap();
    assert!(sent.success());
    let (code, _, err) = login.wait_for_exit().await;
    assert!(code == 130 && err.contains("Cancelled"), "{code} {err}");
    // A cancelled login cannot be completed.
    let back = Browser::new().log_in(&url).await;
    let mut again = home.start(&["login", "s"]);
    again.read_line().await;
    again.write_input(&format!("{back}\n")).await;
    again.read_stderr_until("The login is still pending.").await;
}

#[tokio::test]
async fn what_needs_no_login_is_said() {
    let home = LoginHome::new(&json!({"notes": {"command": "true"}}));
    for (args, code, says) in [
        (&["login", "note"][..], 3, "Did you mean `notes`?"),
        (&["login", "notes"], 2, "has no login configured"),
        (&["login", "notes", "--profile", "x"], 2, "--profile"),
        (&["login", "ftp://x"], 2, "is not a URL"),
        (&["logout", "nothing-like-it"], 3, "Server not found"),
    ] {
        let (ended, out, err) = home.run(args, "").await;
        assert!(ended == code && out.is_empty() && err.contains(says), "{args:?}: {ended} {err}");
    }
}

async fn request(bridge: &mut RunningCommand, id: u32, method: &str, params: Value) -> Value {
    let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    bridge.write_input(&format!("{request}\n")).await;
    loop {
        let message: Value = serde_json::from_str(&bridge.read_line().await).unwrap();
        if message["id"] == id {
            return message;
        }
    }
}

#[tokio::test]
async fn a_bridge_goes_on_after_a_login_in_another_process() {
    let servers = OidcServers::start().await;
    let home = LoginHome::new(&json!({}));
    let mut bridge = home.start(&["bridge", &servers.mcp]);
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    request(&mut bridge, 1, "initialize", hello).await;
    let whoami = json!({"name": "whoami", "arguments": {}});
    let refused = request(&mut bridge, 2, "tools/call", whoami.clone()).await.to_string();
    let way = format!("octoprox login {}", servers.mcp);
    assert!(refused.contains("unauthorized") && refused.contains(&way), "{refused}");
    bridge.read_stderr_until(&way).await;
    // The callback port is used by a process that does not know bridges.
    let _taken = std::net::TcpListener::bind(("127.0.0.1", home.port)).unwrap();
    let mut login = home.start(&["login", &servers.mcp]);
    let url = login.read_line().await;
    let mut browser = Browser::new();
    let back = browser.log_in(&url).await;
    assert_ne!(back.port(), Some(home.port));
    assert_eq!(browser.open_callback(&back).await.0, 200);
    assert_eq!(login.wait_for_exit().await.0, 0);
    bridge.read_stderr_until("is connected.").await;
    let answer = request(&mut bridge, 3, "tools/call", whoami.clone()).await;
    assert_eq!(answer["result"]["content"][0]["text"], "ada", "{answer}");
    let mut id = 3;
    let listed = async {
        loop {
            id += 1;
            let listed = request(&mut bridge, id, "tools/list", json!({})).await;
            if listed["result"]["tools"][0]["name"] == "whoami" {
                return;
            }
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, listed).await.unwrap();
    let (code, _, err) = home.run(&["logout", &servers.mcp], "").await;
    assert!(code == 0 && err.contains("Logged out"), "{code} {err}");
}
