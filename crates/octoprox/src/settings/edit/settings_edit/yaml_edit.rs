//! Line-based insertion and removal of entries in a section of a YAML file, such as `servers:`. All other lines stay
//! unchanged.

use serde_json::{Map, Value};

/// Default indentation of entries.
const INDENT: usize = 2;

/// Returns the text with a server added at the end of the section, which is created if missing.
pub fn insert(text: &str, section: &str, name: &str, server: &Map<String, Value>) -> Option<String> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let Some(head) = section_line(&lines, section) else {
        let mut whole = text.trim_end().to_owned();
        whole.push_str(if whole.is_empty() { "" } else { "\n\n" });
        whole.push_str(&format!("{section}:\n{}", entry(name, server, INDENT)));
        return Some(whole);
    };
    let below = ServersSection::find(&lines, head);
    if let Some(line) = lines.get_mut(head)
        && let Some(rest) = line.strip_prefix(&format!("{section}: {{}}"))
    {
        *line = format!("{section}:{rest}");
    }
    let written = entry(name, server, below.indent);
    let at = below.end.min(lines.len());
    lines.splice(at..at, written.lines().map(str::to_owned));
    Some(lines.join("\n") + "\n")
}

/// Returns the text without a server. Comments above it stay, since they may refer to something else.
pub fn remove(text: &str, section: &str, name: &str) -> Option<String> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let section = ServersSection::find(&lines, section_line(&lines, section)?);
    let own = |line: &String| is_key(line, section.indent, name);
    let first = lines.iter().take(section.end).position(own).filter(|at| *at >= section.start)?;
    let deeper = |line: &String| !line.trim().is_empty() && indent_of(line) > section.indent;
    let belongs =
        |line: &&String| line.trim().is_empty() || is_comment(line) || indent_of(line) > section.indent;
    let length = lines.iter().take(section.end).skip(first + 1).take_while(belongs).count();
    let body = lines.iter().skip(first + 1).take(length);
    let last = body.enumerate().rfind(|(_, line)| deeper(line)).map_or(0, |(at, _)| at + 1);
    lines.drain(first..=first + last);
    Some(if lines.is_empty() { String::new() } else { lines.join("\n") + "\n" })
}

/// Lines below the first line of a section.
struct ServersSection {
    start: usize,
    /// Line after the last indented one.
    end: usize,
    /// Indentation of its entries.
    indent: usize,
}

impl ServersSection {
    fn find(lines: &[String], head: usize) -> Self {
        let start = head + 1;
        let below = lines.iter().skip(start);
        let length = below.clone().take_while(|line| is_blank(line) || indent_of(line) > 0).count();
        let inside = below.clone().take(length);
        let last =
            inside.clone().enumerate().rfind(|(_, line)| indent_of(line) > 0 && !line.trim().is_empty());
        let entries = inside.filter(|line| !is_blank(line)).map(|line| indent_of(line));
        Self { start, end: start + last.map_or(0, |(at, _)| at + 1), indent: entries.min().unwrap_or(INDENT) }
    }
}

/// Returns the first line of the section.
fn section_line(lines: &[String], section: &str) -> Option<usize> {
    let head = format!("{section}:");
    lines.iter().position(|line| {
        let rest = line.strip_prefix(&head).map(|rest| rest.strip_prefix(" {}").unwrap_or(rest));
        rest.is_some_and(|rest| rest.trim().is_empty() || rest.trim_start().starts_with('#'))
    })
}

fn indent_of(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with('#')
}

fn is_blank(line: &str) -> bool {
    line.trim().is_empty() || is_comment(line)
}

fn is_key(line: &str, indent: usize, name: &str) -> bool {
    let quoted = [name.to_owned(), format!("'{name}'"), format!("\"{name}\"")];
    indent_of(line) == indent
        && quoted.iter().any(|key| {
            let rest = line.trim_start().strip_prefix(key.as_str()).and_then(|rest| rest.strip_prefix(':'));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        })
}

/// Formats a server as YAML lines.
pub fn entry(name: &str, server: &Map<String, Value>, indent: usize) -> String {
    let mut text = format!("{:indent$}{}:\n", "", scalar(name));
    write_members(server, indent + INDENT, &mut text);
    text
}

