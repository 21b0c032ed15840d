//! Where the program of a server starts, and whether tools could have planted what it runs.
//!
//! Programs read settings and code from their directory, and from those above it: `npx` reads `.npmrc`, `python -m` imports
//! modules. A workspace belongs to whoever wrote the repository, and tools write to it. So a server starts in a directory of
//! the hub, unless its settings name another one.

mod named_code;

use self::named_code::{NamedCode, code_variables};
use crate::settings::{Environment, Server, ServerSandbox, Settings, TrustStore};
use octo_grants::{NEUTRAL_DIR, SearchPath};
use octo_model::{Secret, ToolError};
use std::ffi::OsString;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Component, Path, PathBuf};

/// Directories of servers, in the state directory.
pub const HOMES_DIR: &str = "server-homes";
/// Directory in which the program of a server starts, in its own one. Not a home directory of the sandboxed server: what a
/// program wrote in a sandbox must not decide what runs without it.
const START_DIR: &str = "start";
/// `cwd` that follows the session.
pub const WORKSPACE_REFERENCE: &str = "${workspace}";

/// The directory in which a program starts.
#[derive(Debug, Clone, PartialEq, Eq)]
enum StartDir {
    /// Nobody named one: a directory that no tool can write.
    Own(PathBuf),
    /// A person named it in the settings.
    Chosen(PathBuf),
}

/// What decides where servers start, and what tools could have planted.
#[derive(Clone)]
pub struct StartPlaces {
    state: Option<PathBuf>,
    /// Canonical paths of the directories that tools and sandboxed servers can write.
    writable: Vec<PathBuf>,
    /// Those of tools and of repositories.
    roots: Vec<PathBuf>,
    /// Environment of the session, for the directories that tools of other sessions can write.
    world: Environment,
}

impl StartPlaces {
    pub fn new(settings: &Settings, world: &Environment) -> Self {
        let real = |folders: Vec<PathBuf>| -> Vec<PathBuf> {
            folders.into_iter().map(|folder| folder.canonicalize().unwrap_or(folder)).collect()
        };
        Self {
            state: settings.state_dir.clone(),
            writable: real(settings.writable_folders()),
            roots: real(settings.workspace.iter().cloned().chain(settings.writable_roots()).collect()),
            world: world.clone(),
        }
    }

    /// The start of a server's program: the only place that decides where one starts.
    pub fn start(&self, name: &str, server: &Server) -> ServerStart {
        let dir = match &server.cwd {
            Some(cwd) => StartDir::Chosen(cwd.clone()),
            None => StartDir::Own(own_dir(
                self.state.as_deref(),
                &[self.writable.as_slice(), &self.roots].concat(),
                name,
            )),
        };
        let variable = |name: &'static str| Some((name, Secret::new(server.env.get(name)?.expose())));
        ServerStart {
            name: name.to_owned(),
            dir,
            sandbox: server.sandbox.clone(),
            program: server.command.clone().filter(|_| server.package.is_none()),
            args: server.args.clone(),
            code_variables: code_variables().filter_map(variable).collect(),
            places: self.clone(),
        }
    }

    /// Whether tools can write a path or replace it by a link, now or in another session.
    fn is_planted(&self, path: &Path, by: &[PathBuf]) -> bool {
        let remembered = TrustStore::open(&self.world);
        let remembered = remembered.iter().flat_map(TrustStore::writable_roots).map(Path::to_owned);
        let writable: Vec<PathBuf> = by.iter().cloned().chain(remembered).collect();
        let is_inside = |path: &Path| writable.iter().any(|root| path.starts_with(root));
        if is_inside(&without_dots(path)) || is_inside(&real_path(path)) {
            return true;
        }
        // A link in a writable directory on the way to it.
        path.exists() && !SearchPath::new(OsString::new(), writable).accepts(path)
    }
}

/// The start of a server's program.
#[derive(Clone)]
pub struct ServerStart {
    name: String,
    dir: StartDir,
    sandbox: Option<ServerSandbox>,
    /// The program, unless a package contains it, and its arguments.
    program: Option<String>,
    args: Vec<String>,
    /// Variables that can name code, and their values.
    code_variables: Vec<(&'static str, Secret)>,
    places: StartPlaces,
}

impl ServerStart {
    /// Working directory of the program. In a sandbox that is its first directory, unless tools can write it; then its home
    /// directory.
    pub fn working_dir(&self) -> Option<PathBuf> {
        match (&self.dir, &self.sandbox) {
            (StartDir::Chosen(dir), _) | (StartDir::Own(dir), None) => Some(dir.clone()),
            (StartDir::Own(_), Some(sandbox)) => {
                let first = sandbox.write.iter().chain(&sandbox.read).next()?;
                (!self.places.is_planted(first, &self.places.roots)).then(|| PathBuf::from("."))
            }
        }
    }

