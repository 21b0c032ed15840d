//! Where servers start: a repository full of settings and code for the programs that start servers, and servers of every
//! form. Real are Python and, if it is installed, npx; the other programs are stubs, which read the settings of their
//! directory and of those above it as the real ones do.

use anyhow::{Context, Result, ensure};
use octo_tests::attached_user::{AttachedUser, open_session};
use octo_tests::eventually;
use octo_tests::hub_process::{HubHome, RunningHub};
use octo_tests::stdio_client::StdioClient;
use octo_tests::test_binaries::binary_path;
use octo_tests::test_fleet::{Database, TestFleet};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tempfile::TempDir;

/// Files of a hostile repository, which contain the word `canary`.
const LURES: [&str; 17] = [
    ".npmrc",
    ".pnpmfile.cjs",
    ".python-version",
    ".yarnrc.yml",
    "Makefile",
    "bunfig.toml",
    "compose.yaml",
    "deno.json",
    "mcp_canary.py",
    "node_modules/.bin/mcp-canary-bin",
    "package.json",
    "pyproject.toml",
    "run-server",
    "server.py",
    "sitecustomize.py",
    "uv.toml",
    ".ci/hook.cjs",
];

/// A stub: records where it starts, and each lure that the program of its name obeys; then it becomes a server.
const STUB: &str = r#"#!/bin/sh
dir=$(pwd -P)
echo "$SERVER $dir" >> "$RECORD"
case ${0##*/} in
  npx) lures=".npmrc package.json node_modules/.bin/mcp-canary-bin" ;;
  pnpm) lures=".npmrc .pnpmfile.cjs package.json" ;;
  yarn) lures=".yarnrc.yml .npmrc package.json" ;;
  bunx) lures="bunfig.toml package.json" ;;
  uvx | uv) lures="uv.toml pyproject.toml .python-version" ;;
  deno) lures="deno.json package.json" ;;
  docker) lures="compose.yaml" ;;
  make) lures="Makefile" ;;
  *) lures="" ;;
