//! A user with twelve servers in four clients runs `octoprox init`. After that an agent started by any of the clients can
//! use all twelve, and `octoprox init --undo` restores every file.

use crate::ten_servers::public_servers::{self, PublicServer};
use anyhow::{Context, Result, ensure};
use octo_tests::attached_user::open_session;
use octo_tests::mcp_clients::answer_nothing;
use octo_tests::stdio_client::StdioClient;
use octo_tests::test_binaries::binary_path;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tempfile::TempDir;
use tokio::process::Command;

const KITCHEN_KEY: &str = "canary-kitchen-0123456789";
const PANTRY_PASS: &str = "canary pantry's \"pass\" $1";

struct User {
    home: TempDir,
}

impl User {
    fn new() -> Result<Self> {
        let home = TempDir::with_prefix("octoprox-onboarding")?;
        for folder in ["run", "ground", "project"] {
            std::fs::create_dir(home.path().join(folder))?;
        }
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        std::fs::set_permissions(home.path().join("run"), mode)?;
        Ok(Self { home })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> Result<()> {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().context("no parent")?)?;
        Ok(std::fs::write(path, text)?)
    }

    /// A program as one of the user's clients starts it: without the variables of a shell.
    fn program(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        command.env_clear().env("HOME", self.home.path()).env("XDG_RUNTIME_DIR", self.path("run"));
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        // Tests run side by side, and only one of them could have the usual port.
        command.env("OCTOPROX_ADMIN_PORT", "0").current_dir(self.path("project")).kill_on_drop(true);
        command
    }

    async fn octoprox(&self, args: &[&str]) -> Result<String> {
        let output = self.program(binary_path("octoprox")?).args(args).stdin(Stdio::null()).output().await?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{args:?}: {said}");
        Ok(String::from_utf8(output.stdout)?)
    }

    /// A session of the server that a client has in its list.
    async fn session(&self, entry: &Value) -> Result<StdioClient> {
        let args = entry["args"].as_array().context("no args")?;
        let args = args.iter().filter_map(Value::as_str);
        let mut command = self.program(entry["command"].as_str().context("no command")?);
        command.args(args).args(["--surface", "full"]);
        open_session(command).await
    }

    /// All files of the home directory except the hub's own and those of servers.
    fn files(&self) -> Result<BTreeMap<PathBuf, Vec<u8>>> {
        let mut files = BTreeMap::new();
        let mut folders = vec![self.home.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder)? {
                let path = entry?.path();
                let is_data = ["run", "ground", "project", ".config/chromium", ".local", ".cache", ".npm"]
                    .iter()
                    .any(|name| path == self.path(name));
                match path.is_dir() {
                    _ if is_data => {}
                    true => folders.push(path),
                    false => drop(files.insert(path.clone(), std::fs::read(path)?)),
                }
            }
        }
        Ok(files)
    }
}

impl Drop for User {
    fn drop(&mut self) {
        if let Ok(program) = binary_path("octoprox") {
            let mut command = self.program(program);
            let _ = command.arg("stop").as_std_mut().stdin(Stdio::null()).stdout(Stdio::null()).status();
        }
    }
}

