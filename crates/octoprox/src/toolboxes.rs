//! All toolboxes and their capabilities: the only place that names them all.

use crate::settings::{Root, ServerSandbox, Settings};
use octo_flow::WorkflowEngine;
use octo_grants::chromium::{BrowserSandbox, ChromiumSpec};
use octo_grants::exec::{Exec, ExecLimits, ExecSpec, Sessions};
use octo_grants::fs::{RootSpec, Workspace, WorkspaceSpec};
use octo_grants::llm::LlmSpec;
use octo_grants::net::{NetSpec, USER_AGENT};
use octo_grants::sql::{SqlConnection, SqlSpec};
use octo_grants::{Capabilities, Chromium, Clock, Llm, Net, Pdf, Render, SearchPath, Sql, SshKey};
use octo_model::ToolError;
use octo_ports::{Memory, ResultWriter, Stores};
use octo_toolkit::Toolbox;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tools_memory::SemanticMemory;
use url::Url;

/// Hidden command that starts programs.
pub const LAUNCHER_COMMAND: &str = "launch";
/// Hidden command that parses PDF files.
pub const PDF_WORKER_COMMAND: &str = "pdf-worker";

/// Returns all toolboxes of this build, sorted by name.
pub fn toolboxes(settings: &Settings) -> Vec<Toolbox> {
    all_toolboxes(settings, &tools_browser::SharedBrowser::default())
}

/// Returns all toolboxes and the capabilities, including the shared browser: if enabled, it renders pages for the
/// toolboxes that only read.
pub fn with_shared_browser(settings: &Settings, doors: &Capabilities) -> (Vec<Toolbox>, Capabilities) {
    let browser = tools_browser::SharedBrowser::default();
    let mut doors = doors.clone();
    if settings.toolboxes.browser
        && let Ok(chromium) = doors.open::<Chromium>()
    {
        doors = doors.with(Render::new(Arc::new(browser.renderer(chromium))));
    }
    (all_toolboxes(settings, &browser), doors)
}

fn all_toolboxes(settings: &Settings, shared: &tools_browser::SharedBrowser) -> Vec<Toolbox> {
    vec![
        shared.toolbox(settings.browser.clone()),
        tools_sql::sql_toolbox(),
        tools_web::fetch_toolbox(),
        tools_files::toolbox(),
        tools_git::toolbox(git_settings(settings)),
        tools_forge::github_toolbox(github_settings(settings)),
        tools_forge::gitlab_toolbox(gitlab_settings(settings)),
        tools_memory::toolbox(),
        tools_openapi::toolbox(),
        tools_web::readability_toolbox(),
        tools_web::search_toolbox(search_settings(settings)),
        tools_servers::catalogue_toolbox(),
        tools_servers::toolbox(),
        tools_shell::toolbox(settings.shell.clone()),
        tools_git::ssh_toolbox(),
        tools_text::model_toolbox(),
        tools_text::toolbox(),
        tools_time::toolbox(),
        tools_web::weather_toolbox(tools_web::WeatherSettings::default()),
        octo_flow::toolbox(),
    ]
}

fn search_settings(settings: &Settings) -> tools_web::SearchSettings {
    tools_web::SearchSettings {
        searxng_url: parse_url(settings.search.searxng_url.as_deref()),
        brave_api_key: settings.search.brave_api_key.clone(),
        ..tools_web::SearchSettings::default()
    }
}

fn github_settings(settings: &Settings) -> tools_forge::GithubSettings {
    let github = &settings.github;
    tools_forge::GithubSettings { url: parse_url(github.url.as_deref()), token: github.token.clone() }
}

fn gitlab_settings(settings: &Settings) -> tools_forge::GitlabSettings {
    let gitlab = &settings.gitlab;
    tools_forge::GitlabSettings {
        url: parse_url(gitlab.url.as_deref()),
        token: gitlab.token.clone(),
        token_kind: gitlab.token_kind,
        openapi_url: parse_url(gitlab.openapi_url.as_deref()),
    }
}

/// Parses a URL. Invalid URLs were rejected when the settings were checked.
fn parse_url(text: Option<&str>) -> Option<Url> {
    text.and_then(|text| Url::parse(text).ok())
}

fn git_settings(settings: &Settings) -> tools_git::GitSettings {
    tools_git::GitSettings { user: git_identity(), ..settings.git.clone() }
}

