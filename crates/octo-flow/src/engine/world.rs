//! The tools as the caller of a run sees them.

use super::Asker;
use crate::check::{Facts, World};
use octo_hub::{Entry, Hub};
use octo_model::{Kind, ToolError};
use serde_json::Value;

/// The tool that steps with `llm` call: the model is asked under the same rules, limits and records as anything else.
pub const MODEL: &str = "text_ask";

pub struct Catalogue<'a> {
    pub hub: &'a Hub,
    pub asker: &'a Asker,
}

impl World for Catalogue<'_> {
    fn tool(&self, name: &str) -> Result<Facts, ToolError> {
        let entry = self.hub.tool(&self.asker.origin.profile, &self.asker.caller, name)?;
        Ok(facts(&entry))
    }

    fn model(&self) -> Result<(), ToolError> {
        match self.tool(MODEL) {
            Ok(_) => Ok(()),
            // Where everything is shown, the tool is missing only without a model.
            Err(error) if error.kind != Kind::Denied && self.asker.origin.profile.is_empty() => {
                Err(ToolError::unavailable("No language model is set.")
                    .hint("Ask the operator to set OCTOPROX_LLM_URL and OCTOPROX_LLM_MODEL."))
            }
            Err(error) => Err(error),
        }
    }
}

/// A tool in the words of the profile.
pub fn facts(entry: &Entry) -> Facts {
    let definition = entry.definition();
    let schema = |member: &str| definition.get(member).and_then(|json| json.to::<Value>().ok());
    Facts {
        input: schema("inputSchema").unwrap_or_default(),
        output: schema("outputSchema"),
        effect: entry.effect(),
        vouched: entry.item.vouched,
    }
}
