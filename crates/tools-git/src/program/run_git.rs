//! The only place that starts git: with the same safe settings and environment for every command.

use crate::git_config::{self, ConfigEntry, SafeConfig};
use crate::identity::Identity;
use crate::program::git_command::{GitCommand, RemoteAccess};
use crate::program::git_error;
use crate::program::git_output;
use crate::program::safe_arg::TrustedArg;
use crate::repo::{Repo, real_path};
use crate::safe_config_dir::{ConfigChange, SafeConfigDir};
use octo_toolkit::exec::{Captured, Exit, Job, Program};
use octo_toolkit::fs::Read;
use octo_toolkit::net::{EgressProxy, PortRelay};
use octo_toolkit::{CallContext, Exec, Fs, Kind, RootedPath, ToolError, WorkPath};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Settings of every run. They come last on the command line, so nothing overrides them.
pub const SAFE_SETTINGS: &[(&str, &str)] = &[
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("core.pager", "cat"),
    ("core.editor", "true"),
    ("init.defaultBranch", "main"),
    ("sequence.editor", "true"),
    ("core.askPass", "true"),
    ("core.attributesFile", "/dev/null"),
    ("core.excludesFile", "/dev/null"),
    ("core.quotePath", "false"),
    ("credential.helper", ""),
    ("http.sslVerify", "true"),
    ("http.followRedirects", "initial"),
    // Sends the proxy password with the first request, so that nothing is sent twice.
    ("http.proxyAuthMethod", "basic"),
    ("protocol.allow", "never"),
    ("gpg.program", "false"),
    ("gpg.openpgp.program", "false"),
    ("gpg.x509.program", "false"),
    ("gpg.ssh.program", "false"),
    ("commit.gpgSign", "false"),
    ("tag.gpgSign", "false"),
    ("push.gpgSign", "false"),
    ("log.showSignature", "false"),
    ("merge.verifySignatures", "false"),
    ("submodule.recurse", "false"),
    ("fetch.recurseSubmodules", "false"),
    ("push.recurseSubmodules", "no"),
    ("diff.ignoreSubmodules", "dirty"),
    ("diff.submodule", "short"),
    ("status.submoduleSummary", "false"),
    ("diff.external", ""),
    ("core.sshCommand", "false"),
    ("protocol.ext.allow", "never"),
    ("transfer.bundleURI", "false"),
    ("rebase.backend", "merge"),
    ("rebase.updateRefs", "false"),
    ("rerere.autoUpdate", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("init.templateDir", ""),
    // A mounted directory may have another owner; the repository's settings run nothing anyway.
    ("safe.directory", "*"),
];

const ENVIRONMENT: &[(&str, &str)] = &[
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    // Prevents implicit fetches of missing objects.
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_ASKPASS", "true"),
    ("SSH_ASKPASS", "true"),
    ("SSH_ASKPASS_REQUIRE", "never"),
    ("GIT_EDITOR", "true"),
    ("GIT_SEQUENCE_EDITOR", "true"),
    ("GIT_PAGER", "cat"),
    ("GIT_MERGE_AUTOEDIT", "no"),
    ("GIT_SSH_VARIANT", "ssh"),
    ("LC_ALL", "C.UTF-8"),
];

/// Maximum bytes of a file listing: half a million files.
pub const MAX_LISTING_BYTES: usize = 64 << 20;
/// Maximum number of nested repositories, and their depth.
const MAX_NESTED_REPOS: usize = 64;
const MAX_NESTING_DEPTH: usize = 3;

/// Route to another repository, see [`crate::remote_access`].
#[derive(Debug, Clone, Default)]
pub enum RemoteRoute {
    #[default]
    NoRemote,
    /// Another repository of the workspace, also with settings written by the hub.
    Workspace(Arc<SafeConfigDir>),
    /// Every request, including redirects, goes through a proxy of the hub.
    Web(Arc<EgressProxy>),
    Ssh {
        command: String,
        /// Directories outside the roots that `ssh` reads.
        readable: Vec<PathBuf>,
        /// Address that the command connects to, whatever host it is given.
        relay: Arc<PortRelay>,
    },
}

/// Address of proxies and relays.
pub const LOOPBACK: &str = "127.0.0.1";

impl RemoteRoute {
    fn environment(&self) -> Vec<(&'static str, String)> {
        let ssh = |command: &str| ("GIT_SSH_COMMAND", command.to_owned());
        match self {
            Self::NoRemote | Self::Workspace(_) => vec![ssh("false")],
            // These come before what git adds, and the first of two options wins.
            Self::Ssh { command, relay, .. } => {
                vec![ssh(&format!("{command} -o HostName={LOOPBACK} -o Port={}", relay.port()))]
            }
            // Not on the command line, which is readable by every user of the machine.
            Self::Web(gate) => vec![
                ssh("false"),
                ("GIT_CONFIG_COUNT", "1".to_owned()),
                ("GIT_CONFIG_KEY_0", "http.proxy".to_owned()),
                ("GIT_CONFIG_VALUE_0", gate.url()),
                ("NO_PROXY", String::new()),
                ("no_proxy", String::new()),
            ],
        }
    }

    fn protocols(&self) -> &'static str {
        match self {
            Self::NoRemote => "none",
            Self::Workspace(_) => "file",
            Self::Web(_) => "https:http",
            Self::Ssh { .. } => "ssh",
        }
    }

    fn readable(&self) -> Vec<PathBuf> {
        match self {
            Self::Ssh { readable, .. } => readable.clone(),
            Self::NoRemote | Self::Workspace(_) | Self::Web(_) => Vec::new(),
        }
    }

    fn shadow(&self) -> Option<&SafeConfigDir> {
        match self {
            Self::Workspace(shadow) => Some(shadow),
            Self::NoRemote | Self::Web(_) | Self::Ssh { .. } => None,
        }
    }
}

