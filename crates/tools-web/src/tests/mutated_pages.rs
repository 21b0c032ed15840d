//! Thousands of mutated pages, read in a process with little memory: none may crash it, keep it busy, or return too
//! much.
#![expect(
    clippy::disallowed_methods,
    reason = "starts itself with less memory, and reads pages beside the clone"
)]

use crate::extract::extract;
use crate::extract::tests::{CONTENTS, SHELLS};
use crate::html_to_markdown::{MarkdownStyle, render_document};
use crate::render_body::{FetchedBody, OutputFormat, RenderOptions, render};
use std::ops::Range;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;
use url::Url;

/// Address space of the process in kilobytes: the binary and the cost of one page.
const MEMORY_KB: usize = 768 << 10;
/// Maximum time for one page on a busy machine in a slow build.
const PAGE_TIMEOUT: Duration = Duration::from_secs(20);
/// Maximum bytes of a page that are mutated: many pages find more than long ones.
const MAX_SOURCE_BYTES: usize = 60_000;
const MAX_BYTES: usize = 100_000;
const SEED_RANGE_VAR: &str = "OCTOPROX_TEST_MUTATED";

#[test]
fn five_hundred_mutated_pages_are_read_in_little_memory() {
    run_with_memory_limit(0..500);
}

#[test]
#[ignore = "takes minutes; one of the long tests"]
fn ten_thousand_mutated_pages_are_read_in_little_memory() {
    std::thread::scope(|scope| {
        for seeds in [0..5_000, 5_000..10_000] {
            scope.spawn(|| run_with_memory_limit(seeds));
        }
    });
}

/// Reads the pages in a separate process and reports the page at which it failed.
fn run_with_memory_limit(seeds: Range<u64>) {
    let own = std::env::current_exe().unwrap();
    let child = Command::new("sh")
        .args(["-c", &format!("ulimit -v {MEMORY_KB} && exec \"$0\" \"$@\"")])
        .arg(own)
        .args([
            "--exact",
            "tests::mutated_pages::the_pages_of_one_process",
            "--include-ignored",
            "--nocapture",
        ])
        .env(SEED_RANGE_VAR, format!("{} {}", seeds.start, seeds.end))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout);
    let last = said.lines().rfind(|line| line.starts_with("page "));
    let error = String::from_utf8_lossy(&child.stderr);
    assert!(
        child.status.success(),
        "{} after {last:?}: {}",
        child.status,
        error.get(..2_000).unwrap_or(&error)
    );
    // It processed all of them.
    assert_eq!(last, Some(format!("page {}", seeds.end - 1).as_str()));
}

#[test]
#[ignore = "is run by the tests above in a process of its own; alone it reads some pages"]
fn the_pages_of_one_process() {
    let range = std::env::var(SEED_RANGE_VAR).unwrap_or_else(|_| "0 50".to_owned());
    let (from, to) = range.split_once(' ').unwrap();
    let seeds: Range<u64> = from.parse().unwrap()..to.parse().unwrap();
    let (tell, told) = mpsc::channel();
    // A stack as small as that of the worker threads.
    let work = std::thread::Builder::new().stack_size(2 << 20).spawn(move || {
        let sources = sources();
        for seed in seeds {
            println!("page {seed}");
            check(&Mutator { random: Lcg(seed + 1) }.mutated_page(&sources), seed);
            tell.send(()).unwrap();
        }
    });
    loop {
        match told.recv_timeout(PAGE_TIMEOUT) {
            Ok(()) => {}
            Err(mpsc::RecvTimeoutError::Timeout) => panic!("a page takes more than {PAGE_TIMEOUT:?}"),
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
        }
    }
    work.unwrap().join().unwrap();
}

