//! `db_explain`.

use crate::engine::{ExplainMode, PlanFormat};
use crate::engine_cache::EngineCache;
use crate::statement_args::{self, AnyJson};
use octo_grants::Sql;
use octo_toolkit::{CallContext, Effect, Example, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;
use std::sync::Arc;
use std::time::Instant;

/// Shows the plan of a statement, with real times if analyze is true, which runs it in a read-only transaction. Prefer
/// analyze false for statements that change data; they are refused otherwise.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The statement to explain, without EXPLAIN.
    sql: String,
    /// Values for $1, $2 …
    #[serde(default)]
    #[schemars(with = "Option<Vec<AnyJson>>")]
    params: Option<Vec<Box<RawValue>>>,
    /// Run the statement and measure; false only plans it.
    #[serde(default = "default_analyze")]
    analyze: bool,
    /// Format of the plan: text, json, yaml or xml.
    #[serde(default)]
    format: PlanFormat,
    /// Timeout in seconds.
    #[serde(default = "statement_args::default_timeout_s")]
    timeout_s: u64,
    /// A name of db_connections.
    #[serde(default = "statement_args::default_connection")]
    connection_name: String,
}

fn default_analyze() -> bool {
    true
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// The plan, in the requested format.
    plan: String,
    /// Whether the statement was run.
    analyzed: bool,
    /// Duration in milliseconds.
    duration_ms: f64,
}

pub struct Explain(pub Arc<EngineCache>);

impl Tool for Explain {
    const NAME: &'static str = "db_explain";
    const TITLE: &'static str = "Explain a query";
    const KEYWORDS: &'static str = "slow query plan performance index optimize";
    const REQUESTS: &'static [&'static str] = &[
        "why is this sql statement so slow",
        "does the select use the index or a sequential scan",
        "show the execution plan of a join",
        "measure where the time goes in a slow report statement",
        "planner cost estimate for an update without running it",
        "optimise a statement: see its plan as json",
    ];
    const EFFECT: Effect = Effect::reads_volatile().open_world();
    type Input = Input;
    type Output = Output;
    type Grants = Sql;

    fn examples() -> Vec<Example> {
        vec![
            Example::new(
                "Why a query is slow",
                json!({"sql": "SELECT * FROM orders WHERE customer = $1", "params": [42]}),
            ),
            Example::new(
                "The plan of an update that is not run",
                json!({"sql": "UPDATE orders SET state = 'closed'", "analyze": false, "format": "json"}),
            ),
        ]
    }

    async fn run(&self, input: Input, sql: Sql, cx: &CallContext) -> Result<Output, ToolError> {
        let database = sql.named(&input.connection_name)?;
        let most = database.limits.max_rows;
        let statement =
            statement_args::statement(input.sql, input.params, most, input.timeout_s, &database.limits, cx)?;
        let explained = if input.analyze { ExplainMode::Analyze } else { ExplainMode::PlanOnly };
        let began = Instant::now();
        let plan = self.0.get_or_create(&database).explain(statement, explained, input.format, cx).await?;
        Ok(Output { plan, analyzed: input.analyze, duration_ms: statement_args::elapsed_ms(began) })
    }
}
