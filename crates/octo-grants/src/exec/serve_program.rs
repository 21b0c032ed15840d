//! Server programs: started in the sandbox like any other, with pipes until they are stopped.

use super::run::{input_pipe, output_pipe};
use super::start_program::StartRequest;
use super::{Exec, Program};
use crate::fs::{Fs, Read, WorkPath};
use crate::{Child, Command};
use octo_model::ToolError;
use std::ffi::OsString;

impl Exec {
    /// Starts a long-running program. It sees the workspace roots, and the network if allowed.
    pub async fn serve(&self, command: &Command, network: bool) -> Result<Child, ToolError> {
        let words = std::iter::once(&command.program).chain(&command.args).map(OsString::from);
        let folder = match &command.cwd {
            Some(cwd) => WorkPath::from(cwd.to_string_lossy().as_ref()),
            None => WorkPath::here(),
        };
        let order = StartRequest {
            program: Program::Argv(words.collect()),
            cwd: Fs::<Read>::new(self.spec().workspace.clone()).place(&folder)?,
            env: command.env.clone(),
            network,
            writes: true,
            readable: Vec::new(),
            writable: Vec::new(),
            tty: false,
        };
        let (input, stdin) = input_pipe().map_err(ToolError::internal)?;
        let (stdout, output) = output_pipe().map_err(ToolError::internal)?;
        let (stderr, errors) = output_pipe().map_err(ToolError::internal)?;
        let running = self.start_program(&order, [input, output, errors]).await?;
        Ok(Child::launched(stdin, stdout, stderr, running))
    }
}