    /// The directory, if a person named one.
    pub fn chosen_dir(&self) -> Option<&Path> {
        match &self.dir {
            StartDir::Own(_) => None,
            StartDir::Chosen(dir) => Some(dir),
        }
    }

    /// The directory, if a person named one that tools can write.
    pub fn writable_dir(&self) -> Option<&Path> {
        self.chosen_dir().filter(|dir| self.places.is_planted(dir, &self.places.writable))
    }

    /// What tools could replace to run their own code with all permissions of the hub. A person who starts the server in
    /// such a directory allows it.
    fn planted_code(&self) -> Option<PathBuf> {
        if self.sandbox.is_some() || self.writable_dir().is_some() {
            return None;
        }
        let from = match &self.dir {
            StartDir::Own(dir) | StartDir::Chosen(dir) => dir,
        };
        let mut named = self.named_code(from).into_iter().map(|path| from.join(path));
        named.find(|path| self.places.is_planted(path, &self.places.writable))
    }

    /// Paths of what the program executes, as far as its command line and environment tell.
    fn named_code(&self, from: &Path) -> Vec<PathBuf> {
        let mut code = NamedCode::new(from);
        let args: Vec<&str> = self.args.iter().map(String::as_str).collect();
        code.line(self.program.as_deref().unwrap_or_default(), &args);
        for (name, value) in &self.code_variables {
            code.variable(name, value.expose());
        }
        code.into_paths()
    }

    /// Creates the directory, and refuses code that tools could have planted. Called before each start.
    pub fn prepare(&self) -> Result<(), ToolError> {
        if let Some(why) = self.refusal() {
            return Err(why);
        }
        let StartDir::Own(dir) = &self.dir else { return Ok(()) };
        if self.sandbox.is_some() || dir == Path::new(NEUTRAL_DIR) {
            return Ok(());
        }
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(|error| {
            ToolError::unavailable(format!("The directory of the server {} cannot be created.", self.name))
                .hint("Check the state directory and its disk.")
                .detail(error)
        })
    }

    /// Why the server is not started.
    pub fn refusal(&self) -> Option<ToolError> {
        let code = self.planted_code()?;
        let refused = format!(
            "The server {} runs `{}`, which tools can change. It would run with all your permissions.",
            self.name,
            code.display()
        );
        Some(ToolError::denied(refused).hint(format!(
            "Move it to a directory outside of the workspace, or run the server in a `sandbox`. To allow it, start the server \
             where tools can write: `cwd: {WORKSPACE_REFERENCE}`, or a directory."
        )))
    }
}

/// Directory of a server in the state directory. A program may read the directories above its own: beneath one of these, it
/// starts in `/`.
fn own_dir(state: Option<&Path>, refused: &[PathBuf], name: &str) -> PathBuf {
    let Some(state) = state else { return PathBuf::from(NEUTRAL_DIR) };
    let real = real_path(state);
    match refused.iter().any(|root| real.starts_with(root)) {
        true => PathBuf::from(NEUTRAL_DIR),
        false => state.join(HOMES_DIR).join(name).join(START_DIR),
    }
}

/// The path with `.` and `..` resolved by name.
fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}