esac
while :; do
  for lure in $lures; do
    grep -qs canary "$dir/$lure" && echo "$SERVER $dir/$lure" >> "$CANARY"
  done
  [ -n "$dir" ] || break
  dir=${dir%/*}
done
exec "$FIXTURE" stdio
"#;

/// The same in Python, for the module that the user has installed.
const MODULE: &str = r#"
import os
with open(os.environ["RECORD"], "a") as record:
    record.write(os.environ["SERVER"] + " " + os.getcwd() + "\n")
os.execv(os.environ["FIXTURE"], [os.environ["FIXTURE"], "stdio"])
"#;

/// What the servers of a test use, and what they leave.
struct Ground {
    dir: TempDir,
}

/// Whether a form of server can start outside of the repository.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Anywhere,
    /// It names files of the repository.
    InRepository,
}

impl Ground {
    fn new() -> Result<Self> {
        let ground = Self { dir: TempDir::with_prefix("octoprox-starts")? };
        for folder in ["bin", "lib"] {
            std::fs::create_dir(ground.path(folder))?;
        }
        for name in ["npx", "pnpm", "yarn", "bunx", "uvx", "uv", "deno", "docker", "make", "plain"] {
            write_program(&ground.path("bin").join(name), STUB)?;
        }
        std::fs::write(ground.path("lib/mcp_canary.py"), MODULE)?;
        Ok(ground)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes the lures into a repository.
    fn bait(&self, repository: &Path) -> Result<()> {
        let canary = self.path("canary");
        for lure in LURES {
            let path = repository.join(lure);
            std::fs::create_dir_all(path.parent().context("no directory")?)?;
            let shown = canary.display();
            let text = match lure {
                ".npmrc" => "node-options=--require=./.ci/hook.cjs\n; canary\n".to_owned(),
                ".ci/hook.cjs" => format!("require('fs').appendFileSync('{shown}', 'npm canary\\n')\n"),
                "package.json" => r#"{"name": "canary", "version": "1.0.0"}"#.to_owned(),
                "run-server" | "node_modules/.bin/mcp-canary-bin" => {
                    format!(
                        "#!/bin/sh\necho '{lure} canary' >> '{shown}'\n{}",
                        STUB.replace("#!/bin/sh\n", "")
                    )
                }
                _ if lure.ends_with(".py") => {
                    format!("open('{shown}', 'a').write('{lure} canary\\n')\n{MODULE}")
                }
                _ => "# canary\n".to_owned(),
            };
            if lure == "sitecustomize.py" {
                std::fs::write(&path, format!("open('{shown}', 'a').write('{lure} canary\\n')\n"))?;
            } else {
                write_program(&path, &text)?;
            }
        }
        Ok(())
    }

    /// Servers of every form that names no file of the repository by its whole path.
    fn servers(&self, cwd: Option<&str>) -> Result<BTreeMap<String, (Value, Form)>> {
        use Form::{Anywhere, InRepository};
        let plain = self.path("bin/plain").display().to_string();
        let forms: [(&str, &str, &[&str], Form); 15] = [
            ("npx-scoped", "npx", &["-y", "@scope/server"], Anywhere),
            ("npx-plain", "npx", &["mcp-canary-bin"], Anywhere),
            ("pnpm", "pnpm", &["dlx", "server"], Anywhere),
            ("yarn", "yarn", &["dlx", "server"], Anywhere),
            ("bunx", "bunx", &["server"], Anywhere),
            ("uvx", "uvx", &["server"], Anywhere),
            ("uv-run", "uv", &["run", "server"], Anywhere),
            ("python-module", "/usr/bin/python3", &["-m", "mcp_canary"], Anywhere),
            ("python-file", "/usr/bin/python3", &["server.py"], InRepository),
            ("relative", "./run-server", &[], InRepository),
            ("deno", "deno", &["run", "npm:server"], Anywhere),
            ("docker", "docker", &["compose", "run", "server"], Anywhere),
            ("make", "make", &["serve"], Anywhere),
            ("absolute", &plain, &[], Anywhere),
            ("script", "/bin/sh", &["-c", "exec plain"], Anywhere),
        ];
        let fixture = binary_path("mcp-fixture")?;
        let server = |(name, command, args, form): (&str, &str, &[&str], Form)| {
            let mut server = json!({
                "command": command,
                "args": args,
                "connect": "always",
                "env": {
                    "SERVER": name,
                    "RECORD": self.path("record"),
                    "CANARY": self.path("canary"),
                    "FIXTURE": fixture,
                    "PYTHONPATH": self.path("lib"),
                    "PATH": format!("{}:/usr/local/bin:/usr/bin:/bin", self.path("bin").display()),
                },
            });
            if let Some(cwd) = cwd {
                server["cwd"] = cwd.into();
            }
            (name.to_owned(), (server, form))
        };
        Ok(forms.into_iter().map(server).collect())
    }

    fn settings(&self, cwd: Option<&str>) -> Result<Value> {
        let servers: Map<String, Value> =
            self.servers(cwd)?.into_iter().map(|(name, (server, _))| (name, server)).collect();
        Ok(json!({"servers": servers}))
    }

    /// Where servers have started, by name.
    fn record(&self) -> BTreeMap<String, PathBuf> {
        let text = std::fs::read_to_string(self.path("record")).unwrap_or_default();
        let lines = text.lines().filter_map(|line| line.split_once(' '));
        lines.map(|(name, dir)| (name.to_owned(), PathBuf::from(dir))).collect()
    }

    fn canary(&self) -> Option<String> {
        std::fs::read_to_string(self.path("canary")).ok()
    }

    /// Waits until every server that can start has started, in its own directory, and nothing of the repository ran.
    async fn assert_own_dirs(&self, repository: &Path, state: &Path) -> Result<()> {
        let expected = self.servers(None)?;
        let expected: Vec<&String> =
            expected.iter().filter(|(_, (_, form))| *form == Form::Anywhere).map(|(name, _)| name).collect();
        eventually("all servers have started", async || {
            let record = self.record();
            expected.iter().all(|name| record.contains_key(*name)).then_some(())
        })
        .await
        .with_context(|| format!("{:?}", self.record()))?;
        let (repository, state) = (repository.canonicalize()?, state.canonicalize()?);
        for (name, dir) in self.record() {
            ensure!(!dir.starts_with(&repository), "{name} started in {}", dir.display());
            ensure!(dir == state.join("server-homes").join(&name).join("start"), "{name}: {}", dir.display());
            ensure!(dir.metadata()?.permissions().mode() & 0o777 == 0o700, "{name}");
        }
        ensure!(self.canary().is_none(), "{:?}", self.canary());
        Ok(())
    }
}

fn write_program(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text)?;
    Ok(std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755))?)
}

/// Results of `octoprox servers test`, which tries to start every server.
async fn test_servers(home: &HubHome, names: &[&str]) -> Result<Vec<Value>> {
    let (_, out, err) = home.run(&[&["servers", "test", "--json"], names].concat()).await?;
    let tested: Value = serde_json::from_str(&out).with_context(|| format!("{out} {err}"))?;
    tested["servers"].as_array().cloned().context("no servers")
}

#[tokio::test]
async fn a_repository_decides_nothing_when_servers_are_tested() -> Result<()> {
    let ground = Ground::new()?;
    let home = HubHome::new(&ground.settings(None)?)?;
    ground.bait(&home.workspace())?;
    let servers = ground.servers(None)?;
    for tested in test_servers(&home, &[]).await? {
        let (_, form) = &servers[tested["name"].as_str().unwrap_or_default()];
        assert_eq!(tested["ok"], json!(*form == Form::Anywhere), "{tested}");
    }
    ground.assert_own_dirs(&home.workspace(), &home.state_dir()).await
}

/// The lures work where a person lets them.
#[tokio::test]
async fn a_server_starts_in_the_workspace_if_its_settings_say_so() -> Result<()> {
    let ground = Ground::new()?;
    let home = HubHome::new(&ground.settings(Some("${workspace}"))?)?;
    ground.bait(&home.workspace())?;
    for tested in test_servers(&home, &[]).await? {
        assert_eq!(tested["ok"], json!(true), "{tested}");
    }
    let (record, workspace) = (ground.record(), home.workspace().canonicalize()?);
    for name in ground.servers(None)?.keys() {
        assert_eq!(record.get(name), Some(&workspace), "{name}");
    }
    let canary = ground.canary().unwrap_or_default();
    for name in [
        "npx-scoped ",
        "pnpm ",
        "yarn ",
        "bunx ",
        "uvx ",
        "uv-run ",
        "deno ",
        "docker ",
        "make ",
        "mcp_canary.py ",
        "server.py ",
        "run-server ",
    ] {
        assert!(canary.contains(name), "{name}: {canary}");
    }
    let (_, out, err) = home.run(&["servers", "list", "--json"]).await?;
    let listed: Value = serde_json::from_str(&out).with_context(|| err.clone())?;
    let first = &listed["servers"][0];
    assert_eq!((&first["cwd"], &first["writable_cwd"]), (&json!(home.workspace()), &json!(true)), "{out}");
    let (_, out, err) = home.run(&["servers", "list"]).await?;
    assert!(err.contains("where tools can write"), "{out} {err}");
    let (_, out, _) = home.run(&["doctor", "--json"]).await?;
    assert!(out.contains("where tools can write"), "{out}");
    Ok(())
}

#[tokio::test]
async fn a_repository_decides_nothing_in_a_session_of_its_own() -> Result<()> {
    let ground = Ground::new()?;
    let home = HubHome::new(&ground.settings(None)?)?;
    ground.bait(&home.workspace())?;
    let mut command = home.command(&["stdio"])?;
    command.current_dir(home.workspace());
    let mut session = StdioClient::open(command)?;
    session.initialize(json!({})).await?;
    ground.assert_own_dirs(&home.workspace(), &home.state_dir()).await
}

#[tokio::test]
async fn a_repository_decides_nothing_in_the_background_hub() -> Result<()> {
    let ground = Ground::new()?;
    let mut settings = ground.settings(None)?;
    settings["workspace"] = Value::Null;
    let user = AttachedUser::new(&settings)?;
    let clone = user.home.dir.path().join("clone");
    ground.bait(&clone)?;
    let _session = open_session(user.command_in(&["stdio"], &clone)?).await?;
    ground.assert_own_dirs(&clone, &user.home.state_dir()).await
}

#[tokio::test]
async fn a_repository_decides_nothing_on_a_server() -> Result<()> {
    let ground = Ground::new()?;
    let home = HubHome::new(&ground.settings(None)?)?;
    ground.bait(&home.workspace())?;
    let _hub: RunningHub = home.serve().await?;
    ground.assert_own_dirs(&home.workspace(), &home.state_dir()).await
}

#[tokio::test]
async fn a_repository_decides_nothing_on_a_worker() -> Result<()> {
    let ground = Ground::new()?;
    let fleet = TestFleet::start().await?;
    let home = fleet.home("worker", Database::Shared, ground.settings(None)?)?;
    ground.bait(&home.workspace())?;
    let mut worker = home.command(&["worker"])?;
    let log = std::fs::File::create(ground.path("worker.log"))?;
    let _worker = worker.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).spawn()?;
    ground
        .assert_own_dirs(&home.workspace(), &home.state_dir())
        .await
        .with_context(|| std::fs::read_to_string(ground.path("worker.log")).unwrap_or_default())
}

/// Its sandbox shows it the workspace.
#[tokio::test]
async fn a_sandboxed_server_starts_in_the_workspace_only_if_its_settings_say_so() -> Result<()> {
    for cwd in [None, Some("${workspace}")] {
        let ground = Ground::new()?;
        let home = HubHome::new(&json!({}))?;
        ground.bait(&home.workspace())?;
        let (mut server, _) = ground.servers(cwd)?.remove("python-module").context("no such form")?;
        let fixture = binary_path("mcp-fixture")?;
        let (visible, written) = (fixture.parent(), [home.workspace(), ground.dir.path().to_owned()]);
        server["sandbox"] = json!({"read": [visible], "write": written});
        std::fs::write(
            home.dir.path().join("octoprox.yaml"),
            json!({"admin": {"port": 0}, "workspace": "workspace", "servers": {"python-module": server}})
                .to_string(),
        )?;
        let tested = test_servers(&home, &[]).await?;
        assert_eq!(tested[0]["ok"], json!(true), "{tested:?}");
        let dir = ground.record().remove("python-module").context("it recorded nothing")?;
        let in_workspace = dir.starts_with(home.workspace().canonicalize()?);
        assert_eq!(
            (in_workspace, ground.canary().is_some()),
            (cwd.is_some(), cwd.is_some()),
            "{}",
            dir.display()
        );
    }
    Ok(())
}

/// A bundle whose program says where it starts, and ends.
const BUNDLE: &str = r##"
import json, sys, zipfile
server = {"type": "binary", "entry_point": "run.sh", "mcp_config": {"command": "/bin/sh", "args": ["${__dirname}/run.sh"]}}
manifest = {"manifest_version": "0.3", "name": "tides", "version": "1.0.0", "description": "Tides.",
            "author": {"name": "Harbour"}, "server": server}
with zipfile.ZipFile(sys.argv[1], "w") as bundle:
    bundle.writestr("manifest.json", json.dumps(manifest))
    bundle.writestr("run.sh", "#!/bin/sh\necho \"starts in $(pwd -P)\" >&2\nexit 3\n")
"##;

#[tokio::test]
async fn an_added_bundle_does_not_start_in_the_workspace() -> Result<()> {
    let ground = Ground::new()?;
    let bundle = ground.path("tides.mcpb");
    let made =
        tokio::process::Command::new("/usr/bin/python3").args(["-c", BUNDLE]).arg(&bundle).status().await?;
    ensure!(made.success());
    let bundle = bundle.to_str().context("no text")?;
    for access in [&[][..], &["--read", "workspace"]] {
        let home = HubHome::new(&json!({}))?;
        ground.bait(&home.workspace())?;
        let added = home.run(&[&["add", bundle, "--yes"], access].concat()).await?;
        let tested = test_servers(&home, &[]).await?;
        let message = tested[0]["message"].as_str().unwrap_or_default();
        let state = home.state_dir().canonicalize()?;
        assert!(message.contains(&format!("starts in {}/", state.display())), "{tested:?} {added:?}");
    }
    Ok(())
}

/// The agent writes a program, or replaces one, that a server of the settings names.
#[tokio::test]
async fn programs_that_tools_can_write_are_refused() -> Result<()> {
    let ground = Ground::new()?;
    let home = HubHome::new(&json!({}))?;
    ground.bait(&home.workspace())?;
    let (mut server, _) = ground.servers(None)?.remove("relative").context("no such form")?;
    let workspace = home.workspace();
    let mut servers = Map::new();
    for (name, command, args) in [
        ("program", workspace.join("run-server"), json!([])),
        ("script", "/usr/bin/python3".into(), json!([workspace.join("server.py")])),
        ("project", "uv".into(), json!(["--directory", workspace, "run", "server"])),
    ] {
        (server["command"], server["args"]) = (json!(command), args);
        servers.insert(name.to_owned(), server.clone());
    }
    let mut allowed = servers["script"].clone();
    allowed["cwd"] = "${workspace}".into();
    servers.insert("allowed".to_owned(), allowed);
    std::fs::write(
        home.dir.path().join("octoprox.yaml"),
        json!({
            "admin": {"port": 0}, "workspace": "workspace", "servers": servers, "telemetry": {"log_file": "hub.log"},
        })
        .to_string(),
    )?;
    for tested in test_servers(&home, &[]).await? {
        let is_allowed = tested["name"] == "allowed";
        assert_eq!(tested["ok"], json!(is_allowed), "{tested}");
        assert!(is_allowed || tested.to_string().contains("cwd: ${workspace}"), "{tested}");
    }
    let _hub = home.serve().await?;
    let log = || std::fs::read_to_string(home.dir.path().join("hub.log")).unwrap_or_default();
    eventually("the hub refuses them", async || {
        let log = log();
        let is_refused = |name: &&str| {
            log.lines().any(|line| line.contains(*name) && line.contains("which tools can change"))
        };
        ["program", "script", "project"].iter().all(is_refused).then_some(())
    })
    .await
    .with_context(log)?;
    let canary = ground.canary().unwrap_or_default();
    assert!(canary.lines().all(|line| line == "server.py canary"), "only what is allowed ran: {canary}");
    let (code, out, _) = home.run(&["doctor", "--json"]).await?;
    assert!(code != 0 && out.contains("which tools can change"), "{out}");
    Ok(())
}

/// The real npx, which needs no network to run a program of the repository.
#[tokio::test]
async fn npx_runs_nothing_of_a_repository() -> Result<()> {
    let found = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
        .map(|dir| dir.join("npx"))
        .find(|npx| npx.is_file());
    let Some(npx) = found else {
        eprintln!("NPX IS MISSING: it was NOT tested");
        return Ok(());
    };
    let (own, there) = (Ground::new()?, Ground::new()?);
    for (ground, cwd) in [(&own, None), (&there, Some("${workspace}"))] {
        let (mut server, _) = ground.servers(cwd)?.remove("npx-plain").context("no such form")?;
        server["command"] = json!(npx);
        server["args"] = json!(["--offline", "--yes", "mcp-canary-bin"]);
        server["env"]["PATH"] = json!(std::env::var("PATH")?);
        let home = HubHome::new(&json!({"servers": {"npx": server}}))?;
        ground.bait(&home.workspace())?;
        let tested = test_servers(&home, &["npx"]).await?;
        assert_eq!(tested[0]["ok"], json!(cwd.is_some()), "{tested:?}");
    }
    assert_eq!(own.canary(), None);
    let ran = there.canary().unwrap_or_default();
    assert!(ran.contains("mcp-canary-bin canary"), "{ran}");
    Ok(())
}

/// State of an earlier version, which started servers in the workspace.
#[tokio::test]
async fn an_upgrade_says_once_where_servers_start() -> Result<()> {
    let fixture = binary_path("mcp-fixture")?;
    let servers = json!({
        "moved": {"command": fixture, "args": ["stdio"]},
        "named": {"command": fixture, "args": ["stdio"], "cwd": "/"},
    });
    let home = HubHome::new(&json!({"servers": servers, "telemetry": {"log_file": "hub.log"}}))?;
    // How often it was said so far.
    let said = async || -> Result<usize> {
        let hub = home.serve().await?;
        hub.until_listed("moved__fix_echo").await?;
        let log = std::fs::read_to_string(home.dir.path().join("hub.log"))?;
        let lines: Vec<&str> = log.lines().filter(|line| line.contains("directory of their own")).collect();
        for line in &lines {
            ensure!(line.contains("moved") && !line.contains("named"), "{line}");
            ensure!(line.contains("cwd: ${workspace}"), "{line}");
        }
        Ok(lines.len())
    };
    assert_eq!(said().await?, 0, "a new user has nothing to change");
    let path = home.state_dir().join("servers.applied.json");
    let mut applied: Value = serde_json::from_str(&std::fs::read_to_string(&path)?)?;
    applied.as_object_mut().context("no object")?.remove("own_dirs");
    std::fs::write(&path, applied.to_string())?;
    assert_eq!(said().await?, 1);
    assert_eq!(said().await?, 1, "once is enough");
    Ok(())
}
