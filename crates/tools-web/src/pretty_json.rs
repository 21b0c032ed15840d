//! JSON formatting with line breaks and indents. Only white space between values changes, so numbers stay exact.

/// Formats valid JSON. For other text the output is unspecified, but it does not panic.
pub fn pretty(json: &str) -> String {
    let mut out = String::with_capacity(json.len() * 5 / 4);
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    let mut rest = json.chars().peekable();
    while let Some(c) = rest.next() {
        if quoted {
            out.push(c);
            quoted = escaped || c != '"';
            escaped = !escaped && c == '\\';
            continue;
        }
        match c {
            ' ' | '\t' | '\n' | '\r' => {}
            '{' | '[' => {
                out.push(c);
                while rest.peek().is_some_and(|c| c.is_ascii_whitespace()) {
                    rest.next();
                }
                if let Some(end) = rest.next_if(|c| matches!(c, '}' | ']')) {
                    out.push(end);
                } else {
                    depth += 1;
                    new_line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                new_line(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                new_line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            _ => {
                out.push(c);
                quoted = c == '"';
            }
        }
    }
    out
}

fn new_line(out: &mut String, depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth.min(64)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_laid_out_and_its_values_stay() {
        let json = r#"{"a":[1.50,12345678901234567890,{}],"b\"{":"x, y: [z]\\","c":[ ],"d":{"e":null}}"#;
        let expected = "{\n  \"a\": [\n    1.50,\n    12345678901234567890,\n    {}\n  ],\n  \"b\\\"{\": \"x, y: [z]\\\\\",\n  \"c\": [],\n  \"d\": {\n    \"e\": null\n  }\n}";
        assert_eq!(pretty(json), expected);
        assert_eq!(pretty(&pretty(json)), expected);
    }
}