/// Maximum bytes read of the user's git configuration.
const MAX_GIT_CONFIG_BYTES: u64 = 1 << 20;

/// Returns the name and email of the user, as git would find them. The files are only parsed: nothing in them is
/// executed or included.
fn git_identity() -> tools_git::UserIdentity {
    let home = std::env::home_dir();
    let xdg =
        std::env::var_os("XDG_CONFIG_HOME").map(std::path::PathBuf::from).filter(|path| path.is_absolute());
    let xdg = xdg.or_else(|| home.as_ref().map(|home| home.join(".config")));
    let files = [xdg.map(|folder| folder.join("git/config")), home.map(|home| home.join(".gitconfig"))];
    let read = |path: &std::path::PathBuf| {
        let file = std::fs::File::open(path).ok()?;
        let mut text = String::new();
        std::io::Read::read_to_string(&mut std::io::Read::take(file, MAX_GIT_CONFIG_BYTES), &mut text)
            .ok()?;
        Some(text)
    };
    let texts: Vec<String> = files.iter().flatten().filter_map(read).collect();
    tools_git::UserIdentity::from_config_files(texts.iter().map(String::as_str))
}

/// Returns no capabilities, for read-only mode.
pub fn no_capabilities() -> Capabilities {
    Capabilities::default().with(Clock::system())
}

/// Workspace restrictions that are not in the settings.
#[derive(Debug, Clone, Default)]
pub struct WorkspaceGuard {
    /// Canonical paths of the settings files, which tools may never change.
    pub protected: Vec<PathBuf>,
    /// Error and hint if there is no workspace.
    pub no_root: Option<(String, String)>,
}

/// Opens the capabilities of tools. `state` is the state directory, `program` the path of this program, `variables` the
/// environment that `shell.env_passthrough` refers to.
pub fn open_capabilities(
    settings: &Settings,
    variables: &BTreeMap<String, String>,
    guard: WorkspaceGuard,
    state: &Path,
    program: &Path,
    stores: &Stores,
) -> Result<Capabilities, ToolError> {
    let workspace = Workspace::open(workspace_spec(settings, guard, state))?;
    let passed = settings.shell.env_passthrough.iter();
    let pass_env = passed.filter_map(|name| variables.get_key_value(name));
    let exec = Exec::new(ExecSpec {
        pass_env: pass_env.map(|(name, value)| (name.clone(), value.clone())).collect(),
        ..exec_spec(settings, workspace.clone(), state, program, command_search_path(settings))
    })?;
    let net = Net::new(tool_net_spec(settings))?;
    let memory = Arc::new(SemanticMemory::new(Arc::clone(&stores.memory)));
    let mut doors = no_capabilities()
        .with(net.clone())
        .with(Chromium::new(chromium_spec(
            state,
            program,
            Net::new(browser_net_spec(settings))?,
            exec.search_path().trusted(),
        ))?)
        .with(Pdf::new(vec![program.into(), PDF_WORKER_COMMAND.into()]))
        .with(workspace.clone())
        .with(exec.clone())
        .with(Sessions::new(exec))
        .with(Sql::new(&sql_spec(settings, &Net::new(net_spec(settings))?))?)
        .with(Arc::clone(&memory))
        .with(memory as Memory)
        .with(Arc::clone(&stores.apis))
        .with(ResultWriter::new(Arc::clone(&stores.results)));
    if let Some(llm) = open_llm(settings)? {
        doors = doors.with(llm);
    }
    doors = doors.with(WorkflowEngine::new(Arc::clone(&stores.runs), Clock::system()));
    let home = workspace.roots().first().map_or(state, |root| &root.path);
    Ok(doors.with(SshKey::new(state, home)))
}

/// Returns the configured databases.
fn sql_spec(settings: &Settings, net: &Net) -> SqlSpec {
    let database = &settings.database;
    let connections = database.connections.iter().map(|(name, dsn)| SqlConnection {
        reader: database.readers.get(name).cloned(),
        superuser: database.superusers.contains(name),
        read_only: database.read_only,
        ..SqlConnection::new(name, dsn.expose())
    });
    SqlSpec {
        connections: connections.collect(),
        read_only: database.read_only,
        net: net.clone(),
        ..SqlSpec::default()
    }
}

