//! Repositories on other machines: git reaches what the network policy allows, and nothing else.

use super::{GitFixture, git};
use octo_toolkit::net::{NetSpec, ResolveFuture, Resolver};
use octo_toolkit::{Kind, Net};
use serde_json::{Value, json};
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// Every name resolves to this machine.
struct LoopbackResolver;

impl Resolver for LoopbackResolver {
    fn resolve<'a>(&'a self, _: &'a str) -> ResolveFuture<'a> {
        Box::pin(async { Ok(vec![IpAddr::V4(Ipv4Addr::LOCALHOST)]) })
    }
}

pub fn net(allow: &[&str]) -> Net {
    let allow = allow.iter().map(ToString::to_string).collect();
    Net::with_resolver(NetSpec { allow, ..NetSpec::default() }, Arc::new(LoopbackResolver)).unwrap()
}

/// A git server over HTTP, with git's own backend.
pub struct GitHttpServer {
    port: u16,
    folder: tempfile::TempDir,
    /// Connections, and the requested addresses.
    connection_count: Arc<AtomicUsize>,
    requests: Arc<Mutex<Vec<String>>>,
    pub pause: Arc<RequestGate>,
}

/// Delays the next request if armed.
#[derive(Default)]
pub struct RequestGate {
    pub armed: AtomicBool,
    pub reached: Notify,
    pub release: Notify,
}

impl GitHttpServer {
    /// With a repository `demo.git`; `moved` is the redirect target of everything below `/away`.
    pub async fn new(moved: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let seed = folder.path().join("seed");
        std::fs::create_dir(&seed).unwrap();
        git(&seed, &["init", "-q", "-b", "main"]);
        std::fs::write(seed.join("notes.txt"), "alpha\n").unwrap();
        git(&seed, &["add", "."]);
        git(&seed, &["commit", "-q", "-m", "Begin"]);
        git(folder.path(), &["clone", "-q", "--bare", "seed", "demo.git"]);
        git(&folder.path().join("demo.git"), &["config", "http.receivepack", "true"]);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (seen, asked) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
        let (root, moved) = (folder.path().to_owned(), moved.to_owned());
        let pause = Arc::new(RequestGate::default());
        let held = Arc::clone(&pause);
        let (counter, log) = (Arc::clone(&seen), Arc::clone(&asked));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                counter.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(answer(
                    stream,
                    root.clone(),
                    moved.clone(),
                    Arc::clone(&log),
                    Arc::clone(&held),
                ));
            }
        });
        Self { port, folder, connection_count: seen, requests: asked, pause }
    }

    pub fn url(&self, host: &str) -> String {
        format!("http://{host}:{}/demo.git", self.port)
    }

    /// Adds a commit to the repository.
    pub fn advance(&self, files: &[(&str, &str)]) {
        let seed = self.folder.path().join("seed");
        for (name, text) in files {
            std::fs::write(seed.join(name), text).unwrap();
        }
        git(&seed, &["add", "."]);
        git(&seed, &["commit", "-q", "-m", "Go on"]);
        git(&seed, &["push", "-q", "../demo.git", "main"]);
    }

    fn log(&self) -> String {
        git(&self.folder.path().join("demo.git"), &["log", "--format=%s", "main"])
    }

    /// Number of connections so far; ours is the last of them.
    async fn connections(&self) -> usize {
        let before = self.connection_count.load(Ordering::SeqCst);
        let _ours = TcpStream::connect(("127.0.0.1", self.port)).await.unwrap();
        let start = std::time::Instant::now();
        while self.connection_count.load(Ordering::SeqCst) == before {
            assert!(start.elapsed().as_secs() < 10, "the server is awake");
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        self.connection_count.fetch_sub(1, Ordering::SeqCst) - 1
    }
}

