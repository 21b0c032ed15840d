//! Hostile pages must not crash the extractor or keep it busy.

use super::super::extract;
use super::{sample_contents, sample_shells};
use proptest::prelude::*;
use std::time::{Duration, Instant};
use url::Url;

fn time_extract(html: &str) -> Duration {
    let start = Instant::now();
    let found = extract(html, &Url::parse("http://h.example/").unwrap());
    assert!(found.text.len() < 4 * html.len() + 10_000, "{} of {}", found.text.len(), html.len());
    start.elapsed()
}

#[test]
fn pages_made_to_be_slow_are_not() {
    let cases: Vec<(&str, String)> = vec![
        ("nested divs", "<div>".repeat(100_000) + "text"),
        ("nested and closed", "<div>".repeat(100_000) + "text" + &"</div>".repeat(100_000)),
        ("nested formatting", "<b><i><a href=x>".repeat(40_000)),
        ("nested tables", "<table><tr><td>".repeat(40_000)),
        ("nested lists", "<ul><li>".repeat(50_000) + "x"),
        ("nested quotes", "<blockquote><p>".repeat(50_000) + "x"),
        ("formatting left open", (0..15_000).map(|at| format!("<div><b id={at}>x</div>")).collect()),
        (
            "formatting left open in paragraphs",
            (0..15_000).map(|at| format!("<p><font size={at}>x")).collect(),
        ),
        ("links left open", "<p><a href=x>y".repeat(50_000)),
        ("attributes", format!("<p {}>x", (0..100_000).map(|at| format!("a{at}=1 ")).collect::<String>())),
        ("pictures without end", "<svg>".repeat(100_000)),
        ("comments without end", "<!--".repeat(100_000)),
        ("quotes without end", "<a b='".repeat(200_000)),
        ("angle brackets", "<".repeat(200_000)),
        ("stray ends", "</p></div>".repeat(100_000)),
        ("selects", "<select><option>".repeat(50_000)),
        ("templates", "<template>".repeat(50_000)),
        ("foreign", "<math><mi>".repeat(50_000)),
        ("headings", "<h2>x</h2><ul><li><a href=/a>b</a></ul>".repeat(8_000)),
        ("data", format!("<script type=application/ld+json>{}</script>", "[".repeat(200_000))),
    ];
    for (name, html) in cases {
        let took = time_extract(&html);
        assert!(took < Duration::from_secs(8), "{name} took {took:?}");
    }
}

#[test]
fn what_lies_too_deep_keeps_its_text() {
    let found =
        extract(&("<div>".repeat(100_000) + "the text beneath"), &Url::parse("http://h.example/").unwrap());
    assert!(found.text.contains("the text beneath"), "{}", found.text);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn mutated_pages_never_break_it(shell in 0..sample_shells::SHELLS.len(), content in 0..sample_contents::CONTENTS.len(),
        edits in proptest::collection::vec((0.0..1.0f64, 0..9usize, 0..60usize), 1..40)) {
        let mut page: Vec<char> = sample_shells::SHELLS[shell].1.replace("CONTENT", sample_contents::CONTENTS[content].html).chars().collect();
        for (place, what, length) in edits {
            let at = ((page.len() as f64) * place) as usize;
            let until = (at + length).min(page.len());
            match what {
                0 => drop(page.drain(at..until)),
                1 => { let copy: Vec<char> = page[at..until].to_vec(); page.splice(at..at, copy); }
                2 => page.insert(at, '<'),
                3 => page.insert(at, '"'),
                4 => page.insert(at, '\0'),
                5 => page.truncate(until.max(10)),
                6 => drop(page.splice(at..at, "<table><tr><td>".chars())),
                7 => drop(page.splice(at..at, "</pre></div></a>".chars())),
                _ => page.insert(at, '\u{202e}'),
            }
        }
        let page: String = page.into_iter().collect();
        let found = extract(&page, &Url::parse("http://h.example/").unwrap());
        prop_assert!((0.0..=1.0).contains(&found.quality));
        prop_assert!(found.text.len() <= 8 * page.len() + 1000);
    }
}