/// Opens the language model with its own egress rule: as a configured host it may be private, and only it.
fn open_llm(settings: &Settings) -> Result<Option<Llm>, ToolError> {
    let llm = &settings.llm;
    let Some(url) = parse_url(llm.url.as_deref()) else { return Ok(None) };
    let mut reach = net_spec(settings);
    reach.allow.extend(host_and_port(&url));
    Llm::new(Net::new(reach)?, LlmSpec { url, key: llm.key.clone(), model: llm.model.clone() }).map(Some)
}

/// Returns host and port in the format of `net.allow`.
fn host_and_port(url: &Url) -> Option<String> {
    url.host_str().zip(url.port_or_known_default()).map(|(host, port)| format!("{host}:{port}"))
}

/// Addresses of servers that commands start.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.0/8", "::1"];

/// Returns the egress rules.
pub fn net_spec(settings: &Settings) -> NetSpec {
    let net = &settings.net;
    let contact = net.contact.as_ref().map(|contact| format!(" (+{contact})")).unwrap_or_default();
    let pause = net.requests_per_second.and_then(|rate| Duration::try_from_secs_f64(1.0 / rate).ok());
    let local: &[&str] = if settings.shell.local_servers { &LOOPBACK } else { &[] };
    NetSpec {
        allow: net.allow.iter().cloned().chain(local.iter().map(ToString::to_string)).collect(),
        own_ports: [settings.listen.port, settings.admin.port].into_iter().filter(|port| *port > 0).collect(),
        user_agent: format!("{USER_AGENT}{contact}"),
        min_interval: pause.unwrap_or_default(),
        robots: net.respect_robots,
        ..NetSpec::default()
    }
}

/// Returns the egress rules of tools: also restricted to the hosts of `net.only`.
fn tool_net_spec(settings: &Settings) -> NetSpec {
    NetSpec { only: settings.net.only.clone(), ..net_spec(settings) }
}

/// Returns the egress rules of the browser: if loopback is allowed, it may connect to the hub after a login.
fn browser_net_spec(settings: &Settings) -> NetSpec {
    let opens_loopback = |entry: &String| LOOPBACK.contains(&entry.as_str()) || entry == "127.0.0.1";
    let mut reach = tool_net_spec(settings);
    if settings.net.allow.iter().any(opens_loopback) {
        reach.own_ports.retain(|port| *port != settings.admin.port);
    }
    reach
}

/// Returns the capabilities of one toolbox. Only the toolbox that names a private host may connect to it.
pub fn toolbox_capabilities(toolbox: &Toolbox, settings: &Settings, doors: &Capabilities) -> Capabilities {
    let net = toolbox.egress.as_ref().and_then(|host| {
        let mut reach = tool_net_spec(settings);
        reach.allow.push(host.clone());
        doors.open::<Net>().and_then(|_| Net::new(reach)).ok()
    });
    net.map_or_else(|| doors.clone(), |net| doors.clone().with(net))
}

fn chromium_spec(state: &Path, program: &Path, net: Net, path: OsString) -> ChromiumSpec {
    ChromiumSpec {
        path,
        state: state.to_owned(),
        launcher: vec![program.into(), LAUNCHER_COMMAND.into()],
        sandbox: BrowserSandbox::Auto,
        net,
    }
}

/// Returns the PATH of the hub.
fn path_variable() -> OsString {
    std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into())
}

/// Returns the search path of programs that run outside the sandbox, without directories that tools, commands or
/// sandboxed servers can write to.
pub fn search_path(settings: &Settings, path: OsString) -> SearchPath {
    let first = settings.workspace.as_ref().filter(|_| !settings.files.read_only);
    let named = settings.roots.iter().filter_map(|(name, root)| root_spec(name, root));
    let named = named.filter(|root| root.writable).map(|root| root.path);
    let all = first.cloned().into_iter().chain(named).chain(server_writable_dirs(settings));
    SearchPath::new(path, all.filter_map(|folder| folder.canonicalize().ok()).collect())
}

/// Returns the directories from which programs run outside the sandbox.
pub fn trusted_program_dirs(settings: &Settings) -> Vec<PathBuf> {
    search_path(settings, path_variable()).folders().to_vec()
}

/// Returns the same as a PATH value, for servers outside a sandbox.
pub fn server_search_path(settings: &Settings) -> OsString {
    search_path(settings, path_variable()).trusted()
}

