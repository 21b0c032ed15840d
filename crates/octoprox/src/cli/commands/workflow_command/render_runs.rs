//! Terminal output of workflows and runs.

use crate::app_error::exit_code;
use crate::terminal::terminal_width::{columns, wrap_words};
use crate::terminal::text_table::{sanitize_line, sanitize_text, two_columns};
use octo_model::Kind;
use octo_ports::{RunStatus, StoredRun};
use serde_json::{Value, json};

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

pub fn is_empty(outputs: &Value) -> bool {
    outputs.as_object().is_none_or(serde_json::Map::is_empty)
}

/// Renders a validation result: problems as `file:line:column`, and the tools that a valid workflow calls.
pub fn render_check(file: &str, answer: &Value) -> String {
    let mut lines = Vec::new();
    for (word, member) in [("", "errors"), ("warning: ", "warnings")] {
        for problem in list(answer, member) {
            let place = format!("{file}:{}:{}:", problem["line"], problem["column"]);
            let path = text(problem, "path");
            let path = if path.is_empty() { String::new() } else { format!("{path}: ") };
            let said = format!("{place} {word}{path}{} {}", text(problem, "message"), text(problem, "hint"));
            lines.extend(
                wrap_words(&said, columns().saturating_sub(2)).join("\n  ").lines().map(str::to_owned),
            );
        }
    }
    if answer.get("valid") == Some(&Value::Bool(true)) {
        lines.push(format!("{file}: ok"));
        let rows: Vec<(String, String)> = list(answer, "tools")
            .iter()
            .map(|tool| {
                let steps: Vec<&str> = list(tool, "steps").iter().filter_map(Value::as_str).collect();
                (
                    format!("  {}", text(tool, "name")),
                    format!("{}: {}", text(tool, "effect"), steps.join(", ")),
                )
            })
            .collect();
        lines.push(two_columns(&rows, columns()));
    }
    sanitize_text(&format!("{}\n", lines.join("\n").trim_end()))
}

/// Renders the outcome of a run, with a hint.
pub fn render_summary(answer: &Value) -> String {
    let steps = list(answer, "steps");
    let done = steps.iter().filter(|step| text(step, "status") == "done").count();
    let mut said = format!("{} {}: steps done: {done}", text(answer, "status"), text(answer, "run_id"));
    if let Some(error) = answer.get("error") {
        said.push_str(&format!(
            ". {} failed: {} {}",
            text(error, "step"),
            text(error, "message"),
            text(error, "hint")
        ));
    }
    for warning in list(answer, "warnings").iter().filter_map(Value::as_str) {
        said.push_str(&format!(" {warning}"));
    }
    if let Some(folder) = answer.get("artifacts").and_then(Value::as_str) {
        said.push_str(&format!("\n{folder}"));
    }
    let lines = said.lines().map(|line| wrap_words(line, columns().saturating_sub(2)).join("\n  "));
    sanitize_text(&lines.collect::<Vec<_>>().join("\n"))
}

/// Exit code of the command: 0, or the code of the error.
pub fn run_exit_code(answer: &Value) -> u8 {
    match text(answer, "status") {
        "done" => 0,
        "cancelled" => exit_code(Kind::Cancelled),
        _ => {
            let kind = answer.get("error").map(|error| text(error, "kind")).unwrap_or_default();
            Kind::ALL.into_iter().find(|known| known.as_str() == kind).map_or(1, exit_code)
        }
    }
}

fn format_time(micros: i64) -> String {
    jiff::Timestamp::from_microsecond(micros).unwrap_or_default().strftime("%F %T").to_string()
}

/// Status of a run. A running one without a lease has lost its process and can be resumed.
fn status_text(run: &StoredRun) -> &'static str {
    match run.status {
        RunStatus::Running if !run.is_leased => "stopped",
        status => status.as_str(),
    }
}

