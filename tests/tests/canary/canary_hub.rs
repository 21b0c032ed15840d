//! A hub with every kind of secret, in variables, whose output is collected.

use super::secret_search::Secrets;
use anyhow::{Context, Result, ensure};
use octo_tests::eventually;
use octo_tests::http_client::HttpClient;
use octo_tests::hub_process::HubHome;
use octo_tests::test_binaries::binary_path;
use serde_json::{Value, json};
use std::fs::File;
use std::process::Stdio;
use tempfile::TempDir;
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};

/// Includes libraries, which are silent below `info` unless they are named.
const TRACE_ALL: &str = "trace,globset=trace,h2=trace,html5ever=trace,hyper=trace,hyper_util=trace,mio=trace,\
    opentelemetry=trace,rustls=trace,tokio=trace,want=trace";

pub struct CanaryHub {
    pub home: HubHome,
    pub process: Child,
    /// Output of the hub and of every command, one file each.
    pub output_dir: TempDir,
    /// Replies to callers.
    pub replies: Vec<String>,
    pub bearer: String,
    base: String,
    unknown_token: String,
    variables: Vec<(String, String)>,
}

/// Uses each secret. The files contain only the names of variables.
fn settings(base: &str, sha256: &str) -> Result<Value> {
    let fixture = binary_path("mcp-fixture")?;
    let leaky = r#"echo "my key is $CHILD_API_KEY" >&2; exec "$0" stdio"#;
    Ok(json!({
        "auth": {"tokens": [{"name": "ada", "sha256": sha256, "scopes": ["admin"]}]},
        "telemetry": {"otlp_endpoint": base, "log_level": TRACE_ALL, "trace_contents": true, "log_arguments": true, "log_file": "hub.log"},
        "audit": {"arguments": true},
        "net": {"allow": ["127.0.0.1"]},
        "servers": {
            "child": {"command": "sh", "args": ["-c", leaky, fixture], "env": {"CHILD_API_KEY": "${A_VARIABLE}"}},
            "dies": {"command": "sh", "args": ["-c", "echo bad key $CHILD_API_KEY >&2; exit 3"], "env": {"CHILD_API_KEY": "${A_VARIABLE}"}},
            "header": {"url": format!("{base}/header"), "headers": {"X-Api-Key": "${A_HEADER}"}},
            "refused": {"url": format!("{base}/refused"), "headers": {"X-Api-Key": "${A_HEADER}"}},
            "query": {"url": format!("{base}/query?api_key=${{A_QUERY}}")},
            "gone": {"url": "http://127.0.0.1:1/mcp?api_key=${A_QUERY}"},
            "login": {"url": format!("{base}/login"), "auth": {"type": "oauth2-pkce", "client_id": "hub", "client_secret": "${A_CLIENT}", "issuer": base}},
            "keyed": {"url": format!("{base}/keyed"), "auth": {"type": "api-key", "header": "X-Key", "shared": true}},
        },
    }))
}

impl CanaryHub {
    pub async fn start(base: &str, secrets: &Secrets) -> Result<Self> {
        let (_, token, said) = HubHome::new(&json!({}))?.run(&["token", "new", "ada"]).await?;
        let sha256 = said.split("sha256: ").nth(1).context("no hash")?.trim();
        let home = HubHome::new(&settings(base, sha256)?)?;
        let variables = [
            ("A_VARIABLE", "variable"),
            ("A_HEADER", "header"),
            ("A_QUERY", "query"),
            ("A_CLIENT", "client"),
            ("OCTOPROX_SECRET", "master"),
        ];
        let variables = variables.map(|(name, kind)| (name.to_owned(), secrets[kind].clone())).to_vec();
        let output_dir = TempDir::with_prefix("told")?;
        // Nothing but the hub itself keeps a core from being written.
        let mut command = home.command(&[])?;
        let real = command.as_std().get_program().to_owned();
        let mut shell = Command::new("sh");
        shell.args(["-c", "ulimit -c unlimited; exec \"$0\" serve --port 0"]).arg(real).env_clear();
        for (name, value) in command.as_std().get_envs() {
            shell.env(name, value.unwrap_or_default());
        }
        command = shell;
        let out = |name: &str| File::create(output_dir.path().join(name)).map(Stdio::from);
        command.envs(variables.clone()).current_dir(home.dir.path()).kill_on_drop(true);
        let process =
            command.stdin(Stdio::null()).stdout(out("hub stdout")?).stderr(out("hub stderr")?).spawn()?;
        let said = output_dir.path().join("hub stderr");
        let base = eventually("the hub listens", async || {
            let said = std::fs::read_to_string(&said).ok()?;
            Some(said.split("REST ").nth(1)?.split("/tools").next()?.to_owned())
        })
        .await
        .with_context(|| std::fs::read_to_string(&said).unwrap_or_default())?;
        let (bearer, unknown_token) = (token.trim().to_owned(), secrets["wrong"].clone());
        Ok(Self { home, process, output_dir, replies: Vec::new(), bearer, base, unknown_token, variables })
    }

    pub fn pid(&self) -> Result<u32> {
        self.process.id().context("the hub has ended")
    }

    /// Makes a call over REST.
    pub async fn call(&mut self, tool: &str, arguments: Value) -> Result<Value> {
        let bearer = self.bearer.clone();
        self.send(&bearer, tool, arguments).await
    }

    /// Makes a call with an unknown token.
    pub async fn call_with_unknown_token(&mut self, tool: &str, arguments: Value) -> Result<Value> {
        let wrong = self.unknown_token.clone();
        self.send(&wrong, tool, arguments).await
    }

    async fn send(&mut self, bearer: &str, tool: &str, arguments: Value) -> Result<Value> {
        let url = format!("{}/tools/{tool}", self.base);
        let authorization = format!("Bearer {bearer}");
        let answer =
            HttpClient::default().post(&url, &[("authorization", &authorization)], &arguments).await?;
        let headers = format!("{:?}", answer.headers);
        let text = answer.text().await?;
        self.replies.push(format!("{tool} {headers} {text}"));
        Ok(serde_json::from_str(&text)?)
    }

    pub async fn expect_success(&mut self, tool: &str, arguments: Value) -> Result<()> {
        let reply = self.call(tool, arguments).await?;
        ensure!(reply["success"] == true, "{tool}: {reply}");
        Ok(())
    }

    pub async fn expect_failure(&mut self, tool: &str, arguments: Value) -> Result<()> {
        let reply = self.call(tool, arguments).await?;
        ensure!(reply["success"] == false, "{tool}: {reply}");
        Ok(())
    }

    /// Runs a command beside the running hub; its output is collected whatever its exit code.
    pub async fn command(&self, words: &[&str], input: &str) -> Result<()> {
        let mut command = self.home.command(words)?;
        command.envs(self.variables.clone());
        let mut process =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let mut stdin = process.stdin.take().context("no stdin")?;
        stdin.write_all(input.as_bytes()).await?;
        drop(stdin);
        let output = process.wait_with_output().await?;
        let name = words.join(" ").replace('/', "_");
        std::fs::write(self.output_dir.path().join(format!("{name} stdout")), &output.stdout)?;
        std::fs::write(self.output_dir.path().join(format!("{name} stderr")), &output.stderr)?;
        ensure!(!output.stdout.is_empty() || !output.stderr.is_empty(), "{name} said nothing");
        Ok(())
    }
}
