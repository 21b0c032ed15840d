//! Access to another repository: address checks, SSH key, and the program at the other end.

use crate::program::git_command::{GitCommand, RemoteAccess};
use crate::program::git_error;
use crate::program::run_git::{GitRepo, LOOPBACK, RemoteRoute, run_job, safe_settings};
use crate::program::safe_arg::{RemoteName, SafeArg, TrustedArg};
use crate::remote_url::{self, RemoteUrl};
use crate::repo::real_path;
use octo_toolkit::exec::{Job, Program};
use octo_toolkit::fs::Read;
use octo_toolkit::net::PortRelay;
use octo_toolkit::{CallContext, Exec, Fs, Net, RootedPath, SshKey, ToolError, WorkPath};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

/// What a command needs to access another repository.
#[derive(Debug, Clone)]
pub struct RemoteConnection {
    pub access: RemoteAccess,
    pub route: RemoteRoute,
    /// Address for git: a directory of the workspace by its real path.
    pub address: TrustedArg,
    /// Program at the other end: for a repository of the workspace a git with safe settings, because it does
    /// not inherit ours.
    pub upload_pack: TrustedArg,
    pub receive_pack: TrustedArg,
}

/// Grants of a call and the directory that relative paths are based on.
pub struct RemoteResolver<'a> {
    pub fs: &'a Fs<Read>,
    pub exec: &'a Exec,
    pub ssh: &'a SshKey,
    pub net: &'a Net,
    pub cx: &'a CallContext,
    pub base: RootedPath,
}

/// Pushes may use a different address of a remote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    Fetch,
    Push,
}

/// Addresses of a configured remote.
pub fn remote_urls(
    git: &GitRepo,
    remote: &RemoteName,
    direction: Direction,
) -> Result<Vec<String>, ToolError> {
    let of = |name: &str| -> Vec<String> {
        let key = format!("remote.{}.{name}", remote.as_str());
        git.config.entries.iter().filter(|entry| entry.key == key).map(|entry| entry.value.clone()).collect()
    };
    let push = if direction == Direction::Push { of("pushurl") } else { Vec::new() };
    let urls = if push.is_empty() { of("url") } else { push };
    if urls.is_empty() {
        return Err(ToolError::not_found(format!("Remote not found: {}.", remote.as_str()))
            .hint("`git` with command remote lists the remotes; remote add creates one."));
    }
    Ok(urls)
}

impl RemoteResolver<'_> {
    pub fn for_repo<'a>(git: &'a GitRepo, (ssh, net): (&'a SshKey, &'a Net)) -> RemoteResolver<'a> {
        RemoteResolver { fs: &git.fs, exec: git.exec(), ssh, net, cx: git.cx(), base: git.repo.top.clone() }
    }

    /// Connection to a configured remote.
    pub async fn to_remote(
        &self,
        git: &GitRepo,
        remote: &RemoteName,
        direction: Direction,
    ) -> Result<RemoteConnection, ToolError> {
        check_unsafe_keys(git)?;
        let mut urls = remote_urls(git, remote, direction)?;
        if git.config.rewrites_urls {
            urls = rewritten_urls(git, remote, direction).await?;
        }
        let [url] = urls.as_slice() else {
            return Err(
                ToolError::invalid("This remote has several addresses.").hint("Configure one address only.")
            );
        };
        let way = self.to_address(url).await?;
        if way.access == RemoteAccess::Local && git.config.rewrites_urls {
            return Err(rewritten_error());
        }
        Ok(way)
    }

    /// Connection to an address.
    pub async fn to_address(&self, address: &str) -> Result<RemoteConnection, ToolError> {
        let plain = |route| RemoteConnection {
            access: RemoteAccess::Network,
            route,
            address: TrustedArg::new(address),
            upload_pack: TrustedArg::new("git-upload-pack"),
            receive_pack: TrustedArg::new("git-receive-pack"),
        };
        match remote_url::parse(address)? {
            RemoteUrl::Web { host, port } => {
                self.net.check(&host, port).await?;
                self.net.egress_proxy().await.map(|gate| plain(RemoteRoute::Web(Arc::new(gate))))
            }
            RemoteUrl::Ssh { host, port } => self.to_ssh(&host, port).await.map(plain),
            RemoteUrl::Local(path) => self.to_local(&path).await,
        }
    }

    /// A repository of the workspace is opened like our own, and served with safe settings.
    async fn to_local(&self, path: &str) -> Result<RemoteConnection, ToolError> {
        let path = self.place(path)?;
        let other = GitRepo::open(self.fs, self.exec, self.cx, &path).await?;
        if !other.repo.prefix.as_os_str().is_empty() {
            return Err(ToolError::not_found("This directory is not the top of a repository.")
                .hint("Use the repository's own directory."));
        }
        let shadow = other.config_dir().ok_or_else(|| ToolError::internal("repository without settings"))?;
        let serve = |program: &str| {
            let settings: Vec<String> = safe_settings(&[])
                .map(|(key, value)| format!("-c {}", shell_quote(&format!("{key}={value}"))))
                .collect();
            let common = shell_quote(&shadow.path().to_string_lossy());
            TrustedArg::new(format!("GIT_COMMON_DIR={common} git {} {program}", settings.join(" ")))
        };
        Ok(RemoteConnection {
            access: RemoteAccess::Local,
            route: RemoteRoute::Workspace(Arc::clone(&shadow)),
            address: TrustedArg::new(real_path(&other.repo.top).to_string_lossy()),
            upload_pack: serve("upload-pack"),
            receive_pack: serve("receive-pack"),
        })
    }

    /// Relative addresses are based on the top of the repository, as in git.
    fn place(&self, path: &str) -> Result<WorkPath, ToolError> {
        if path.starts_with('/') {
            return Ok(WorkPath::from(path));
        }
        let joined = self.base.relative().join(path);
        let inside = crate::repo::normalize(&joined).ok_or_else(|| {
            ToolError::denied("This address is outside the workspace.")
                .hint("Use a directory beneath a root.")
        })?;
        Ok(WorkPath::from(self.base.root().path.join(inside).to_string_lossy().as_ref()))
    }

    /// Trust on first use: the keys of a host are fetched once, stored, and required from then on.
    ///
    /// ssh gets a port on loopback, from which the hub connects to the checked address.
    async fn to_ssh(&self, host: &str, port: Option<u16>) -> Result<RemoteRoute, ToolError> {
        let relay = self.net.relay(host, port.unwrap_or(22)).await?;
        let named = match port.filter(|port| *port != 22) {
            Some(port) => format!("[{host}]:{port}"),
            None => host.to_owned(),
        };
        let ssh = self.ssh.clone();
        let known = self.fs.run({
            let named = named.clone();
            move |_| Ok((ssh.private_path()?, ssh.known_hosts(), ssh.has_host(&named)))
        });
        let (key, hosts, knows) = known.await?;
        if !knows {
            self.learn_host_keys(&relay, &named).await?;
        }
        let command = ssh_command(&key, &hosts, &named);
        Ok(RemoteRoute::Ssh { command, readable: vec![self.ssh.folder().to_owned()], relay: Arc::new(relay) })
    }

    async fn learn_host_keys(&self, relay: &PortRelay, named: &str) -> Result<(), ToolError> {
        let port = relay.port().to_string();
        let argv = ["ssh-keyscan", "-T", "5", "-p", &port, "--", LOOPBACK].map(OsString::from).to_vec();
        let job = Job {
            program: Program::Argv(argv),
            cwd: self.base.clone(),
            env: BTreeMap::new(),
            stdin: None,
            timeout: self.cx.time_left(),
            max_output_bytes: 65_536,
            network: true,
            writes: false,
            readable: Vec::new(),
            writable: Vec::new(),
            on_output: None,
        };
        let shown = run_job(self.exec, self.cx, job).await?;
        let (ssh, named) = (self.ssh.clone(), named.to_owned());
        let lines = shown.text().replace(&format!("[{LOOPBACK}]:{port} "), &format!("{named} "));
        self.fs.run(move |_| ssh.add_host(&named, &lines)).await.map_err(|error| {
            ToolError::unavailable("The host of this remote presented no SSH key.")
                .hint("Check the address and whether the host is reachable.")
                .detail(git_error::redact_credentials(&format!("{error} {}", shown.stderr)))
        })
    }
}