pub fn render_runs(all: &[StoredRun]) -> String {
    if all.is_empty() {
        return "No runs.\n".to_owned();
    }
    let row = |run: &StoredRun| {
        (
            run.id.clone(),
            format!("{:<11} {} {}", status_text(run), format_time(run.begun), sanitize_line(&run.name)),
        )
    };
    let rows: Vec<(String, String)> = all.iter().map(row).collect();
    let lines = rows.iter().map(|(id, rest)| format!("{id}  {rest}\n"));
    lines.map(|line| line.chars().take(columns()).collect::<String>().trim_end().to_owned() + "\n").collect()
}

pub fn runs_json(all: &[StoredRun]) -> String {
    json!({"runs": all.iter().map(run_summary).collect::<Vec<_>>()}).to_string()
}

fn run_summary(run: &StoredRun) -> Value {
    json!({
        "run_id": run.id, "status": run.status.as_str(), "held": run.is_leased, "workflow": run.name,
        "path": run.path, "begun": format_time(run.begun), "changed": format_time(run.changed),
    })
}

pub fn render_run(run: &StoredRun) -> String {
    let mut said = format!(
        "{} {} ({}), started {}\n",
        run.id,
        status_text(run),
        sanitize_line(&run.path),
        format_time(run.begun)
    );
    let rows: Vec<(String, String)> = run
        .steps
        .iter()
        .map(|step| {
            let error: Value = step.error.as_ref().and_then(|error| error.to().ok()).unwrap_or_default();
            let tries: Vec<Value> = step.attempts.to().unwrap_or_default();
            let tries = if tries.len() > 1 { format!(" after {} tries", tries.len()) } else { String::new() };
            let why = text(&error, "message");
            let why = if why.is_empty() { String::new() } else { format!(": {why}") };
            (format!("  {}", step.key), sanitize_line(&format!("{}{tries}{why}", step.status)))
        })
        .collect();
    said.push_str(&two_columns(&rows, columns()));
    if let Some(error) = run.error.as_ref().and_then(|error| error.to::<Value>().ok()) {
        let line = format!("{} {}", text(&error, "message"), text(&error, "hint"));
        said.push_str(&format!("{}\n", sanitize_text(&wrap_words(&line, columns()).join("\n"))));
    }
    let outputs: Value = run.outputs.as_ref().and_then(|outputs| outputs.to().ok()).unwrap_or_default();
    if !is_empty(&outputs) {
        said.push_str(&format!("{}\n", serde_json::to_string_pretty(&outputs).unwrap_or_default()));
    }
    said
}

pub fn run_json(run: &StoredRun) -> String {
    let json = |part: &Option<octo_model::Json>| {
        part.as_ref().and_then(|part| part.to::<Value>().ok()).unwrap_or_default()
    };
    let steps = run.steps.iter().map(|step| {
        let attempts: Value = step.attempts.to().unwrap_or_default();
        json!({"id": step.key, "status": step.status, "attempts": attempts, "error": json(&step.error)})
    });
    let mut told = run_summary(run);
    if let Value::Object(members) = &mut told {
        members.insert("steps".to_owned(), steps.collect());
        members.insert("outputs".to_owned(), json(&run.outputs));
        members.insert("error".to_owned(), json(&run.error));
    }
    told.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_are_told_with_their_place_and_fit_a_terminal() {
        let answer = json!({"valid": false, "errors": [
            {"line": 3, "column": 5, "path": "steps[0].tool", "message": "There is no tool `x`.", "hint": "Did you mean `y`? ".repeat(9)},
        ]});
        let said = render_check("a.yaml", &answer);
        assert!(said.starts_with("a.yaml:3:5: steps[0].tool: There is no tool `x`."), "{said}");
        assert!(said.lines().all(|line| line.chars().count() <= 80), "{said}");
    }

    #[test]
    fn the_exit_code_is_that_of_the_failure() {
        for (answer, wanted) in [
            (json!({"status": "done"}), 0),
            (json!({"status": "cancelled"}), 130),
            (json!({"status": "failed", "error": {"kind": "not_found"}}), 3),
            (json!({"status": "failed", "error": {"kind": "failed"}}), 1),
            (json!({"status": "interrupted", "error": {"kind": "conflict"}}), 1),
        ] {
            assert_eq!(run_exit_code(&answer), wanted, "{answer}");
        }
    }
}
