//! What composes tools: workflows. Every call of a step goes through the hub, as its caller's own.

mod check;
mod engine;
mod expr;
mod plan;
mod problem;
mod run;
mod runs;
mod shape;
mod source;
#[cfg(test)]
mod tests;
mod told;
mod validate;
mod written;

pub use engine::Flows;
use octo_toolkit::Toolbox;
pub use shape::SCHEMA;

/// The tools that check, run and list workflows.
pub fn toolbox() -> Toolbox {
    Toolbox::new(
        "workflow",
        "Workflows: steps that call tools, checked before they run and gone on with after a crash.",
    )
    .with(run::Run)
    .with(runs::ListRuns)
    .with(validate::Validate)
}
