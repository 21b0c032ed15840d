//! The hub's own source with the tools that find and call others.

use super::tools_call::ToolsCall;
use super::tools_find::ToolsFind;
use crate::code::run_code::RunCode;
use octo_code::ChildCommand;
use octo_grants::{Capabilities, Clock};
use octo_toolkit::{Source, SourceState, Toolbox};
use std::sync::Arc;

/// Name of the toolbox.
pub const HUB_TOOLBOX: &str = "tools";

/// With a command for the process of a program, programs can be run, too.
pub fn source(code_child: Option<ChildCommand>) -> Arc<dyn Source> {
    let toolbox = Toolbox::new(HUB_TOOLBOX, "Find and call tools that are not listed.");
    let mut toolbox = toolbox.with(ToolsFind).with(ToolsCall);
    if let Some(child) = code_child {
        toolbox = toolbox.with(RunCode::new(child));
    }
    toolbox.into_source(Capabilities::default().with(Clock::system()), SourceState::Ready)
}
