//! Line-based insertion and removal of tables in a TOML file. All other lines stay unchanged.

use serde_json::{Map, Value};

/// Returns the text with a table appended, which is always valid.
pub fn insert(text: &str, list: &[&str], name: &str, server: &Map<String, Value>) -> Option<String> {
    let path: Vec<String> = list.iter().chain([&name]).map(|key| toml_key(key)).collect();
    let mut whole = text.trim_end().to_owned();
    whole.push_str(if whole.is_empty() { "" } else { "\n\n" });
    whole.push_str(&format!("[{}]\n", path.join(".")));
    for (key, value) in server {
        whole.push_str(&format!("{} = {}\n", toml_key(key), toml_value(value)?));
    }
    Some(whole)
}

/// A value on one line; `None` for null. Strings, numbers and booleans have the same syntax as in JSON.
fn toml_value(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(toml_value).collect::<Option<_>>()?;
            Some(format!("[{}]", items.join(", ")))
        }
        Value::Object(members) => {
            let member =
                |(key, value): (&String, &Value)| Some(format!("{} = {}", toml_key(key), toml_value(value)?));
            let members: Vec<String> = members.iter().map(member).collect::<Option<_>>()?;
            Some(if members.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", members.join(", ")) })
        }
        value => Some(value.to_string()),
    }
}

fn toml_key(key: &str) -> String {
    if octo_model::is_valid_name(key) { key.to_owned() } else { Value::from(key).to_string() }
}

/// Returns the text without a table and the tables in it. Comments above it stay, since they may refer to something else.
pub fn remove(text: &str, list: &[&str], name: &str) -> String {
    let own: Vec<&str> = list.iter().copied().chain([name]).collect();
    let mut is_inside = false;
    let mut kept = String::new();
    // Blank lines and comments after a table belong to the next one.
    let mut between = String::new();
    for line in text.split_inclusive('\n') {
        if let Some(path) = table_path(line) {
            let was_inside = is_inside;
            is_inside = path.len() >= own.len() && path.iter().zip(&own).all(|(key, own)| key == own);
            if !was_inside || !is_inside {
                kept.push_str(&between);
            }
            between.clear();
        }
        match line.trim() {
            _ if !is_inside => kept.push_str(line),
            "" => between.push_str(line),
            comment if comment.starts_with('#') => between.push_str(line),
            _ => between.clear(),
        }
    }
    if !between.trim().is_empty() {
        kept.push_str(&between);
    }
    kept
}

/// The keys of a table header.
fn table_path(line: &str) -> Option<Vec<String>> {
    let header = line.trim().strip_prefix('[')?.trim_start_matches('[');
    let mut keys = Vec::new();
    let mut rest = header.trim_start();
    loop {
        let (key, after) = match rest.chars().next()? {
            quote @ ('"' | '\'') => {
                let (key, after) = rest.get(1..)?.split_once(quote)?;
                (key.to_owned(), after)
            }
            _ => {
                let end = rest.find(['.', ']', ' ', '\t'])?;
                let (key, after) = rest.split_at(end);
                (key.to_owned(), after)
            }
        };
        keys.push(key);
        rest = after.trim_start();
        match rest.chars().next()? {
            '.' => rest = rest.get(1..)?.trim_start(),
            ']' => return Some(keys),
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_in_a_server_are_written_on_one_line() {
        let server = serde_json::json!({"command": "x", "args": ["a"], "env": {"K": "v", "a b": "c"}, "tools": [{"n": 1}], "e": {}});
        let text = insert("model = \"m\"\n", &["mcp_servers"], "a", server.as_object().unwrap()).unwrap();
        assert_eq!(
            text,
            "model = \"m\"\n\n[mcp_servers.a]\ncommand = \"x\"\nargs = [\"a\"]\nenv = { K = \"v\", \"a b\" = \"c\" }\n\
             tools = [{ n = 1 }]\ne = {}\n"
        );
    }

    #[test]
    fn a_table_goes_with_its_own_tables_and_no_others() {
        let text = "model = \"m\"\n\n# mine\n[mcp_servers.a] # first\ncommand = \"x\"\n\n[mcp_servers.a.env]\nK = \"v\"\n\n\
            # next\n[mcp_servers.\"b.c\"]\ncommand = \"y\"\n\n[other]\nx = 1\n";
        assert_eq!(
            remove(text, &["mcp_servers"], "a"),
            "model = \"m\"\n\n# mine\n\n# next\n[mcp_servers.\"b.c\"]\ncommand = \"y\"\n\n[other]\nx = 1\n"
        );
        assert_eq!(
            remove(text, &["mcp_servers"], "b.c"),
            text.replace("[mcp_servers.\"b.c\"]\ncommand = \"y\"\n", "")
        );
        assert_eq!(remove(text, &["mcp_servers"], "nosuch"), text);
        assert_eq!(remove("[mcp_servers.ab]\nx = 1\n", &["mcp_servers"], "a"), "[mcp_servers.ab]\nx = 1\n");
    }
}
