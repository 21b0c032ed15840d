//! Hostile bodies must not crash the reader: not by depth, size or invalid input.

use crate::html_to_markdown::{MarkdownStyle, render_html};
use crate::render_body::{FetchedBody, OutputFormat, RenderOptions, RenderedBody, render};
use proptest::prelude::*;
use std::time::{Duration, Instant};
use url::Url;

fn page() -> Url {
    Url::parse("https://a.example/").unwrap()
}

fn reading(body: &[u8], content_type: &str, format: OutputFormat, main_content: bool) -> RenderedBody {
    let body = FetchedBody {
        url: page(),
        content_type: Some(content_type.to_owned()),
        bytes: bytes::Bytes::copy_from_slice(body),
        truncated: false,
    };
    render(&body, RenderOptions { format, main_content, links: true, metadata: true, max_bytes: 500_000 })
}

/// Runs on a stack as small as that of the worker threads.
fn on_small_stack(work: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(2 << 20).spawn(work).unwrap().join().unwrap();
}

#[test]
fn deep_and_wide_pages_end_in_time() {
    let fonts: String = (0..500).map(|at| format!("<font size={at}>")).collect();
    let pages = [
        "<div>".repeat(100_000),
        "<b>".repeat(100_000),
        "<ul><li>".repeat(20_000),
        "<table><tr><td>".repeat(30_000),
        "<blockquote>".repeat(40_000) + &"x<br>".repeat(20_000),
        "<a href=x>".repeat(50_000),
        "<svg><style>".repeat(30_000) + &"<div>".repeat(30_000),
        "<select><option>".repeat(30_000),
        format!("<p>{fonts}{}", "<p>x".repeat(50_000)),
        format!("<table>{}</table>", "<tr><td colspan=9999 rowspan=9999>x".repeat(5_000)),
        format!("<div {}>x", (0..50_000).map(|at| format!("a{at}=1 ")).collect::<String>()),
        "<".repeat(400_000),
        "&".repeat(400_000),
        "<pre>".to_owned() + &"`".repeat(400_000),
        "<p>\0\u{fffd}&#0;&#xD800;&#x110000;&nosuch;<!-- <![CDATA[ <!DOCTYPE".repeat(5_000),
        "<ruby><rt>".repeat(40_000),
        "<button><p>".repeat(40_000),
        "<math><mi><mglyph>".repeat(20_000),
        "<!-- x -->".repeat(60_000),
    ];
    on_small_stack(move || {
        for html in &pages {
            let start: String = html.chars().take(20).collect();
            let from = Instant::now();
            let text =
                render_html(html, &page(), MarkdownStyle { limit: 500_000, ..MarkdownStyle::default() });
            assert!(from.elapsed() < Duration::from_secs(8), "{start}: {:?}", from.elapsed());
            assert!(text.len() <= 600_000, "{start}: {}", text.len());
        }
    });
}

#[test]
fn text_at_the_bottom_of_a_deep_page_is_still_read() {
    on_small_stack(|| {
        let html = format!("{}bottom{}", "<div>".repeat(100_000), "</div>".repeat(100_000));
        assert_eq!(render_html(&html, &page(), MarkdownStyle::default()), "bottom");
    });
}

#[test]
fn every_shape_of_a_broken_page_is_read() {
    let html = "<html><head><title>T&amp;</title><meta charset=><body><p>unclosed <b>b <table><td>cell<li>item</html>after";
    for format in [OutputFormat::Markdown, OutputFormat::Text, OutputFormat::Html, OutputFormat::Raw] {
        for main in [true, false] {
            let reading = reading(html.as_bytes(), "text/html", format, main);
            assert!(reading.content.contains("unclosed"), "{format:?} {main}: {}", reading.content);
            assert_eq!(reading.title.as_deref(), Some("T&"));
        }
    }
}

fn soup() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("<div>".to_owned()),
        "</?(p|div|b|a|i|table|tr|td|th|li|ul|ol|pre|code|h1|svg|style|script|select|math|title|dl|dt|dd|br|img)( (href|class|src|colspan|style)=['\"]?[a-z0-9:/#;.-]{0,8}['\"]?)?/?>",
        "[a-z *_`\\[\\]|#<>&;!\\-\\\\\n\u{0}\u{200b}ü💻]{0,12}",
        "&(amp|lt|#[0-9]{1,7}|#x[0-9a-f]{1,6}|nbsp|zz);?",
        Just("<!--".to_owned()),
        Just("-->".to_owned()),
        Just("<![CDATA[".to_owned()),
    ];
    prop::collection::vec(piece, 0..80).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn no_soup_of_tags_breaks_the_reader(html in soup(), main in any::<bool>()) {
        for format in [OutputFormat::Markdown, OutputFormat::Text, OutputFormat::Html] {
            let reading = reading(html.as_bytes(), "text/html", format, main);
            prop_assert!(reading.content.len() <= 500_000);
        }
    }

    #[test]
    fn no_bytes_break_the_reader(bytes in prop::collection::vec(any::<u8>(), 0..400), kind in "(text/(html|plain|xml)|application/(json|pdf)|image/png)?(; charset=[a-z0-9-]{0,10})?") {
        let _ = reading(&bytes, &kind, OutputFormat::Markdown, true);
    }
}

/// An ordinary page of 40 KB.
fn ordinary_page() -> String {
    let section = "<section><h2 id=s>A section</h2><p>Some <b>words</b> and a <a href='/link?x=1'>link</a> in a paragraph that goes \
                   on for a while, as paragraphs do, with <code>code()</code> in it.</p><ul><li>one<li>two <i>three</i></ul>\
                   <pre><code class='language-rust'>fn main() {\n    println!(\"x\");\n}</code></pre>\
                   <table><tr><th>a<th>b<tr><td>1<td>2</table></section>";
    format!("<!doctype html><title>T</title><main>{}</main>", section.repeat(40 * 1_024 / section.len() + 1))
}

#[test]
#[ignore = "a measurement; run it in release"]
fn markdown_of_an_ordinary_page_takes_little_time() {
    let html = ordinary_page();
    let mut best = Duration::MAX;
    let (mut parse, mut whole) = (Duration::MAX, Duration::MAX);
    for _ in 0..200 {
        let from = Instant::now();
        std::hint::black_box(crate::html_to_markdown::parse_html(&html));
        parse = parse.min(from.elapsed());
        let from = Instant::now();
        std::hint::black_box(render_html(&html, &page(), MarkdownStyle::default()));
        best = best.min(from.elapsed());
        let from = Instant::now();
        std::hint::black_box(reading(html.as_bytes(), "text/html", OutputFormat::Markdown, true));
        whole = whole.min(from.elapsed());
    }
    println!(
        "{} bytes: parse {parse:?}, markdown {best:?}, with main content, links and all {whole:?}",
        html.len()
    );
    assert!(best < Duration::from_millis(10), "{best:?}");
}
