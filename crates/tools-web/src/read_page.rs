//! `read_page`.

use crate::extract::PageType;
use crate::page_document::{
    Document, DocumentCache, Heading, PageRequest, Passage, ReadContext, load, passages, section,
};
use octo_toolkit::reply_budget::{count_fitting, prefix_within};
use octo_toolkit::{
    CallContext, Effect, Example, ModelText, Net, Pdf, Render, ReplyBudget, Tool, ToolError, counted,
    json_len,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Reads a web page or PDF as Markdown without menus, banners and advertisements, or reports why it cannot. Returns a
/// handle for an outline, one section, a search in the page, or its next part without fetching again. Prefer fetch_url
/// for other files, APIs and raw HTML.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// URL of the page, http or https.
    url: String,
    /// Seconds to wait for the site; at most 120.
    #[serde(default = "default_timeout_s")]
    timeout_s: u64,
    /// Characters of content to return; the rest is at `next`. With query, characters of all passages; default 3,000.
    #[serde(default)]
    #[schemars(with = "u64", default = "default_max_chars")]
    max_chars: Option<u64>,
    /// Whether to reuse a page that you read in the last 15 minutes.
    #[serde(default = "default_true")]
    use_cache: bool,
    /// Whether to keep images in the Markdown.
    #[serde(default)]
    include_images: bool,
    /// From an earlier reply: continues with the page as read then, without fetching.
    #[serde(default)]
    handle: Option<String>,
    /// Returns only the headings, with their numbers and offsets.
    #[serde(default)]
    outline: bool,
    /// Returns one section: a heading's text, the beginning of it, or its number in the outline.
    #[serde(default)]
    section: Option<String>,
    /// Returns the five passages that match these words best, as `passages`, without the content.
    #[serde(default)]
    query: Option<String>,
    /// Character of the content to start at; `next` of an earlier reply.
    #[serde(default)]
    offset: u64,
    /// Reads the site's llms.txt, its summary for models, instead of the page.
    #[serde(default)]
    llms_txt: bool,
}

fn default_timeout_s() -> u64 {
    15
}

fn default_max_chars() -> u64 {
    50_000
}

