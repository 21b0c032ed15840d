//! The list of toolboxes and what they may touch: the only place that names them all.

use crate::settings::{Durability, HardLinks, Root, Sandbox, ServerSandbox, Settings};
use octo_flow::Flows;
use octo_grants::chromium::{BrowserSandbox, ChromiumSpec};
use octo_grants::exec::{Exec, ExecLimits, ExecSpec, SandboxChoice, Sessions};
use octo_grants::fs::{self, RootSpec, Workspace, WorkspaceSpec};
use octo_grants::llm::LlmSpec;
use octo_grants::net::{NetSpec, USER_AGENT};
use octo_grants::sql::{Secret, SqlConnection, SqlSpec};
use octo_grants::{
    Apis, Capabilities, Chromium, Clock, Keep, Llm, Memory, Net, Pdf, Render, SearchPath, Sql, SshKey,
};
use octo_hub::ResultStore;
use octo_model::{CallId, Caller, Json, JsonObject, ToolError};
use octo_store::{MemoryOptions, SqliteApiStore, SqliteMemoryStore, SqliteRunStore};
use octo_toolkit::{BoxFuture, Toolbox};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use url::Url;

/// The hidden command that starts programs.
pub const LAUNCHER: &str = "launch";
/// The hidden command that takes a PDF apart.
pub const PDF_WORKER: &str = "pdf-worker";

/// Every toolbox of this build, in the order of their names.
pub fn toolboxes(settings: &Settings) -> Vec<Toolbox> {
    with_browser(settings, &tools_browser::SharedBrowser::default())
}

/// The same, and the doors with what one toolbox does for another: the browser shows pages to those who only read, when
/// it is on.
pub fn wired(settings: &Settings, doors: &Capabilities) -> (Vec<Toolbox>, Capabilities) {
    let browser = tools_browser::SharedBrowser::default();
    let mut doors = doors.clone();
    if settings.toolboxes.is_on("browser")
        && let Ok(chromium) = doors.open::<Chromium>()
    {
        doors = doors.with(Render::new(Arc::new(browser.renderer(chromium))));
    }
    (with_browser(settings, &browser), doors)
}

fn with_browser(settings: &Settings, shared: &tools_browser::SharedBrowser) -> Vec<Toolbox> {
    vec![
        shared.toolbox(browser(settings)),
        tools_sql::sql_toolbox(),
        tools_web::fetch_toolbox(),
        tools_files::toolbox(),
        tools_git::toolbox(git(settings)),
        tools_forge::github_toolbox(github(settings)),
        tools_forge::gitlab_toolbox(gitlab(settings)),
        tools_memory::toolbox(),
        tools_openapi::toolbox(),
        tools_web::readability_toolbox(),
        tools_web::search_toolbox(search(settings)),
        tools_servers::toolbox(),
        tools_shell::toolbox(shell(settings)),
        tools_git::ssh_toolbox(),
        tools_text::model_toolbox(),
        tools_text::toolbox(),
        tools_time::toolbox(),
        tools_web::weather_toolbox(tools_web::WeatherSettings::default()),
        octo_flow::toolbox(),
    ]
}

fn browser(settings: &Settings) -> tools_browser::Settings {
    tools_browser::Settings { allow_javascript: settings.browser.allow_javascript }
}

fn search(settings: &Settings) -> tools_web::SearchSettings {
    tools_web::SearchSettings {
        searxng_url: address(settings.search.searxng_url.as_deref()),
        brave_api_key: settings
            .search
            .brave_api_key
            .as_ref()
            .map(|key| tools_web::ApiKey::from(key.expose().to_owned())),
        ..tools_web::SearchSettings::default()
    }
}

fn github(settings: &Settings) -> tools_forge::GithubSettings {
    let github = &settings.github;
    tools_forge::GithubSettings { url: address(github.url.as_deref()), token: token(github.token.as_ref()) }
}

fn gitlab(settings: &Settings) -> tools_forge::GitlabSettings {
    let gitlab = &settings.gitlab;
    tools_forge::GitlabSettings {
        url: address(gitlab.url.as_deref()),
        token: token(gitlab.token.as_ref()),
        token_kind: gitlab.token_kind,
        openapi_url: address(gitlab.openapi_url.as_deref()),
    }
}

