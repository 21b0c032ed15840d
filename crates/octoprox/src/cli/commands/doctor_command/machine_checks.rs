//! The checks of `octoprox doctor`.

use crate::app_context::block_on_current_thread;
use crate::app_error::AppError;
use crate::cli::commands::doctor_command::{Finding, Verdict};
use crate::cli::commands::serve_command::local_address;
use crate::cli::commands::servers_command::standings;
use crate::clients::{Registration, client_configs, register};
use crate::process::local_programs::{first_line, first_line_with};
use crate::settings::{
    Environment, LoadedSettings, Settings, WORKSPACE_REMEDY, WorkspaceChoice, listen_address,
};
use crate::stores::local_stores;
use crate::toolboxes;
use Verdict::{Fail, Warn};
use octo_grants::exec::SandboxChoice;
use octo_grants::{SearchPath, highest_descriptor_limit};
use octo_ports::HealthCheck;
use octo_upstream::ServerStatus;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

/// Timeout of the database integrity check.
const DATABASE_TIMEOUT: Duration = Duration::from_secs(10);
/// Enough for a few thousand connections.
const MIN_OPEN_FILES: u64 = 4_096;
const BROWSERS: [&str; 5] =
    ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome"];

/// Runs the checks that do not depend on servers.
pub fn machine_checks(
    settings: &Settings,
    choice: &WorkspaceChoice,
    world: &Environment,
) -> Result<Vec<Finding>, AppError> {
    let health = local_stores(settings)?.health;
    let (state_folder, database) = block_on_current_thread(async {
        Ok((state_folder(settings, &*health).await, database(&*health).await))
    })?;
    let found = [
        workspace(settings, choice),
        git(settings, world),
        chromium(settings, world),
        bubblewrap(settings, world),
        state_folder,
        port("port", "listen", &settings.listen.host, settings.listen.port),
        open_files(),
    ];
    let admin = settings
        .admin
        .enabled
        .then(|| port("admin port", "admin", &settings.admin.host, settings.admin.port));
    let rest = database.into_iter().chain(admin).chain(user()).chain(clients(world));
    Ok(found.into_iter().chain(rest).collect())
}

/// How many connections a hub that is started here can have.
fn open_files() -> Finding {
    let limit = highest_descriptor_limit();
    let message = match limit {
        u64::MAX => "a hub may open any number of files and connections".to_owned(),
        limit => format!("a hub may open {limit} files and connections"),
    };
    if limit >= MIN_OPEN_FILES {
        return Finding::ok("files", message);
    }
    let next = "Raise the limit for a hub with many clients: LimitNOFILE= of a systemd unit, --ulimit nofile of a container, or `ulimit -Hn`.";
    Finding::problem(Warn, "files", message, next)
}

fn workspace(settings: &Settings, choice: &WorkspaceChoice) -> Finding {
    let reason = choice.reason();
    let Some(folder) = settings.workspace.as_deref() else {
        return Finding::problem(Warn, "workspace", format!("no workspace; {reason}"), WORKSPACE_REMEDY);
    };
    let shown = folder.display();
    match (folder.is_dir(), is_writable(folder), settings.files.read_only) {
        (false, ..) => Finding::problem(
            Fail,
            "workspace",
            format!("directory not found: {shown}"),
            "Create it, or set `workspace` to another directory.",
        ),
        (true, true, false) => {
            Finding::ok("workspace", format!("{shown} is readable and writable; {reason}"))
        }
        (true, _, true) => {
            Finding::ok("workspace", format!("{shown} is readable; files.read_only is set; {reason}"))
        }
        (true, false, false) => Finding::problem(
            Warn,
            "workspace",
            format!("{shown} is not writable; {reason}"),
            "Change its permissions, or set `files: {read_only: true}`.",
        ),
    }
}

fn git(settings: &Settings, world: &Environment) -> Finding {
    let found = search_path(settings, world).find("git");
    let version = found.as_deref().and_then(|program| first_line(program, &["--version"]));
    match (version, settings.toolboxes.git) {
        (Some(version), _) => Finding::ok("git", version),
        (None, true) => {
            let next = "Install git, or set `toolboxes: {git: false}`.";
            Finding::problem(Warn, "git", "git is not in PATH; the git_* tools need it", next)
        }
        (None, false) => Finding::ok("git", "not found; only the git toolbox, which is off, needs it"),
    }
}

fn chromium(settings: &Settings, world: &Environment) -> Finding {
    let path = search_path(settings, world);
    let found = BROWSERS.iter().find_map(|name| path.find(name));
    match (found, settings.toolboxes.browser) {
        (Some(program), _) => Finding::ok("chromium", program.display().to_string()),
        (None, true) => {
            let next = "Install chromium, or set `toolboxes: {browser: false}`.";
            Finding::problem(Fail, "chromium", "Chromium is not in PATH; the browser_* tools need it", next)
        }
        (None, false) => {
            Finding::ok("chromium", "not found; only the browser toolbox, which is off, needs it")
        }
    }
}

