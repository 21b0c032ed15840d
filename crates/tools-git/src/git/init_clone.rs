//! New repositories: init and clone. The new directory is beneath a root and not reached through a link.

use super::{GitCall, Output, command_builder};
use crate::program::git_command::GitCommand;
use crate::program::run_git::{GitOutput, GitRepo, RemoteRoute, WorkDir};
use crate::program::safe_arg::{SafeArg, TrustedArg};
use crate::remote_access::{RemoteConnection, RemoteResolver};
use crate::repo::{normalize, real_path};
use crate::subcommands::ParsedCommand;
use octo_toolkit::fs::{EntryKind, Read};
use octo_toolkit::{Fs, Kind, RootedPath, ToolError, WorkPath};

impl GitCall<'_> {
    pub(super) async fn init(&self, asked: &ParsedCommand, path: &WorkPath) -> Result<Output, ToolError> {
        let dir = match asked.positionals.as_slice() {
            [] => ".".to_owned(),
            [dir] => dir.clone(),
            _ => return Err(ToolError::invalid("init accepts one directory.")),
        };
        let (cwd, target) = self.target(path, dir, |_| Ok(())).await?;
        let command = command_builder::start(asked).positional(&target);
        let site = self.work_dir(cwd);
        Ok(self.to_output(site.run(command.max_output(self.keep), &RemoteRoute::NoRemote).await?))
    }

    pub(super) async fn clone_into(
        &self,
        asked: &ParsedCommand,
        path: &WorkPath,
    ) -> Result<Output, ToolError> {
        let (address, dir) = match asked.positionals.as_slice() {
            [address] => (address, folder_of(address, asked.has(&["--bare", "--mirror"]))?),
            [address, dir] => (address, dir.clone()),
            _ => return Err(ToolError::invalid("clone accepts an address and, optionally, a directory.")),
        };
        let (cwd, target) = self.target(path, dir, must_be_visible).await?;
        self.must_be_empty(&target).await?;
        let asker = RemoteResolver {
            fs: self.fs,
            exec: self.exec,
            ssh: self.ssh,
            net: self.net,
            cx: self.cx,
            base: cwd.clone(),
        };
        let way = asker.to_address(address).await?;
        let mut site = self.work_dir(cwd.clone());
        // Not the repository that may contain this directory.
        site.git_dir = Some("/dev/null".into());
        self.cx.progress(1, None, "cloning");
        let ask = GitCommand::read("ls-remote").flag("--symref").set("--upload-pack", &way.upload_pack);
        let shown = site.run(ask.positional(&way.address).with_access(way.access), &way.route).await?;
        if shown.exit_code != 0 {
            return Ok(self.to_output(shown));
        }
        let clone =
            CloneOperation { parsed: asked, remote: &way, remote_refs: RemoteRefs::new(&shown.text()) };
        let made = clone.prepare(&site, &target).await?;
        if made.exit_code != 0 {
            return Ok(self.to_output(made));
        }
        let git = self.open_to_write(&WorkPath::from(target.as_str())).await?;
        let fetched = git.run_with_route(clone.fetch()?, &way.route).await?;
        if fetched.exit_code != 0 {
            site.remove(&git.repo.git_dir).await?;
            return Ok(self.to_output(fetched));
        }
        // Opened again, and without network access from here on.
        let git = self.open_to_write(&WorkPath::from(target.as_str())).await?;
        let mut last = clone.check_out(&git).await?;
        last.stderr = fetched.stderr + &last.stderr;
        Ok(self.to_output(last))
    }

    fn work_dir(&self, cwd: RootedPath) -> WorkDir {
        let mut site = WorkDir::new(self.exec, self.cx, cwd);
        site.overrides = self.settings.identity().without_repository();
        site
    }

    async fn must_be_empty(&self, target: &TrustedArg) -> Result<(), ToolError> {
        let path = WorkPath::from(target.as_str());
        let entries = self.fs.run(move |fs| fs.open_folder(&fs.place(&path)?)?.entries()).await;
        match entries {
            Ok(entries) if !entries.is_empty() => {
                Err(ToolError::new(Kind::Conflict, "The directory to clone into is not empty.")
                    .hint("Use another directory."))
            }
            Ok(_) => Ok(()),
            Err(error) if error.kind == Kind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Working directory and the real path of the directory to create.
    async fn target(
        &self,
        path: &WorkPath,
        dir: String,
        check: fn(&RootedPath) -> Result<(), ToolError>,
    ) -> Result<(RootedPath, TrustedArg), ToolError> {
        let path = path.clone();
        self.fs
            .run(move |fs| {
                let cwd = fs.open_folder(&fs.place(&path)?)?.real;
                let target = free(fs, &cwd, &dir)?;
                check(&target)?;
                if !target.root().writable {
                    return Err(ToolError::denied("This directory is in a read-only root."));
                }
                Ok((cwd, TrustedArg::new(real_path(&target).to_string_lossy())))
            })
            .await
    }
}

/// Refs of another repository.
#[derive(Debug, Default, PartialEq, Eq)]
struct RemoteRefs {
    /// The branch that is checked out there.
    branch: Option<String>,
    refs: Vec<String>,
    sha256: bool,
}

impl RemoteRefs {
    /// Output of `git ls-remote --symref`.
    fn new(text: &str) -> Self {
        let mut shown = Self::default();
        for (id, name) in text.lines().filter_map(|line| line.split_once('\t')) {
            match id.strip_prefix("ref: refs/heads/") {
                Some(branch) if name == "HEAD" => shown.branch = Some(branch.to_owned()),
                _ => {
                    shown.sha256 |= id.len() == 64;
                    shown.refs.push(name.to_owned());
                }
            }
        }
        shown
    }

    fn has(&self, name: &str) -> bool {
        self.refs.iter().any(|known| known == name)
    }
}

/// A clone in separate steps: a new repository, a fetch with network access and without a work tree, a checkout with
/// the work tree and without network access.
struct CloneOperation<'a> {
    parsed: &'a ParsedCommand,
    remote: &'a RemoteConnection,
    remote_refs: RemoteRefs,
}

