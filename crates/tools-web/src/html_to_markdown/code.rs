//! Code blocks: every line unchanged, in a fence with the language.

use super::{MarkdownWalker, attribute, has_class};
use dom_query::{Element, NodeData, NodeRef};

/// Longest run of backticks in code that is fenced with backticks.
const MAX_FENCE_LEN: usize = 12;

impl MarkdownWalker<'_> {
    pub(super) fn code_block(&mut self, node: NodeRef<'_>) {
        let code = code_text(node);
        let code = code.strip_prefix('\n').unwrap_or(&code).trim_end();
        if self.writer.is_folded() {
            return self.inline_code(code);
        }
        if code.trim().is_empty() {
            return;
        }
        self.writer.end_line(2);
        if self.style.plain {
            self.writer.push_lines(code);
        } else {
            let fence = match longest_run(code) {
                run if run > MAX_FENCE_LEN => "~~~".to_owned(),
                run => "`".repeat(run.max(2) + 1),
            };
            self.writer.push_raw(&format!("{fence}{}", code_language(node).unwrap_or_default()));
            self.writer.end_line(1);
            self.writer.push_lines(code);
            self.writer.end_line(1);
            self.writer.limit_breaks(1);
            self.writer.push_raw(&fence);
        }
        self.writer.end_line(2);
    }

    pub(super) fn inline_code(&mut self, code: &str) {
        let code = code.split_whitespace().collect::<Vec<_>>().join(" ");
        if code.is_empty() {
            return;
        }
        if self.style.plain {
            return self.writer.push_raw(&code);
        }
        let code = if self.writer.is_cell() { code.replace('|', "\\|") } else { code };
        let fence = match longest_run(&code) {
            run if run > MAX_FENCE_LEN => return self.writer.push_text(&code),
            run => "`".repeat(run + 1),
        };
        let edge = if code.starts_with('`') || code.ends_with('`') { " " } else { "" };
        self.writer.push_raw(&format!("{fence}{edge}{code}{edge}{fence}"));
    }
}

/// Length of the longest run of backticks.
fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

/// Text with its line breaks as displayed, without line numbers.
pub fn code_text(node: NodeRef<'_>) -> String {
    let mut code = String::new();
    let mut next = node.first_child();
    while let Some(here) = next {
        let mut enter = true;
        if let Some(element) = here.element_ref() {
            match &*element.name.local {
                "br" => code.push('\n'),
                "div" | "p" | "li" | "tr" if !code.is_empty() && !code.ends_with('\n') => code.push('\n'),
                "script" | "style" | "button" | "svg" => enter = false,
                _ => {}
            }
            enter &= !is_line_numbers(&element);
        } else {
            here.query(|inner| {
                if let NodeData::Text { contents } = &inner.data {
                    code.push_str(contents);
                }
            });
        }
        next = if enter { here.first_child() } else { None };
        let mut climb = here;
        while next.is_none() {
            next = climb.next_sibling();
            if next.is_none() {
                match climb.parent() {
                    Some(parent) if parent.id != node.id => climb = parent,
                    _ => return code,
                }
            }
        }
    }
    code
}

/// Whether an element contains line numbers.
pub fn is_line_numbers(element: &Element) -> bool {
    let gutter = |class: &str| {
        matches!(
            class,
            "gutter"
                | "rouge-gutter"
                | "lineno"
                | "linenos"
                | "line-number"
                | "line-numbers-rows"
                | "linenodiv"
                | "hljs-ln-numbers"
                | "blob-num"
                | "crayon-nums"
                | "ln-num"
                | "LineNr"
        )
    };
    has_class(element, gutter)
}

/// Language named by the block, the code in it or the elements around it.
fn code_language(node: NodeRef<'_>) -> Option<String> {
    let inner = node.first_element_child().filter(|inner| inner.has_name("code"));
    let around = node.ancestors(Some(3));
    let named = |node: &NodeRef<'_>| node.element_ref().and_then(|element| language_attribute(&element));
    named(&node).or_else(|| inner.as_ref().and_then(named)).or_else(|| around.iter().find_map(named))
}

fn language_attribute(element: &Element) -> Option<String> {
    let data = ["data-lang", "data-language", "data-code-lang"]
        .into_iter()
        .find_map(|name| attribute(element, name));
    let classes = attribute(element, "class").unwrap_or_default();
    let by_class = classes.split_ascii_whitespace().find_map(|class| {
        [
            "language-",
            "lang-",
            "highlight-source-",
            "highlight-text-",
            "brush:",
            "sourceCode-",
            "hljs-language-",
        ]
        .into_iter()
        .find_map(|prefix| class.strip_prefix(prefix))
    });
    let second = |first: &str| {
        let mut words = classes.split([' ', ':', ';']).filter(|word| !word.is_empty());
        words.find(|word| *word == first).and_then(|_| words.next())
    };
    let name = data
        .or(by_class.filter(|name| !name.is_empty()))
        .or_else(|| second("sourceCode"))
        .or_else(|| second("brush"))
        .or_else(|| second("hljs"));
    let name = name?.trim_end_matches(';').trim().to_ascii_lowercase();
    let fits = name.len() <= 24 && !name.is_empty();
    let known = !matches!(
        name.as_str(),
        "none" | "plaintext" | "plain" | "text" | "default" | "notranslate" | "highlighter-rouge"
    );
    let clean = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '#' | '-' | '_' | '.'));
    (fits && known && clean).then_some(name)
}
