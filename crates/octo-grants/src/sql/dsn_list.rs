//! List of `name=dsn` pairs, as in an environment variable.

use super::SqlConnection;
use octo_model::ToolError;

pub(super) fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
}

/// Parses `name=dsn,name=dsn`. A DSN may contain commas (several hosts), so an entry starts only where a name and a
/// scheme follow. A single DSN without a name is called `default`.
pub fn parse_list(text: &str) -> Result<Vec<SqlConnection>, ToolError> {
    let mut entries: Vec<String> = Vec::new();
    for piece in text.split(',') {
        match entries.last_mut() {
            Some(last) if !starts_entry(piece) => {
                last.push(',');
                last.push_str(piece);
            }
            _ => entries.push(piece.to_owned()),
        }
    }
    entries.iter().map(|entry| entry.trim()).filter(|entry| !entry.is_empty()).map(parse_entry).collect()
}

fn starts_entry(piece: &str) -> bool {
    split_name(piece).is_some_and(|(_, dsn)| has_scheme(dsn))
}

fn split_name(entry: &str) -> Option<(&str, &str)> {
    entry
        .trim()
        .split_once('=')
        .filter(|(name, _)| is_name(name.trim()))
        .map(|(name, dsn)| (name.trim(), dsn.trim()))
}

fn has_scheme(dsn: &str) -> bool {
    dsn.split_once("://").is_some_and(|(scheme, _)| scheme.chars().all(|c| c.is_ascii_alphanumeric()))
}

fn parse_entry(entry: &str) -> Result<SqlConnection, ToolError> {
    if has_scheme(entry) {
        return Ok(SqlConnection::new("default", entry));
    }
    match split_name(entry) {
        Some((name, dsn)) if !dsn.is_empty() => Ok(SqlConnection::new(name, dsn)),
        _ => Err(ToolError::invalid("A database connection is malformed.")
            .hint("Use name=postgres://user:password@host:5432/database, several separated by commas.")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_told_from_commas_inside_of_them() {
        for (text, expected) in [
            ("", vec![]),
            ("a=postgres://h/d", vec![("a", "postgres://h/d")]),
            ("postgres://h/d?x=1", vec![("default", "postgres://h/d?x=1")]),
            (
                "a=postgres://h1,h2/d, b=postgresql://u:p@h/d",
                vec![("a", "postgres://h1,h2/d"), ("b", "postgresql://u:p@h/d")],
            ),
            ("a=host=x user=y,b=postgres://h/d", vec![("a", "host=x user=y"), ("b", "postgres://h/d")]),
        ] {
            let read = parse_list(text).unwrap();
            let read: Vec<_> = read.iter().map(|one| (one.name.as_str(), one.dsn.expose())).collect();
            assert_eq!(read, expected, "{text}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_refused_and_never_repeated() {
        for text in ["hunter2", "=postgres://hunter2@h", "a b=hunter2", "a="] {
            let error = parse_list(text).expect_err(text);
            assert!(!format!("{error:?}").contains("hunter2"), "{text}");
        }
        assert!(!format!("{:?}", parse_list("a=postgres://u:hunter2@h/d").unwrap()).contains("hunter2"));
    }
}