/// Search path of the hub, without directories that tools can write.
fn search_path(settings: &Settings, world: &Environment) -> SearchPath {
    toolboxes::search_path(settings, world.variable("PATH").unwrap_or_default().into())
}

/// Checks whether bubblewrap can create a sandbox.
fn bubblewrap(settings: &Settings, world: &Environment) -> Finding {
    const NAME: &str = "bubblewrap";
    if settings.shell.sandbox == SandboxChoice::None {
        let message = "shell.sandbox is `none`: commands run with all your permissions";
        return Finding::problem(
            Warn,
            NAME,
            message,
            "Set `shell: {sandbox: auto}` unless this is intended.",
        );
    }
    let found = search_path(settings, world).find("bwrap");
    let needed = settings.shell.sandbox == SandboxChoice::Bubblewrap;
    let state = if needed { Fail } else { Warn };
    let landlock = format!("Landlock is used if available{}", unscoped_signals());
    match found {
        Some(program) if bwrap_works(&program, "--ro-bind-fd", "0") => {
            Finding::ok(NAME, format!("{} works", program.display()))
        }
        Some(program) if bwrap_works(&program, "--ro-bind", "/") => Finding::problem(
            state,
            NAME,
            format!("{} is too old: it has no --ro-bind-fd; {landlock}", program.display()),
            "Install bubblewrap 0.10 or later, or a distribution's version that has the option.",
        ),
        Some(program) => Finding::problem(
            state,
            NAME,
            format!("{} cannot create a sandbox; {landlock}", program.display()),
            "Allow unprivileged user namespaces (sysctl kernel.unprivileged_userns_clone=1). In a container, see docs/guide/deployment.md.",
        ),
        None => Finding::problem(
            state,
            NAME,
            format!("bwrap not found in a directory that tools cannot write; {landlock}"),
            "Install bubblewrap for a stronger sandbox.",
        ),
    }
}

/// Starts bubblewrap with the root directory, passed as an argument or as standard input. Mounts `/proc`, as every
/// sandbox does: a container may allow namespaces and still forbid that.
fn bwrap_works(program: &Path, option: &str, source: &str) -> bool {
    let args = [
        option,
        source,
        "/",
        "--dev",
        "/dev",
        "--proc",
        "/proc",
        "--unshare-all",
        "--die-with-parent",
        "/bin/echo",
        "ok",
    ];
    let root = std::fs::File::open("/").map(Stdio::from);
    root.is_ok_and(|root| first_line_with(program, &args, root).is_some_and(|said| said == "ok"))
}

/// Describes what Landlock cannot do on this kernel.
fn unscoped_signals() -> &'static str {
    match octo_grants::exec::landlock_scopes_signals() {
        true => "",
        false => {
            ", but before Linux 6.12 it does not stop commands from sending signals to all your processes"
        }
    }
}

/// Warns if the hub runs as root.
fn user() -> Option<Finding> {
    octo_grants::exec::is_root().then(|| {
        Finding::problem(
            Warn,
            "user",
            "the hub runs as root; programs run as an unprivileged user, or not at all if the file system does not support that",
            "Run the hub as a regular user.",
        )
    })
}

/// Checks the state directory: audit log, results, credentials.
async fn state_folder(settings: &Settings, health: &dyn HealthCheck) -> Finding {
    const NAME: &str = "data";
    let Some(folder) = settings.state_dir.as_deref() else {
        return Finding::problem(
            Fail,
            NAME,
            "no home directory for the state directory",
            "Set OCTOPROX_STATE_DIR.",
        );
    };
    let shown = folder.display();
    let mode = folder.metadata().map(|about| about.permissions().mode() & 0o777);
    match mode {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let above = folder.ancestors().find(|above| above.is_dir());
            match above.is_some_and(can_create_dir) {
                true => Finding::ok(NAME, format!("{shown} will be created when it is needed")),
                false => Finding::problem(
                    Fail,
                    NAME,
                    format!("{shown} cannot be created"),
                    "Change the permissions of its parent directory, or set `state_dir`.",
                ),
            }
        }
        Err(error) => Finding::problem(Fail, NAME, format!("{shown}: {error}"), "Change its permissions."),
        Ok(_) if !is_own(folder) => Finding::problem(
            Fail,
            NAME,
            format!("{shown} belongs to another user"),
            "Run this as its owner (`--system` for the system service), or set `state_dir` to a directory of yours.",
        ),
        Ok(_) if !is_writable(folder) => Finding::problem(
            Fail,
            NAME,
            format!("{shown} is not writable"),
            "Change its owner, or set `state_dir`.",
        ),
        Ok(mode) if mode & 0o077 != 0 => Finding::problem(
            Warn,
            NAME,
            format!("{shown} is accessible to other users (mode {mode:o})"),
            format!("chmod 700 {shown}"),
        ),
        Ok(_) => match health.check_space().await {
            Ok(free) => {
                let free = free.map(|free| format!("; {} MiB free", free >> 20)).unwrap_or_default();
                Finding::ok(NAME, format!("{shown} is private{free}"))
            }
            Err(problem) => {
                Finding::problem(Fail, NAME, format!("{shown}: {}", problem.reason), problem.hint)
            }
        },
    }
}