fn token(secret: Option<&crate::settings::Secret>) -> Option<tools_forge::Token> {
    secret.map(|secret| tools_forge::Token::from(secret.expose().to_owned()))
}

/// An address that is none was refused when the settings were read.
fn address(text: Option<&str>) -> Option<Url> {
    text.and_then(|text| Url::parse(text).ok())
}

fn git(settings: &Settings) -> tools_git::Settings {
    let git = &settings.git;
    tools_git::Settings {
        allow_commit: git.allow_commit,
        allow_push: git.allow_push,
        user_name: git.user_name.clone(),
        user_email: git.user_email.clone(),
        user: git_person(),
    }
}

/// Bytes of a person's git settings that are read.
const GIT_SETTINGS: u64 = 1 << 20;

/// Name and address of the person who runs the hub, as git would find them. The files are data here: nothing in them is run
/// or followed.
fn git_person() -> tools_git::UserIdentity {
    let home = std::env::home_dir();
    let xdg =
        std::env::var_os("XDG_CONFIG_HOME").map(std::path::PathBuf::from).filter(|path| path.is_absolute());
    let xdg = xdg.or_else(|| home.as_ref().map(|home| home.join(".config")));
    let files = [xdg.map(|folder| folder.join("git/config")), home.map(|home| home.join(".gitconfig"))];
    let read = |path: &std::path::PathBuf| {
        let file = std::fs::File::open(path).ok()?;
        let mut text = String::new();
        std::io::Read::read_to_string(&mut std::io::Read::take(file, GIT_SETTINGS), &mut text).ok()?;
        Some(text)
    };
    let texts: Vec<String> = files.iter().flatten().filter_map(read).collect();
    tools_git::UserIdentity::from_config_files(texts.iter().map(String::as_str))
}

fn shell(settings: &Settings) -> tools_shell::Settings {
    let shell = &settings.shell;
    tools_shell::Settings {
        allowed: shell.allowed_commands.clone(),
        blocked: shell.blocked_commands.clone(),
        max_timeout: Duration::from_secs(shell.max_timeout_seconds),
        network: shell.network || shell.local_servers,
    }
}

/// What tools may touch when nothing is called.
pub fn no_doors() -> Capabilities {
    Capabilities::default().with(Clock::system())
}

/// What the settings cannot say about the workspace.
#[derive(Debug, Clone, Default)]
pub struct WorkspaceGuard {
    /// Settings that tools may never change, by their canonical paths.
    pub protected: Vec<PathBuf>,
    /// Why there is no workspace, and what to do.
    pub no_root: Option<(String, String)>,
}

/// What tools may touch. `state` is the folder of the hub's own data, `program` this very program.
pub fn doors(
    settings: &Settings,
    guard: WorkspaceGuard,
    state: &Path,
    program: &Path,
    spills: Arc<dyn ResultStore>,
) -> Result<Capabilities, ToolError> {
    let workspace = Workspace::open(workspace(settings, guard, state))?;
    let exec = Exec::new(programs(settings, workspace.clone(), state, program, path_of_commands(settings)))?;
    let net = Net::new(reach(settings))?;
    let mut doors = no_doors()
        .with(net.clone())
        .with(Chromium::new(chromium(
            state,
            program,
            Net::new(browser_reach(settings))?,
            exec.search_path().trusted(),
        ))?)
        .with(Pdf::new(vec![program.into(), PDF_WORKER.into()]))
        .with(workspace.clone())
        .with(exec.clone())
        .with(Sessions::new(exec))
        .with(Sql::new(&databases(settings, &net))?)
        .with(Memory::new(Arc::new(memories(settings, state))))
        .with(Apis::new(Arc::new(apis(settings, state))))
        .with(Keep::new(Arc::new(Keeper(spills))));
    if let Some(llm) = model(settings)? {
        doors = doors.with(llm);
    }
    let runs = Arc::new(SqliteRunStore::new(state, durability(settings)));
    doors = doors.with(Flows::new(runs, Clock::system()));
    let home = workspace.roots().first().map_or(state, |root| &root.path);
    Ok(doors.with(SshKey::new(state, home)))
}