impl CloneOperation<'_> {
    fn is_bare(&self) -> bool {
        self.parsed.has(&["--bare", "--mirror"])
    }

    /// The requested branch or tag, or else the one that is checked out there.
    fn wanted_ref(&self) -> Option<&str> {
        let given = self
            .parsed
            .options
            .iter()
            .find_map(|option| option.strip_prefix("--branch=").or_else(|| option.strip_prefix("-b")));
        given.or(self.remote_refs.branch.as_deref())
    }

    fn single(&self) -> bool {
        let asked = self.parsed;
        let depth = asked.has(&["--depth"]) && !asked.has(&["--no-single-branch"]);
        !asked.has(&["--mirror"]) && (asked.has(&["--single-branch"]) || depth)
    }

    fn refspec(&self) -> String {
        let to = if self.is_bare() { "refs/heads" } else { "refs/remotes/origin" };
        match self.wanted_ref().filter(|_| self.single()) {
            _ if self.parsed.has(&["--mirror"]) => "+refs/*:refs/*".to_owned(),
            Some(tag) if self.remote_refs.has(&format!("refs/tags/{tag}")) => {
                format!("+refs/tags/{tag}:refs/tags/{tag}")
            }
            Some(branch) => format!("+refs/heads/{branch}:{to}/{branch}"),
            None => format!("+refs/heads/*:{to}/*"),
        }
    }

    async fn prepare(&self, site: &WorkDir, target: &TrustedArg) -> Result<GitOutput, ToolError> {
        let mut init = GitCommand::write("init").flags(&["--quiet", "--template="]);
        if self.is_bare() {
            init = init.flag("--bare");
        }
        if self.remote_refs.sha256 {
            init = init.flag("--object-format=sha256");
        }
        let fresh = WorkDir::new(&site.exec, &site.cx, site.cwd.clone());
        let made = fresh.run(init.positional(target), &RemoteRoute::NoRemote).await?;
        if made.exit_code != 0 {
            return Ok(made);
        }
        let inside = if self.is_bare() { "config" } else { ".git/config" };
        let file = TrustedArg::new(format!("{}/{inside}", target.as_str()));
        let mut settings = vec![("remote.origin.url", self.remote.address.as_str().to_owned())];
        if !self.is_bare() || self.parsed.has(&["--mirror"]) {
            settings.push(("remote.origin.fetch", self.refspec()));
        }
        if self.parsed.has(&["--mirror"]) {
            settings.push(("remote.origin.mirror", "true".to_owned()));
        }
        if self.parsed.has(&["--no-tags"]) {
            settings.push(("remote.origin.tagOpt", "--no-tags".to_owned()));
        }
        for (key, value) in settings {
            let command = GitCommand::write("config").set("--file", &file).flag("--add");
            let ran = site
                .run(
                    command.positional(&TrustedArg::new(key)).positional(&TrustedArg::new(value)),
                    &RemoteRoute::NoRemote,
                )
                .await?;
            if ran.exit_code != 0 {
                return Ok(ran);
            }
        }
        Ok(made)
    }

    fn fetch(&self) -> Result<GitCommand, ToolError> {
        let flags = ["--no-recurse-submodules", "--no-auto-maintenance", "--update-head-ok"];
        let mut command =
            GitCommand::write("fetch").flags(&flags).set("--upload-pack", &self.remote.upload_pack);
        command = match (self.parsed.has(&["--no-tags"]), self.single()) {
            (true, _) => command.flag("--no-tags"),
            (false, true) => command,
            (false, false) => command.flag("--tags"),
        };
        for option in self.parsed.options.iter().filter(|o| o.starts_with("--depth=") || *o == "-q") {
            command = command.checked_option(&TrustedArg::new(option.as_str()));
        }
        let command =
            command.positional(&TrustedArg::new("origin")).positional(&TrustedArg::new(self.refspec()));
        Ok(command.with_access(self.remote.access))
    }

    async fn check_out(&self, git: &GitRepo) -> Result<GitOutput, ToolError> {
        let point = |name: &str, to: String| {
            GitCommand::write("symbolic-ref")
                .positional(&TrustedArg::new(name))
                .positional(&TrustedArg::new(to))
        };
        let empty = "warning: You appear to have cloned an empty repository.\n";
        let Some(wanted) = self.wanted_ref().filter(|_| !self.remote_refs.refs.is_empty()) else {
            let head = GitCommand::write("checkout").flags(&["--quiet", "--detach", "FETCH_HEAD"]);
            return match self.remote_refs.refs.is_empty() {
                true => Ok(GitOutput {
                    exit_code: 0,
                    stdout: Vec::new(),
                    truncated: false,
                    stderr: empty.to_owned(),
                }),
                false => git.try_run(head).await,
            };
        };
        let is_branch = self.remote_refs.has(&format!("refs/heads/{wanted}"));
        if self.is_bare() {
            return git.try_run(point("HEAD", format!("refs/heads/{wanted}"))).await;
        }
        if !is_branch {
            let tag = TrustedArg::new(format!("refs/tags/{wanted}"));
            return git
                .try_run(GitCommand::write("checkout").flags(&["--quiet", "--detach"]).positional(&tag))
                .await;
        }
        if self.remote_refs.branch.as_deref() == Some(wanted) {
            git.run(point("refs/remotes/origin/HEAD", format!("refs/remotes/origin/{wanted}"))).await?;
        }
        git.run(point("HEAD", format!("refs/heads/{wanted}"))).await?;
        let from = TrustedArg::new(format!("refs/remotes/origin/{wanted}"));
        let branch = GitCommand::write("branch").flags(&["--quiet", "--force", "--track"]);
        let made = git.try_run(branch.positional(&TrustedArg::new(wanted)).positional(&from)).await?;
        if made.exit_code != 0 || self.parsed.has(&["-n", "--no-checkout"]) {
            return Ok(made);
        }
        git.try_run(GitCommand::write("reset").flags(&["--quiet", "--hard"])).await
    }
}