/// Output of a run.
#[derive(Debug)]
pub struct GitOutput {
    pub exit_code: i32,
    pub stdout: Vec<u8>,
    /// True if output exceeded the limit; `stdout` is then its beginning.
    pub truncated: bool,
    pub stderr: String,
}

impl GitOutput {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    pub fn trimmed(&self) -> String {
        self.text().trim_end().to_owned()
    }
}

/// A directory to run git in, with or without a repository.
pub struct WorkDir {
    pub exec: Exec,
    pub cx: CallContext,
    pub cwd: RootedPath,
    pub git_dir: Option<PathBuf>,
    pub work_tree: Option<PathBuf>,
    pub overrides: Vec<(String, String)>,
    /// Source of git's settings.
    pub config_dir: Option<Arc<SafeConfigDir>>,
}

impl WorkDir {
    pub fn new(exec: &Exec, cx: &CallContext, cwd: RootedPath) -> Self {
        let (exec, cx) = (exec.clone(), cx.clone());
        Self { exec, cx, cwd, git_dir: None, work_tree: None, overrides: Vec::new(), config_dir: None }
    }

    fn argv(&self, command: &GitCommand) -> Vec<OsString> {
        let mut argv: Vec<OsString> = vec!["git".into()];
        argv.push("--no-pager".into());
        if !command.literal_paths {
            argv.push("--literal-pathspecs".into());
        }
        if !command.writes {
            argv.push("--no-optional-locks".into());
        }
        for (key, value) in safe_settings(&self.overrides) {
            argv.extend(["-c".into(), format!("{key}={value}").into()]);
        }
        argv.extend(command.argv());
        argv
    }

    fn environment(&self, command: &GitCommand, route: &RemoteRoute) -> BTreeMap<String, String> {
        let mut env: BTreeMap<String, String> =
            ENVIRONMENT.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let mut set = |name: &str, value: String| env.insert(name.to_owned(), value);
        let protocols = match command.access {
            RemoteAccess::Nothing => "none",
            RemoteAccess::Local => "file",
            RemoteAccess::Network => route.protocols(),
        };
        set("GIT_ALLOW_PROTOCOL", protocols.to_owned());
        for (name, value) in route.environment() {
            set(name, value);
        }
        set("GIT_OPTIONAL_LOCKS", if command.writes { "1" } else { "0" }.to_owned());
        let lossy = |path: &PathBuf| path.to_string_lossy().into_owned();
        if let Some(parent) = self.cwd.root().path.parent() {
            set("GIT_CEILING_DIRECTORIES", parent.to_string_lossy().into_owned());
        }
        if let Some(git_dir) = &self.git_dir {
            set("GIT_DIR", lossy(git_dir));
        }
        if let Some(shadow) = &self.config_dir {
            set("GIT_COMMON_DIR", lossy(&shadow.path()));
        }
        // A command that accesses another repository has no work tree: nothing is checked out, and no filter runs.
        match &self.work_tree {
            Some(work_tree) if command.access == RemoteAccess::Nothing => {
                set("GIT_WORK_TREE", lossy(work_tree))
            }
            _ => set("GIT_IMPLICIT_WORK_TREE", "0".to_owned()),
        };
        env
    }

