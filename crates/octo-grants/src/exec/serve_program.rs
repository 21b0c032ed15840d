//! Server programs: started in the sandbox like any other, with pipes until they are stopped.

use super::proxy_port::port_channel;
use super::run::{input_pipe, output_pipe};
use super::start_program::{StartFolder, StartRequest};
use super::{Exec, Program};
use crate::fs::{Fs, Read, WorkPath};
use crate::net::HostList;
use crate::{Child, Command, Net};
use octo_model::ToolError;
use std::ffi::OsString;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

/// Network access of a server program.
#[derive(Clone, Debug)]
pub enum NetworkAccess {
    None,
    /// Only these hosts, through a proxy that connects with `Net`.
    Hosts(HostList, Net),
    Full,
}

/// What a server program may use besides the workspace roots.
#[derive(Clone, Debug)]
pub struct ServerAccess {
    pub network: NetworkAccess,
    /// Directories of the hub that it may read, such as its installed package.
    pub readable: Vec<PathBuf>,
    /// Its home directory, a directory of the hub; created if it does not exist.
    pub home: PathBuf,
}

impl Exec {
    /// Starts a long-running program. It sees the workspace roots and what `access` names.
    pub async fn serve(&self, command: &Command, access: &ServerAccess) -> Result<Child, ToolError> {
        let words = std::iter::once(&command.program).chain(&command.args).map(OsString::from);
        let (receiver, proxy_socket) = match &access.network {
            NetworkAccess::Hosts(..) => {
                let (receiver, socket) = port_channel().map_err(ToolError::internal)?;
                (Some(receiver), Some(socket))
            }
            NetworkAccess::None | NetworkAccess::Full => (None, None),
        };
        let home = access.home.clone();
        let create = move || std::fs::DirBuilder::new().recursive(true).mode(0o700).create(home);
        let created = tokio::task::spawn_blocking(create).await.map_err(ToolError::internal)?;
        created.map_err(ToolError::internal)?;
        let mut env = command.env.clone();
        env.entry("HOME".to_owned()).or_insert_with(|| access.home.to_string_lossy().into_owned());
        let order = StartRequest {
            program: Program::Argv(words.collect()),
            cwd: self.start_folder(command, access)?,
            env,
            network: matches!(access.network, NetworkAccess::Full),
            proxy_socket,
            writes: true,
            readable: access.readable.clone(),
            writable: vec![access.home.clone()],
            tty: false,
        };
        let (input, stdin) = input_pipe().map_err(ToolError::internal)?;
        let (stdout, output) = output_pipe().map_err(ToolError::internal)?;
        let (stderr, errors) = output_pipe().map_err(ToolError::internal)?;
        let running = self.start_program(&order, [input, output, errors]).await?;
        drop(order);
        let child = Child::launched(stdin, stdout, stderr, running);
        let (NetworkAccess::Hosts(hosts, net), Some(receiver)) = (&access.network, receiver) else {
            return Ok(child);
        };
        let listener = receiver.receive().await.map_err(|error| {
            ToolError::unavailable("The program could not be started in its own network.")
                .hint("Ask the operator to check the hub's log.")
                .detail(error)
        })?;
        Ok(child.with_proxy(net.proxy_for_hosts(listener, hosts.clone())?))
    }

    /// The configured directory, else the home directory: what lies in a root may decide what a program does.
    fn start_folder(&self, command: &Command, access: &ServerAccess) -> Result<StartFolder, ToolError> {
        let folder = match &command.cwd {
            Some(cwd) => WorkPath::from(cwd.to_string_lossy().as_ref()),
            None => return Ok(StartFolder::Hub(access.home.clone())),
        };
        Fs::<Read>::new(self.spec().workspace.clone()).place(&folder).map(StartFolder::Rooted)
    }
}
