//! `file:line:column` in traces.

/// Splits `src/a.rs:11:46` or `a.py:11` into file and line.
pub fn split(text: &str) -> Option<(&str, u64)> {
    let text = text.trim_end_matches(':');
    let (head, last) = text.rsplit_once(':')?;
    let last: u64 = last.parse().ok()?;
    match head.rsplit_once(':') {
        Some((file, line)) if !file.is_empty() => match line.parse() {
            Ok(line) => Some((file, line)),
            Err(_) => Some((head, last)),
        },
        _ if head.is_empty() => None,
        _ => Some((head, last)),
    }
}

/// The first frame of a JavaScript stack that is neither in the runtime nor in a package.
pub fn first_stack_frame<'a>(lines: impl IntoIterator<Item = &'a str>) -> Option<(String, u64)> {
    lines.into_iter().find_map(|line| {
        let at = line.trim_start().strip_prefix("at ")?;
        let place = at.rsplit_once('(').map_or(at, |(_, place)| place.trim_end_matches(')'));
        let place = place.trim_start_matches("async ").trim_start_matches("file://");
        let (file, line) = split(place)?;
        let foreign =
            file.starts_with("node:") || file.contains("node_modules/") || file.contains("<anonymous>");
        (!foreign).then(|| (file.to_owned(), line))
    })
}

/// Lines as one text, without surrounding blanks.
pub fn join_dedented<'a>(lines: impl IntoIterator<Item = &'a str>) -> String {
    let text: Vec<&str> = lines.into_iter().map(str::trim_end).collect();
    let indent =
        text.iter().filter(|line| !line.is_empty()).map(|line| line.len() - line.trim_start().len()).min();
    let indent = indent.unwrap_or(0);
    let text: Vec<&str> = text.iter().map(|line| line.get(indent..).unwrap_or(line)).collect();
    text.join("\n").trim_matches('\n').trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_taken_apart() {
        let rows = [
            ("src/a.rs:11:46:", Some(("src/a.rs", 11))),
            ("a.py:7", Some(("a.py", 7))),
            ("C:/x.js:3:1", Some(("C:/x.js", 3))),
            ("a.py", None),
            (":3", None),
        ];
        for (text, place) in rows {
            assert_eq!(split(text), place, "{text}");
        }
    }
}