/// Settings that change where a remote is or what runs there.
pub fn check_unsafe_keys(git: &GitRepo) -> Result<(), ToolError> {
    match git.config.unsafe_remote_keys.first() {
        None => Ok(()),
        Some(key) => {
            Err(ToolError::denied(format!("The repository's setting {key} is not allowed with remotes."))
                .hint("Ask the operator to remove it from .git/config."))
        }
    }
}

pub fn rewritten_error() -> ToolError {
    ToolError::denied("The repository's settings rewrite addresses (url.*.insteadOf).")
        .hint("Remove them from .git/config to use a repository of the workspace as a remote.")
}

/// Addresses of a remote after URL rewriting.
async fn rewritten_urls(
    git: &GitRepo,
    remote: &RemoteName,
    direction: Direction,
) -> Result<Vec<String>, ToolError> {
    let mut command = GitCommand::read("remote").flag("get-url").flag("--all");
    if direction == Direction::Push {
        command = command.flag("--push");
    }
    Ok(git
        .run(command.without_end_of_options().positional(remote))
        .await?
        .text()
        .lines()
        .map(str::to_owned)
        .collect())
}

fn ssh_command(key: &Path, hosts: &Path, named: &str) -> String {
    // ssh splits the names of host files at blanks, hence quotes within quotes.
    let hosts = shell_quote(&format!("UserKnownHostsFile=\"{}\"", hosts.to_string_lossy()));
    format!(
        "ssh -F /dev/null -i {} -o IdentitiesOnly=yes -o BatchMode=yes -o StrictHostKeyChecking=yes \
         -o GlobalKnownHostsFile=/dev/null -o {hosts} -o ConnectTimeout=10 \
         -o CheckHostIP=no -o {}",
        shell_quote(&key.to_string_lossy()),
        shell_quote(&format!("HostKeyAlias={named}")),
    )
}

/// Quotes a text for `sh`.
fn shell_quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shell_texts_are_quoted() {
        assert_eq!(shell_quote("filter.$(x).clean="), "'filter.$(x).clean='");
        assert_eq!(shell_quote("a'; touch x; '"), r"'a'\''; touch x; '\'''");
    }

    #[test]
    fn ssh_shows_one_key_asks_nothing_and_wants_the_keys_of_the_real_host() {
        let command = ssh_command(Path::new("/s/a b/id"), Path::new("/s/known_hosts"), "[h]:2222");
        assert!(command.ends_with("-o 'HostKeyAlias=[h]:2222'"), "{command}");
        assert!(
            command.starts_with("ssh -F /dev/null -i '/s/a b/id' -o IdentitiesOnly=yes -o BatchMode=yes")
        );
        assert!(
            command.contains("StrictHostKeyChecking=yes")
                && command.contains("-o 'UserKnownHostsFile=\"/s/known_hosts\"'")
        );
    }
}