fn memories(settings: &Settings, state: &Path) -> SqliteMemoryStore {
    SqliteMemoryStore::new(
        state,
        MemoryOptions { durability: durability(settings), ..MemoryOptions::default() },
    )
}

fn apis(settings: &Settings, state: &Path) -> SqliteApiStore {
    let secret = settings.logins.secret.as_ref().map(|secret| secret.expose().to_owned());
    SqliteApiStore::new(state, durability(settings), secret)
}

/// What every file of the hub's own data survives.
pub fn durability(settings: &Settings) -> octo_store::Durability {
    match settings.audit.durability {
        Durability::Process => octo_store::Durability::Flush,
        Durability::Power => octo_store::Durability::Fsync,
    }
}

/// The databases that the operator has named.
fn databases(settings: &Settings, net: &Net) -> SqlSpec {
    let database = &settings.database;
    let connections = database.connections.iter().map(|(name, dsn)| SqlConnection {
        reader: database.readers.get(name).map(|dsn| Secret::new(dsn.expose())),
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

/// The language model, with a way out of its own: the operator has named it, so it may be private, and only for this.
fn model(settings: &Settings) -> Result<Option<Llm>, ToolError> {
    let llm = &settings.llm;
    let Some(url) = address(llm.url.as_deref()) else { return Ok(None) };
    let mut reach = reach(settings);
    reach.allow.extend(place(&url));
    let key = llm.key.as_ref().map(|key| key.expose().to_owned());
    Llm::new(Net::new(reach)?, LlmSpec { url, key, model: llm.model.clone() }).map(Some)
}

/// Host and port, as the list of allowed places has them.
fn place(url: &Url) -> Option<String> {
    url.host_str().zip(url.port_or_known_default()).map(|(host, port)| format!("{host}:{port}"))
}

/// Where servers that commands start can be found.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.0/8", "::1"];

/// What the operator allows.
pub fn reach(settings: &Settings) -> NetSpec {
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

/// What the browser may reach: where the operator has opened loopback, it may come back to the hub after a login.
fn browser_reach(settings: &Settings) -> NetSpec {
    let opens_loopback = |entry: &String| LOOPBACK.contains(&entry.as_str()) || entry == "127.0.0.1";
    let mut reach = reach(settings);
    if settings.net.allow.iter().any(opens_loopback) {
        reach.own_ports.retain(|port| *port != settings.admin.port);
    }
    reach
}

/// The doors of one toolbox. The search engine that the operator has named may be private, and only searching leads there.
pub fn doors_of(toolbox: &str, settings: &Settings, doors: &Capabilities) -> Capabilities {
    let engine = address(settings.search.searxng_url.as_deref()).filter(|_| toolbox == "search");
    let net = engine.as_ref().and_then(place).and_then(|engine| {
        let mut reach = reach(settings);
        reach.allow.push(engine);
        doors.open::<Net>().and_then(|_| Net::new(reach)).ok()
    });
    net.map_or_else(|| doors.clone(), |net| doors.clone().with(net))
}

fn chromium(state: &Path, program: &Path, net: Net, path: OsString) -> ChromiumSpec {
    ChromiumSpec {
        path,
        state: state.to_owned(),
        launcher: vec![program.into(), LAUNCHER.into()],
        sandbox: BrowserSandbox::Auto,
        net,
    }
}

/// The hub's own search path.
fn path_variable() -> OsString {
    std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into())
}

/// Where programs are looked up that run outside the sandbox: nowhere that a tool, a command or a server in a sandbox can write.
pub fn search_path(settings: &Settings, path: OsString) -> SearchPath {
    let first = settings.workspace.as_ref().filter(|_| !settings.files.read_only);
    let named = settings.roots.iter().filter_map(|(name, root)| root_spec(name, root));
    let named = named.filter(|root| root.writable).map(|root| root.path);
    let all = first.cloned().into_iter().chain(named).chain(written_by_servers(settings));
    SearchPath::new(path, all.filter_map(|folder| folder.canonicalize().ok()).collect())
}

/// The folders of the search path that programs run from outside the sandbox.
pub fn program_folders(settings: &Settings) -> Vec<PathBuf> {
    search_path(settings, path_variable()).folders().to_vec()
}

/// The same as a variable, for servers that run outside a sandbox.
pub fn path_of_servers(settings: &Settings) -> OsString {
    search_path(settings, path_variable()).trusted()
}

/// The search path of commands: as it is, but for folders in which servers could plant a program.
fn path_of_commands(settings: &Settings) -> OsString {
    let written: Vec<PathBuf> =
        written_by_servers(settings).filter_map(|folder| folder.canonicalize().ok()).collect();
    if written.is_empty() { path_variable() } else { SearchPath::new(path_variable(), written).trusted() }
}

fn written_by_servers(settings: &Settings) -> impl Iterator<Item = PathBuf> {
    settings
        .servers
        .values()
        .filter_map(|server| server.sandbox.as_ref())
        .flat_map(|sandbox| sandbox.write.clone())
}

fn workspace(settings: &Settings, guard: WorkspaceGuard, state: &Path) -> WorkspaceSpec {
    let first = settings.workspace.as_ref().map(|path| RootSpec {
        name: "workspace".to_owned(),
        path: path.clone(),
        alias_path: settings.files.outside.clone(),
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
        hard_links: match settings.files.hard_links {
            HardLinks::Allow => fs::HardLinks::Allow,
            HardLinks::Refuse => fs::HardLinks::Refuse,
        },
        settings: guard.protected,
        no_root: guard.no_root,
        state: Some(state.to_owned()),
    }
}

fn root_spec(name: &str, root: &Root) -> Option<RootSpec> {
    let (path, writable) = (root.folder()?.clone(), root.is_writable(name));
    Some(RootSpec { name: name.to_owned(), path, alias_path: root.outside.clone(), writable })
}

/// A sandbox for the program of one server, with folders of its own.
pub fn shut_in(
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
    Exec::new(programs(settings, Workspace::open(spec)?, state, program, path_of_servers(settings)))
}

fn programs(
    settings: &Settings,
    workspace: Workspace,
    state: &Path,
    program: &Path,
    path: OsString,
) -> ExecSpec {
    let shell = &settings.shell;
    ExecSpec {
        workspace,
        sandbox: match shell.sandbox {
            Sandbox::Auto => SandboxChoice::Auto,
            Sandbox::Bubblewrap => SandboxChoice::Bubblewrap,
            Sandbox::Landlock => SandboxChoice::Landlock,
            Sandbox::None => SandboxChoice::None,
        },
        limits: ExecLimits { memory_bytes: shell.max_memory_mb << 20, ..ExecLimits::default() },
        state: state.to_owned(),
        launcher: vec![program.into(), LAUNCHER.into()],
        path,
        pass_env: shell.pass_variables.clone(),
    }
}

/// Keeps text as if it were the answer of a tool, which is what `result_read` reads.
struct Keeper(Arc<dyn ResultStore>);

impl octo_grants::Keeps for Keeper {
    fn keep<'a>(
        &'a self,
        caller: &'a Caller,
        call: CallId,
        text: String,
    ) -> BoxFuture<'a, Result<String, ToolError>> {
        let block = JsonObject::new().with("type", "text").with("text", text.as_str());
        let whole = JsonObject::new().with("content", Json::array([&block.to_json()]));
        self.0.store(caller, call, whole.to_json())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The hub takes what comes from loopback for its own user.
    #[test]
    fn the_hub_itself_is_out_of_reach_of_its_tools() {
        let ports = |allow: &[&str], local_servers: bool| {
            let mut settings = Settings::default();
            settings.net.allow = allow.iter().map(ToString::to_string).collect();
            settings.shell.local_servers = local_servers;
            (reach(&settings).own_ports, browser_reach(&settings).own_ports)
        };
        let both = || vec![7000, 3100];
        assert_eq!(ports(&[], false), (both(), both()));
        assert_eq!(ports(&[], true), (both(), both()));
        assert_eq!(ports(&["10.0.0.0/8", "127.0.0.1:5173"], true), (both(), both()));
        // A browser comes back to the callback of a login where the operator has opened loopback.
        for allow in ["127.0.0.1", "localhost"] {
            assert_eq!(ports(&[allow], false), (both(), vec![7000]), "{allow}");
        }
    }
}
