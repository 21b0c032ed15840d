//! The text toolboxes: what can be counted in a text, and what a language model makes of it.

mod analyze;
mod parts;
mod summarize;

use octo_toolkit::Toolbox;

/// What needs nothing but the text.
pub fn toolbox() -> Toolbox {
    Toolbox::new("text", "Counts and readability of a text.").with(analyze::Analyze)
}

/// What needs a language model.
pub fn model_toolbox() -> Toolbox {
    Toolbox::new("summary", "Summaries by the operator's language model.").with(summarize::Summarize)
}

#[cfg(test)]
mod tests;
