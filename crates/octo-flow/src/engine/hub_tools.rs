//! Tools as visible to the caller of a run.

use super::Invoker;
use crate::check::{ToolInfo, ToolLookup};
use octo_hub::{Entry, Hub};
use octo_model::{Kind, ToolError};
use serde_json::Value;

/// The tool that steps with `llm` call: the model is subject to the same policy, limits and audit log as any
/// tool.
pub const LLM_TOOL: &str = "text_ask";

pub struct HubTools<'a> {
    pub hub: &'a Hub,
    pub invoker: &'a Invoker,
}

impl ToolLookup for HubTools<'_> {
    fn tool(&self, name: &str) -> Result<ToolInfo, ToolError> {
        let entry = self.hub.tool(&self.invoker.origin.profile, &self.invoker.caller, name)?;
        Ok(tool_info(&entry))
    }

    fn require_model(&self) -> Result<(), ToolError> {
        match self.tool(LLM_TOOL) {
            Ok(_) => Ok(()),
            // In the full profile the tool is only missing if no model is configured.
            Err(error) if error.kind != Kind::Denied && self.invoker.origin.profile.is_empty() => {
                Err(ToolError::unavailable("No language model is set.")
                    .hint("Ask the operator to set OCTOPROX_LLM_URL and OCTOPROX_LLM_MODEL."))
            }
            Err(error) => Err(error),
        }
    }
}

/// A tool as the profile describes it.
pub fn tool_info(entry: &Entry) -> ToolInfo {
    let definition = entry.definition();
    let schema = |member: &str| definition.get(member).and_then(|json| json.to::<Value>().ok());
    ToolInfo {
        input: schema("inputSchema").unwrap_or_default(),
        output: schema("outputSchema"),
        effect: entry.effect(),
        trusted_effect: entry.item.vouched,
    }
}
