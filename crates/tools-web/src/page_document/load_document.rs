//! Fetches a page and converts the response to a document.

use super::page_fetch::{body_kind, content_type, decode, get, status_error};
use super::{Document, outline};
use crate::body_kind::BodyKind;
use crate::extract::{ExtractedContent, PageType, extract};
use crate::html_to_markdown::{MarkdownStyle, render_document};
use crate::pdf;
use octo_toolkit::hidden_text::strip_hidden_owned;
use octo_toolkit::net::NetResponse;
use octo_toolkit::{Caller, Net, Pdf, Render, RenderedPage, ToolError};
use std::time::{Duration, Instant};
use url::Url;

/// Maximum bytes of a page.
const MAX_PAGE_BYTES: usize = 8 << 20;
/// A page with fewer words may be a shell that a script fills.
const MIN_PAGE_WORDS: usize = 40;
/// Minimum time left to start a browser.
const MIN_BROWSER_TIME: Duration = Duration::from_secs(1);

/// Request for a page.
pub struct PageRequest {
    pub url: Url,
    pub images: bool,
    /// Read the site's `llms.txt` instead of the page.
    pub llms_txt: bool,
    pub until: Instant,
}

/// Grants and caller for reading a page.
#[derive(Clone, Copy)]
pub struct ReadContext<'a> {
    pub net: &'a Net,
    pub pdf: &'a Pdf,
    pub render: &'a Render,
    pub caller: &'a Caller,
}

pub async fn load(context: ReadContext<'_>, request: PageRequest) -> Result<Document, ToolError> {
    let net = context.net;
    if request.llms_txt {
        let found = llms_txt(net, &request.url, request.until).await?;
        return found.ok_or_else(|| {
            ToolError::not_found("The site has no llms.txt.").hint("Omit llms_txt to read the page itself.")
        });
    }
    let mut answer = get(net, request.url.clone(), request.until, MAX_PAGE_BYTES).await?;
    if answer.status.as_u16() >= 400 {
        return Err(status_error(&answer));
    }
    let kind = body_kind(&answer);
    if kind == BodyKind::Pdf && answer.truncated {
        answer = get(net, request.url.clone(), request.until, pdf::MAX_PDF_BYTES).await?;
    }
    let (url, cut) = (answer.url.clone(), answer.truncated);
    let mut document = match kind {
        BodyKind::Html => load_html(context, request, answer).await?,
        BodyKind::Markdown | BodyKind::Text | BodyKind::Xml => {
            Document::plain(&url, decode(&answer), kind == BodyKind::Markdown)
        }
        BodyKind::Json => {
            let text = decode(&answer);
            let pretty = serde_json::from_str::<serde_json::Value>(&text)
                .and_then(|value| serde_json::to_string_pretty(&value));
            let content = format!("```json\n{}\n```\n", pretty.unwrap_or(text).trim_end());
            Document::plain(&url, content, false)
        }
        BodyKind::Pdf => load_pdf(context.pdf, answer, request.until).await?,
        BodyKind::Binary(_) => {
            let content_type_name = content_type(&answer).unwrap_or("no text");
            return Err(ToolError::invalid(format!(
                "The URL returns {content_type_name}, which read_page cannot read."
            ))
            .hint("Use fetch_url to get its type and size."));
        }
    };
    document.truncated |= cut;
    Ok(document)
}

/// Reads a page, or a substitute for it if only scripts would fill it.
async fn load_html(
    context: ReadContext<'_>,
    request: PageRequest,
    answer: NetResponse,
) -> Result<Document, ToolError> {
    let PageRequest { images, until, .. } = request;
    let url = answer.url.clone();
    let read = run_blocking(until, move || read_html(&decode(&answer), &answer.url, images)).await?;
    if !read.is_shell {
        return Ok(read.document);
    }
    let left = until.saturating_duration_since(Instant::now());
    let rendered = match left >= MIN_BROWSER_TIME {
        true => context.render.render(context.caller, &url, left).await,
        false => None,
    };
    let failed = match rendered {
        None => "",
        Some(Err(error)) => {
            tracing::info!(%error, "the browser could not render a page");
            " The browser could not render it."
        }
        Some(Ok(rendered)) => match read_rendered(rendered, until, images).await? {
            document if document.words > read.document.words => return Ok(document),
            _ => " The browser rendered no more text after loading; the page may load its content later.",
        },
    };
    if let Some(text) = llms_txt(context.net, &url, until).await.ok().flatten() {
        let note = format!(
            "The page needs JavaScript and is empty without it; this is the site's llms.txt.{failed}"
        );
        return Ok(Document { note: Some(note), ..text });
    }
    if read.document.words == 0 {
        let hint = match failed {
            "" => ENABLE_BROWSER_HINT,
            _ => {
                "Open it with browser_navigate, wait for its text with browser_wait and read it with browser_get_content, or \
                 look for another source."
            }
        };
        return Err(
            ToolError::unavailable(format!("The page has no text without JavaScript.{failed}")).hint(hint)
        );
    }
    let note = match failed {
        "" => format!("The page needs JavaScript; this is only what it shows without. {ENABLE_BROWSER_HINT}"),
        _ => format!(
            "The page needs JavaScript; this is only what it shows without.{failed} {BROWSER_WAIT_HINT}"
        ),
    };
    Ok(Document { note: Some(note), ..read.document })
}

