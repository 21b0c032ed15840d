//! Declared tools: command lines and HTTP requests with typed parameters, defined by the operator in YAML.

mod command;
mod declared_tool;
mod execution;
mod parameters;
mod request;
mod template_text;
#[cfg(test)]
mod tests;
mod tool_manifest;

use crate::watched_files::{FileContents, WatchedFiles};
use crate::yaml_files::{self, Problem};
use declared_tool::DeclaredTool;
use octo_grants::config_dirs::{ConfigDirs, ConfigFile};
use octo_grants::{Capabilities, Workspace};
use octo_model::{JsonObject, Operation, ToolError};
use octo_toolkit::{BoxFuture, CallContext, Listing, ListingState, Source, SourceState};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio::sync::watch;

/// Name of the source of declared tools.
pub const DECLARED_SOURCE: &str = "declared";

/// Looks up a variable of the hub's environment.
pub type Environment = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Dependencies of declared tools.
pub struct DeclaredToolsConfig {
    pub folders: ConfigDirs,
    /// `Exec` and the workspace for commands, `Net` for requests.
    pub doors: Capabilities,
    pub environment: Environment,
    /// Names of native tools, which declared tools may not use.
    pub reserved: BTreeSet<String>,
    /// Ready or disabled.
    pub state: SourceState,
}

/// The source of declared tools. It watches its directories, so it needs a runtime.
pub fn source(parts: DeclaredToolsConfig) -> Arc<dyn Source> {
    let folders = match parts.doors.open::<Workspace>() {
        Ok(workspace) => parts.folders.excluding_workspace(&workspace),
        Err(_) => parts.folders,
    };
    let reserved = parts.reserved;
    let tools = WatchedFiles::new(folders, parts.state, move |leaves, _| load_tools(leaves, &reserved));
    Arc::new(DeclaredSource { tools, doors: parts.doors, environment: parts.environment })
}

struct DeclaredSource {
    tools: WatchedFiles<Tools>,
    doors: Capabilities,
    environment: Environment,
}

impl Source for DeclaredSource {
    fn name(&self) -> &str {
        DECLARED_SOURCE
    }

    fn is_native(&self) -> bool {
        true
    }

    fn listing(&self) -> watch::Receiver<ListingState> {
        self.tools.listing()
    }

    fn run<'a>(&'a self, op: Operation, cx: &'a CallContext) -> BoxFuture<'a, Result<JsonObject, ToolError>> {
        Box::pin(async move {
            let tools = self.tools.contents();
            let tool = tools.all.get(&op.name).ok_or_else(|| {
                ToolError::not_found(format!("Tool not found: `{}`.", op.name))
                    .hint("List the available tools.")
            })?;
            tool.run(op.params.get("arguments"), &self.environment, cx.time_left(), &self.doors).await
        })
    }
}

struct Tools {
    all: BTreeMap<String, DeclaredTool>,
    problems: Vec<Problem>,
}

/// Later files take precedence. The tools of an invalid file are removed until it is valid again: its last
/// version may allow what the operator is about to forbid.
fn load_tools(leaves: &[ConfigFile], reserved: &BTreeSet<String>) -> Tools {
    let mut tools = Tools { all: BTreeMap::new(), problems: Vec::new() };
    for leaf in leaves.iter().filter(|leaf| yaml_files::is_prompt_or_tool_file(leaf)) {
        let file = leaf.path.display().to_string();
        let read = match &leaf.content {
            Ok(text) => yaml_files::parse_yaml::<tool_manifest::ManifestFile>(&file, text),
            Err(why) => Err(Problem { file: file.clone(), line: None, what: why.clone() }),
        };
        match read {
            Ok(read) => read.tools.0.into_iter().for_each(|(name, written)| {
                let line = Some(written.referenced.line()).filter(|line| *line > 0);
                let made = if reserved.contains(&name) {
                    Err("a native tool has this name".to_owned())
                } else {
                    DeclaredTool::new(&name, written.value, &file)
                };
                tools.put(&name, made, &file, line);
            }),
            Err(problem) => tools.problems.push(problem),
        }
    }
    tools
}

impl Tools {
    fn put(&mut self, name: &str, made: Result<DeclaredTool, String>, file: &str, line: Option<u64>) {
        let what = match made {
            Ok(tool) => match self.all.insert(name.to_owned(), tool) {
                Some(other) => format!("overrides the one in {}", other.file),
                None => return,
            },
            Err(what) => {
                // The tool that it was to override is not what the operator wants either.
                self.all.remove(name);
                what
            }
        };
        self.problems.push(Problem { file: file.to_owned(), line, what: format!("tools.{name}: {what}") });
    }
}

impl FileContents for Tools {
    fn lists(&self) -> Listing {
        Listing { tools: self.all.values().map(DeclaredTool::definition).collect(), ..Listing::default() }
    }

    fn problems(&self) -> &[Problem] {
        &self.problems
    }
}
