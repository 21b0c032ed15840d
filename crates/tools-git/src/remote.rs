//! The way to another repository: what must hold of its address, which key is shown, and who answers at the other end.

use crate::command::{Command, Reach};
use crate::fault;
use crate::repo::real_path;
use crate::run::{Git, NEAR, Route, safe_settings, start};
use crate::url::{self, Url};
use crate::value::{Checked, RemoteName, Word};
use octo_toolkit::exec::{Job, Program};
use octo_toolkit::fs::Read;
use octo_toolkit::net::PortRelay;
use octo_toolkit::{CallContext, Exec, Fs, Net, RootedPath, SshKey, ToolError, WorkPath};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

/// What a command needs to reach another repository.
#[derive(Debug, Clone)]
pub struct Way {
    pub reach: Reach,
    pub route: Route,
    /// The address as git gets it: a folder of the workspace by its real path.
    pub address: Checked,
    /// Who answers: for a repository of the workspace a git with safe settings, since it does not inherit ours.
    pub upload_pack: Checked,
    pub receive_pack: Checked,
}

/// Who asks: the grants of a call and the folder that relative paths count from.
pub struct Asker<'a> {
    pub fs: &'a Fs<Read>,
    pub exec: &'a Exec,
    pub ssh: &'a SshKey,
    pub net: &'a Net,
    pub cx: &'a CallContext,
    pub from: RootedPath,
}

/// For pushing to a remote, its other address counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    Fetch,
    Push,
}

/// The addresses of a configured remote.
pub fn addresses(git: &Git, remote: &RemoteName, direction: Direction) -> Result<Vec<String>, ToolError> {
    let of = |name: &str| -> Vec<String> {
        let key = format!("remote.{}.{name}", remote.as_str());
        git.guard.kept.iter().filter(|entry| entry.key == key).map(|entry| entry.value.clone()).collect()
    };
    let push = if direction == Direction::Push { of("pushurl") } else { Vec::new() };
    let urls = if push.is_empty() { of("url") } else { push };
    if urls.is_empty() {
        return Err(ToolError::not_found(format!("There is no remote {}.", remote.as_str()))
            .hint("`git` with command remote lists the remotes; remote add makes one."));
    }
    Ok(urls)
}

