//! A command line in one string with `<<name>>` for each value, as in playbooks of other products. It is
//! split into arguments when it is loaded; no shell is involved.

use super::tool_manifest::{ArgPart, Command, Execution};

/// Characters with a meaning to a shell.
const SHELL_CHARS: &[char] = &['|', '&', ';', '<', '>', '$', '`', '(', ')', '*', '?', '~', '#', '\n'];

/// Converts it to an argument list; fails with a message if it needs a shell.
pub fn parse_command_line(written: Execution) -> Result<Command, String> {
    let words = split_words(&written.command)?;
    Ok(Command {
        argv: words.into_iter().map(ArgPart::One).collect(),
        env: Default::default(),
        stdin: None,
        folder: None,
        network: written.network,
        ok_exit: vec![0],
    })
}

fn split_words(text: &str) -> Result<Vec<String>, String> {
    let (mut words, mut word, mut quote): (Vec<String>, Option<String>, Option<char>) =
        (Vec::new(), None, None);
    let mut rest = text.trim();
    while let Some(next) = rest.chars().next() {
        if let Some((name, tail)) = rest.strip_prefix("<<").and_then(|rest| rest.split_once(">>")) {
            word.get_or_insert_default().push_str(&format!("{{{{{}}}}}", name.trim()));
            rest = tail;
            continue;
        }
        rest = rest.get(next.len_utf8()..).unwrap_or_default();
        match (quote, next) {
            (Some(open), next) if next == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(next);
                word.get_or_insert_default();
            }
            (None | Some('"'), '\\') => {
                let escaped = rest.chars().next().ok_or("the command ends with a `\\`")?;
                word.get_or_insert_default().push(escaped);
                rest = rest.get(escaped.len_utf8()..).unwrap_or_default();
            }
            (None, ' ' | '\t') => words.extend(word.take()),
            (None, next) if SHELL_CHARS.contains(&next) => return Err(needs_shell(next)),
            (Some('"'), '$' | '`') => return Err(needs_shell(next)),
            (_, next) => word.get_or_insert_default().push(next),
        }
    }
    if quote.is_some() {
        return Err("unterminated quote in the command".to_owned());
    }
    words.extend(word);
    Ok(words)
}

fn needs_shell(sign: char) -> String {
    format!(
        "`{sign}` in `execution.command` requires a shell, which is not supported; write the arguments as `command: {{argv: [...]}}`"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_becomes_arguments() {
        for (text, wanted) in [
            ("lynx -dump <<url>>", &["lynx", "-dump", "{{url}}"][..]),
            ("find <<dir>> -name \"*<<what>>*\"", &["find", "{{dir}}", "-name", "*{{what}}*"]),
            ("printf '%s\\n' \"a b\"c", &["printf", "%s\\n", "a bc"]),
            ("echo ''", &["echo", ""]),
            ("echo a\\ b", &["echo", "a b"]),
        ] {
            assert_eq!(split_words(text).unwrap(), wanted, "{text}");
        }
        for text in ["ls | wc", "echo $HOME", "echo \"$(id)\"", "ls *.rs", "a; b", "echo 'x", "x > y", "x \\"]
        {
            assert!(split_words(text).is_err(), "{text}");
        }
    }
}
