//! Tools as visible to the caller of a run.

use crate::check::{ToolInfo, ToolLookup};
use octo_model::{Kind, Remedy, ToolError};
use octo_toolkit::CallContext;
use serde_json::Value;

/// The tool that steps with `llm` call: the model is subject to the same policy, limits and audit log as any
/// tool.
pub const LLM_TOOL: &str = "text_ask";

/// The tools that a call may use.
pub struct HubTools<'a>(pub &'a CallContext);

impl ToolLookup for HubTools<'_> {
    fn tool(&self, name: &str) -> Result<ToolInfo, ToolError> {
        let definition = self.0.nested_calls()?.tool(self.0, name)?;
        let schema = |member: &str| definition.members.get(member).and_then(|json| json.to::<Value>().ok());
        Ok(ToolInfo {
            input: schema("inputSchema").unwrap_or_default(),
            output: schema("outputSchema"),
            effect: definition.effect,
            effect_origin: definition.effect_origin,
        })
    }

    fn require_model(&self) -> Result<(), ToolError> {
        match self.tool(LLM_TOOL) {
            Ok(_) => Ok(()),
            // In the full profile the tool is only missing if no model is configured.
            Err(error) if error.kind != Kind::Denied && self.0.profile.is_empty() => {
                let hint = "Ask the operator to set llm.url and llm.model.";
                let remedy = Remedy::settings(&["llm.url", "llm.model"]);
                Err(ToolError::unavailable("No language model is set.")
                    .hint(self.0.append_remedy(hint, &remedy)))
            }
            Err(error) => Err(error),
        }
    }
}
