//! docs/reference/tools.md, from the listing of all tools.

use super::{markdown_tables, schema_fields};
use anyhow::{Context, Result};
use serde_json::Value;

pub fn page(listed: &Value) -> Result<String> {
    let tools = listed.get("tools").unwrap_or(listed).as_array().context("the listing has no tools")?;
    let mut boxes: Vec<(&str, Vec<&Value>)> = Vec::new();
    for tool in tools {
        let toolbox = toolbox(tool)?;
        match boxes.iter_mut().find(|(name, _)| *name == toolbox) {
            Some((_, tools)) => tools.push(tool),
            None => boxes.push((toolbox, vec![tool])),
        }
    }
    boxes.sort_by_key(|(name, _)| *name);
    let mut text = markdown_tables::title("Tools");
    for (name, tools) in boxes {
        text.push_str(&format!("\n## {name}\n"));
        tools.iter().for_each(|tool| text.push_str(&section(tool)));
    }
    Ok(text)
}

/// The toolbox that the tool names, or else the prefix of its name.
fn toolbox(tool: &Value) -> Result<&str> {
    let said = tool.pointer("/_meta/octoprox~1toolbox").and_then(Value::as_str);
    let name = tool.get("name").and_then(Value::as_str).context("tool has no name")?;
    Ok(said.unwrap_or_else(|| name.split('_').next().unwrap_or(name)))
}

fn section(tool: &Value) -> String {
    let said = |key| tool.get(key).and_then(Value::as_str).unwrap_or_default();
    let mut text =
        format!("\n### {}\n\n{}\n\n{}.\n", said("name"), said("description").trim(), annotation_text(tool));
    let given = tool.get("inputSchema").map(schema_fields::fields).unwrap_or_default();
    if !given.is_empty() {
        text.push_str(&format!("\n{}", markdown_tables::inputs("parameter", &given)));
    }
    let answered = tool.get("outputSchema").map(schema_fields::fields).unwrap_or_default();
    if !answered.is_empty() {
        text.push_str(&format!("\n{}", markdown_tables::outputs("result", &answered)));
    }
    let examples = tool.pointer("/_meta/octoprox~1examples").and_then(Value::as_array);
    examples.into_iter().flatten().for_each(|example| text.push_str(&example_text(example)));
    text
}

/// The four MCP hints as text. An absent hint has the protocol's default, which is the cautious one.
fn annotation_text(tool: &Value) -> String {
    let hint = |name: &str, default| {
        let said = tool.get("annotations").and_then(|hints| hints.get(name)).and_then(Value::as_bool);
        said.unwrap_or(default)
    };
    let changes = match (hint("readOnlyHint", false), hint("destructiveHint", true)) {
        (true, _) => "Read-only",
        (false, true) => "Destructive",
        (false, false) => "Writes, not destructive",
    };
    let again = if hint("idempotentHint", false) { "idempotent" } else { "not idempotent" };
    let reach = if hint("openWorldHint", true) { "accesses external systems" } else { "no external access" };
    format!("{changes}; {again}; {reach}")
}

fn example_text(example: &Value) -> String {
    let what = example.get("what").and_then(Value::as_str).unwrap_or("Example");
    let mut text = format!("\n{}:\n\n{}", what.trim_end_matches(['.', ':']), json(example.get("input")));
    if let Some(output) = example.get("output").filter(|output| !output.is_null()) {
        text.push_str(&format!("\nreturns\n\n{}", json(Some(output))));
    }
    text
}

fn json(value: Option<&Value>) -> String {
    markdown_tables::fenced("json", &format!("{:#}", value.unwrap_or(&Value::Null)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_tool() {
        let page = page(&json!({"tools": [{
            "name": "time_now",
            "description": "Tells the time.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "zone": {"type": "string", "description": "A zone.", "default": "UTC"},
                    "at": {"type": "string", "description": "When."},
                },
                "required": ["at"],
            },
            "outputSchema": {"type": "object", "properties": {"iso": {"type": "string", "description": "RFC 3339."}}},
            "annotations": {
                "readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false,
            },
            "_meta": {
                "octoprox/toolbox": "time",
                "octoprox/examples": [{"what": "Now in UTC.", "input": {"zone": "UTC"}, "output": {"iso": "x"}}],
            },
        }]}));
        let expected = "
## time

### time_now

Tells the time.

Read-only; idempotent; no external access.

| parameter | type | default | description |
|---|---|---|---|
| `zone` | string | `\"UTC\"` | A zone. |
| `at` | string | *required* | When. |

| result | type | description |
|---|---|---|
| `iso` | string | RFC 3339. |

Now in UTC:

```json
{
  \"zone\": \"UTC\"
}
```

returns

```json
{
  \"iso\": \"x\"
}
```
";
        assert_eq!(page.unwrap(), format!("{}{expected}", markdown_tables::title("Tools")));
    }

    #[test]
    fn boxes_by_what_names_begin_with() {
        let page = page(&json!([{"name": "fs_read"}, {"name": "time_now"}, {"name": "fs_stat"}])).unwrap();
        let headings: Vec<&str> = page.lines().filter(|line| line.starts_with("##")).collect();
        assert_eq!(headings, ["## fs", "### fs_read", "### fs_stat", "## time", "### time_now"]);
    }

    #[test]
    fn what_is_no_listing() {
        assert!(page(&json!({"result": 1})).is_err());
        assert!(page(&json!([{"title": "nameless"}])).is_err());
    }
}
