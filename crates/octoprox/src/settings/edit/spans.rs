//! Where the members of an object stand in a text that is known to be JSON.

use crate::clients::jsonc::string_end;

/// A member: where its key begins, and from where to where its value stands.
#[derive(Debug)]
pub struct Member {
    pub key: String,
    pub start: usize,
    pub value: (usize, usize),
}

/// An object: its brackets and what is between them.
#[derive(Debug)]
pub struct Object {
    pub open: usize,
    pub close: usize,
    pub members: Vec<Member>,
}

impl Object {
    /// The member of this name, unless there are several.
    pub fn only(&self, key: &str) -> Option<&Member> {
        let mut named = self.members.iter().filter(|member| member.key == key);
        named.next().filter(|_| named.next().is_none())
    }
}

/// The object at a path of keys.
pub fn object(text: &str, path: &[&str]) -> Option<Object> {
    let mut found = read(text, skip(text.as_bytes(), 0))?;
    for key in path {
        let start = found.only(key)?.value.0;
        found = read(text, start)?;
    }
    Some(found)
}

fn read(text: &str, open: usize) -> Option<Object> {
    let bytes = text.as_bytes();
    if bytes.get(open) != Some(&b'{') {
        return None;
    }
    let mut members = Vec::new();
    let mut at = skip(bytes, open + 1);
    while bytes.get(at) == Some(&b'"') {
        let end = string_end(bytes, at);
        let key = serde_json::from_str(text.get(at..end)?).ok()?;
        let colon = skip(bytes, end);
        let from = skip(bytes, colon + 1);
        let to = value_end(bytes, from);
        members.push(Member { key, start: at, value: (from, to) });
        at = skip(bytes, to);
        if bytes.get(at) == Some(&b',') {
            at = skip(bytes, at + 1);
        }
    }
    (bytes.get(at) == Some(&b'}')).then_some(Object { open, close: at, members })
}

fn skip(bytes: &[u8], from: usize) -> usize {
    let spaces = bytes.iter().skip(from).take_while(|byte| byte.is_ascii_whitespace()).count();
    from + spaces
}

/// Brackets are counted; within strings there are none.
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
        let root = object(text, &[]).unwrap();
        let values: Vec<&str> = root.members.iter().map(|it| &text[it.value.0..it.value.1]).collect();
        assert_eq!(values, [r#"{"x": [1, {"}": "]"}], "y": -2.5e3 }"#, "true"]);
        assert_eq!(root.members[1].key, "b\"");
        let inner = object(text, &["a"]).unwrap();
        assert_eq!(&text[inner.members[1].value.0..inner.members[1].value.1], "-2.5e3");
        assert_eq!(&text[inner.close..=inner.close], "}");
        assert!(object(text, &["b\""]).is_none() && object(text, &["none"]).is_none());
        assert!(object(r#"{"a": {}, "a": {}}"#, &["a"]).is_none(), "two of one name");
    }
}