/// Files of a commit are not checked one by one, and where they are decides what reads them: in `.github`, the file
/// `workflows/x.yml` is a program.
fn must_be_visible(target: &RootedPath) -> Result<(), ToolError> {
    let name = target.relative().file_name().unwrap_or_default();
    if name.as_encoded_bytes().starts_with(b".") {
        return Err(ToolError::denied("A repository is not cloned into a hidden directory.").hint(
            "Name another directory: editors, agents and CI run files of directories such as `.github`.",
        ));
    }
    Ok(())
}

/// A directory without a repository, and without links in its path.
fn free(fs: &Fs<Read>, cwd: &RootedPath, dir: &str) -> Result<RootedPath, ToolError> {
    let stray = || ToolError::denied("A repository must be beneath a root.").hint("Use a plain directory.");
    if dir.is_empty() || dir.starts_with('-') || dir.chars().any(char::is_control) {
        return Err(stray());
    }
    let whole = if dir.starts_with('/') {
        fs.place(&WorkPath::from(dir))?
    } else {
        let inside = normalize(&cwd.relative().join(dir)).ok_or_else(stray)?;
        fs.place(&WorkPath::from(cwd.root().path.join(inside).to_string_lossy().as_ref()))?
    };
    let inside = normalize(whole.relative()).ok_or_else(stray)?;
    if inside.components().any(|part| part.as_os_str().eq_ignore_ascii_case(".git")) {
        return Err(ToolError::denied("A repository cannot be created inside .git."));
    }
    let root = whole.root().path.clone();
    let at = |rest: &std::path::Path| fs.place(&WorkPath::from(root.join(rest).to_string_lossy().as_ref()));
    let mut way = std::path::PathBuf::new();
    for part in inside.components() {
        way.push(part);
        match fs.link_stat(&at(&way)?) {
            Ok(stat) if stat.kind != EntryKind::Folder => return Err(stray()),
            Ok(_) => {}
            Err(error) if error.kind == Kind::NotFound => break,
            Err(error) => return Err(error),
        }
    }
    let target = at(&inside)?;
    fs.check_changeable(&target)?;
    for mark in [".git", "HEAD"] {
        if fs.link_stat(&target.join(mark)).is_ok() {
            return Err(ToolError::new(Kind::Conflict, "This directory already contains a repository.")
                .hint("Use it, or choose another directory."));
        }
    }
    Ok(target)
}

