//! Found tools as text for models: grouped by server, best first.

use octo_toolkit::{FoundTool, FoundTools, SiblingTools};
use std::fmt::Write as _;

/// Writes the reply: a line for each tool under the name of its server, then the names of its siblings; at the end the names of
/// tools of other servers.
pub fn found_text(found: &FoundTools) -> String {
    if found.tools.is_empty() {
        return match found.servers.as_slice() {
            [] => "No tool matches. No tools are available to you.".to_owned(),
            servers => format!("No tool matches. Search with other words. Servers: {}.", servers.join(", ")),
        };
    }
    let mut text = String::new();
    let mut servers: Vec<&str> = Vec::new();
    for FoundTool { server, .. } in &found.tools {
        if !servers.contains(&server.as_str()) {
            servers.push(server);
        }
    }
    for server in &servers {
        let _ = writeln!(text, "{server}:");
        for tool in found.tools.iter().filter(|tool| tool.server == *server) {
            let _ = write!(text, " {}", tool.signature);
            if !tool.same_on.is_empty() {
                let _ = write!(text, " (same on {})", tool.same_on.join(", "));
            }
            text.push('\n');
            if let Some(schema) = &tool.schema {
                let _ = writeln!(text, "  schema: {}", schema.as_str());
            }
        }
        if let Some(siblings) = found.siblings.iter().find(|siblings| siblings.server == *server) {
            let _ = writeln!(text, " also: {}", names(siblings));
        }
    }
    for siblings in found.siblings.iter().filter(|siblings| !servers.contains(&siblings.server.as_str())) {
        let _ = writeln!(text, "{}: {}", siblings.server, names(siblings));
    }
    text.truncate(text.trim_end().len());
    text
}

fn names(siblings: &SiblingTools) -> String {
    let names: Vec<&str> = siblings.tools.iter().map(|tool| tool.call_name.as_str()).collect();
    format!("{}{}", names.join(", "), if siblings.is_truncated { ", …" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use octo_model::Json;
    use octo_toolkit::SiblingTool;

    fn tool(server: &str, name: &str) -> FoundTool {
        FoundTool {
            name: format!("{server}__{name}"),
            server: server.to_owned(),
            tool: name.to_owned(),
            signature: format!("{name}(path:str) — Do {name}."),
            schema: None,
            same_on: Vec::new(),
        }
    }

    #[test]
    fn tools_are_grouped_by_server() {
        let mut found = FoundTools {
            tools: vec![tool("a", "x"), tool("b", "y"), tool("a", "z")],
            siblings: vec![SiblingTools {
                server: "a".into(),
                tools: ["u", "v"]
                    .map(|name| SiblingTool { tool: name.into(), call_name: name.into() })
                    .into(),
                is_truncated: true,
            }],
            servers: Vec::new(),
        };
        found.siblings.push(SiblingTools {
            server: "d".into(),
            tools: vec![SiblingTool { tool: "w".into(), call_name: "d__w".into() }],
            is_truncated: true,
        });
        found.tools[1].same_on = vec!["c".into()];
        found.tools[1].schema = Some(Json::parse(r#"{"type":"object"}"#).unwrap());
        let expected = "a:\n x(path:str) — Do x.\n z(path:str) — Do z.\n also: u, v, …\nb:\n y(path:str) — Do y. (same on c)\n  schema: {\"type\":\"object\"}\nd: d__w, …";
        assert_eq!(found_text(&found), expected);
    }

    #[test]
    fn an_empty_reply_names_the_servers() {
        let found = FoundTools { servers: vec!["a".into(), "b".into()], ..FoundTools::default() };
        assert_eq!(found_text(&found), "No tool matches. Search with other words. Servers: a, b.");
        assert_eq!(found_text(&FoundTools::default()), "No tool matches. No tools are available to you.");
    }
}