fn default_true() -> bool {
    true
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// URL of the page, after redirects.
    url: String,
    /// Its title.
    title: String,
    /// Author.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    byline: Option<String>,
    /// Description from the page's metadata.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    excerpt: Option<String>,
    /// The requested part of the content, Markdown. Empty when a query was given.
    content: String,
    /// Words of the whole page.
    word_count: usize,
    /// Whether more follows: at `next`, or beyond what was fetched when there is no `next`.
    truncated: bool,
    /// Whether it came from the cache.
    cached: bool,
    /// Type of the page.
    page_type: PageType,
    /// Confidence that this is the page's main content, from 0 to 1.
    quality: f64,
    /// Language of the page, such as en.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lang: Option<String>,
    /// Publication date, as the page gives it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    published: Option<String>,
    /// For further reads without fetching; yours alone, for 15 minutes.
    handle: String,
    /// Offset of the next part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    next: Option<usize>,
    /// The headings; returned on request, or when the content is truncated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    outline: Vec<Heading>,
    /// Matches of the query, best first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    passages: Vec<Passage>,
    /// Note about how it was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

/// A heading with what selects its section.
fn heading_line(heading: &Heading) -> String {
    let Heading { number, level, text, line, offset, chars } = heading;
    let indent = "  ".repeat(usize::from(*level));
    format!("{indent}section {number}: {text} (line {line}, offset {offset}, {chars} characters)")
}

/// Maximum number of headings in a reply.
const MAX_OUTLINE_HEADINGS: usize = 200;
const MAX_TIMEOUT_SECS: u64 = 120;
/// Estimated bytes of a reply besides content and outline.
const REPLY_OVERHEAD_BYTES: usize = 1_000;
/// Bytes of the field `next`.
const NEXT_FIELD_BYTES: usize = 30;
/// Characters of all passages together, unless max_chars is given.
const DEFAULT_PASSAGE_CHARS: u64 = 3_000;

pub struct ReadPage(pub DocumentCache);

impl Tool for ReadPage {
    const NAME: &'static str = "read_page";
    const TITLE: &'static str = "Read a web page";
    const KEYWORDS: &'static str =
        "article news website text extract scrape documentation blog summarize link open PDF";
    const REQUESTS: &'static [&'static str] = &[
        "read this news article for me without ads",
        "what does the blog post at this link say",
        "read a long documentation page chapter by chapter",
        "find the passage about refunds on that web page",
        "table of contents of a long online article",
        "pdf from the internet as readable text",
        "does the site have an llms.txt",
    ];
    const EFFECT: Effect = Effect::reads().open_world();
    const IS_READER: bool = true;
    type Input = Input;
    type Output = Output;
    type Grants = (Net, Pdf, Render);

    fn examples() -> Vec<Example> {
        vec![
            Example::new("Read an article", json!({"url": "https://example.com/"})),
            Example::new("Outline of a long page", json!({"url": "https://example.com/", "outline": true})),
            Example::new(
                "Search in a page",
                json!({"url": "https://example.com/", "query": "documentation examples"}),
            ),
        ]
    }

    fn text(output: &Output) -> Option<String> {
        let by = [&output.byline, &output.published].map(|word| word.as_deref().unwrap_or_default());
        let by = by.join(" ");
        let text = ModelText::new()
            .field("title", &output.title)
            .line(&output.url)
            .line_if(!by.trim().is_empty(), by.trim())
            .field_if("excerpt", output.excerpt.as_ref().filter(|_| output.content.is_empty()))
            .field_if("note", output.note.as_ref())
            .line(format_args!("{} words, handle: {}", output.word_count, output.handle))
            .line_if(output.truncated, "truncated")
            .field_if("next", output.next)
            .lines(output.outline.iter().map(heading_line));
        let text = output.passages.iter().fold(text, |text, passage| {
            let heading =
                if passage.heading.is_empty() { "" } else { &format!(" under {}", passage.heading) };
            let shown = passage.text.trim_end();
            let lines = counted(shown.lines().count(), "line", "lines");
            text.line("").line(format_args!("=== offset {} ({lines}){heading}", passage.offset)).block(shown)
        });
        if output.content.is_empty() { text } else { text.line("").rest(&output.content) }.finish()
    }

    async fn run(
        &self,
        input: Input,
        (net, pdf, render): (Net, Pdf, Render),
        cx: &CallContext,
    ) -> Result<Output, ToolError> {
        let context = ReadContext { net: &net, pdf: &pdf, render: &render, caller: &cx.caller };
        let (document, cached) = self.get_document(&input, context, cx).await?;
        build_output(&input, &document, cached, cx.reply)
    }
}

impl ReadPage {
    async fn get_document(
        &self,
        input: &Input,
        context: ReadContext<'_>,
        cx: &CallContext,
    ) -> Result<(Arc<Document>, bool), ToolError> {
        if let Some(handle) = &input.handle {
            return Ok((self.0.get_by_handle(&cx.caller, handle)?, true));
        }
        let mut url = context.net.url(&input.url)?;
        url.set_fragment(None);
        let address = format!("{} {} {url}", input.include_images, input.llms_txt);
        if input.use_cache
            && let Some(document) = self.0.get_by_address(&cx.caller, &address)
        {
            return Ok((document, true));
        }
        let timeout = Duration::from_secs(input.timeout_s.clamp(1, MAX_TIMEOUT_SECS)).min(cx.time_left());
        let until = Instant::now() + timeout;
        let request = PageRequest { url, images: input.include_images, llms_txt: input.llms_txt, until };
        let document = Arc::new(load(context, request).await?);
        self.0.insert(&cx.caller, address, Arc::clone(&document));
        Ok((document, false))
    }
}

