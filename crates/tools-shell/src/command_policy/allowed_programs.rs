//! List of allowed programs: every program in the line must be in it; what cannot be analyzed is refused.

use crate::command_line::{CommandLine, SimpleCommand, file_name};
use octo_toolkit::ToolError;

/// Builtins without effects outside the shell.
const SAFE_BUILTINS: &[&str] = &[
    ":", "[", "[[", "break", "builtin", "cd", "command", "continue", "echo", "exec", "exit", "export",
    "false", "getopts", "hash", "local", "printf", "pwd", "read", "readonly", "return", "set", "shift",
    "test", "times", "trap", "true", "type", "ulimit", "umask", "unset", "wait", "eval",
];

/// A program with a path counts as the one of that name only in these directories.
const SYSTEM_DIRS: &[&str] = &["/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin", "/usr/local/sbin"];

/// Variables that change which program runs or what it loads, or whose values the shell evaluates.
const DANGEROUS_VARIABLES: &[&str] = &[
    "PATH",
    "IFS",
    "ENV",
    "PS4",
    "SHELLOPTS",
    "EXECIGNORE",
    "RANDOM",
    "SECONDS",
    "LINENO",
    "HISTCMD",
    "OPTIND",
    "SRANDOM",
    "EPOCHSECONDS",
];

/// Syntax that shells interpret differently or depending on context. Not allowed with a list of programs.
const UNANALYZABLE: &[(&str, &str)] = &[
    ("\\\n", "a line that continues on the next one"),
    ("<<", "a here-document"),
    ("`", "backticks; use $(...) instead"),
    ("<(", "a process substitution"),
    (">(", "a process substitution"),
    ("=(", "an array"),
    ("${ ", "a command in ${ }"),
    ("${|", "a command in ${ }"),
    ("${\t", "a command in ${ }"),
    ("${\n", "a command in ${ }"),
];

pub fn check(allowed: &[String], text: &str, line: &CommandLine) -> Result<(), ToolError> {
    let opaque = UNANALYZABLE.iter().find(|(signs, _)| text.contains(signs)).map(|(_, what)| *what);
    if let Some(what) = opaque.or_else(|| line.opaque.first().copied()) {
        return Err(ToolError::denied(format!(
            "Only listed programs may run, and the line contains {what}, which cannot be analyzed."
        ))
        .hint("Rewrite it as plain commands that name each program."));
    }
    for simple in &line.commands {
        check_variables(simple)?;
        let Some(program) = simple.program() else { continue };
        if !is_allowed(allowed, &program.text) {
            return Err(ToolError::denied(format!("The program {} is not in the list.", program.text)).hint(
                format!(
                    "Allowed: {}. The sandbox protects the machine; this list prevents accidents.",
                    join_names(allowed)
                ),
            ));
        }
    }
    Ok(())
}

fn check_variables(simple: &SimpleCommand) -> Result<(), ToolError> {
    let exported = simple
        .name()
        .filter(|name| matches!(*name, "export" | "readonly" | "local" | "read" | "getopts" | "unset"))
        .map(|_| simple.arguments())
        .unwrap_or_default();
    let exported =
        exported.iter().map(|word| word.text.split('=').next().unwrap_or_default().trim_end_matches('+'));
    let mut names = simple.assignments.iter().map(String::as_str).chain(exported);
    match names.find(|name| is_dangerous_variable(name)) {
        Some(name) => Err(variable_error(name)),
        None => Ok(()),
    }
}

pub fn variable_error(name: &str) -> ToolError {
    let name = name.replace(crate::command_line::EXPANSION, "a variable");
    ToolError::denied(format!("Only listed programs may run, and setting {name} changes which programs run."))
        .hint("Do not set it.")
}

pub fn is_dangerous_variable(name: &str) -> bool {
    DANGEROUS_VARIABLES.contains(&name)
        || name.starts_with("LD_")
        || name.starts_with("BASH")
        || name.contains(crate::command_line::EXPANSION)
}

fn is_allowed(allowed: &[String], program: &str) -> bool {
    let listed = |name: &str| allowed.iter().any(|entry| entry == name);
    if listed(program) {
        return true;
    }
    match program.rsplit_once('/') {
        None => SAFE_BUILTINS.contains(&program),
        Some((folder, name)) => SYSTEM_DIRS.contains(&folder) && listed(file_name(name)),
    }
}

fn join_names(allowed: &[String]) -> String {
    let mut text = allowed.iter().take(20).map(String::as_str).collect::<Vec<_>>().join(", ");
    if allowed.len() > 20 {
        text.push_str(", ...");
    }
    text
}