/// Reads the page in every way and checks that the results are within their limits.
fn check(page: &[u8], seed: u64) {
    let url = Url::parse("https://a.example/dir/").unwrap();
    let formats = [OutputFormat::Markdown, OutputFormat::Text, OutputFormat::Html, OutputFormat::Markdown];
    let format = formats[(seed % 4) as usize];
    let body = FetchedBody {
        url: url.clone(),
        content_type: Some("text/html".to_owned()),
        bytes: bytes::Bytes::copy_from_slice(page),
        truncated: seed.is_multiple_of(5),
    };
    let want = RenderOptions {
        format,
        main_content: seed % 8 < 6,
        links: true,
        metadata: true,
        max_bytes: MAX_BYTES,
    };
    let reading = render(&body, want);
    assert!(reading.content.len() <= MAX_BYTES, "{seed}");
    assert!(reading.links.len() <= crate::links::MAX_LINKS, "{seed}");
    assert!(reading.links.iter().all(|link| link.text.len() < 1_000 && link.href.len() < 8_000), "{seed}");
    assert!(reading.title.as_ref().is_none_or(|title| title.len() <= 4_000), "{seed}");
    assert!(reading.notices.iter().map(String::len).sum::<usize>() < 20_000, "{seed}");
    let found = extract(&String::from_utf8_lossy(page), &url);
    assert!((0.0..=1.0).contains(&found.quality), "{seed}");
    assert!(found.text.len() <= 8 * page.len() + 1_000, "{seed}: {} of {}", found.text.len(), page.len());
    let limit = MAX_BYTES;
    let text = render_document(&found.content, &url, MarkdownStyle { limit, ..MarkdownStyle::default() });
    // The walk stops after the piece that exceeds the limit, and a piece is no longer than the page.
    assert!(text.len() <= limit + 2 * page.len() + 1_000, "{seed}: {}", text.len());
}

/// The sample pages, and those of the evaluation set if `OCTOPROX_EVAL` names its directory.
fn sources() -> Vec<Vec<u8>> {
    let mut pages: Vec<Vec<u8>> = Vec::new();
    for (at, content) in CONTENTS.iter().enumerate() {
        let shell = SHELLS[at % SHELLS.len()].1;
        pages.push(shell.replace("CONTENT", content.html).into_bytes());
    }
    let Some(set) = std::env::var_os("OCTOPROX_EVAL") else {
        eprintln!("OCTOPROX_EVAL is not set: only the pages of this repository are used");
        return pages;
    };
    let entries = std::fs::read_dir(Path::new(&set).join("pages/dev/html")).unwrap().flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths.iter().step_by(4) {
        let mut page = Command::new("gzip").arg("-dc").arg(path).output().unwrap().stdout;
        page.truncate(MAX_SOURCE_BYTES);
        pages.push(page);
    }
    pages
}

/// Deterministic random number generator.
struct Lcg(u64);

impl Lcg {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end.max(1)
    }

    fn one_of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }
}

const TAGS: &[&str] = &[
    "div",
    "p",
    "b",
    "i",
    "font",
    "a",
    "table",
    "tr",
    "td",
    "ul",
    "li",
    "dl",
    "dd",
    "blockquote",
    "pre",
    "code",
    "h2",
    "svg",
    "math",
    "mi",
    "foreignObject",
    "select",
    "option",
    "button",
    "form",
    "ruby",
    "rt",
    "template",
    "noscript",
    "iframe",
    "object",
    "nobr",
    "span",
    "section",
    "article",
    "main",
    "x-part",
    "caption",
    "colgroup",
    "frameset",
];
const OPENERS: &[&str] = &[
    "<script>",
    "<style>",
    "<textarea>",
    "<title>",
    "<plaintext>",
    "<xmp>",
    "<iframe>",
    "<noframes>",
    "<!--",
    "<![CDATA[",
    "<?php ",
    "<!DOCTYPE ",
    "<a href=\"",
    "<img alt='",
    "</",
    "<",
    "<noscript>",
    "<template shadowrootmode=open>",
    "<script type=application/ld+json>{\"@type\":\"Article\",\"articleBody\":\"",
    "<base href='//[",
    "<svg><style>",
    "<math><annotation-xml encoding=text/html>",
    "<table><select>",
    "<frameset>",
];
const ENTITIES: &[&str] = &[
    "&amp;",
    "&#0;",
    "&#xD800;",
    "&#x10FFFF;",
    "&nosuch;",
    "&lt",
    "&#",
    "&CounterClockwiseContourIntegral;",
    "&NotEqualTilde;",
];

struct Mutator {
    random: Lcg,
}