    /// Runs git and returns the output, whatever the exit code is.
    pub async fn run(&self, command: GitCommand, route: &RemoteRoute) -> Result<GitOutput, ToolError> {
        let writes = command.writes;
        let lists_work_trees = command.is_subcommand("worktree");
        let mut ran = self.once(command, route).await?;
        if let Some(shadow) = &self.config_dir {
            ran.stderr = shadow.restore_paths(&ran.stderr);
            if lists_work_trees {
                ran.stdout = shadow.restore_paths(&ran.text()).into_bytes();
            }
            if writes {
                self.hand_over(shadow).await?;
            }
        }
        Ok(ran)
    }

    /// Transfers what git has written in the hub's directory to the repository: remotes, upstreams, and the name of
    /// the branch if it was changed from another work tree.
    async fn hand_over(&self, shadow: &SafeConfigDir) -> Result<(), ToolError> {
        let changes = shadow.changes()?;
        let file = TrustedArg::new(shadow.common_dir().join("config").to_string_lossy());
        let config = |action: &'static str| GitCommand::write("config").set("--file", &file).flag(action);
        for change in changes.settings {
            match change {
                ConfigChange::RemoveSection(name) => {
                    let command = config("--remove-section").positional(&TrustedArg::new(name));
                    self.once(command, &RemoteRoute::NoRemote).await?;
                }
                ConfigChange::Replace { key, values } => {
                    let key = TrustedArg::new(key);
                    self.once(config("--unset-all").positional(&key), &RemoteRoute::NoRemote).await?;
                    for value in values {
                        let command = config("--add").positional(&key).positional(&TrustedArg::new(value));
                        let ran = self.once(command, &RemoteRoute::NoRemote).await?;
                        if ran.exit_code != 0 {
                            return Err(git_error::to_tool_error(&ran));
                        }
                    }
                }
            }
        }
        if let Some(branch) = changes.head {
            let main = Self {
                exec: self.exec.clone(),
                cx: self.cx.clone(),
                cwd: self.cwd.clone(),
                git_dir: Some(shadow.common_dir().to_owned()),
                work_tree: None,
                overrides: Vec::new(),
                config_dir: self.config_dir.clone(),
            };
            let command = GitCommand::write("symbolic-ref").flag("HEAD").positional(&TrustedArg::new(branch));
            main.once(command, &RemoteRoute::NoRemote).await?;
        }
        if changes.unshallowed {
            self.remove(&shadow.common_dir().join("shallow")).await?;
        }
        Ok(())
    }

    /// Removes a file that git has left behind.
    pub async fn remove(&self, path: &Path) -> Result<(), ToolError> {
        let argv = vec!["rm".into(), "-rf".into(), "--".into(), path.as_os_str().to_owned()];
        run_job(&self.exec, &self.cx, self.job(argv, BTreeMap::new())).await.map(drop)
    }

    /// A program that changes files of the repository.
    fn job(&self, argv: Vec<OsString>, env: BTreeMap<String, String>) -> Job {
        Job {
            program: Program::Argv(argv),
            cwd: self.cwd.clone(),
            env,
            stdin: None,
            timeout: self.cx.time_left(),
            max_output_bytes: 65_536,
            network: false,
            writes: true,
            readable: Vec::new(),
            writable: Vec::new(),
            on_output: None,
        }
    }

    async fn once(&self, command: GitCommand, route: &RemoteRoute) -> Result<GitOutput, ToolError> {
        let shadows = self.config_dir.as_deref().into_iter().chain(route.shadow());
        let job = Job {
            stdin: command.stdin.clone(),
            // Only the beginning is used, and half of what is retained is the end.
            max_output_bytes: command.max_output.saturating_mul(2),
            network: command.access == RemoteAccess::Network,
            writes: command.writes,
            readable: route.readable(),
            writable: shadows.map(|shadow| shadow.folder().to_owned()).collect(),
            ..self.job(self.argv(&command), self.environment(&command, route))
        };
        run_job(&self.exec, &self.cx, job).await
    }
}

