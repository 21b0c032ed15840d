//! Insertion and removal of JSON members, leaving everything else unchanged.

use crate::clients::jsonc::{StrippedJsonc, strip_comments};
use crate::settings::edit::settings_edit::json_spans::{ObjectSpan, object_at};
use serde::Serialize;
use serde_json::{Map, Value};

/// Returns the text with a member added to the object at `path`, which is created if missing.
pub fn insert(text: &str, path: &[&str], key: &str, value: &Value) -> Option<String> {
    let shown = strip_comments(text);
    if shown.text.trim().is_empty() {
        let whole =
            path.iter().rev().fold(single_member(key, value.clone()), |inner, key| single_member(key, inner));
        return Some(format!("{}\n", pretty(&whole, "  ")?));
    }
    // The deepest existing object receives the rest as one member.
    let depth = (0..=path.len())
        .rev()
        .find(|depth| object_at(&shown.text, path.get(..*depth).unwrap_or_default()).is_some())?;
    let place = object_at(&shown.text, path.get(..depth)?)?;
    let mut missing = path.get(depth..)?.iter();
    let (key, value) = match missing.next() {
        None => (key, value.clone()),
        Some(first) => (
            *first,
            missing.rev().fold(single_member(key, value.clone()), |inner, key| single_member(key, inner)),
        ),
    };
    if place.members.iter().any(|member| member.key == key) {
        return None;
    }
    let unit = indent_unit(text, &shown)?;
    insert_member(text, &shown, &place, &unit, key, &value)
}

/// Returns the text without a member of the object at `path`.
pub fn remove(text: &str, path: &[&str], key: &str) -> Option<String> {
    let shown = strip_comments(text);
    let place = object_at(&shown.text, path)?;
    let at = place.members.iter().position(|member| member.key == key)?;
    let member = place.unique_member(key)?;
    let next = place.members.get(at + 1).map_or(place.close, |next| next.start);
    let comma =
        text.get(member.value.1..next)?.char_indices().map(|(offset, _)| member.value.1 + offset).find(
            |offset| {
                shown.text.as_bytes().get(*offset) == Some(&b',') || shown.trailing_commas.contains(offset)
            },
        );
    let mut whole = text.to_owned();
    let end = comma.map_or(member.value.1, |comma| comma + 1);
    let (from, to) = whole_lines(text, member.start, end);
    whole.replace_range(from..to, "");
    // Removing the last member leaves a comma before it.
    if comma.is_none()
        && let Some(before) = at.checked_sub(1).and_then(|at| place.members.get(at))
    {
        let comma = shown.text.get(before.value.1..member.start)?.find(',')? + before.value.1;
        whole.replace_range(comma..=comma, "");
    }
    Some(whole)
}

fn insert_member(
    text: &str,
    shown: &StrippedJsonc,
    place: &ObjectSpan,
    unit: &str,
    key: &str,
    value: &Value,
) -> Option<String> {
    let key = serde_json::to_string(key).ok()?;
    let outer = indent(text, place.open);
    let mut whole = text.to_owned();
    let (Some(first), Some(last)) = (place.members.first(), place.members.last()) else {
        let inner = format!("{outer}{unit}");
        let written = format!("\n{inner}{key}: {}\n{outer}", indent_lines(&pretty(value, unit)?, &inner));
        let comments = text.get(place.open + 1..place.close)?.trim_end();
        whole.replace_range(place.open + 1..place.close, &format!("{comments}{written}"));
        return Some(whole);
    };
    let alone = text.get(..first.start)?.rsplit('\n').next()?.trim().is_empty();
    let end = last.value.1;
    let trailing = shown.trailing_commas.iter().copied().find(|comma| (end..place.close).contains(comma));
    if !alone {
        let written = format!("{} {key}: {value}", if trailing.is_some() { "" } else { "," });
        let at = trailing.map_or(end, |comma| comma + 1);
        whole.insert_str(at, &written);
        return Some(whole);
    }
    let inner = indent(text, first.start);
    let comma = if trailing.is_some() { "," } else { "" };
    let written = format!("\n{inner}{key}: {}{comma}", indent_lines(&pretty(value, unit)?, &inner));
    let after = trailing.map_or(end, |comma| comma + 1);
    // After the rest of that line, which may be a comment on the last member.
    let line = text.get(after..place.close)?.find(['\r', '\n']).map_or(after, |offset| after + offset);
    whole.insert_str(line, &written);
    if trailing.is_none() {
        whole.insert(end, ',');
    }
    Some(whole)
}

fn single_member(key: &str, value: Value) -> Value {
    Value::Object(Map::from_iter([(key.to_owned(), value)]))
}

