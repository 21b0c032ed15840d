//! Small pieces of Markdown.

use super::schema_fields::Field;

pub fn title(text: &str) -> String {
    format!(
        "<!-- Written by `cargo xtask docs` from the binary. Change the source, not this page. -->\n\n# {text}\n"
    )
}

pub fn fenced(language: &str, text: &str) -> String {
    format!("```{language}\n{}\n```\n", text.trim_end())
}

/// Text as it may stand in a table: one line, and no bar that would end the cell.
fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

/// Fields that are given: with what holds when they are left out.
pub fn inputs(heading: &str, fields: &[Field]) -> String {
    let mut text = format!("| {heading} | type | default | what it is |\n|---|---|---|---|\n");
    for field in fields {
        let default = match (&field.default, field.required) {
            (_, true) => "*required*".to_owned(),
            (Some(value), false) => format!("`{value}`"),
            (None, false) => String::new(),
        };
        let cells = [format!("`{}`", field.path), field.kind.clone(), default, field.description.clone()];
        text.push_str(&row(&cells));
    }
    text
}

/// Fields that come back.
pub fn outputs(heading: &str, fields: &[Field]) -> String {
    let mut text = format!("| {heading} | type | what it is |\n|---|---|---|\n");
    for field in fields {
        text.push_str(&row(&[format!("`{}`", field.path), field.kind.clone(), field.description.clone()]));
    }
    text
}

fn row(cells: &[String]) -> String {
    let cells: Vec<String> = cells.iter().map(|text| cell(text)).collect();
    format!("| {} |\n", cells.join(" | "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_stay_in_their_table() {
        assert_eq!(row(&["a | b".to_owned(), "c\n  d".to_owned()]), "| a \\| b | c d |\n");
    }
}
