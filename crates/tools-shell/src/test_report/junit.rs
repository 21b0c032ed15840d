//! JUnit XML, which nearly every runner can write to a file. A lenient parser: it ignores what it does not know. Only
//! the five entities of XML and numeric ones are resolved, so a document cannot expand.

use super::{Failure, TestReport, source_location};

pub fn read(text: &str) -> Option<TestReport> {
    if !text.contains("<testsuite") {
        return None;
    }
    let mut report = TestReport::new("junit");
    report.passes(0);
    let mut case: Option<TestCase> = None;
    let mut rest = text;
    while let Some((before, tag)) = next(&mut rest) {
        if let Some(case) = case.as_mut().filter(|case| case.in_verdict) {
            case.text.push_str(&unescape(before));
        }
        match tag.name {
            "testcase" => {
                if let Some(done) = case.take() {
                    done.count(&mut report);
                }
                let new = TestCase::from_tag(&tag);
                if tag.empty { new.count(&mut report) } else { case = Some(new) }
            }
            "/testcase" => {
                if let Some(done) = case.take() {
                    done.count(&mut report);
                }
            }
            "failure" | "error" | "skipped" => {
                if let Some(case) = &mut case {
                    case.verdict(&tag);
                }
            }
            "/failure" | "/error" | "/skipped" => {
                if let Some(case) = &mut case {
                    case.in_verdict = false;
                }
            }
            _ => {}
        }
    }
    Some(report.truncate())
}

struct XmlTag<'a> {
    /// With its slash in a closing tag.
    name: &'a str,
    attributes: &'a str,
    empty: bool,
}

impl XmlTag<'_> {
    fn attribute(&self, name: &str) -> Option<String> {
        let mut rest = self.attributes;
        while let Some((key, behind)) = rest.split_once('=') {
            let behind = behind.trim_start();
            let quote = behind.chars().next().filter(|c| matches!(c, '"' | '\''))?;
            let (value, after) = behind.get(1..)?.split_once(quote)?;
            if key.trim() == name {
                return Some(unescape(value));
            }
            rest = after;
        }
        None
    }
}

/// The text before the next tag, and the tag. Comments and instructions are skipped; CDATA is text.
fn next<'a>(rest: &mut &'a str) -> Option<(&'a str, XmlTag<'a>)> {
    let whole = *rest;
    let mut from = 0;
    loop {
        let at = from + whole.get(from..)?.find('<')?;
        let behind = whole.get(at..)?;
        let skip = [("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>"), ("<!", ">")]
            .iter()
            .find(|(open, _)| behind.starts_with(open));
        if let Some((_, close)) = skip {
            from = at + behind.find(close)? + close.len();
            continue;
        }
        let end = at + end_of_tag(behind)?;
        let inner = whole.get(at + 1..end)?;
        *rest = whole.get(end + 1..)?;
        let empty = inner.ends_with('/');
        let inner = inner.trim_end_matches('/');
        let (name, attributes) = inner.split_once(char::is_whitespace).unwrap_or((inner, ""));
        return Some((whole.get(..at)?, XmlTag { name, attributes, empty }));
    }
}

/// Position of `>` outside quotes.
fn end_of_tag(tag: &str) -> Option<usize> {
    let mut quote = None;
    for (at, c) in tag.char_indices() {
        match (quote, c) {
            (None, '>') => return Some(at),
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            _ => {}
        }
    }
    None
}

/// Text with CDATA taken literally and entities resolved.
fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("<![CDATA[") {
        out.push_str(&entities(before));
        let (inside, after) = behind.split_once("]]>").unwrap_or((behind, ""));
        out.push_str(inside);
        rest = after;
    }
    out.push_str(&entities(rest));
    out
}

fn entities(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('&') {
        out.push_str(before);
        match behind.split_once(';').and_then(|(name, after)| Some((entity(name)?, after))) {
            Some((c, after)) => {
                out.push(c);
                rest = after;
            }
            None => {
                out.push('&');
                rest = behind;
            }
        }
    }
    out.push_str(rest);
    out
}

fn entity(name: &str) -> Option<char> {
    match name {
        "lt" => Some('<'),
        "gt" => Some('>'),
        "amp" => Some('&'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                None => number.parse().ok()?,
            };
            char::from_u32(code)
        }
    }
}

#[derive(Default)]
struct TestCase {
    failure: Failure,
    seconds: Option<f64>,
    failed: bool,
    skipped: bool,
    /// Between the tags of a verdict.
    in_verdict: bool,
    text: String,
}

impl TestCase {
    fn from_tag(tag: &XmlTag<'_>) -> Self {
        let name = tag.attribute("name").unwrap_or_default();
        let class = tag.attribute("classname").filter(|class| !class.is_empty());
        let name = class.map_or_else(|| name.clone(), |class| format!("{class}.{name}"));
        let line = tag.attribute("line").and_then(|line| line.parse().ok());
        let failure = Failure { name, file: tag.attribute("file"), line, message: String::new() };
        let seconds = tag.attribute("time").and_then(|time| time.parse().ok());
        Self { failure, seconds, ..Self::default() }
    }

    fn verdict(&mut self, tag: &XmlTag<'_>) {
        match tag.name {
            "skipped" => self.skipped = true,
            _ => {
                self.failed = true;
                self.failure.message = tag.attribute("message").unwrap_or_default();
                self.in_verdict = !tag.empty;
            }
        }
    }

    fn count(mut self, report: &mut TestReport) {
        report.takes(self.seconds);
        if !self.failed {
            if self.skipped {
                report.skipped += 1
            } else {
                report.passes(1)
            }
            return;
        }
        report.failed += 1;
        if self.failure.message.is_empty() {
            self.failure.message = source_location::join_dedented(self.text.lines());
        }
        if self.failure.file.is_none()
            && let Some((file, line)) = self.text.lines().find_map(spot)
        {
            self.failure.file = Some(file.to_owned());
            self.failure.line = Some(line);
        }
        report.fails(self.failure);
    }
}

/// The first word of a trace that names a file and a line.
fn spot(line: &str) -> Option<(&str, u64)> {
    line.split([' ', '(', ')']).filter(|word| word.contains('.')).find_map(source_location::split)
}