/// Returns the indentation of the line at an offset.
fn indent(text: &str, at: usize) -> String {
    let line = text.get(..at).unwrap_or_default().rsplit('\n').next().unwrap_or_default();
    line.chars().take_while(|c| matches!(c, ' ' | '\t')).collect()
}

/// Returns the indentation of one level: that of the first member.
fn indent_unit(text: &str, shown: &StrippedJsonc) -> Option<String> {
    let root = object_at(&shown.text, &[])?;
    let first = root.members.first().map(|member| indent(text, member.start)).unwrap_or_default();
    Some(if first.is_empty() { "  ".to_owned() } else { first })
}

fn pretty(value: &Value, unit: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let formatter = serde_json::ser::PrettyFormatter::with_indent(unit.as_bytes());
    value.serialize(&mut serde_json::Serializer::with_formatter(&mut bytes, formatter)).ok()?;
    String::from_utf8(bytes).ok()
}

fn indent_lines(text: &str, by: &str) -> String {
    text.replace('\n', &format!("\n{by}"))
}

/// Extends a range to whole lines, if they contain nothing else.
fn whole_lines(text: &str, from: usize, to: usize) -> (usize, usize) {
    let before = text.get(..from).unwrap_or_default();
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    let rest = text.get(to..).unwrap_or_default();
    let end = rest.find('\n').map_or(text.len(), |at| to + at + 1);
    let blank = |part: Option<&str>| part.is_some_and(|part| part.trim().is_empty());
    if blank(text.get(start..from)) && blank(text.get(to..end)) { (start, end) } else { (from, to) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn members_are_put_in_as_the_file_writes_its_own() {
        let value = json!({"command": "x", "args": ["stdio"]});
        let written = "{\n      \"command\": \"x\",\n      \"args\": [\n        \"stdio\"\n      ]\n    }";
        for (text, expected) in [
            (String::new(), format!("{{\n  \"m\": {{\n    \"o\": {written}\n  }}\n}}\n")),
            ("{}".to_owned(), format!("{{\n  \"m\": {{\n    \"o\": {written}\n  }}\n}}")),
            (
                "{\n  \"m\": {\n    \"a\": 1 // first\n  }\n}\n".to_owned(),
                format!("{{\n  \"m\": {{\n    \"a\": 1, // first\n    \"o\": {written}\n  }}\n}}\n"),
            ),
            (
                "{\n  \"m\": {\n    \"a\": 1,\n  },\n}\n".to_owned(),
                format!("{{\n  \"m\": {{\n    \"a\": 1,\n    \"o\": {written},\n  }},\n}}\n"),
            ),
            (
                "{\"k\": 1, \"m\": {\"a\": 1}}".to_owned(),
                "{\"k\": 1, \"m\": {\"a\": 1, \"o\": {\"command\":\"x\",\"args\":[\"stdio\"]}}}".to_owned(),
            ),
            (
                "{\n  \"k\": [1]\n}\n".to_owned(),
                format!("{{\n  \"k\": [1],\n  \"m\": {{\n    \"o\": {written}\n  }}\n}}\n"),
            ),
        ] {
            assert_eq!(insert(&text, &["m"], "o", &value), Some(expected), "{text}");
        }
        assert_eq!(insert("{\"m\": {\"o\": 1}}", &["m"], "o", &value), None, "it is there already");
        assert_eq!(insert("{\"m\": 5}", &["m"], "o", &value), None, "there is no place for it");
        let tabs = insert("{\n\t\"m\": {}\n}", &["m"], "o", &json!({"a": 1})).unwrap();
        assert_eq!(tabs, "{\n\t\"m\": {\n\t\t\"o\": {\n\t\t\t\"a\": 1\n\t\t}\n\t}\n}");
    }

    #[test]
    fn members_are_taken_out_with_their_lines_and_commas() {
        for (text, expected) in [
            ("{\"m\": {\"a\": 1, \"o\": 2, \"b\": 3}}", "{\"m\": {\"a\": 1,  \"b\": 3}}"),
            ("{\"m\": {\"a\": 1, \"o\": 2}}", "{\"m\": {\"a\": 1 }}"),
            ("{\"m\": {\"o\": 2}}", "{\"m\": {}}"),
            ("{\n\"m\": {\n  // a\n  \"a\": 1,\n  \"o\": {\n  }\n}}", "{\n\"m\": {\n  // a\n  \"a\": 1\n}}"),
            ("{\n\"m\": {\n  \"o\": 1,\n  \"a\": 1,\n}}", "{\n\"m\": {\n  \"a\": 1,\n}}"),
        ] {
            assert_eq!(remove(text, &["m"], "o").as_deref(), Some(expected), "{text}");
        }
        assert_eq!(remove("{\"m\": {}}", &["m"], "o"), None);
    }
}
