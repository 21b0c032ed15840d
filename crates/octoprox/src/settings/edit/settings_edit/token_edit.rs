//! Removes a token from a settings file.

use crate::settings::edit::settings_edit::{EditError, keep_line_endings};
use crate::settings::load::settings_format::parse_as;
use serde_json::Value;
use std::path::Path;

/// Returns the text without the token of this name. Fails if anything else would change.
pub fn remove_token(path: &Path, text: &str, name: &str) -> Result<String, EditError> {
    let unclear = || "it is written in a way that cannot be edited safely".to_owned();
    let read = |text: &str| parse_as(path, text).map_err(|why| format!("it cannot be read: {why}"));
    let mut expected = read(text)?;
    let tokens = expected.pointer_mut("/auth/tokens").and_then(Value::as_array_mut);
    let tokens = tokens.ok_or_else(|| "no tokens found in it".to_owned())?;
    let at = tokens.iter().position(|token| token.get("name").is_some_and(|known| known == name));
    let token = tokens.remove(at.ok_or_else(|| format!("{name} not found in it"))?);
    let hash = token.get("sha256").and_then(Value::as_str).ok_or_else(unclear)?;
    let empty_tokens = |mut tree: Value| {
        if let Some(tokens) = tree.pointer_mut("/auth/tokens").filter(|tokens| tokens.is_null()) {
            *tokens = Value::Array(Vec::new());
        }
        tree
    };
    let is_meant = |changed: &String| read(changed).is_ok_and(|tree| empty_tokens(tree) == expected);
    [without_lines(text, hash), keep_line_endings(text, |text| without_object(text, hash))]
        .into_iter()
        .flatten()
        .find(is_meant)
        .ok_or_else(unclear)
}

/// Removes the multi-line list entry that contains the word.
fn without_lines(text: &str, word: &str) -> Option<String> {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let found = lines.iter().position(|line| line.contains(word))?;
    let is_part = |line: &&str, of: usize| line.trim().is_empty() || indent(line) > of;
    let begins = (0..=found).rev().find(|at| {
        let line = lines.get(*at).copied().unwrap_or_default();
        line.trim_start().starts_with("- ")
            && lines
                .get(at + 1..=found)
                .is_some_and(|rest| rest.iter().all(|rest| is_part(rest, indent(line))))
    })?;
    let of = indent(lines.get(begins)?);
    let rest = lines.get(begins + 1..)?;
    let mut length = rest.iter().take_while(|line| is_part(line, of)).count();
    // Blank lines after the entry are kept.
    while length > 0 && rest.get(length - 1).is_some_and(|line| line.trim().is_empty()) {
        length -= 1;
    }
    let kept = lines.get(..begins)?.iter().chain(rest.get(length..)?);
    Some(kept.copied().collect())
}

/// Removes the flow-style object that contains the word, and one adjacent comma.
fn without_object(text: &str, word: &str) -> Option<String> {
    let at = text.find(word)?;
    let (before, after) = text.split_at_checked(at)?;
    let open = before.rfind('{')?;
    let close = at + after.find('}')? + 1;
    let (head, tail) = (text.get(..open)?, text.get(close..)?);
    Some(match (tail.trim_start().strip_prefix(','), head.trim_end().strip_suffix(',')) {
        (Some(tail), _) => format!("{head}{}", tail.trim_start_matches([' ', '\t'])),
        (None, Some(head)) => format!("{head}{tail}"),
        (None, None) => format!("{head}{tail}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_token_goes() {
        let block = "# mine\nauth:\n  tokens:\n    # ann\n    - name: ann\n      sha256: aa\n      scopes:\n        - admin\n\n    - sha256: bb\n      name: bob # b\nlisten:\n  port: 1\n";
        let without_ann = "# mine\nauth:\n  tokens:\n    # ann\n\n    - sha256: bb\n      name: bob # b\nlisten:\n  port: 1\n";
        let without_bob = "# mine\nauth:\n  tokens:\n    # ann\n    - name: ann\n      sha256: aa\n      scopes:\n        - admin\n\nlisten:\n  port: 1\n";
        let flow = "auth: {tokens: [{name: ann, sha256: aa, scopes: [admin]}, {name: bob, sha256: bb}]}\n";
        let json = "{\"auth\": {\"tokens\": [\n  {\"name\": \"ann\", \"sha256\": \"aa\"},\n  {\"name\": \"bob\", \"sha256\": \"bb\"}\n]}}";
        for (text, name, wanted) in [
            (block, "ann", without_ann),
            (block, "bob", without_bob),
            (flow, "ann", "auth: {tokens: [{name: bob, sha256: bb}]}\n"),
            (flow, "bob", "auth: {tokens: [{name: ann, sha256: aa, scopes: [admin]}]}\n"),
            (json, "ann", "{\"auth\": {\"tokens\": [\n  \n  {\"name\": \"bob\", \"sha256\": \"bb\"}\n]}}"),
            ("auth:\n  tokens:\n  - name: a\n    sha256: cc\n", "a", "auth:\n  tokens:\n"),
        ] {
            assert_eq!(remove_token(Path::new("o.yaml"), text, name).as_deref(), Ok(wanted), "{name}");
        }
    }

    #[test]
    fn what_is_unclear_is_refused() {
        for (text, name) in [
            (block_with_anchor(), "ann"),
            ("auth: {tokens: []}", "ann"),
            ("auth: {}", "ann"),
            ("auth:\n  tokens:\n  - name: ann\n    sha256: aa\nnote: aa\nother: [aa]\n", "bob"),
        ] {
            assert!(remove_token(Path::new("o.yaml"), text, name).is_err(), "{text}");
        }
    }

    fn block_with_anchor() -> &'static str {
        "t: &t {name: ann, sha256: aa}\nauth:\n  tokens:\n    - *t\n"
    }
}