/// One request on a separate connection.
async fn answer(
    stream: TcpStream,
    root: PathBuf,
    moved: String,
    log: Arc<Mutex<Vec<String>>>,
    pause: Arc<RequestGate>,
) {
    let mut stream = BufReader::new(stream);
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await.unwrap_or(0) == 0 {
            return;
        }
        match line.trim_end() {
            "" => break,
            line => head.push(line.to_owned()),
        }
    }
    let header = |name: &str| {
        let found = head.iter().filter_map(|line| line.split_once(": "));
        found.filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned()).next()
    };
    let mut words = head.first().map_or("", String::as_str).split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    log.lock().unwrap().push(format!("{method} {target}"));
    if pause.armed.swap(false, Ordering::SeqCst) {
        pause.reached.notify_one();
        pause.release.notified().await;
    }
    if let Some(rest) = target.strip_prefix("/away") {
        let away = format!(
            "HTTP/1.1 302 Found\r\nLocation: {moved}{rest}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        );
        let _ = stream.write_all(away.as_bytes()).await;
        return;
    }
    let mut body = vec![0; header("content-length").map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut body).await.unwrap();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut backend = tokio::process::Command::new("git");
    backend.arg("http-backend").env("GIT_PROJECT_ROOT", root).env("GIT_HTTP_EXPORT_ALL", "1");
    backend
        .env("GIT_CONFIG_COUNT", "1")
        .env("GIT_CONFIG_KEY_0", "safe.directory")
        .env("GIT_CONFIG_VALUE_0", "*");
    backend.env("REQUEST_METHOD", method).env("PATH_INFO", path).env("QUERY_STRING", query);
    backend.env("CONTENT_TYPE", header("content-type").unwrap_or_default());
    backend.env("CONTENT_LENGTH", body.len().to_string());
    if let Some(encoding) = header("content-encoding") {
        backend.env("HTTP_CONTENT_ENCODING", encoding);
    }
    let mut child = backend.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    tokio::spawn(async move { stdin.write_all(&body).await });
    let said = child.wait_with_output().await.unwrap().stdout;
    let at = said.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    let headers = String::from_utf8_lossy(&said[..at]).into_owned();
    let status = headers.lines().find_map(|line| line.strip_prefix("Status: ")).unwrap_or("200 OK");
    let start = format!(
        "HTTP/1.1 {status}\r\n{headers}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        said.len() - at - 4
    );
    let _ = stream.write_all(start.as_bytes()).await;
    let _ = stream.write_all(&said[at + 4..]).await;
}

fn clone(url: &str) -> Value {
    json!({"command": "clone", "args": [url, "demo"]})
}

/// A repository with its own commit and `url` as origin.
fn repository(desk: &GitFixture, name: &str, url: &str) -> PathBuf {
    desk.write(&format!("{name}/notes.txt"), "alpha\n");
    let repo = desk.root().join(name);
    git(&repo, &["init", "-q", "-b", "main"]);
    git(&repo, &["add", "."]);
    git(&repo, &["commit", "-q", "-m", "Own"]);
    git(&repo, &["remote", "add", "origin", url]);
    repo
}

fn calls(url: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("git", clone(url)),
        ("git", json!({"command": "ls-remote", "args": [url], "repo_path": "own"})),
        ("git", json!({"command": "fetch", "repo_path": "own"})),
        ("git", json!({"command": "pull", "repo_path": "own"})),
        ("git", json!({"command": "push", "args": ["origin", "main"], "repo_path": "own"})),
        ("git_push", json!({"repo_path": "own"})),
    ]
}

#[tokio::test]
async fn no_command_reaches_a_private_address_over_http() {
    let server = GitHttpServer::new("").await;
    for host in ["127.0.0.1", "localhost", "git.example.com", "127.1", "[::1]", "[::ffff:127.0.0.1]"] {
        let desk = GitFixture::reaching(net(&["10.0.0.0/8"]));
        let url = server.url(host);
        repository(&desk, "own", &url);
        for (tool, input) in calls(&url) {
            let error = desk.try_call(tool, input.clone()).await.expect_err(&url);
            assert_eq!(error.kind, Kind::Denied, "{tool} {input}: {error}");
        }
    }
    assert_eq!(server.connections().await, 0);
}

#[tokio::test]
async fn what_the_settings_allow_is_cloned_fetched_and_pushed() {
    let server = GitHttpServer::new("").await;
    // A name that only the hub's resolver knows: the hub must be the one that connects.
    let desk = GitFixture::reaching(net(&["git.example.com"]));
    let said = desk.call("git", clone(&server.url("git.example.com"))).await;
    assert_eq!(said["exit_code"], 0, "{said}");
    desk.write("demo/notes.txt", &"beta\n".repeat(5_000));
    git(&desk.root().join("demo"), &["commit", "-q", "-a", "-m", "Say more"]);
    let pushed = desk.call("git_push", json!({"repo_path": "demo"})).await;
    assert_eq!(pushed["updated"], true, "{pushed}");
    assert_eq!(server.log(), "Say more\nBegin\n");
    let said = desk.call("git", json!({"command": "fetch", "repo_path": "demo"})).await;
    assert_eq!(said["exit_code"], 0, "{said}");
    assert!(!said.to_string().contains("octoprox:"), "the proxy's password is nobody's business: {said}");
}

