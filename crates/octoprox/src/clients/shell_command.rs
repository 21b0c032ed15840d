//! Variables that a shell command line sets for its program: `sh -c "NAME=value exec program"`.

use super::variable_references::is_variable;
use serde_json::{Map, Value};
use std::path::Path;

const SHELLS: [&str; 5] = ["sh", "bash", "dash", "zsh", "ksh"];

/// Returns whether a server is started by a shell.
pub fn is_shell(server: &Map<String, Value>) -> bool {
    let command = server.get("command").and_then(Value::as_str).map(Path::new);
    let program = command.and_then(Path::file_name).and_then(|name| name.to_str());
    program.is_some_and(|program| SHELLS.contains(&program))
}

/// Moves the variables that `is_secret` accepts from the start of a shell command line to the server's `env`. The rest
/// of the line stays as it is.
pub fn move_assignments(server: &mut Map<String, Value>, is_secret: impl Fn(&str, &str) -> bool) {
    if !is_shell(server) {
        return;
    }
    let args = server.get_mut("args").and_then(Value::as_array_mut);
    let mut args = args.into_iter().flatten();
    let is_script_flag =
        |flag: &Value| flag.as_str().is_some_and(|flag| flag.starts_with('-') && flag.ends_with('c'));
    let Some(Value::String(line)) = args.find(|flag| is_script_flag(flag)).and_then(|_| args.next()) else {
        return;
    };
    let mut moved = Vec::new();
    let mut kept = String::new();
    let mut rest = line.as_str();
    while let Some(Assignment { name, value, text, tail }) = Assignment::parse(rest) {
        if is_secret(name, &value) {
            moved.push((name.to_owned(), Value::from(value)));
        } else {
            kept.push_str(text);
        }
        rest = tail;
    }
    // Without a command, the variables would be those of the shell itself.
    if moved.is_empty() || rest.is_empty() || rest.starts_with(['&', ';', '|', '<', '>', ')']) {
        return;
    }
    *line = kept + rest;
    let env = server.entry("env").or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(env) = env {
        env.extend(moved);
    }
}

/// `NAME=value` and the space after it, at the start of a command line.
struct Assignment<'a> {
    name: &'a str,
    value: String,
    text: &'a str,
    tail: &'a str,
}

impl<'a> Assignment<'a> {
    /// `None` if there is none, or if the shell would expand it.
    fn parse(line: &'a str) -> Option<Self> {
        let trimmed = line.trim_start();
        let (name, after) = trimmed.split_once('=')?;
        if !is_variable(name) {
            return None;
        }
        let (value, rest) = parse_word(after)?;
        let tail = rest.trim_start();
        let text = line.get(..line.len() - tail.len())?;
        Some(Self { name, value, text, tail })
    }
}

/// Parses a word of a shell, with its quotes. `None` if it contains anything that the shell would expand.
fn parse_word(text: &str) -> Option<(String, &str)> {
    let mut word = String::new();
    let mut quote = None;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some('\''), c) => word.push(c),
            (_, '$' | '`' | '\\') => return None,
            (Some(_), c) => word.push(c),
            (None, '\'' | '"') => quote = Some(c),
            (None, c) if c.is_ascii_whitespace() => return Some((word, text.get(at..)?)),
            (None, ';' | '&' | '|' | '<' | '>' | '(' | ')' | '*' | '?' | '[' | '~' | '{') => return None,
            (None, c) => word.push(c),
        }
    }
    quote.is_none().then_some((word, ""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_secrets_are_moved_and_the_command_stays_whole() {
        for (server, expected) in [
            (
                json!({"command": "sh", "args": ["-c", "DB_PASS=hunter2 exec my-server"]}),
                json!({"command": "sh", "args": ["-c", "exec my-server"], "env": {"DB_PASS": "hunter2"}}),
            ),
            (
                json!({"command": "/bin/bash", "args": ["-lc", "A=1 DB_PASS='it is \"x\" $y' B=\"2 3\" npx -y s | tee l"], "env": {"C": "d"}}),
                json!({"command": "/bin/bash", "args": ["-lc", "A=1 B=\"2 3\" npx -y s | tee l"],
                       "env": {"C": "d", "DB_PASS": "it is \"x\" $y"}}),
            ),
            (
                json!({"command": "sh", "args": ["-c", "DB_PASS=\"$OTHER\" x"]}),
                json!({"command": "sh", "args": ["-c", "DB_PASS=\"$OTHER\" x"]}),
            ),
            (
                json!({"command": "sh", "args": ["-c", "DB_PASS=x; y"]}),
                json!({"command": "sh", "args": ["-c", "DB_PASS=x; y"]}),
            ),
            (
                json!({"command": "sh", "args": ["-c", "DB_PASS=x"]}),
                json!({"command": "sh", "args": ["-c", "DB_PASS=x"]}),
            ),
            (
                json!({"command": "sh", "args": ["-c", "DB_PASS=x && y"]}),
                json!({"command": "sh", "args": ["-c", "DB_PASS=x && y"]}),
            ),
            (
                json!({"command": "node", "args": ["-c", "DB_PASS=x y"]}),
                json!({"command": "node", "args": ["-c", "DB_PASS=x y"]}),
            ),
        ] {
            let Value::Object(mut server) = server else { continue };
            move_assignments(&mut server, |name, _| name == "DB_PASS");
            assert_eq!(Value::Object(server), expected);
        }
    }
}