/// Runs a prepared job until it ends or the call is cancelled.
pub async fn run_job(exec: &Exec, cx: &CallContext, job: Job) -> Result<GitOutput, ToolError> {
    cx.check()?;
    let done = cx.run(exec.run(job)).await??;
    let code = match done.exit {
        Exit::Code(code) => code,
        Exit::Signal(signal) => return Err(ToolError::internal(format!("git ended by signal {signal}"))),
        Exit::TimedOut => {
            return Err(ToolError::new(Kind::Timeout, "git timed out.")
                .hint("Narrow the request to fewer paths or commits."));
        }
    };
    let (out, cut) = beginning(done.stdout);
    let (err, _) = beginning(done.stderr);
    Ok(GitOutput {
        exit_code: code,
        stdout: out,
        truncated: cut,
        stderr: String::from_utf8_lossy(&err).into_owned(),
    })
}

/// A whole stream, or its beginning.
fn beginning(stream: Captured) -> (Vec<u8>, bool) {
    let Captured { mut head, tail, total, .. } = stream;
    let whole = head.len().saturating_add(tail.len());
    if u64::try_from(whole).is_ok_and(|kept| kept >= total) {
        head.extend(tail);
        return (head, false);
    }
    (head, true)
}

/// Arguments of `-c`: overrides of the repository's settings, then ours.
pub fn safe_settings(overrides: &[(String, String)]) -> impl Iterator<Item = (&str, &str)> {
    let ours = SAFE_SETTINGS.iter().copied();
    overrides.iter().map(|(key, value)| (key.as_str(), value.as_str())).chain(ours)
}

/// A repository that git can run in.
pub struct GitRepo {
    pub fs: Fs<Read>,
    pub repo: Repo,
    pub config: SafeConfig,
    work_dir: WorkDir,
}

impl GitRepo {
    /// Finds the repository and makes its settings safe.
    pub async fn open(
        fs: &Fs<Read>,
        exec: &Exec,
        cx: &CallContext,
        path: &WorkPath,
    ) -> Result<Self, ToolError> {
        let path = path.clone();
        let repo = fs.run(move |fs| Repo::find(fs, &path)).await?;
        let guard = git_config::safe_config(&repo.config);
        // core.worktree counts only if no work tree is given; with one, the repository is not bare.
        if repo.bare && repo.config.iter().any(|entry| entry.key == "core.worktree") {
            return Err(ToolError::denied("This repository has its work tree elsewhere.")
                .hint("Remove core.worktree from its config, or use the directory of its .git."));
        }
        let is_there = |name: &str| repo.common_entries.iter().any(|present| present == name);
        let mut settings = guard.entries.clone();
        settings.retain(|entry| {
            entry.key != "core.bare" && (is_there("rr-cache") || !entry.key.starts_with("rerere."))
        });
        settings.push(ConfigEntry { key: "core.bare".to_owned(), value: repo.bare.to_string() });
        let mut site = WorkDir::new(exec, cx, repo.top.clone());
        site.git_dir = Some(repo.git_dir.clone());
        site.work_tree = (!repo.bare).then(|| real_path(&repo.top));
        site.config_dir = Some(Arc::new(SafeConfigDir::new(exec, &repo.common_dir, settings, is_there)?));
        Ok(Self { fs: fs.clone(), repo, config: guard, work_dir: site })
    }

    /// Like [`Self::open`], for a call that changes something.
    pub async fn open_to_write(
        fs: &Fs<Read>,
        exec: &Exec,
        cx: &CallContext,
        path: &WorkPath,
        who: &Identity,
    ) -> Result<Self, ToolError> {
        let mut git = Self::open(fs, exec, cx, path).await?;
        git.repo.check_writable()?;
        git.work_dir.overrides.extend(who.settings(&git.config.entries));
        if !git.repo.bare {
            let inner = git.inner_overrides(0).await?;
            git.work_dir.overrides.extend(inner);
        }
        Ok(git)
    }

    pub fn exec(&self) -> &Exec {
        &self.work_dir.exec
    }

    /// The settings that git uses here.
    pub fn config_dir(&self) -> Option<Arc<SafeConfigDir>> {
        self.work_dir.config_dir.clone()
    }

    pub fn cx(&self) -> &CallContext {
        &self.work_dir.cx
    }