#[tokio::test]
async fn a_redirect_is_followed_as_far_as_policy_goes() {
    let inner = GitHttpServer::new("").await;
    for (allow, code) in [(&["git.example.com"][..], 128), (&["git.example.com", "other.example.com"], 0)] {
        let desk = GitFixture::reaching(net(allow));
        let outer = GitHttpServer::new(&format!("http://other.example.com:{}", inner.port)).await;
        let url = format!("http://git.example.com:{}/away/demo.git", outer.port);
        let before = inner.connections().await;
        let said = desk.call("git", clone(&url)).await;
        assert_eq!(said["exit_code"], code, "{said}");
        assert_eq!(inner.connections().await > before, code == 0);
        assert!(outer.requests.lock().unwrap().iter().any(|line| line.contains("/away/demo.git")));
    }
}

#[tokio::test]
async fn a_repository_cannot_lead_git_past_the_proxy() {
    let server = GitHttpServer::new("").await;
    let url = server.url("127.0.0.1");
    let own = |key: &str, value: &str| vec![(key.to_owned(), value.to_owned())];
    for settings in [
        own("http.proxy", ""),
        own("remote.origin.proxy", ""),
        own(&format!("http.{url}.proxy"), ""),
        own("http.curloptResolve", &format!("git.example.com:{}:127.0.0.1", server.port)),
        own(&format!("url.http://127.0.0.1:{}/.insteadOf", server.port), "http://git.example.com:1/"),
        own(&format!("url.http://127.0.0.1:{}/.pushInsteadOf", server.port), "http://git.example.com:1/"),
        own("transfer.bundleURI", "true"),
    ] {
        // An address where nothing listens.
        let desk = GitFixture::reaching(net(&["git.example.com:1"]));
        let repo = repository(&desk, "own", "http://git.example.com:1/demo.git");
        for (key, value) in &settings {
            git(&repo, &["config", key, value]);
        }
        for (tool, input) in [
            ("git", json!({"command": "push", "args": ["origin", "main"], "repo_path": "own"})),
            ("git_push", json!({"repo_path": "own"})),
        ] {
            let done = desk.try_call(tool, input).await;
            assert!(done.as_ref().map_or(true, |said| said["exit_code"] != 0), "{settings:?}: {done:?}");
        }
    }
    assert_eq!(server.connections().await, 0);
}

#[tokio::test]
async fn rewritten_addresses_are_checked_as_they_are_meant() {
    let server = GitHttpServer::new("").await;
    let desk = GitFixture::reaching(net(&["git.example.com"]));
    let repo = repository(&desk, "own", "git@short.example.com:demo.git");
    let base = format!("url.http://git.example.com:{}/.insteadOf", server.port);
    git(&repo, &["config", &base, "git@short.example.com:"]);
    let said = desk.call("git", json!({"command": "fetch", "repo_path": "own"})).await;
    assert_eq!(said["exit_code"], 0, "{said}");
}

#[tokio::test]
async fn ssh_is_relayed_to_the_address_that_was_checked() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let seen = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&seen);
    tokio::spawn(async move {
        // Not an ssh server: every connection is closed.
        while let Ok((stream, _)) = listener.accept().await {
            counter.fetch_add(1, Ordering::SeqCst);
            drop(stream);
        }
    });
    let urls = |host: &str| format!("ssh://git@{host}:{port}/demo.git");
    let desk = GitFixture::reaching(net(&[]));
    for host in ["127.0.0.1", "localhost", "git.example.com", "[::1]"] {
        let url = urls(host);
        repository(&desk, "own", &url);
        for (tool, input) in calls(&url) {
            let error = desk.try_call(tool, input.clone()).await.expect_err(&url);
            assert_eq!(error.kind, Kind::Denied, "{tool} {input}: {error}");
        }
        std::fs::remove_dir_all(desk.root().join("own")).unwrap();
    }
    assert_eq!(seen.load(Ordering::SeqCst), 0);

    let desk = GitFixture::reaching(net(&["git.example.com"]));
    let error = desk.try_call("git", clone(&urls("git.example.com"))).await.unwrap_err();
    assert_eq!(error.kind, Kind::Unavailable, "{error}");
    let met = seen.load(Ordering::SeqCst);
    assert!(met > 0, "the keys of the host were asked for");

    // A known host is not asked for its keys; ssh itself connects.
    add_known_host(&desk, &format!("[git.example.com]:{port}"));
    let said = desk.call("git", clone(&urls("git.example.com"))).await;
    assert_ne!(said["exit_code"], 0);
    assert!(seen.load(Ordering::SeqCst) > met, "{said}");
}

fn add_known_host(desk: &GitFixture, name: &str) {
    let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHT9rZb7f0KzOeVHNnhv2vLr0LbM2kpAgXvUQmVhY5sR";
    let file: &Path = &desk.key.known_hosts();
    std::fs::write(file, format!("{name} {key}\n")).unwrap();
}
