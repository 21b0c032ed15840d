//! Text toolboxes: text statistics, and language model tools.

mod analyze;
mod chunking;
mod summarize;
mod text_ask;

use octo_toolkit::{Requirement, Toolbox};

/// Tools that need only the text.
pub fn toolbox() -> Toolbox {
    Toolbox::new("text", "Counts and readability of a text.").with(analyze::Analyze)
}

/// Tools that need a language model.
pub fn model_toolbox() -> Toolbox {
    Toolbox::new("summary", "Answers and summaries by the operator's language model.")
        .switched_by("text")
        .requires(Requirement::LanguageModel)
        .with(text_ask::Ask)
        .with(summarize::Summarize)
}

#[cfg(test)]
mod tests;