/// Two servers with secrets: in a variable, and in a shell command line.
fn secret_servers() -> Result<[(&'static str, Value); 2]> {
    let fixture = binary_path("mcp-fixture")?.display().to_string();
    let line = format!("PANTRY_PASS='{}' exec {fixture} stdio", PANTRY_PASS.replace('\'', "'\"'\"'"));
    Ok([
        ("kitchen", json!({"command": fixture, "args": ["stdio"], "env": {"KITCHEN_KEY": KITCHEN_KEY}})),
        ("pantry", json!({"command": "sh", "args": ["-c", line]})),
    ])
}

/// TOML of Codex, with comments and another setting after the servers.
fn codex_toml(servers: &[(&str, Value)]) -> Result<String> {
    let mut text = "# Codex\nmodel = \"m\"\n".to_owned();
    for (name, entry) in servers {
        let (command, args) = (&entry["command"], &entry["args"]);
        text.push_str(&format!("\n[mcp_servers.{name}] # {name}\ncommand = {command}\nargs = {args}\n"));
        let variables = entry["env"].as_object().into_iter().flatten();
        let variables: Vec<String> = variables.map(|(name, value)| format!("{name} = {value}")).collect();
        if !variables.is_empty() {
            text.push_str(&format!("env = {{ {} }}\n", variables.join(", ")));
        }
    }
    Ok(text + "\n[tui] # the last\ntheme = \"dark\"\n")
}

fn json_list(servers: &[(&str, Value)]) -> Value {
    Value::Object(
        servers.iter().map(|(name, entry)| ((*name).to_owned(), entry.clone())).collect::<Map<_, _>>(),
    )
}

/// Writes the files of four clients. One server is in two of them.
fn write_clients(user: &User, public: &[PublicServer]) -> Result<()> {
    let servers: Vec<(&str, Value)> =
        public.iter().map(|server| (server.name, server.entry.clone())).chain(secret_servers()?).collect();
    let [claude, cursor, codex, vscode] = servers.chunks(3).collect::<Vec<_>>()[..] else {
        anyhow::bail!("{} servers", servers.len())
    };
    let other = json!({"numStartups": 3, "mcpServers": json_list(claude), "projects": {}});
    user.write(".claude.json", &serde_json::to_string_pretty(&other)?)?;
    let shared: Vec<(&str, Value)> = cursor.iter().chain(claude.first()).cloned().collect();
    user.write(".cursor/mcp.json", &json!({"mcpServers": json_list(&shared)}).to_string())?;
    user.write(".codex/config.toml", &codex_toml(codex)?)?;
    let list = serde_json::to_string_pretty(&json_list(vscode))?;
    user.write(
        ".config/Code/User/mcp.json",
        &format!("{{\n\t// mine\n\t\"inputs\": [],\n\t\"servers\": {list}, // all\n}}\n"),
    )
}

#[tokio::test]
async fn twelve_servers_of_four_clients_are_set_up_used_and_restored() -> Result<()> {
    let user = User::new()?;
    let ground = user.path("ground");
    public_servers::create_workspace(&ground)?;
    let public = public_servers::all_servers(&ground, &public_servers::start_web().await?)?;
    write_clients(&user, &public)?;
    let before = user.files()?;

    user.octoprox(&["init", "--yes"]).await?;
    for (path, text) in user.files()? {
        let is_backup = path.to_string_lossy().contains(".bak-");
        ensure!(is_backup || !String::from_utf8_lossy(&text).contains("canary"), "{}", path.display());
    }
    // Each client has one server left: octoprox.
    let cursor: Value = serde_json::from_slice(&std::fs::read(user.path(".cursor/mcp.json"))?)?;
    let claude: Value = serde_json::from_slice(&std::fs::read(user.path(".claude.json"))?)?;
    for (client, settings) in [("Cursor", &cursor), ("Claude Code", &claude)] {
        let list = settings["mcpServers"].as_object().context("no list")?;
        assert_eq!(list.keys().collect::<Vec<_>>(), ["octoprox"], "{client}");
    }
    let codex = std::fs::read_to_string(user.path(".codex/config.toml"))?;
    let vscode = std::fs::read_to_string(user.path(".config/Code/User/mcp.json"))?;
    for name in public.iter().map(|server| server.name).chain(["kitchen", "pantry"]) {
        ensure!(!codex.contains(&format!("mcp_servers.{name}]")) && !vscode.contains(&format!("\"{name}\"")));
    }

    let mut session = user.session(&cursor["mcpServers"]["octoprox"]).await?;
    for server in &public {
        let call = json!({"name": server.tool(), "arguments": server.arguments});
        let reply = session.call("tools/call", call, answer_nothing).await?;
        server.check(&reply["result"])?;
    }
    for (server, variable) in [("kitchen", "KITCHEN_KEY"), ("pantry", "PANTRY_PASS")] {
        let call = json!({"name": format!("{server}__fix_env"), "arguments": {}});
        let reply = session.call("tools/call", call, answer_nothing).await?;
        let names = &reply["result"]["structuredContent"]["names"];
        ensure!(names.as_array().is_some_and(|names| names.contains(&json!(variable))), "{server}: {reply}");
    }
    let secrets = user.octoprox(&["secret", "list"]).await?;
    ensure!(secrets.contains("KITCHEN_KEY  used by kitchen\n"), "{secrets}");
    ensure!(secrets.contains("PANTRY_PASS  used by pantry\n"), "{secrets}");

    // A session of another client sees all of them, each tool once.
    let mut other = user.session(&claude["mcpServers"]["octoprox"]).await?;
    let listed = other.call("tools/list", json!({}), answer_nothing).await?;
    let tools = listed["result"]["tools"].as_array().context("no tools")?;
    let mut names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
    for server in public.iter().map(|server| server.name).chain(["kitchen", "pantry"]) {
        ensure!(names.iter().any(|name| name.starts_with(&format!("{server}__"))), "{server} is not listed");
    }
    names.sort_unstable();
    let all = names.len();
    names.dedup();
    assert_eq!(names.len(), all, "a tool is listed twice");
    other.close().await?;
    session.close().await?;

    user.octoprox(&["init", "--undo"]).await?;
    let after = user.files()?;
    let mut changed = after.keys().chain(before.keys()).filter(|path| after.get(*path) != before.get(*path));
    assert_eq!(changed.next(), None, "not every file is restored");
    assert_eq!(user.octoprox(&["secret", "list"]).await?, "");
    Ok(())
}
