//! Tables by cell and code by line, on pages of many site generators; hostile pages.

mod hostile_html;
mod sample_contents;
mod sample_shells;

pub use sample_contents::CONTENTS;
pub use sample_shells::SHELLS;

use super::extract;
use crate::html_to_markdown::{MarkdownStyle, render_document};
use url::Url;

fn extract_markdown(html: &str) -> String {
    let url = Url::parse("https://site.example/guide/page").unwrap();
    let found = extract(html, &url);
    render_document(&found.content, &url, MarkdownStyle { images: false, ..MarkdownStyle::default() })
}

/// Cells of all table rows.
fn rows(markdown: &str) -> Vec<Vec<String>> {
    markdown
        .lines()
        .map(str::trim)
        .filter(|line| {
            line.starts_with('|')
                && !line.starts_with("| ---")
                && !line.starts_with("|---")
                && !line.starts_with("| :")
        })
        .map(|line| {
            line.trim_matches('|').split('|').map(|cell| cell.trim().replace(['*', '`'], "")).collect()
        })
        .collect()
}

/// Lines of all fenced blocks, without the indent of a list around them.
fn code(markdown: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut indent = None;
    for line in markdown.lines() {
        let bare = line.trim_start();
        if bare.starts_with("```") {
            indent = if indent.is_some() { None } else { Some(line.len() - bare.len()) };
        } else if let Some(indent) = indent {
            lines.push(line.get(indent..).unwrap_or("").to_owned());
        }
    }
    lines
}

#[test]
fn every_page_keeps_its_tables_by_cell_and_its_code_by_line() {
    let (mut pages, mut failures) = (0, Vec::new());
    for (shell, page) in sample_shells::SHELLS {
        for content in sample_contents::CONTENTS {
            pages += 1;
            let markdown = extract_markdown(&page.replace("CONTENT", content.html));
            let (rows, code) = (rows(&markdown), code(&markdown));
            for row in content.rows {
                if !rows.iter().any(|found| row.iter().all(|cell| found.iter().any(|seen| seen == cell))) {
                    failures.push(format!("{shell}, {}: no row {row:?} in\n{markdown}", content.name));
                }
            }
            let wanted: Vec<&str> = content.code.lines().collect();
            if !wanted.is_empty() && !code.windows(wanted.len()).any(|seen| seen == wanted) {
                failures.push(format!("{shell}, {}: code differs in\n{markdown}", content.name));
            }
            for word in ["Home page menu", "All rights reserved", "We use cookies"] {
                if markdown.contains(word) {
                    failures.push(format!("{shell}, {}: still has {word:?}", content.name));
                }
            }
        }
    }
    assert!(pages >= 40, "{pages}");
    let first = failures.first();
    assert!(failures.is_empty(), "{} of {pages} pages: {}", failures.len(), first.unwrap());
}

#[test]
fn what_is_most_of_a_page_keeps_its_form_and_its_heading() {
    let table: String =
        (1..=50).map(|at| format!("<tr><td>{at}</td><td>City {at}</td><td>NO</td></tr>")).collect();
    let table = format!(
        "<table><thead><tr><th>Rank</th><th>Name</th><th>Open</th></tr></thead><tbody>{table}</tbody></table>"
    );
    let items: String = (1..=60).map(|at| format!("<li>Entry {at} of the index</li>")).collect();
    let terms: String =
        (1..=50).map(|at| format!("<dt>Term {at}</dt><dd>Meaning of term {at}.</dd>")).collect();
    let lines: String = (1..=80).map(|at| format!("line {at} of the log\n")).collect();
    let rows = [
        (table.clone(), "| Rank | Name | Open |"),
        (format!("<div class='table-responsive'><div>{table}</div></div>"), "| 50 | City 50 | NO |"),
        (format!("<ul>{items}</ul>"), "- Entry 60 of the index"),
        (format!("<div><ol>{items}</ol></div>"), "1. Entry 1 of the index"),
        (format!("<dl>{terms}</dl>"), "Meaning of term 50."),
        (format!("<pre>{lines}</pre>"), "```"),
    ];
    for (html, wanted) in rows {
        for page in ["BODY", "<div id=content>BODY</div>", "<table><tr><td>BODY</td></tr></table>"] {
            let body = format!("<h1>Price list</h1><p>As of May.</p>{html}<p>Without tax.</p>");
            let markdown =
                extract_markdown(&format!("<title>Prices</title><body>{}", page.replace("BODY", &body)));
            for part in ["# Price list", "As of May.", "Without tax.", wanted] {
                assert!(markdown.contains(part), "{page} {wanted}: no {part:?} in {markdown}");
            }
        }
    }
}
