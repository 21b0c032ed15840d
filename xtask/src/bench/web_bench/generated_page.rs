//! A page of about 40 KB with a head, menus, prose with links, lists, code, tables, a sidebar and a footer.

/// Last words of the content; a reply that contains them has all of it.
pub const CONTENT_END: &str = "the engine runs until spring";

const WORDS: [&str; 16] = [
    "water", "engine", "garden", "value", "system", "people", "number", "stream", "history", "machine",
    "window", "language", "river", "letter", "market", "winter",
];
const HEAD: &str = r#"<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Keeping an engine in order | Guide</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="description" content="How an engine is kept in order through a winter.">
<meta property="og:type" content="article"><meta property="og:site_name" content="Guide">
<link rel="stylesheet" href="/a.css"><script src="/a.js" defer></script>
<style>body{font-family:sans-serif;margin:0}.nav{display:flex}</style>
<script type="application/ld+json">{"@context":"https://schema.org","@type":"Article","datePublished":"2024-03-05"}</script>
</head><body class="single has-sidebar"><header class="site-header"><nav class="main-nav"><ul>"#;

/// Deterministic number generator.
struct PageGenerator(u64);

impl PageGenerator {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    fn words(&mut self, count: u64) -> String {
        let one = |dice: &mut Self| WORDS.get(dice.below(16) as usize).copied().unwrap_or_default();
        (0..count).map(|_| one(self)).collect::<Vec<_>>().join(" ")
    }

    fn paragraph(&mut self) -> String {
        let sentence = |dice: &mut Self| {
            let (length, words) = (8 + dice.below(12), dice.words(2));
            let marked = match dice.below(4) {
                0 => format!(" <a href=\"/guide/{}\">{words}</a>", dice.below(99)),
                1 => format!(" <code>{}()</code>", words.replace(' ', "_")),
                2 => format!(" <strong>{words}</strong>"),
                _ => String::new(),
            };
            format!("{}{marked}. ", dice.words(length))
        };
        format!("<p>{}</p>\n", (0..4).map(|_| sentence(self)).collect::<String>())
    }

    fn section(&mut self, number: u64) -> String {
        let mut html = format!("<h2 id=\"s{number}\">{}</h2>\n", self.words(4));
        (0..3).for_each(|_| html += &self.paragraph());
        html += &match number % 3 {
            0 => format!(
                "<ul>{}</ul>\n",
                (0..5).map(|_| format!("<li>{}</li>\n", self.words(9))).collect::<String>()
            ),
            1 => {
                let lines: String =
                    (0..6).map(|_| format!("    let {} = {};\n", self.words(1), self.below(99))).collect();
                format!("<pre><code class=\"language-rust\">fn main() {{\n{lines}}}\n</code></pre>\n")
            }
            _ => {
                let row = |dice: &mut Self| {
                    format!("<tr><td>{}</td><td>{}</td></tr>\n", dice.words(2), dice.below(999))
                };
                let rows: String = (0..6).map(|_| row(self)).collect();
                format!(
                    "<table><thead><tr><th>Part</th><th>Value</th></tr></thead><tbody>{rows}</tbody></table>\n"
                )
            }
        };
        html
    }
}

pub fn html() -> String {
    let mut dice = PageGenerator(7);
    let links = |from: &str| {
        let link =
            |word: &&str| format!("<li class=\"menu-item\"><a href=\"/{from}/{word}\">{word}</a></li>");
        WORDS.iter().map(link).collect::<String>()
    };
    let mut html = format!(
        "{HEAD}{}</ul></nav></header>\n<main id=\"main\"><article class=\"post\"><h1>Keeping an engine in order</h1>\
         <div class=\"entry-content\">\n",
        links("menu")
    );
    let mut number = 0;
    while html.len() < 38_000 {
        number += 1;
        html += &dice.section(number);
    }
    html + &format!(
        "<p>With all of this done in time, {CONTENT_END}, and nobody has to think about it in the cold months.</p>\n</div></article></main>\n\
         <aside class=\"sidebar\"><h3>Related posts</h3><ul>{}</ul></aside><footer class=\"site-footer\"><ul>{}</ul>\
         <p>All rights reserved.</p></footer><script>window.dataLayer=window.dataLayer||[];</script></body></html>\n",
        links("related"),
        links("footer")
    )
}