/// Returns the PATH of commands, without directories that servers can write to.
fn command_search_path(settings: &Settings) -> OsString {
    let written: Vec<PathBuf> =
        server_writable_dirs(settings).filter_map(|folder| folder.canonicalize().ok()).collect();
    if written.is_empty() { path_variable() } else { SearchPath::new(path_variable(), written).trusted() }
}

fn server_writable_dirs(settings: &Settings) -> impl Iterator<Item = PathBuf> {
    settings
        .servers
        .values()
        .filter_map(|server| server.sandbox.as_ref())
        .flat_map(|sandbox| sandbox.write.clone())
}

fn workspace_spec(settings: &Settings, guard: WorkspaceGuard, state: &Path) -> WorkspaceSpec {
    let first = settings.workspace.as_ref().map(|path| RootSpec {
        name: "workspace".to_owned(),
        path: path.clone(),
        alias_path: settings.files.host_path.clone(),
        writable: !settings.files.read_only,
    });
    let named = settings.roots.iter().filter_map(|(name, root)| root_spec(name, root));
    WorkspaceSpec {
        roots: first.into_iter().chain(named).collect(),
        protected: settings.files.protected.clone(),
        profiles: crate::dialects::with_dialects(&settings.profiles)
            .into_iter()
            .filter(|(_, profile)| !profile.protect.is_empty())
            .map(|(name, profile)| (name, profile.protect))
            .collect(),
        hard_links: settings.files.hard_links,
        settings: guard.protected,
        no_root: guard.no_root,
        state: Some(state.to_owned()),
    }
}

fn root_spec(name: &str, root: &Root) -> Option<RootSpec> {
    let (path, writable) = (root.folder()?.clone(), root.is_writable(name));
    Some(RootSpec { name: name.to_owned(), path, alias_path: root.host_path.clone(), writable })
}

/// Opens a sandbox for one server's program, with its own directories.
pub fn sandboxed_exec(
    settings: &Settings,
    sandbox: &ServerSandbox,
    state: &Path,
    program: &Path,
) -> Result<Exec, ToolError> {
    let folders = |paths: &[PathBuf], writable: bool| -> Vec<(PathBuf, bool)> {
        paths.iter().map(|path| (path.clone(), writable)).collect()
    };
    let all = [folders(&sandbox.write, true), folders(&sandbox.read, false)].concat();
    let roots = all.into_iter().enumerate().map(|(at, (path, writable))| RootSpec {
        name: format!("folder{}", at + 1),
        path,
        alias_path: None,
        writable,
    });
    let spec =
        WorkspaceSpec { roots: roots.collect(), state: Some(state.to_owned()), ..WorkspaceSpec::default() };
    Exec::new(exec_spec(settings, Workspace::open(spec)?, state, program, server_search_path(settings)))
}

fn exec_spec(
    settings: &Settings,
    workspace: Workspace,
    state: &Path,
    program: &Path,
    path: OsString,
) -> ExecSpec {
    let shell = &settings.shell;
    ExecSpec {
        workspace,
        sandbox: shell.sandbox,
        limits: ExecLimits { memory_bytes: shell.max_memory_mb << 20, ..ExecLimits::default() },
        state: state.to_owned(),
        launcher: vec![program.into(), LAUNCHER_COMMAND.into()],
        path,
        pass_env: BTreeMap::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The hub treats requests from loopback as its own user.
    #[test]
    fn the_hub_itself_is_out_of_reach_of_its_tools() {
        let ports = |allow: &[&str], local_servers: bool| {
            let mut settings = Settings::default();
            settings.net.allow = allow.iter().map(ToString::to_string).collect();
            settings.shell.local_servers = local_servers;
            (net_spec(&settings).own_ports, browser_net_spec(&settings).own_ports)
        };
        let both = || vec![7000, 3100];
        assert_eq!(ports(&[], false), (both(), both()));
        assert_eq!(ports(&[], true), (both(), both()));
        assert_eq!(ports(&["10.0.0.0/8", "127.0.0.1:5173"], true), (both(), both()));
        // The browser may connect to the login callback if loopback is allowed.
        for allow in ["127.0.0.1", "localhost"] {
            assert_eq!(ports(&[allow], false), (both(), vec![7000]), "{allow}");
        }
    }
}
