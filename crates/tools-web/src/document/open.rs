//! Fetches a page and makes a document of whatever came back.

use super::{Document, outline};
use crate::charset;
use crate::extract::{Extracted, PageType, extract};
use crate::kind::Kind;
use crate::markdown::{Style, of_html};
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue};
use octo_toolkit::hidden;
use octo_toolkit::net::{Answer, Ask};
use octo_toolkit::{Net, ToolError};
use std::time::{Duration, Instant};
use url::Url;

/// Sites that have it give Markdown for this.
const ACCEPTED: &str = "text/markdown, text/html;q=0.9, application/xhtml+xml;q=0.9, text/plain;q=0.8, application/json;q=0.7, */*;q=0.5";
/// Bytes of a page that are read.
const LONGEST: usize = 8 << 20;
/// A page with fewer words than this may be a shell that a script fills.
const SHELL_WORDS: usize = 40;

/// What is wanted of a page.
pub struct Wanted {
    pub url: Url,
    pub images: bool,
    /// The site's `llms.txt` instead of the page.
    pub llms_txt: bool,
    pub until: Instant,
}

pub async fn open(net: &Net, wanted: Wanted) -> Result<Document, ToolError> {
    if wanted.llms_txt {
        let found = llms_txt(net, &wanted.url, wanted.until).await?;
        return found.ok_or_else(|| {
            ToolError::not_found("The site has no llms.txt.")
                .hint("Leave out llms_txt to read the page itself.")
        });
    }
    let answer = get(net, wanted.url.clone(), wanted.until).await?;
    if answer.status.as_u16() >= 400 {
        return Err(refused(&answer));
    }
    let sort = kind(&answer);
    let (url, images, until, cut) = (answer.url.clone(), wanted.images, wanted.until, answer.truncated);
    let mut document = match sort {
        Kind::Html => {
            // Off the threads that serve calls: a large page takes a while.
            let work = tokio::task::spawn_blocking(move || read_html(&answer, images));
            let left = until.saturating_duration_since(Instant::now()).max(Duration::from_secs(5));
            let read = tokio::time::timeout(left, work).await;
            let read = read.map_err(|_| too_slow())?.map_err(ToolError::internal)?;
            if !read.is_shell {
                read.document
            } else if let Some(text) = llms_txt(net, &url, until).await.ok().flatten() {
                let note = "The page needs JavaScript and is empty without; this is the site's llms.txt.";
                Document { note: Some(note.to_owned()), ..text }
            } else if read.document.words == 0 {
                return Err(ToolError::unavailable("The page has no text without JavaScript.")
                    .hint("Open it with browser_navigate and read it with browser_snapshot, or look for another source."));
            } else {
                let note = "The page needs JavaScript; only what it shows without is here. Prefer browser_navigate for the rest.";
                Document { note: Some(note.to_owned()), ..read.document }
            }
        }
        Kind::Markdown | Kind::Text | Kind::Xml => plain(&url, decode(&answer), sort == Kind::Markdown),
        Kind::Json => {
            let text = decode(&answer);
            let pretty = serde_json::from_str::<serde_json::Value>(&text)
                .and_then(|value| serde_json::to_string_pretty(&value));
            plain(&url, format!("```json\n{}\n```\n", pretty.unwrap_or(text).trim_end()), false)
        }
        Kind::Pdf | Kind::Binary(_) => {
            let said = content_type(&answer).unwrap_or("no text");
            return Err(ToolError::invalid(format!("The address gives {said}, which is no page to read."))
                .hint("Use fetch_url for it: it reads PDF as text and describes other files."));
        }
    };
    document.cut |= cut;
    Ok(document)
}

async fn get(net: &Net, url: Url, until: Instant) -> Result<Answer, ToolError> {
    let timeout = until.saturating_duration_since(Instant::now());
    let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(ACCEPTED))]);
    net.send(Ask { headers, timeout, max_bytes: LONGEST, ..Ask::get(url) }).await
}

fn too_slow() -> ToolError {
    ToolError::new(octo_toolkit::Kind::Timeout, "The page took too long to read.")
        .hint("Try a larger timeout_s, or fetch_url with extract_main_content off.")
}

fn refused(answer: &Answer) -> ToolError {
    let title = extract(&decode(answer), &answer.url).title;
    let said = if title.is_empty() { String::new() } else { format!(", \"{title}\"") };
    let message = format!("The server answered {}{said}.", answer.status);
    match answer.status.as_u16() {
        404 | 410 => {
            ToolError::not_found(message).hint("Check the address, or look for the page with web_search.")
        }
        401 | 403 => ToolError::denied(message)
            .hint("The page wants a login or refuses programs; try the browser, or another source."),
        _ => ToolError::unavailable(message).hint("Try again later, or see the whole answer with fetch_url."),
    }
}

fn content_type(answer: &Answer) -> Option<&str> {
    answer.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok())
}

fn kind(answer: &Answer) -> Kind {
    Kind::of(content_type(answer), &answer.body)
}

/// The text of an answer, without characters that nobody would see.
fn decode(answer: &Answer) -> String {
    let text = charset::decode(&answer.body, content_type(answer), answer.truncated).text;
    hidden::cleaned(text, &mut 0)
}

struct Read {
    document: Document,
    is_shell: bool,
}

fn read_html(answer: &Answer, images: bool) -> Read {
    let html = decode(answer);
    let found = extract(&html, &answer.url);
    let content = of_html(&found.html, &answer.url, Style { images, ..Style::default() });
    let words = found.text.split_whitespace().count();
    let is_shell = words < SHELL_WORDS && found.needs_script;
    let Extracted { title, byline, published, excerpt, lang, page_type, quality, .. } = found;
    let url = answer.url.to_string();
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
        cut: false,
    };
    Read { document, is_shell }
}

/// A text that needs no extraction.
fn plain(url: &Url, content: String, markdown: bool) -> Document {
    let headings = if markdown { outline(&content) } else { Vec::new() };
    let last = url.path_segments().and_then(|mut parts| parts.next_back()).unwrap_or("").to_owned();
    Document {
        handle: Document::handle(url.as_str(), &content),
        url: url.to_string(),
        title: headings.first().map_or(last, |heading| heading.text.clone()),
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
        cut: false,
    }
}

async fn llms_txt(net: &Net, url: &Url, until: Instant) -> Result<Option<Document>, ToolError> {
    let Ok(there) = url.join("/llms.txt") else { return Ok(None) };
    let answer = get(net, there, until).await?;
    let text = matches!(kind(&answer), Kind::Markdown | Kind::Text);
    let found = answer.status.is_success() && text && !answer.body.is_empty();
    Ok(found.then(|| plain(&answer.url, decode(&answer), true)))
}
