//! A page in the form that was asked for.

use crate::browser::{Look, Open};
use crate::clean;
use crate::snapshot::{Ask, LETTERS, markdown, plain, render};
use octo_toolkit::ToolError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    Markdown,
    Text,
    Html,
    Accessibility,
}

pub fn as_markdown() -> Format {
    Format::Markdown
}

pub fn as_tree() -> Format {
    Format::Accessibility
}

/// Letters of HTML that are looked at.
const LONGEST: usize = 2 << 20;

/// A page's content, and whether some of it is left out.
pub struct Shown {
    pub text: String,
    pub truncated: bool,
    /// What is left out.
    pub note: Option<String>,
}

impl Open {
    /// The page's content within so many tokens.
    pub async fn show(
        &mut self,
        look: &Look,
        format: Format,
        main_only: bool,
        budget: usize,
    ) -> Result<Shown, ToolError> {
        let text = match format {
            Format::Accessibility => {
                let ask = Ask { budget: Some(budget), part: None, from: 0 };
                let page = render(&look.tree, ask, &mut self.memory.refs, &look.document);
                return Ok(Shown { note: page.note(), truncated: page.truncated, text: page.text });
            }
            Format::Markdown => markdown(&look.tree, main_only),
            Format::Text => plain(&look.tree, main_only),
            Format::Html => clean::block(&self.page.html(LONGEST).await?),
        };
        let short = clean::cut(&text, budget * LETTERS);
        let truncated = short.len() < text.len();
        let note = truncated.then(|| {
            let (here, all) = (short.chars().count() - 1, text.chars().count());
            format!("The content is the first {here} of {all} letters; browser_get_content gives the rest.")
        });
        Ok(Shown { truncated, text: short, note })
    }
}
