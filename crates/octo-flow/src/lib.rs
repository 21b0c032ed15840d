//! Durable workflow engine. Every step is an ordinary call through the hub, on behalf of the run's caller.

mod check;
mod compiled_workflow;
mod diagnostic;
mod engine;
mod expr;
mod run_report;
mod schema_check;
mod spanned_yaml;
#[cfg(test)]
mod tests;
mod workflow_manifest;
mod workflow_run;
mod workflow_runs;
mod workflow_validate;

pub use engine::WorkflowEngine;
use octo_toolkit::Toolbox;
pub use schema_check::SCHEMA;

/// The tools that validate, run and list workflows.
pub fn toolbox() -> Toolbox {
    Toolbox::new(
        "workflow",
        "Workflows: steps that call tools, validated before they run and resumed after a crash.",
    )
    .using_servers()
    .using_workspace()
    .with(workflow_run::RunWorkflow)
    .with(workflow_runs::ListRuns)
    .with(workflow_validate::ValidateWorkflow)
}
