//! The text of a native result within a budget.

use crate::results::truncate::truncate_value;
use octo_model::{Json, JsonObject, json_len};
use octo_toolkit::plain_text::plain_text;
use serde_json::Value;
use std::borrow::Cow;

/// The text of a native tool within the budget, which ends at a line end. `None` if it has none but the
/// structure as JSON.
pub fn truncate_model_text(result: &JsonObject, structure: &Json, budget: usize) -> Option<Json> {
    let text = result.list("content").iter().find_map(|block| block.member("text"))?;
    if text.bytes().len() <= budget {
        return Some(text);
    }
    let text = text.to_text().filter(|text| text != structure.as_str())?;
    let text = without_positions(&text, structure);
    let mut used = 2;
    let fits = |line: &&str| {
        used += json_len(line);
        used <= budget
    };
    let kept: usize = text.split_inclusive('\n').take_while(fits).map(str::len).sum();
    if kept >= budget / 2 {
        return Some(Json::text(text.get(..kept)?.trim_end_matches('\n')));
    }
    // A long line is not dropped as a whole.
    let mut text = Value::String(text.into_owned());
    truncate_value(&mut text, budget);
    Some(Json::from(text))
}

/// Whether a member says where to continue. Of servers only `next` is known to.
pub fn is_position(key: &str, is_native: bool) -> bool {
    key == "next" || (is_native && key.starts_with("next_"))
}

/// Following a position would skip what is truncated here.
fn without_positions<'a>(text: &'a str, structure: &Json) -> Cow<'a, str> {
    let members = structure.members().unwrap_or_default();
    let positions = members.iter().filter(|(key, _)| is_position(key, true));
    positions.fold(text.into(), |text, (key, value)| without_line(text, key, value))
}

/// The text without the first line of this member.
fn without_line<'a>(text: Cow<'a, str>, key: &str, value: &Json) -> Cow<'a, str> {
    let Some(line) = plain_text(&JsonObject::new().with(key, value.clone()).to_json()) else { return text };
    let line = format!("{line}\n");
    let mut starts = text.match_indices(&line).map(|(start, _)| start);
    let start = starts.find(|start| *start == 0 || text.as_bytes().get(start - 1) == Some(&b'\n'));
    let Some(start) = start else { return text };
    let (head, tail) = (text.get(..start), text.get(start + line.len()..));
    format!("{}{}", head.unwrap_or_default(), tail.unwrap_or_default()).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_text_ends_at_a_line_end_and_does_not_name_the_next_part() {
        let long = format!("head\n{}", "x".repeat(100));
        let rows: [(&str, Value, usize, Option<&str>); 10] = [
            ("fits\nwhole", json!({"next": 2}), 100, Some("fits\nwhole")),
            ("a\nb\nc\nd", json!({}), 9, Some("a\nb")),
            (
                "path: f\nnext: 7\ntext:\n1\n2\n3\n4\n5",
                json!({"next": 7}),
                29,
                Some("path: f\ntext:\n1\n2\n3"),
            ),
            (
                "next_offset: 7\nnext: diff 5, page 2\na\nb\nc",
                json!({"next_offset": 7, "next": {"diff": 5, "page": 2}}),
                8,
                Some("a\nb"),
            ),
            ("next.diff: 5\na\nb\nc", json!({"next": {"diff": 5}}), 8, Some("a\nb")),
            ("next: p2\na\nnext: p2\nb\nc", json!({"next": "p2"}), 18, Some("a\nnext: p2\nb")),
            ("not next: 7\na\nb\nc", json!({"next": 7}), 18, Some("not next: 7\na")),
            (&long, json!({}), 52, Some("head\nxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx")),
            ("{\"next\":7,\"a\":\"aaaaaaaaaaa\"}", json!({"next": 7, "a": "aaaaaaaaaaa"}), 10, None),
            ("é\né\né", json!({}), 8, Some("é\né")),
        ];
        for (text, structure, budget, wanted) in rows {
            let result = json!({"content": [{"type": "image", "data": "x"}, {"type": "text", "text": text}]});
            let result = Json::from(result).members().unwrap();
            let shown = truncate_model_text(&result, &Json::from(structure), budget);
            assert_eq!(shown.as_ref().and_then(Json::to_text).as_deref(), wanted, "{text}");
            assert!(shown.is_none_or(|shown| shown.bytes().len() <= budget), "{text}");
        }
        assert_eq!(truncate_model_text(&JsonObject::new(), &Json::null(), 9), None);
    }
}