/// Hint if the browser did not help.
const BROWSER_WAIT_HINT: &str = "Open it with browser_navigate and wait for its text with browser_wait.";

/// Hint if no browser is available.
const ENABLE_BROWSER_HINT: &str = "Ask the operator to enable the toolbox `browser`, which lets read_page read such pages \
                      (and browser_navigate opens them), or use another source.";

/// Document from a page that the browser rendered.
async fn read_rendered(rendered: RenderedPage, until: Instant, images: bool) -> Result<Document, ToolError> {
    let RenderedPage { url, html, complete, .. } = rendered;
    let html = strip_hidden_owned(html, &mut 0);
    let read = run_blocking(until, move || read_html(&html, &url, images)).await?;
    let unfinished = if complete { "" } else { " It was still loading at the timeout." };
    let note = format!("The page needs JavaScript, so it was read through the browser.{unfinished}");
    Ok(Document { note: Some(note), ..read.document })
}

/// Runs work on a blocking thread: a large page takes a while.
async fn run_blocking<T: Send + 'static>(
    until: Instant,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ToolError> {
    let left = until.saturating_duration_since(Instant::now()).max(Duration::from_secs(5));
    let done = tokio::time::timeout(left, tokio::task::spawn_blocking(work)).await;
    done.map_err(|_| timeout_error())?.map_err(ToolError::internal)
}

fn timeout_error() -> ToolError {
    ToolError::new(octo_toolkit::Kind::Timeout, "Timed out while reading the page.")
        .hint("Try a larger timeout_s, or fetch_url with extract_main_content off.")
}

async fn load_pdf(pdf: &Pdf, answer: NetResponse, until: Instant) -> Result<Document, ToolError> {
    let left = until.saturating_duration_since(Instant::now());
    let paper = pdf::read(pdf, answer.body, !answer.truncated, left).await?;
    let mut notes = vec![format!("A PDF of {} pages, each under its number.", paper.page_count)];
    let content = strip_hidden_owned(paper.text(true), &mut 0);
    let document = Document::plain(&answer.url, content, true);
    let title = paper.title.map(|title| strip_hidden_owned(title, &mut 0));
    notes.extend(paper.notices);
    Ok(Document {
        title: title.unwrap_or_else(|| last_part(&answer.url)),
        byline: paper.author.map(|author| strip_hidden_owned(author, &mut 0)),
        note: Some(notes.join(" ")),
        truncated: paper.is_truncated,
        ..document
    })
}

struct HtmlDocument {
    document: Document,
    is_shell: bool,
}

fn read_html(html: &str, url: &Url, images: bool) -> HtmlDocument {
    let found = extract(html, url);
    let content = render_document(&found.content, url, MarkdownStyle { images, ..MarkdownStyle::default() });
    let words = found.text.split_whitespace().count();
    let is_shell = words < MIN_PAGE_WORDS && found.needs_script;
    let ExtractedContent { title, byline, published, excerpt, lang, page_type, quality, .. } = found;
    let url = url.to_string();
    let document = Document {
        handle: Document::handle(&url, &content),
        url,
        title,
        byline,
        published,
        excerpt,
        lang,
        page_type,
        quality,
        outline: outline(&content),
        content,
        words,
        note: None,
        truncated: false,
    };
    HtmlDocument { document, is_shell }
}

fn last_part(url: &Url) -> String {
    url.path_segments().and_then(|mut parts| parts.next_back()).unwrap_or("").to_owned()
}

impl Document {
    /// Document from text that needs no extraction.
    pub fn plain(url: &Url, content: String, markdown: bool) -> Self {
        let headings = if markdown { outline(&content) } else { Vec::new() };
        Self {
            handle: Self::handle(url.as_str(), &content),
            url: url.to_string(),
            title: headings.first().map_or_else(|| last_part(url), |heading| heading.text.clone()),
            byline: None,
            published: None,
            excerpt: None,
            lang: None,
            page_type: PageType::Other,
            quality: 1.0,
            words: content.split_whitespace().count(),
            outline: headings,
            content,
            note: None,
            truncated: false,
        }
    }
}

async fn llms_txt(net: &Net, url: &Url, until: Instant) -> Result<Option<Document>, ToolError> {
    let Ok(there) = url.join("/llms.txt") else { return Ok(None) };
    let answer = get(net, there, until, MAX_PAGE_BYTES).await?;
    let text = matches!(body_kind(&answer), BodyKind::Markdown | BodyKind::Text);
    let found = answer.status.is_success() && text && !answer.body.is_empty();
    Ok(found.then(|| Document::plain(&answer.url, decode(&answer), true)))
}
