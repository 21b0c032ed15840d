//! `workflow_validate`.

use crate::check::ToolUse;
use crate::diagnostic::{Diagnostic, DiagnosticView};
use crate::engine::{WorkflowEngine, check_nesting};
use crate::spanned_yaml::MAX_FILE_BYTES;
use octo_toolkit::fs::Read;
use octo_toolkit::{CallContext, Effect, Example, Fs, Kind, Tool, ToolError, WorkPath};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Checks a workflow file against its schema and the current tools, without running it. Returns every error
/// with its line and a fix, and which tools it would call. Prefer workflow_run to run it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The workflow, a YAML or JSON file of the workspace.
    path: WorkPath,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// True when it can run.
    valid: bool,
    /// All errors, in line order.
    errors: Vec<DiagnosticView>,
    /// Possible mistakes.
    warnings: Vec<DiagnosticView>,
    /// The tools that a run must be allowed to call.
    tools: Vec<ToolUseView>,
    /// JSON Schema of the run's parameters, if the file can be parsed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    params: Option<Map<String, Value>>,
    /// The workflow's own name, if the file can be parsed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct ToolUseView {
    /// The tool's listed name.
    name: String,
    /// reads, writes or destroys.
    effect: String,
    /// Whether it runs again by itself after an interruption.
    repeatable: bool,
    /// The steps that call it.
    steps: Vec<String>,
}

impl From<ToolUse> for ToolUseView {
    fn from(used: ToolUse) -> Self {
        Self {
            name: used.name,
            effect: used.class.as_str().to_owned(),
            repeatable: used.repeatable,
            steps: used.steps,
        }
    }
}

pub struct ValidateWorkflow;

impl Tool for ValidateWorkflow {
    const NAME: &'static str = "workflow_validate";
    const TITLE: &'static str = "Check a workflow";
    const KEYWORDS: &'static str = "lint check automation pipeline syntax";
    const REQUESTS: &'static [&'static str] = &[
        "is my flow file correct",
        "check the yaml recipe for mistakes before starting it",
        "which line of the automation file is wrong",
        "lint the automation flows/report.yaml",
        "what would this flow call, without executing it",
        "does the pipeline definition match its schema",
        "which permissions does the automation need",
    ];
    const EFFECT: Effect = Effect::reads();
    type Input = Input;
    type Output = Output;
    type Grants = (WorkflowEngine, Fs<Read>);

    fn examples() -> Vec<Example> {
        vec![Example::new("All errors of a file", json!({"path": "flows/report.yaml"}))]
    }

    async fn run(
        &self,
        input: Input,
        (flows, fs): Self::Grants,
        cx: &CallContext,
    ) -> Result<Output, ToolError> {
        let text = read_workflow(&fs, input.path).await?;
        check_nesting(cx)?;
        let (plan, found) = flows.check(cx, &text).await?;
        let told = |problems: &[Diagnostic]| problems.iter().map(Diagnostic::to_view).collect();
        Ok(Output {
            valid: found.errors.is_empty(),
            errors: told(&found.errors),
            warnings: told(&found.warnings),
            tools: found.tools.into_iter().map(ToolUseView::from).collect(),
            params: plan.as_ref().and_then(|plan| plan.params_schema().as_object().cloned()),
            name: plan.map(|plan| plan.name),
        })
    }
}

/// Reads the text of a workflow.
pub async fn read_workflow<M: 'static>(fs: &Fs<M>, path: WorkPath) -> Result<String, ToolError>
where
    Fs<M>: Send + Sync,
{
    let reading = Fs::<Read>::new(fs.workspace().clone());
    let bytes = reading.run(move |fs| fs.read(&fs.place(&path)?, MAX_FILE_BYTES)).await?;
    String::from_utf8(bytes.0).map_err(|_| {
        ToolError::new(Kind::Invalid, "The file is not UTF-8 text.").hint("A workflow is YAML or JSON.")
    })
}
