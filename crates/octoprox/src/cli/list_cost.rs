//! `octoprox tools --cost`: what the list of tools costs a model.

use crate::attach::tool_queries::{ListChangeCounts, ToolList};
use crate::terminal::text_table::sanitize_line;
use octo_hub::estimate_tokens;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Tools of the text; JSON has all.
const MAX_SHOWN_TOOLS: usize = 15;

/// Cost of a tool, or of all tools of a source.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
struct Cost {
    name: String,
    tools: usize,
    bytes: u64,
    tokens: u64,
}

pub struct ListCost<'a> {
    sources: Vec<Cost>,
    tools: Vec<Cost>,
    total: Cost,
    changes: &'a ListChangeCounts,
}

impl<'a> ListCost<'a> {
    pub fn new(list: &'a ToolList) -> Self {
        let home: BTreeMap<&str, &str> =
            list.sources.iter().map(|(tool, source)| (tool.as_str(), source.as_str())).collect();
        let mut sources: BTreeMap<&str, Cost> = BTreeMap::new();
        let (mut tools, mut total) = (Vec::new(), Cost { name: "total".to_owned(), ..Cost::default() });
        for tool in &list.tools {
            let name = tool.get("name").and_then(Value::as_str).unwrap_or_default();
            let bytes = tool.to_string().len() as u64;
            let source = home.get(name).copied().unwrap_or("other");
            let of_source =
                sources.entry(source).or_insert_with(|| Cost { name: source.to_owned(), ..Cost::default() });
            of_source.add(bytes);
            total.add(bytes);
            let mut cost = Cost { name: name.to_owned(), ..Cost::default() };
            cost.add(bytes);
            tools.push(cost);
        }
        let mut sources: Vec<Cost> = sources.into_values().collect();
        for costs in [&mut sources, &mut tools] {
            costs.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.name.cmp(&b.name)));
        }
        Self { sources, tools, total, changes: &list.changes }
    }

    pub fn to_json(&self) -> String {
        let changes = json!({
            "announced": self.changes.announced,
            "announced_tokens": tokens(self.changes.announced_bytes),
            "withheld": self.changes.withheld,
        });
        json!({"total": self.total, "sources": self.sources, "tools": self.tools, "changes": changes})
            .to_string()
    }

    pub fn to_text(&self) -> String {
        let mut text = format!("{:<32} {:>6} {:>9} {:>9}\n", "SOURCE", "TOOLS", "BYTES", "TOKENS");
        for cost in self.sources.iter().chain([&self.total]) {
            let name = shorten(&cost.name, 32);
            text.push_str(&format!("{name:<32} {:>6} {:>9} {:>9}\n", cost.tools, cost.bytes, cost.tokens));
        }
        text.push_str(&format!("\n{:<48} {:>9}\n", "LARGEST TOOLS", "TOKENS"));
        for cost in self.tools.iter().take(MAX_SHOWN_TOOLS) {
            text.push_str(&format!("{:<48} {:>9}\n", shorten(&cost.name, 48), cost.tokens));
        }
        let ListChangeCounts { announced, announced_bytes, withheld } = *self.changes;
        text.push_str(&format!(
            "\nTokens are estimated: 4.4 bytes each.\n\
             List changes since the hub started: {announced} announced ({} tokens to read again), {withheld} withheld.",
            tokens(announced_bytes)
        ));
        text
    }
}

impl Cost {
    fn add(&mut self, bytes: u64) {
        self.tools += 1;
        self.bytes += bytes;
        self.tokens = tokens(self.bytes);
    }
}

fn tokens(bytes: u64) -> u64 {
    estimate_tokens(usize::try_from(bytes).unwrap_or(usize::MAX / 16)) as u64
}

fn shorten(name: &str, most: usize) -> String {
    let name = sanitize_line(name);
    if name.chars().count() <= most {
        return name;
    }
    name.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_add_up() {
        let tool = |name: &str, size: usize| json!({"name": name, "description": "x".repeat(size)});
        let list = ToolList {
            tools: vec![tool("a__one", 440), tool("a__two", 40), tool("time_now", 100)],
            sources: vec![
                ("a__one".to_owned(), "a".to_owned()),
                ("a__two".to_owned(), "a".to_owned()),
                ("time_now".to_owned(), "time".to_owned()),
            ],
            changes: ListChangeCounts { announced: 1, announced_bytes: 880, withheld: 2 },
            ..ToolList::default()
        };
        let cost = ListCost::new(&list);
        let names: Vec<&str> = cost.sources.iter().map(|cost| cost.name.as_str()).collect();
        assert_eq!(names, ["a", "time"]);
        assert_eq!(cost.total.tools, 3);
        assert_eq!(cost.total.bytes, cost.sources.iter().map(|cost| cost.bytes).sum::<u64>());
        assert_eq!(cost.tools.first().map(|cost| cost.name.as_str()), Some("a__one"));
        assert!(
            cost.to_text().contains("1 announced (200 tokens to read again), 2 withheld"),
            "{}",
            cost.to_text()
        );
        assert!(cost.to_text().lines().all(|line| line.chars().count() <= 100));
        let json: Value = serde_json::from_str(&cost.to_json()).unwrap();
        assert_eq!(json["changes"]["announced_tokens"], json!(200));
    }
}
