//! The text toolboxes: what can be counted in a text, and what a language model makes of it.

mod analyze;
mod chunking;
mod summarize;
mod text_ask;

use octo_toolkit::Toolbox;

/// What needs nothing but the text.
pub fn toolbox() -> Toolbox {
    Toolbox::new("text", "Counts and readability of a text.").with(analyze::Analyze)
}

/// What needs a language model.
pub fn model_toolbox() -> Toolbox {
    Toolbox::new("summary", "Answers and summaries by the operator's language model.")
        .with(text_ask::Ask)
        .with(summarize::Summarize)
}

#[cfg(test)]
mod tests;
