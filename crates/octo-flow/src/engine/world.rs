//! The tools as the caller of a run sees them.

use super::Asker;
use crate::check::{Facts, World};
use octo_grants::Llm;
use octo_hub::{Entry, Hub};
use octo_model::ToolError;
use serde_json::Value;

pub struct Catalogue<'a> {
    pub hub: &'a Hub,
    pub asker: &'a Asker,
    pub llm: Option<&'a Llm>,
}

impl World for Catalogue<'_> {
    fn tool(&self, name: &str) -> Result<Facts, ToolError> {
        let entry = self.hub.tool(&self.asker.origin.profile, &self.asker.caller, name)?;
        Ok(facts(&entry))
    }

    fn model(&self) -> Result<(), ToolError> {
        match self.llm {
            Some(_) => Ok(()),
            None => Err(no_model()),
        }
    }
}

pub fn no_model() -> ToolError {
    ToolError::unavailable("No language model is set.")
        .hint("Ask the operator to set OCTOPROX_LLM_URL and OCTOPROX_LLM_MODEL.")
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