    /// A nested repository has its own settings, and git enters it when it stages or checks out. Our settings are
    /// passed on to it, so its overrides are among ours.
    async fn inner_overrides(&self, depth: usize) -> Result<Vec<(String, String)>, ToolError> {
        let listed = self
            .run(GitCommand::read("ls-files").flags(&["--stage", "-z"]).max_output(MAX_LISTING_BYTES))
            .await?;
        let inner = git_output::gitlinks(&listed.stdout);
        if listed.truncated || inner.len() > MAX_NESTED_REPOS {
            return Err(ToolError::denied("The repository is too large to search for nested repositories.")
                .hint("Only read access works here."));
        }
        let mut all = Vec::new();
        for path in inner {
            let place = self.repo.top.join(&path);
            let dot = place.join(".git");
            if !self.fs.run(move |fs| Ok(fs.link_stat(&dot).is_ok())).await? {
                continue;
            }
            let path = WorkPath::from(real_path(&place).to_string_lossy().as_ref());
            let other = Self::open(&self.fs, &self.work_dir.exec, &self.work_dir.cx, &path).await?;
            let settings = other.settings_by_git().await?;
            let by_branch = settings.iter().any(|entry| entry.key.starts_with("includeif.onbranch:"));
            if depth >= MAX_NESTING_DEPTH || by_branch {
                return Err(ToolError::denied("A nested repository cannot be made safe.")
                    .hint("Only read access works here."));
            }
            all.extend(Box::pin(other.inner_overrides(depth + 1)).await?);
            all.extend(git_config::overrides(&settings)?);
        }
        Ok(all)
    }

    /// All settings in the repository's own files, including includes: for a nested repository, which git enters with
    /// its own settings.
    async fn settings_by_git(&self) -> Result<Vec<ConfigEntry>, ToolError> {
        let mut site = WorkDir::new(&self.work_dir.exec, &self.work_dir.cx, self.work_dir.cwd.clone());
        site.git_dir = Some(self.repo.git_dir.clone());
        let list = GitCommand::read("config").flags(&["--list", "-z", "--includes"]);
        let listed = site.run(list, &RemoteRoute::NoRemote).await?;
        if listed.exit_code != 0 || listed.truncated {
            return Err(git_error::to_tool_error(&listed));
        }
        // GitSettings from our own command line come last and are not the repository's.
        let mut settings = git_config::parse_listing(&listed.stdout);
        settings.truncate(settings.len().saturating_sub(SAFE_SETTINGS.len()));
        Ok(settings)
    }

    /// Runs git and returns the output, whatever the exit code is.
    pub async fn try_run(&self, command: GitCommand) -> Result<GitOutput, ToolError> {
        self.work_dir.run(command, &RemoteRoute::NoRemote).await
    }

    pub async fn run_with_route(
        &self,
        command: GitCommand,
        route: &RemoteRoute,
    ) -> Result<GitOutput, ToolError> {
        self.work_dir.run(command, route).await
    }

    /// Runs git; a failure becomes an error with git's message.
    pub async fn run(&self, command: GitCommand) -> Result<GitOutput, ToolError> {
        let ran = self.try_run(command).await?;
        if ran.exit_code == 0 { Ok(ran) } else { Err(git_error::to_tool_error(&ran)) }
    }

    /// Last value of a setting.
    pub fn setting(&self, key: &str) -> Option<&str> {
        self.config.entries.iter().rev().find(|entry| entry.key == key).map(|entry| entry.value.as_str())
    }

    /// Whether there is no commit yet.
    pub async fn has_no_commits(&self) -> Result<bool, ToolError> {
        let command =
            GitCommand::read("rev-parse").without_end_of_options().flags(&["--quiet", "--verify", "HEAD"]);
        Ok(self.try_run(command).await?.exit_code != 0)
    }

    /// The branch that is checked out; `None` if HEAD is detached.
    pub async fn branch(&self) -> Result<Option<String>, ToolError> {
        let ran =
            self.try_run(GitCommand::read("symbolic-ref").flags(&["--quiet", "--short", "HEAD"])).await?;
        Ok((ran.exit_code == 0).then(|| ran.trimmed()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_settings_stand_after_the_repositorys() {
        let overrides = [("filter.x.clean".to_owned(), String::new())];
        let all: Vec<_> = safe_settings(&overrides).collect();
        assert_eq!(all.first(), Some(&("filter.x.clean", "")));
        assert_eq!(all.get(1), SAFE_SETTINGS.first());
        assert_eq!(all.len(), SAFE_SETTINGS.len() + 1);
    }
}