fn write_members(object: &Map<String, Value>, indent: usize, text: &mut String) {
    for (key, value) in object {
        let key = scalar(key);
        match value {
            Value::Object(inner) if !inner.is_empty() => {
                text.push_str(&format!("{:indent$}{key}:\n", ""));
                write_members(inner, indent + INDENT, text);
            }
            Value::String(plain) => text.push_str(&format!("{:indent$}{key}: {}\n", "", scalar(plain))),
            // JSON is YAML.
            value => text.push_str(&format!("{:indent$}{key}: {}\n", "", inline_list(value))),
        }
    }
}

/// Formats a list on one line, with a space after each comma.
fn inline_list(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(inline_list).collect::<Vec<_>>().join(", ")),
        value => value.to_string(),
    }
}

/// Formats a string, quoted only if YAML requires it.
fn scalar(text: &str) -> String {
    const WORDS: [&str; 10] = ["true", "false", "yes", "no", "on", "off", "null", "y", "n", "nan"];
    let first = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/');
    let safe = |c: char| c.is_ascii_alphanumeric() || "_-./:@+=?&%".contains(c);
    let meant = WORDS.contains(&text.to_ascii_lowercase().as_str());
    if first && !meant && !text.ends_with(':') && text.chars().all(safe) {
        text.to_owned()
    } else {
        Value::from(text).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn server() -> Map<String, Value> {
        let Value::Object(server) = json!({
            "command": "npx", "args": ["-y", "a b"], "env": {"T": "${KEY}", "NUM": "1", "E": ""}, "connect": "always",
        }) else {
            return Map::new();
        };
        server
    }

    const WRITTEN: &str = "  o:\n    command: npx\n    args: [\"-y\", \"a b\"]\n    env:\n      T: \"${KEY}\"\n      \
                           NUM: \"1\"\n      E: \"\"\n    connect: always\n";

    #[test]
    fn entries_come_at_the_end_of_the_section() {
        for (text, expected) in [
            (String::new(), format!("servers:\n{WRITTEN}")),
            ("# mine\n".to_owned(), format!("# mine\n\nservers:\n{WRITTEN}")),
            ("servers: {}  # none\n".to_owned(), format!("servers:  # none\n{WRITTEN}")),
            (
                "servers:\n  a: {command: x}  # first\n  # b: off\n\n# below\nlisten: {port: 1}\n".to_owned(),
                format!(
                    "servers:\n  a: {{command: x}}  # first\n  # b: off\n{WRITTEN}\n# below\nlisten: {{port: 1}}\n"
                ),
            ),
            (
                "listen: {port: 1}\nservers:\n  # none yet\n".to_owned(),
                format!("listen: {{port: 1}}\nservers:\n  # none yet\n{WRITTEN}"),
            ),
        ] {
            assert_eq!(insert(&text, "servers", "o", &server()), Some(expected), "{text}");
        }
        let wide = insert("servers:\n    a:\n        command: x\n", "servers", "o", &server()).unwrap();
        assert!(
            wide.starts_with("servers:\n    a:\n        command: x\n    o:\n      command: npx\n"),
            "{wide}"
        );
    }

    #[test]
    fn entries_go_with_their_own_lines_and_no_others() {
        let text = "servers:\n  # about a\n  a:\n    command: x\n    # inside a\n\n  # about o\n  'o':\n    args:\n      - |\n        one\n\n        two\n    # inside o\n\n  # about b\n  b: {command: y}\nlisten:\n  o: 1\n";
        let without = "servers:\n  # about a\n  a:\n    command: x\n    # inside a\n\n  # about o\n\n  # about b\n  b: {command: y}\nlisten:\n  o: 1\n";
        assert_eq!(remove(text, "servers", "o").as_deref(), Some(without));
        assert_eq!(remove("servers:\n  o: {command: x}\n", "servers", "o").as_deref(), Some("servers:\n"));
        assert_eq!(remove("servers:\n  oo: {command: x}\nlisten:\n  o: 1\n", "servers", "o"), None);
        assert_eq!(remove("listen:\n  o: 1\n", "servers", "o"), None);
    }

    #[test]
    fn words_that_mean_something_are_quoted() {
        for (text, written) in [
            ("npx", "npx"),
            ("https://x.test/mcp?a=b", "https://x.test/mcp?a=b"),
            ("@scope/name", "\"@scope/name\""),
            ("no", "\"no\""),
            ("1.0", "\"1.0\""),
            ("a: b", "\"a: b\""),
            ("a#b", "\"a#b\""),
            ("-y", "\"-y\""),
            ("ends:", "\"ends:\""),
        ] {
            assert_eq!(scalar(text), written);
        }
    }
}
