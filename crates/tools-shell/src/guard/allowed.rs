//! The list of allowed programs: every program in the line must be in it, and what cannot be seen through is refused.

use crate::line::{Line, Simple, base};
use octo_toolkit::ToolError;

/// What the shell does by itself and what reaches nothing outside of it.
const HARMLESS: &[&str] = &[
    ":", "[", "[[", "break", "builtin", "cd", "command", "continue", "echo", "exec", "exit", "export",
    "false", "getopts", "hash", "local", "printf", "pwd", "read", "readonly", "return", "set", "shift",
    "test", "times", "trap", "true", "type", "ulimit", "umask", "unset", "wait", "eval",
];

/// A program named by its path counts as the one of that name only here.
const SYSTEM: &[&str] = &["/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin", "/usr/local/sbin"];

/// Variables that change which program runs or what it loads, or whose values the shell evaluates.
const STEERING: &[&str] = &[
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

/// What shells read in ways that differ from each other or depend on what stands around it. A list of programs does
/// without it.
const OPAQUE: &[(&str, &str)] = &[
    ("\\\n", "a line that continues on the next one"),
    ("<<", "a here-document"),
    ("`", "backticks; $(...) can be seen through"),
    ("<(", "a process substitution"),
    (">(", "a process substitution"),
    ("=(", "an array"),
    ("${ ", "a command in ${ }"),
    ("${|", "a command in ${ }"),
    ("${\t", "a command in ${ }"),
    ("${\n", "a command in ${ }"),
];

pub fn check(allowed: &[String], text: &str, line: &Line) -> Result<(), ToolError> {
    let opaque = OPAQUE.iter().find(|(signs, _)| text.contains(signs)).map(|(_, what)| *what);
    if let Some(what) = opaque.or_else(|| line.blind.first().copied()) {
        return Err(ToolError::denied(format!(
            "Only listed programs may run, and the line has {what}, so it cannot be told what would run."
        ))
        .hint("Write it without that, as plain commands that name each program."));
    }
    for simple in &line.commands {
        check_variables(simple)?;
        let Some(program) = simple.program() else { continue };
        if !is_allowed(allowed, &program.text) {
            return Err(ToolError::denied(format!("The program {} is not in the list.", program.text)).hint(
                format!(
                    "Allowed: {}. The sandbox is what protects the machine; this list guards against accidents.",
                    shortened(allowed)
                ),
            ));
        }
    }
    Ok(())
}

fn check_variables(simple: &Simple) -> Result<(), ToolError> {
    let exported = simple
        .name()
        .filter(|name| matches!(*name, "export" | "readonly" | "local" | "read" | "getopts" | "unset"))
        .map(|_| simple.arguments())
        .unwrap_or_default();
    let exported =
        exported.iter().map(|word| word.text.split('=').next().unwrap_or_default().trim_end_matches('+'));
    let mut names = simple.assigned.iter().map(String::as_str).chain(exported);
    match names.find(|name| is_steering(name)) {
        Some(name) => Err(steers(name)),
        None => Ok(()),
    }
}

pub fn steers(name: &str) -> ToolError {
    let name = name.replace(crate::line::UNKNOWN, "a variable");
    ToolError::denied(format!("Only listed programs may run, and setting {name} changes which those are."))
        .hint("Leave it as it is.")
}

pub fn is_steering(name: &str) -> bool {
    STEERING.contains(&name)
        || name.starts_with("LD_")
        || name.starts_with("BASH")
        || name.contains(crate::line::UNKNOWN)
}

fn is_allowed(allowed: &[String], program: &str) -> bool {
    let listed = |name: &str| allowed.iter().any(|entry| entry == name);
    if listed(program) {
        return true;
    }
    match program.rsplit_once('/') {
        None => HARMLESS.contains(&program),
        Some((folder, name)) => SYSTEM.contains(&folder) && listed(base(name)),
    }
}

fn shortened(allowed: &[String]) -> String {
    let mut text = allowed.iter().take(20).map(String::as_str).collect::<Vec<_>>().join(", ");
    if allowed.len() > 20 {
        text.push_str(", ...");
    }
    text
}