impl Mutator {
    fn mutated_page(&mut self, sources: &[Vec<u8>]) -> Vec<u8> {
        let mut page = sources[self.random.below(sources.len())].clone();
        if self.random.below(4) == 0 {
            let other = &sources[self.random.below(sources.len())];
            let (cut, from) = (self.random.below(page.len()), self.random.below(other.len()));
            page.truncate(cut);
            page.extend_from_slice(&other[from..]);
        }
        for _ in 0..=self.random.below(8) {
            self.mutate_once(&mut page);
        }
        page
    }

    fn mutate_once(&mut self, page: &mut Vec<u8>) {
        let at = self.random.below(page.len());
        match self.random.below(12) {
            0 => {
                for _ in 0..self.random.below(200) {
                    let (place, bit) = (self.random.below(page.len()), self.random.below(8));
                    if let Some(byte) = page.get_mut(place) {
                        *byte ^= 1 << bit;
                    }
                }
            }
            1 => page.truncate(at),
            2 => drop(page.drain(at..(at + self.random.below(3_000)).min(page.len()))),
            3 => {
                let piece = page[at..(at + self.random.below(400)).min(page.len())].to_vec();
                let times = self.random.below(20);
                self.insert(page, at, &piece.repeat(times));
            }
            4 => self.nest(page, at),
            5 => self.cross(page, at),
            6 => {
                let tag = self.random.one_of(TAGS);
                let count = self.random.below(4_000);
                let attributes: String = (0..count).map(|number| format!(" a{number}='{number}'")).collect();
                self.insert(page, at, format!("<{tag}{attributes}>").as_bytes());
            }
            7 => {
                let (entity, count) = (self.random.one_of(ENTITIES), self.random.below(5_000));
                self.insert(page, at, entity.repeat(count).as_bytes());
            }
            8 => {
                let opener = self.random.one_of(OPENERS);
                self.insert(page, at, opener.as_bytes());
            }
            9 => {
                let spans = format!("<td rowspan={0} colspan={0}>x", self.random.below(70_000));
                let count = self.random.below(300);
                self.insert(page, at, format!("<table><tr>{}", spans.repeat(count)).as_bytes());
            }
            10 => self.retag(page),
            _ => {
                let odd =
                    ["\0", "\u{202e}", "\u{feff}", "\u{e0041}", "\r", "\u{c}", "|", "`", "\\", "\u{fffd}"];
                let (odd, count) = (self.random.one_of(&odd), self.random.below(2_000));
                self.insert(page, at, odd.repeat(count).as_bytes());
            }
        }
    }

    fn insert(&mut self, page: &mut Vec<u8>, at: usize, piece: &[u8]) {
        let at = at.min(page.len());
        drop(page.splice(at..at, piece.iter().copied()));
    }

    /// Nests the same tags, closed or not.
    fn nest(&mut self, page: &mut Vec<u8>, at: usize) {
        let (outer, inner) = (self.random.one_of(TAGS), self.random.one_of(TAGS));
        let depth = self.random.below(3_000);
        let mut piece = format!("<{outer}><{inner}>").repeat(depth) + "deep";
        if self.random.below(2) == 0 {
            piece += &format!("</{inner}></{outer}>").repeat(depth);
        }
        self.insert(page, at, piece.as_bytes());
    }

    /// Inserts tags that are closed in the order in which they were opened.
    fn cross(&mut self, page: &mut Vec<u8>, at: usize) {
        let mut piece = String::new();
        for _ in 0..self.random.below(500) {
            let (one, two) = (self.random.one_of(TAGS), self.random.one_of(TAGS));
            piece += &format!("<{one}><{two}>x</{one}>y</{two}>");
        }
        self.insert(page, at, piece.as_bytes());
    }

    /// Replaces some of the page's tags.
    fn retag(&mut self, page: &mut Vec<u8>) {
        let places: Vec<usize> = page
            .windows(2)
            .enumerate()
            .filter(|(_, two)| two == b"<d" || two == b"<p")
            .map(|(at, _)| at)
            .collect();
        for _ in 0..self.random.below(20).min(places.len()) {
            let (place, tag) = (places[self.random.below(places.len())], self.random.one_of(TAGS));
            self.insert(page, place + 1, format!("{tag} ").as_bytes());
        }
    }
}
