//! Where the program of a server starts, and whether tools could have planted what it runs.
//!
//! Programs read settings and code from their directory, and from those above it: `npx` reads `.npmrc`, `python -m` imports
//! modules. A workspace belongs to whoever wrote the repository, and tools write to it. So a server starts in a directory of
//! the hub, unless its settings name another one.

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

/// File names and extensions of what programs execute.
const SCRIPT_EXTENSIONS: [&str; 26] = [
    "bash", "bat", "cjs", "cts", "exe", "fish", "jar", "js", "jsx", "lua", "mjs", "mts", "phar", "php", "pl",
    "ps1", "py", "pyc", "pyz", "rb", "sh", "so", "ts", "tsx", "wasm", "zsh",
];
const BUILD_FILES: [&str; 15] = [
    "Cargo.toml",
    "Dockerfile",
    "GNUmakefile",
    "Justfile",
    "Makefile",
    "compose.yaml",
    "compose.yml",
    "deno.json",
    "deno.jsonc",
    "docker-compose.yaml",
    "docker-compose.yml",
    "justfile",
    "makefile",
    "package.json",
    "pyproject.toml",
];
/// Programs that run their first argument, whatever its name, also if it is a directory.
const INTERPRETERS: [&str; 13] =
    ["bash", "bun", "deno", "lua", "node", "nodejs", "perl", "php", "pypy", "python", "ruby", "sh", "tsx"];
/// Options that name a directory from which the program takes what it runs.
const PROJECT_OPTIONS: [(&str, &[&str]); 12] = [
    ("bun", &["--cwd"]),
    ("bunx", &["--cwd"]),
    ("cargo", &["-C"]),
    ("go", &["-C"]),
    ("make", &["-C", "--directory"]),
    ("npm", &["-C", "--prefix"]),
    ("npx", &["-C", "--prefix"]),
    ("pnpm", &["-C", "--dir"]),
    ("poetry", &["-C", "--directory", "-P", "--project"]),
    ("uv", &["--directory", "--project", "--with-editable", "--from"]),
    ("uvx", &["--directory", "--project", "--with-editable", "--from"]),
    ("yarn", &["--cwd"]),
];
/// Variables that name directories or files from which a program takes code.
const CODE_VARIABLES: [&str; 8] = [
    "BASH_ENV",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "NODE_PATH",
    "PERL5LIB",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "RUBYLIB",
];

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
        let variable = |name: &&'static str| Some((*name, Secret::new(server.env.get(*name)?.expose())));
        ServerStart {
            name: name.to_owned(),
            dir,
            sandbox: server.sandbox.clone(),
            program: server.command.clone().filter(|_| server.package.is_none()),
            args: server.args.clone(),
            code_paths: CODE_VARIABLES.iter().filter_map(variable).collect(),
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
    /// Values of [`CODE_VARIABLES`].
    code_paths: Vec<(&'static str, Secret)>,
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
        let mut named = self.named_code().into_iter().map(|path| from.join(path));
        named.find(|path| self.places.is_planted(path, &self.places.writable))
    }

    /// Paths of what the program executes, as far as its command line and environment tell.
    fn named_code(&self) -> Vec<PathBuf> {
        let program = self.program.as_deref().unwrap_or_default();
        // Other programs are looked up in directories that no tool can write.
        let mut named: Vec<PathBuf> =
            Some(program).filter(|program| program.contains('/')).map(PathBuf::from).into_iter().collect();
        let base = Path::new(program).file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let plain = base.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        let options =
            PROJECT_OPTIONS.iter().find(|(program, _)| *program == plain).map(|(_, options)| *options);
        let mut runs_next = INTERPRETERS.contains(&plain);
        let mut is_project = false;
        for arg in &self.args {
            let (option, value) = match arg.split_once('=').filter(|_| arg.starts_with('-')) {
                Some((option, value)) => (option, value),
                None => (arg.as_str(), arg.as_str()),
            };
            let value = value.strip_prefix("file://").unwrap_or(value);
            let is_option = arg.starts_with('-');
            let names_project = options.is_some_and(|options| options.contains(&option));
            if is_script(Path::new(value))
                || is_project
                || (runs_next && !is_option)
                || (names_project && value != option)
            {
                named.push(PathBuf::from(value));
            }
            is_project = names_project && value == option;
            runs_next = runs_next && is_option;
        }
        for (_, value) in &self.code_paths {
            named.extend(std::env::split_paths(value.expose()).filter(|path| path.is_absolute()));
        }
        named
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

/// Whether a file is one that programs execute, by its name or its first bytes.
fn is_script(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    SCRIPT_EXTENSIONS.contains(&extension.to_ascii_lowercase().as_str())
        || BUILD_FILES.contains(&name)
        || (path.is_absolute() && has_interpreter(path))
}

fn has_interpreter(path: &Path) -> bool {
    let mut start = [0; 2];
    // A pipe would block.
    path.is_file()
        && std::fs::File::open(path)
            .and_then(|mut file| std::io::Read::read_exact(&mut file, &mut start))
            .is_ok_and(|()| &start == b"#!")
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
        for server in [
            "{command: python3, args: [APART/server.py, WS/data.json, WS]}",
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
