//! Positions of object members in valid JSON.

use crate::clients::jsonc::string_end;

/// A member: the start of its key and the range of its value.
#[derive(Debug)]
pub struct MemberSpan {
    pub key: String,
    pub start: usize,
    pub value: (usize, usize),
}

/// An object: its braces and members.
#[derive(Debug)]
pub struct ObjectSpan {
    pub open: usize,
    pub close: usize,
    pub members: Vec<MemberSpan>,
}

impl ObjectSpan {
    /// Returns the member with this name, if it is unique.
    pub fn unique_member(&self, key: &str) -> Option<&MemberSpan> {
        let mut named = self.members.iter().filter(|member| member.key == key);
        named.next().filter(|_| named.next().is_none())
    }
}

/// Returns the object at a path of keys.
pub fn object_at(text: &str, path: &[&str]) -> Option<ObjectSpan> {
    let mut found = parse_object(text, skip_whitespace(text.as_bytes(), 0))?;
    for key in path {
        let start = found.unique_member(key)?.value.0;
        found = parse_object(text, start)?;
    }
    Some(found)
}

fn parse_object(text: &str, open: usize) -> Option<ObjectSpan> {
    let bytes = text.as_bytes();
    if bytes.get(open) != Some(&b'{') {
        return None;
    }
    let mut members = Vec::new();
    let mut at = skip_whitespace(bytes, open + 1);
    while bytes.get(at) == Some(&b'"') {
        let end = string_end(bytes, at);
        let key = serde_json::from_str(text.get(at..end)?).ok()?;
        let colon = skip_whitespace(bytes, end);
        let from = skip_whitespace(bytes, colon + 1);
        let to = value_end(bytes, from);
        members.push(MemberSpan { key, start: at, value: (from, to) });
        at = skip_whitespace(bytes, to);
        if bytes.get(at) == Some(&b',') {
            at = skip_whitespace(bytes, at + 1);
        }
    }
    (bytes.get(at) == Some(&b'}')).then_some(ObjectSpan { open, close: at, members })
}

fn skip_whitespace(bytes: &[u8], from: usize) -> usize {
    let spaces = bytes.iter().skip(from).take_while(|byte| byte.is_ascii_whitespace()).count();
    from + spaces
}

/// Finds the end of a value by counting brackets outside strings.
fn value_end(bytes: &[u8], from: usize) -> usize {
    let mut depth = 0_usize;
    let mut at = from;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                at = string_end(bytes, at);
                if depth == 0 {
                    return at;
                }
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth == 0 => return at,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            b',' if depth == 0 => return at,
            byte if depth == 0 && byte.is_ascii_whitespace() => return at,
            _ => {}
        }
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_found_where_they_stand() {
        let text = r#" {"a": {"x": [1, {"}": "]"}], "y": -2.5e3 }, "b\"": true} "#;
        let root = object_at(text, &[]).unwrap();
        let values: Vec<&str> = root.members.iter().map(|it| &text[it.value.0..it.value.1]).collect();
        assert_eq!(values, [r#"{"x": [1, {"}": "]"}], "y": -2.5e3 }"#, "true"]);
        assert_eq!(root.members[1].key, "b\"");
        let inner = object_at(text, &["a"]).unwrap();
        assert_eq!(&text[inner.members[1].value.0..inner.members[1].value.1], "-2.5e3");
        assert_eq!(&text[inner.close..=inner.close], "}");
        assert!(object_at(text, &["b\""]).is_none() && object_at(text, &["none"]).is_none());
        assert!(object_at(r#"{"a": {}, "a": {}}"#, &["a"]).is_none(), "two of one name");
    }
}