impl Asker<'_> {
    pub fn of<'a>(git: &'a Git, (ssh, net): (&'a SshKey, &'a Net)) -> Asker<'a> {
        Asker { fs: &git.fs, exec: git.exec(), ssh, net, cx: git.cx(), from: git.repo.top.clone() }
    }

    /// The way to a configured remote.
    pub async fn to_remote(
        &self,
        git: &Git,
        remote: &RemoteName,
        direction: Direction,
    ) -> Result<Way, ToolError> {
        refuse_faults(git)?;
        let mut urls = addresses(git, remote, direction)?;
        if git.guard.rewrites {
            urls = meant(git, remote, direction).await?;
        }
        let [url] = urls.as_slice() else {
            return Err(ToolError::invalid("This remote has several addresses.").hint("Give it one address."));
        };
        let way = self.to(url).await?;
        if way.reach == Reach::Local && git.guard.rewrites {
            return Err(rewritten());
        }
        Ok(way)
    }

    /// The way to an address.
    pub async fn to(&self, address: &str) -> Result<Way, ToolError> {
        let plain = |route| Way {
            reach: Reach::Network,
            route,
            address: Checked::new(address),
            upload_pack: Checked::new("git-upload-pack"),
            receive_pack: Checked::new("git-receive-pack"),
        };
        match url::parse(address)? {
            Url::Web { host, port } => {
                self.net.check(&host, port).await?;
                self.net.egress_proxy().await.map(|gate| plain(Route::Web(Arc::new(gate))))
            }
            Url::Ssh { host, port } => self.by_ssh(&host, port).await.map(plain),
            Url::Local(path) => self.within(&path).await,
        }
    }

    /// A repository of the workspace is looked at like our own, and served with its settings made harmless.
    async fn within(&self, path: &str) -> Result<Way, ToolError> {
        let path = self.place(path)?;
        let other = Git::open(self.fs, self.exec, self.cx, &path).await?;
        if !other.repo.prefix.as_os_str().is_empty() {
            return Err(ToolError::not_found("There is no repository in this folder itself.")
                .hint("Name the repository's own folder."));
        }
        let shadow = other.shadow().ok_or_else(|| ToolError::internal("a repository without settings"))?;
        let serve = |program: &str| {
            let settings: Vec<String> = safe_settings(&[])
                .map(|(key, value)| format!("-c {}", quoted(&format!("{key}={value}"))))
                .collect();
            let common = quoted(&shadow.path().to_string_lossy());
            Checked::new(format!("GIT_COMMON_DIR={common} git {} {program}", settings.join(" ")))
        };
        Ok(Way {
            reach: Reach::Local,
            route: Route::Within(Arc::clone(&shadow)),
            address: Checked::new(real_path(&other.repo.top).to_string_lossy()),
            upload_pack: serve("upload-pack"),
            receive_pack: serve("receive-pack"),
        })
    }

    /// Relative addresses count from the top of the repository, as git takes them.
    fn place(&self, path: &str) -> Result<WorkPath, ToolError> {
        if path.starts_with('/') {
            return Ok(WorkPath::from(path));
        }
        let joined = self.from.relative().join(path);
        let inside = crate::repo::normal(&joined).ok_or_else(|| {
            ToolError::denied("This address leads out of the workspace.")
                .hint("Name a folder beneath a root.")
        })?;
        Ok(WorkPath::from(self.from.root().path.join(inside).to_string_lossy().as_ref()))
    }

    /// A host is trusted at first sight: its keys are asked for once, kept, and required from then on.
    ///
    /// ssh is told of a port on loopback, from where the hub connects to the address that it has checked.
    async fn by_ssh(&self, host: &str, port: Option<u16>) -> Result<Route, ToolError> {
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
            self.meet(&relay, &named).await?;
        }
        let command = ssh_command(&key, &hosts, &named);
        Ok(Route::Ssh { command, readable: vec![self.ssh.folder().to_owned()], relay: Arc::new(relay) })
    }

    async fn meet(&self, relay: &PortRelay, named: &str) -> Result<(), ToolError> {
        let port = relay.port().to_string();
        let argv = ["ssh-keyscan", "-T", "5", "-p", &port, "--", NEAR].map(OsString::from).to_vec();
        let job = Job {
            program: Program::Argv(argv),
            cwd: self.from.clone(),
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
        let shown = start(self.exec, self.cx, job).await?;
        let (ssh, named) = (self.ssh.clone(), named.to_owned());
        let lines = shown.text().replace(&format!("[{NEAR}]:{port} "), &format!("{named} "));
        self.fs.run(move |_| ssh.add_host(&named, &lines)).await.map_err(|error| {
            ToolError::unavailable("The host of this remote shows no SSH key.")
                .hint("Check the address and whether the host can be reached.")
                .detail(fault::scrub(&format!("{error} {}", shown.err)))
        })
    }
}

/// Settings that change where a remote is or what runs there.
pub fn refuse_faults(git: &Git) -> Result<(), ToolError> {
    match git.guard.remote_faults.first() {
        None => Ok(()),
        Some(key) => {
            Err(ToolError::denied(format!("The repository's setting {key} is not allowed with remotes."))
                .hint("Ask the operator to remove it from .git/config."))
        }
    }
}

pub fn rewritten() -> ToolError {
    ToolError::denied("The repository's settings rewrite addresses (url.*.insteadOf).")
        .hint("Remove them from .git/config to use a repository of the workspace as a remote.")
}

/// The addresses of a remote after the settings that rewrite them.
async fn meant(git: &Git, remote: &RemoteName, direction: Direction) -> Result<Vec<String>, ToolError> {
    let mut command = Command::read("remote").flag("get-url").flag("--all");
    if direction == Direction::Push {
        command = command.flag("--push");
    }
    Ok(git.run(command.without_end().word(remote)).await?.text().lines().map(str::to_owned).collect())
}

fn ssh_command(key: &Path, hosts: &Path, named: &str) -> String {
    // ssh splits the names of host files at blanks by itself, hence quotes within quotes.
    let hosts = quoted(&format!("UserKnownHostsFile=\"{}\"", hosts.to_string_lossy()));
    format!(
        "ssh -F /dev/null -i {} -o IdentitiesOnly=yes -o BatchMode=yes -o StrictHostKeyChecking=yes \
         -o GlobalKnownHostsFile=/dev/null -o {hosts} -o ConnectTimeout=10 \
         -o CheckHostIP=no -o {}",
        quoted(&key.to_string_lossy()),
        quoted(&format!("HostKeyAlias={named}")),
    )
}

/// For `sh`, which reads these texts.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shell_texts_are_quoted() {
        assert_eq!(quoted("filter.$(x).clean="), "'filter.$(x).clean='");
        assert_eq!(quoted("a'; touch x; '"), r"'a'\''; touch x; '\'''");
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
