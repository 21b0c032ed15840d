//! `workflow_validate`.

use crate::check::Used;
use crate::engine::{Asker, Flows};
use crate::problem::{Problem, Told};
use crate::source::MOST_BYTES;
use octo_toolkit::fs::Read;
use octo_toolkit::{CallContext, Effect, Example, Fs, Kind, Tool, ToolError, WorkPath};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Checks a workflow file against its schema and the tools as they are now, and runs nothing. Tells every mistake with its
/// line and what to write instead, and which tools it would call. Prefer workflow_run to run it.
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
    /// Everything that is wrong, in the order of the lines.
    errors: Vec<Told>,
    /// What is odd and may be meant.
    warnings: Vec<Told>,
    /// The tools that it calls: what a run needs to be allowed.
    tools: Vec<ToolTold>,
    /// JSON Schema of the parameters that a run takes, once it can be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    params: Option<Map<String, Value>>,
    /// The workflow's own name, once it can be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct ToolTold {
    /// The tool's listed name.
    name: String,
    /// reads, writes or destroys.
    effect: String,
    /// Whether it runs again by itself after it was cut off.
    repeatable: bool,
    /// The steps that call it.
    steps: Vec<String>,
}

impl From<Used> for ToolTold {
    fn from(used: Used) -> Self {
        Self {
            name: used.name,
            effect: used.class.as_str().to_owned(),
            repeatable: used.repeatable,
            steps: used.steps,
        }
    }
}

pub struct Validate;

impl Tool for Validate {
    const NAME: &'static str = "workflow_validate";
    const TITLE: &'static str = "Check a workflow";
    const EFFECT: Effect = Effect::reads();
    type Input = Input;
    type Output = Output;
    type Grants = (Flows, Fs<Read>);

    fn examples() -> Vec<Example> {
        vec![Example::new("Everything that is wrong with it", json!({"path": "flows/report.yaml"}))]
    }

    async fn run(
        &self,
        input: Input,
        (flows, fs): Self::Grants,
        cx: &CallContext,
    ) -> Result<Output, ToolError> {
        let text = read(&fs, input.path).await?;
        let (plan, found) = flows.examine(&Asker::of(cx)?, &text).await?;
        let told = |problems: &[Problem]| problems.iter().map(Problem::told).collect();
        Ok(Output {
            valid: found.errors.is_empty(),
            errors: told(&found.errors),
            warnings: told(&found.warnings),
            tools: found.tools.into_iter().map(ToolTold::from).collect(),
            params: plan.as_ref().and_then(|plan| plan.params_schema().as_object().cloned()),
            name: plan.map(|plan| plan.name),
        })
    }
}

/// The text of a workflow.
pub async fn read<M: 'static>(fs: &Fs<M>, path: WorkPath) -> Result<String, ToolError>
where
    Fs<M>: Send + Sync,
{
    let reading = Fs::<Read>::new(fs.workspace().clone());
    let bytes = reading.run(move |fs| fs.read(&fs.place(&path)?, MOST_BYTES)).await?;
    String::from_utf8(bytes.0).map_err(|_| {
        ToolError::new(Kind::Invalid, "The file is no text in UTF-8.").hint("A workflow is YAML or JSON.")
    })
}