/// The directory that git would choose.
fn folder_of(address: &str, bare: bool) -> Result<String, ToolError> {
    let path = address.trim_end_matches('/').trim_end_matches("/.git");
    let last = path.rsplit(['/', ':']).next().unwrap_or_default();
    let name = last.strip_suffix(".git").unwrap_or(last);
    if name.is_empty() || name.starts_with(['-', '.']) {
        return Err(ToolError::invalid("The address does not imply a name for the new directory.")
            .hint("Specify a directory."));
    }
    Ok(if bare { format!("{name}.git") } else { name.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::{RemoteRefs, folder_of};

    #[test]
    fn what_the_other_repository_has_is_read() {
        let shown = RemoteRefs::new("ref: refs/heads/main\tHEAD\n1a\tHEAD\n1a\trefs/heads/main\n");
        assert_eq!(
            (shown.branch.as_deref(), shown.has("refs/heads/main"), shown.sha256),
            (Some("main"), true, false)
        );
        assert_eq!(RemoteRefs::new(""), RemoteRefs::default());
    }

    #[test]
    fn folders_are_named_after_their_addresses() {
        for (address, name) in [
            ("https://example.org/team/demo.git", "demo"),
            ("git@example.org:demo.git", "demo"),
            ("../origin.git/", "origin"),
            ("/roots/a/.git", "a"),
        ] {
            assert_eq!(folder_of(address, false).unwrap(), name, "{address}");
        }
        assert_eq!(folder_of("x/demo", true).unwrap(), "demo.git");
        for address in ["", "/", "..", "https://example.org/-x", "-x"] {
            assert!(folder_of(address, false).is_err(), "{address}");
        }
    }
}
