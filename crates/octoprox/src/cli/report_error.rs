//! Error output of commands.

use crate::app_error::AppError;
use crate::terminal::console;
use crate::terminal::terminal_width::{columns, stderr_is_terminal, wrap_words};
use crate::terminal::text_table::sanitize_text;
use serde_json::json;
use std::process::ExitCode;

/// Prints the error to standard error, as text or as `{"error": {"message", "exit_code"}}`.
pub fn report_error(error: &AppError, as_json: bool) -> ExitCode {
    if as_json && !error.text().is_empty() {
        let error = json!({"message": error.text(), "exit_code": error.code()});
        console::print_err(&json!({"error": error}).to_string());
    } else {
        for line in sanitize_text(error.text()).lines() {
            console::print_err(&format_line(line, stderr_is_terminal().then(columns)));
        }
    }
    ExitCode::from(error.code())
}

/// Wraps on a terminal; one line otherwise.
fn format_line(line: &str, columns: Option<usize>) -> String {
    let whole = format!("octoprox: {line}");
    columns.map_or(whole.clone(), |columns| wrap_words(&whole, columns.saturating_sub(2)).join("\n  "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints_fit_a_terminal_and_stay_one_line_for_programs() {
        assert_eq!(format_line("One two three.", None), "octoprox: One two three.");
        assert_eq!(format_line("One two three.", Some(17)), "octoprox: One\n  two three.");
    }
}
