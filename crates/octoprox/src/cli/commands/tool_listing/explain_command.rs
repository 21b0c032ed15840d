//! `octoprox explain`: what the hub decides by itself, and why.

use crate::app_context::AppMode;
use crate::app_error::AppError;
use crate::attach::tool_queries::{SurfaceReport, ToolAnswer, ToolQuery};
use crate::cli::standalone::StandaloneOption;
use crate::cli::tool_client::ToolSession;
use crate::settings::Flags;
use crate::terminal::console;
use crate::terminal::terminal_width::{columns, wrap_words};
use crate::terminal::text_table::sanitize_line;
use clap::{Args, Subcommand};
use octo_hub::{estimate_tokens, model_bytes};
use octo_model::Json;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Below the names of fields.
const FIELD_INDENT: &str = "         ";

/// Explain what the hub decides.
#[derive(Args)]
#[command(after_help = "Example:
  octoprox explain surface")]
pub struct Explain {
    #[command(subcommand)]
    subject: Subject,
}

#[derive(Subcommand)]
enum Subject {
    Surface(ExplainSurface),
}

/// Explain which tools are listed to MCP clients, and why.
#[derive(Args)]
#[command(after_help = "Examples:
  octoprox explain surface
  octoprox explain surface --profile work --json")]
struct ExplainSurface {
    /// The profile of the client
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    profile: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    standalone: StandaloneOption,
}

impl Explain {
    pub fn run(&self, flags: &Flags) -> Result<(), AppError> {
        match &self.subject {
            Subject::Surface(surface) => surface.run(flags),
        }
    }
}

impl ExplainSurface {
    fn run(&self, flags: &Flags) -> Result<(), AppError> {
        let session = ToolSession {
            flags,
            profile: &self.profile,
            mode: AppMode::ReadOnly,
            tool: None,
            standalone: &self.standalone,
        };
        session.run(async |client| {
            let answer = client.ask(ToolQuery::Surface { requested: None }).await?;
            let ToolAnswer::Surface(report) = answer else {
                return Err(AppError::new("The hub gave an unexpected answer."));
            };
            let shown = if self.json { to_json(&report) } else { to_text(&report) };
            Ok(console::print(&shown)?)
        })
    }
}

fn names(report: &SurfaceReport) -> Vec<&str> {
    report.listed.iter().filter_map(|tool| tool.get("name").and_then(Value::as_str)).collect()
}

fn tokens(report: &SurfaceReport) -> usize {
    let definitions = report.listed.iter().filter_map(|tool| Json::from(tool.clone()).members().ok());
    estimate_tokens(definitions.map(|definition| model_bytes(&definition)).sum())
}

fn to_json(report: &SurfaceReport) -> String {
    json!({
        "surface": report.surface,
        "reason": report.reason,
        "listed": names(report),
        "listed_tokens": tokens(report),
        "tools": report.all,
    })
    .to_string()
}

fn to_text(report: &SurfaceReport) -> String {
    let mut text = format!("surface  {}\n", report.surface.as_str());
    let reason = wrap_words(&report.reason.to_string(), columns() - FIELD_INDENT.len());
    let _ = writeln!(text, "why      {}", reason.join(&format!("\n{FIELD_INDENT}")));
    let count = report.listed.len();
    let _ = writeln!(text, "listed   {count} of {} tools, about {} tokens", report.all, tokens(report));
    for name in names(report) {
        let _ = writeln!(text, "{FIELD_INDENT}{}", sanitize_line(name));
    }
    text
}