/// The real path of a path, or of the part of it that exists.
fn real_path(path: &Path) -> PathBuf {
    let found = path.ancestors().find_map(|above| Some((above, above.canonicalize().ok()?)));
    let Some((above, real)) = found else { return path.to_owned() };
    path.strip_prefix(above).map_or_else(|_| path.to_owned(), |rest| real.join(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Ground {
        dir: tempfile::TempDir,
    }

    impl Ground {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            for folder in ["ws/src", "apart", "state"] {
                std::fs::create_dir_all(dir.path().join(folder)).unwrap();
            }
            for file in ["ws/server.py", "ws/data.json", "apart/server.py"] {
                std::fs::write(dir.path().join(file), "").unwrap();
            }
            std::fs::write(dir.path().join("ws/run"), "#!/bin/sh\n").unwrap();
            std::os::unix::fs::symlink(dir.path().join("ws"), dir.path().join("apart/in")).unwrap();
            std::os::unix::fs::symlink(dir.path().join("apart"), dir.path().join("ws/out")).unwrap();
            Self { dir }
        }

        fn path(&self, name: &str) -> PathBuf {
            self.dir.path().canonicalize().unwrap().join(name)
        }

        fn start(&self, server: &str) -> ServerStart {
            let server = server.replace("WS", &self.path("ws").display().to_string());
            let server = server.replace("APART", &self.path("apart").display().to_string());
            let settings = Settings {
                workspace: Some(self.path("ws")),
                state_dir: Some(self.path("state")),
                ..Settings::default()
            };
            let state = self.path("state").display().to_string();
            let world = Environment {
                variables: [("OCTOPROX_STATE_DIR".to_owned(), state)].into(),
                current_dir: self.path("ws"),
            };
            let server: Server = serde_saphyr::from_str(&server).unwrap();
            StartPlaces::new(&settings, &world).start("it", &server)
        }
    }

    #[test]
    fn a_server_starts_in_its_own_directory_unless_the_settings_name_one() {
        let ground = Ground::new();
        let own = ground.path("state/server-homes/it/start");
        for (server, dir, writable) in [
            ("command: npx", Some(&own), false),
            ("{command: npx, cwd: WS}", Some(&ground.path("ws")), true),
            ("{command: npx, cwd: WS/src}", Some(&ground.path("ws/src")), true),
            ("{command: npx, cwd: APART/in}", Some(&ground.path("apart/in")), true),
            ("{command: npx, cwd: WS/out}", Some(&ground.path("ws/out")), true),
            ("{command: npx, cwd: APART}", Some(&ground.path("apart")), false),
            ("{command: npx, sandbox: {read: [WS]}}", None, false),
            ("{command: npx, sandbox: {write: [WS/src], read: [APART]}}", None, false),
            ("{command: npx, sandbox: {}}", None, false),
            ("{command: npx, sandbox: {write: [APART]}}", Some(&PathBuf::from(".")), false),
        ] {
            let start = ground.start(server);
            assert_eq!(start.working_dir().as_ref(), dir, "{server}");
            assert_eq!(start.writable_dir().is_some(), writable, "{server}");
        }
        ground.start("command: npx").prepare().unwrap();
        assert_eq!(
            std::os::unix::fs::PermissionsExt::mode(&own.metadata().unwrap().permissions()) & 0o777,
            0o700
        );
    }

    #[test]
    fn beneath_a_directory_that_tools_can_write_nothing_starts_by_itself() {
        let ground = Ground::new();
        let state = ground.path("ws/state");
        assert_eq!(own_dir(Some(&state), &[ground.path("ws")], "it"), Path::new("/"));
        assert_eq!(own_dir(Some(&state), &[ground.path("apart")], "it"), state.join("server-homes/it/start"));
        assert_eq!(own_dir(None, &[], "it"), Path::new("/"));
    }

    #[test]
    fn code_that_tools_can_change_is_refused() {
        let ground = Ground::new();
        for server in [
            "{command: WS/server}",
            "{command: WS/src/../run}",
            "{command: APART/in/run}",
            "{command: WS/out/server.py}",
            "{command: python3, args: [WS/server.py]}",
            "{command: python3.12, args: [-u, WS/src]}",
            "{command: python3, args: [WS/not-there-yet.py]}",
            "{command: APART/python, args: [WS/run]}",
            "{command: node, args: ['--require=WS/src/hook.cjs', APART/server.js]}",
            "{command: node, args: ['--import', 'file://WS/src/hook.mjs', APART/server.js]}",
            "{command: uv, args: [--directory, WS, run, server]}",
            "{command: uv, args: [--directory=WS, run, server]}",
            "{command: npm, args: [--prefix, WS, start]}",
            "{command: make, args: [-C, WS, serve]}",
            "{command: docker, args: [compose, -f, WS/compose.yaml, up]}",
            "{command: cargo, args: [run, --manifest-path, WS/Cargo.toml]}",
            "{command: sh, args: [WS/run]}",
            "{command: env, args: [WS/run]}",
            "{command: python3, args: [-m, server], env: {PYTHONPATH: 'APART:WS/src'}}",
            "{command: npx, args: [-y, some], cwd: APART, env: {NODE_PATH: WS}}",
            "{package: 'npm:some@1.0.0', args: [--plugin=WS/plugin.js]}",
        ] {
            let error = ground.start(server).prepare().expect_err(server).text();
            assert!(error.contains("cwd: ${workspace}") && error.contains("sandbox"), "{server}: {error}");
        }
    }

    #[test]
    fn code_that_options_wrappers_and_variables_name_is_refused() {
        let ground = Ground::new();
        for server in [
            "{command: npx, args: [-y, WS/pkg]}",
            "{command: npx, args: [-y, 'file:WS/pkg']}",
            "{command: npx, args: [-y, --package=WS/pkg, pkg]}",
            "{command: npx, args: [-p, WS/pkg, pkg]}",
            "{command: uvx, args: [--from, 'pkg @ file://WS/pkg', pkg]}",
            "{command: uvx, args: [--python, '3.13', 'WS/pkg[extra]']}",
            "{command: pipx, args: [run, --spec, WS/pkg, pkg]}",
            "{command: bun, args: [x, WS/pkg]}",
            "{command: dotnet, args: [run, --project, WS/Server]}",
            "{command: dotnet, args: [WS/x.dll]}",
            "{command: go, args: [run, WS/src/cmd]}",
            "{command: Rscript, args: [WS/x.R]}",
            "{command: mvn, args: [-f, WS/pom.xml]}",
            "{command: gradle, args: [-p, WS]}",
            "{command: perl, args: [-IWS, x]}",
            "{command: node, args: [--import, 'file:WS/hook.cjs']}",
            "{command: node, args: [--import, 'file://WS/%73rc/hook', APART/server.js]}",
            "{command: env, args: [python3, WS/noext]}",
            "{command: env, args: [-u, HOME, 'PYTHONPATH=WS', python3, -m, x]}",
            "{command: env, args: [-S, 'python3 -u', WS/noext]}",
            "{command: nice, args: [-n, '5', python3, WS/plain]}",
            "{command: timeout, args: [-s, KILL, '5', nohup, python3, WS/plain]}",
            "{command: uv, args: [run, python, WS/plain]}",
            "{command: python3, args: [-X, utf8, WS/plain]}",
            "{command: python3, args: [-W, ignore, WS/plain]}",
            "{command: sh, args: [-c, 'exec python3 WS/plain']}",
            "{command: npx, args: [x], env: {NODE_OPTIONS: '--require=WS/hook.cjs'}}",
            "{command: perl, args: [x], env: {PERL5OPT: '-IWS -MH'}}",
            "{command: ruby, args: [x], env: {RUBYOPT: '-rWS/hook'}}",
            "{command: java, args: [x], env: {JAVA_TOOL_OPTIONS: '-javaagent:WS/a.jar'}}",
            "{command: java, args: [x], env: {CLASSPATH: 'APART:WS'}}",
            "{command: dotnet, args: [x], env: {DOTNET_STARTUP_HOOKS: WS/hook}}",
            "{command: python3, args: [-m, x], cwd: APART, env: {PYTHONPATH: in/src}}",
        ] {
            let error = ground.start(server).prepare().expect_err(server).text();
            assert!(error.contains("cwd: ${workspace}") && error.contains("sandbox"), "{server}: {error}");
        }
    }

    #[test]
    fn what_is_no_code_starts() {
        let ground = Ground::new();
        for server in [
            "{command: npx, args: [-y, firebase-tools, WS]}",
            "{command: python3, args: [APART/server.py, WS/data.json, WS]}",
            "{command: python3, args: [-m, mcp_server_git, --repository, WS/src]}",
            "{command: node, args: [APART/server.js, WS/data]}",
            "{command: node, args: [--allow-fs-read=WS, APART/server.js]}",
            "{command: env, args: [A=WS, node, APART/server.js, WS/data]}",
            "{command: npx, args: [-y, x], env: {DATA_DIR: WS, DB: WS/x.db}}",
            "{command: npx, args: [-y, '@modelcontextprotocol/server-filesystem', WS]}",
            "{command: npx, args: [-y, firebase-tools, mcp, --dir, WS]}",
            "{command: uvx, args: [mcp-server-git, --repository, WS]}",
            "{command: python3, args: [-m, server, server.py]}",
            "{command: python3, args: [WS/server.py], cwd: WS}",
            "{command: ./run, cwd: WS}",
            "{command: python3, args: [WS/server.py], sandbox: {read: [WS]}}",
            "{command: /bin/sh, args: [-c, 'exec server']}",
        ] {
            ground.start(server).prepare().expect(server);
        }
    }

    #[test]
    fn what_tools_of_another_session_can_write_is_refused() {
        let ground = Ground::new();
        let server = "{command: python3, args: [APART/server.py]}";
        let start = ground.start(server);
        start.prepare().unwrap();
        TrustStore::open(&start.places.world).unwrap().remember_roots(&[ground.path("apart")]).unwrap();
        start.prepare().unwrap_err();
        ground.start("{command: python3, args: [APART/server.py], cwd: APART}").prepare().unwrap();
    }
}