/// Returns whether a directory can be created in `above`. Tries it: some file systems report permissions that do not
/// hold.
fn can_create_dir(above: &Path) -> bool {
    let tried = above.join(format!(".octoprox-doctor-{}", std::process::id()));
    let made = std::fs::create_dir(&tried).is_ok();
    let _ = std::fs::remove_dir(&tried);
    made
}

/// Checks the integrity of the database.
async fn database(health: &dyn HealthCheck) -> Option<Finding> {
    const NAME: &str = "database";
    match health.check_integrity(DATABASE_TIMEOUT).await {
        Ok(true) => Some(Finding::ok(NAME, "no corruption found")),
        Ok(false) => None,
        Err(problem) => Some(Finding::problem(Fail, NAME, problem.reason, problem.hint)),
    }
}

fn is_own(folder: &Path) -> bool {
    folder.metadata().is_ok_and(|about| about.uid() == rustix::process::geteuid().as_raw())
}

fn port(name: &str, section: &str, host: &str, port: u16) -> Finding {
    let Some(address) = listen_address(host) else {
        return Finding::problem(
            Fail,
            name,
            format!("`{host}` is not an address"),
            format!("Fix {section}.host."),
        );
    };
    match TcpListener::bind((address, port)) {
        Ok(_) => Finding::ok(name, format!("{port} on {address} is free")),
        Err(error) if error.kind() == ErrorKind::AddrInUse => Finding::problem(
            Warn,
            name,
            format!("{port} on {address} is in use, possibly by octoprox itself"),
            format!(
                "Open http://{}/health to check, or set another {section}.port. Clients that start octoprox themselves need no port.",
                local_address(SocketAddr::new(address, port))
            ),
        ),
        Err(error) => {
            let next = format!("Set {section}.host and {section}.port.");
            Finding::problem(Warn, name, format!("{port} on {address} cannot be used: {error}"), next)
        }
    }
}

/// Checks which clients have octoprox registered.
fn clients(world: &Environment) -> Vec<Finding> {
    let mut findings = Vec::new();
    for place in client_configs(world).iter().filter(|place| place.is_in_use()) {
        let title = place.client.title;
        let known = place
            .read(&world.current_dir)
            .and_then(|reading| register(place, reading.as_ref(), "octoprox", (&[], true)));
        findings.push(match known {
            Ok(Registration::AlreadyRegistered(name) | Registration::OtherHub(name)) => {
                Finding::ok("client", format!("{title} starts octoprox as `{name}`"))
            }
            Ok(Registration::NewText(_)) => Finding::problem(
                Warn,
                "client",
                format!("octoprox is not registered with {title}"),
                "octoprox init",
            ),
            Err(why) => {
                let message = format!("{title}: {}: {why}", place.path.display());
                Finding::problem(Warn, "client", message, "Fix that file.")
            }
        });
    }
    findings
}

/// Checks every configured server without starting it.
pub fn server_checks(loaded: &LoadedSettings, world: &Environment) -> Vec<Finding> {
    let finding = |line: crate::cli::commands::servers_command::ServerLine| {
        let name = "server".to_owned();
        let start_note = line.start_note();
        match line.status {
            ServerStatus::Off(_) => Finding::ok(name, format!("{} is disabled", line.name)),
            ServerStatus::Waiting(why) => {
                let message =
                    format!("{} is skipped: a variable or secret that it needs is not set", line.name);
                Finding::problem(Warn, name, message, sentence(&why))
            }
            ServerStatus::Missing(why) => {
                Finding::problem(Fail, name, format!("{} cannot be started", line.name), sentence(&why))
            }
            ServerStatus::Down(why) => {
                Finding::problem(Fail, name, format!("{} is refused", line.name), sentence(&why))
            }
            ServerStatus::Ready if start_note.is_some() => {
                let message = format!("{} {}", line.name, start_note.unwrap_or_default());
                let next = "Leave out `cwd`, unless this is intended.";
                Finding::problem(Warn, name, message, next)
            }
            // Logins have their own findings.
            _ => Finding::ok(name, format!("{}: {}", line.name, line.target)),
        }
    };
    standings(loaded, world).into_iter().map(finding).collect()
}

fn sentence(text: &str) -> String {
    let mut letters = text.trim_end_matches('.').chars();
    let first = letters.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", letters.as_str())
}

fn is_writable(folder: &Path) -> bool {
    rustix::fs::access(folder, rustix::fs::Access::WRITE_OK).is_ok()
}