fn build_output(
    input: &Input,
    document: &Document,
    cached: bool,
    reply: ReplyBudget,
) -> Result<Output, ToolError> {
    let default_chars = if input.query.is_some() { DEFAULT_PASSAGE_CHARS } else { default_max_chars() };
    let max_chars = usize::try_from(input.max_chars.unwrap_or(default_chars)).unwrap_or(usize::MAX).max(1);
    let mut part = ContentPart::default();
    if let Some(query) = &input.query {
        part.passages = passages(&document.content, &document.outline, query, max_chars);
    } else if !input.outline {
        let whole = document.content.chars().count();
        let range = match &input.section {
            Some(wanted) => {
                section(&document.outline, wanted).ok_or_else(|| unknown_section_error(document, wanted))?
            }
            None => 0..whole,
        };
        part = slice_content(
            &document.content,
            range,
            usize::try_from(input.offset).unwrap_or(usize::MAX),
            max_chars,
        );
    }
    let is_long = json_len(&part.content) > reply.remaining_after(REPLY_OVERHEAD_BYTES);
    let truncated = is_long || part.next.is_some() || document.truncated;
    let mut outline: Vec<Heading> = if input.outline || truncated {
        document.outline.iter().take(MAX_OUTLINE_HEADINGS).cloned().collect()
    } else {
        Vec::new()
    };
    outline.truncate(count_fitting(&outline, reply.remaining_after(0) / if input.outline { 2 } else { 4 })?);
    let note = if input.query.is_some() && part.passages.is_empty() {
        Some("Nothing in the page matches the query.".to_owned())
    } else {
        document.note.clone()
    };
    let mut output = Output {
        url: document.url.clone(),
        title: document.title.clone(),
        byline: document.byline.clone(),
        excerpt: document.excerpt.clone(),
        content: String::new(),
        word_count: document.words,
        truncated,
        cached,
        page_type: document.page_type,
        quality: document.quality,
        lang: document.lang.clone(),
        published: document.published.clone(),
        handle: document.handle.clone(),
        next: part.next,
        outline,
        passages: part.passages,
        note,
    };
    output.content =
        prefix_within(&part.content, reply.remaining_beside(&output)?.saturating_sub(NEXT_FIELD_BYTES))
            .to_owned();
    if output.content.len() < part.content.len() {
        output.next = Some(part.start + output.content.chars().count());
        output.truncated = true;
    }
    Ok(output)
}

fn unknown_section_error(document: &Document, wanted: &str) -> ToolError {
    let some: Vec<String> = document
        .outline
        .iter()
        .take(20)
        .map(|heading| format!("{} {}", heading.number, heading.text))
        .collect();
    let hint = if some.is_empty() {
        "The page has no headings.".to_owned()
    } else {
        format!("It has: {}.", some.join("; "))
    };
    ToolError::not_found(format!("Section not found: \"{wanted}\".")).hint(hint)
}

#[derive(Default)]
struct ContentPart {
    content: String,
    /// Offset of the content.
    start: usize,
    next: Option<usize>,
    passages: Vec<Passage>,
}

/// Up to `max_chars` characters of a range from an offset on; ends at a line break if one is near.
fn slice_content(text: &str, range: Range<usize>, offset: usize, max_chars: usize) -> ContentPart {
    let start = range.start.max(offset).min(range.end);
    let left = range.end - start;
    let mut content: String = text.chars().skip(start).take(left.min(max_chars)).collect();
    if left <= max_chars {
        return ContentPart { content, start, ..ContentPart::default() };
    }
    let whole = content.rfind('\n').map(|at| at + 1).filter(|at| at * 2 > content.len());
    if let Some(end) = whole {
        content.truncate(end);
    }
    let next = start + content.chars().count();
    ContentPart { content, start, next: Some(next), ..ContentPart::default() }
}

#[cfg(test)]
mod tests;
