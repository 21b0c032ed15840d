//! Renders a response body for the model: detects its kind and converts it to the requested format.

use crate::body_kind::{BodyKind, dimensions};
use crate::charset::decode;
use crate::extract;
use crate::head_metadata::{self, Metadata};
use crate::html_to_markdown::{self, MarkdownStyle};
use crate::links::{self, Link};
use crate::pretty_json::pretty;
use dom_query::Document;
use octo_toolkit::hidden_text::strip_hidden_owned;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::Url;

/// Format of the content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OutputFormat {
    #[default]
    Markdown,
    Text,
    Html,
    Raw,
}

/// Rendering options.
#[derive(Clone, Copy)]
pub struct RenderOptions {
    pub format: OutputFormat,
    pub main_content: bool,
    pub links: bool,
    pub metadata: bool,
    pub max_bytes: usize,
}

/// Fetched body with the response fields that rendering needs.
pub struct FetchedBody {
    pub url: Url,
    pub content_type: Option<String>,
    pub bytes: bytes::Bytes,
    pub truncated: bool,
}

#[derive(Default)]
pub struct RenderedBody {
    pub content: String,
    pub title: Option<String>,
    pub description: Option<String>,
    pub metadata: Option<Metadata>,
    pub links: Vec<Link>,
    pub truncated: bool,
    pub notices: Vec<String>,
}

/// Renders a body. CPU-bound; run it on a blocking thread.
pub fn render(body: &FetchedBody, options: RenderOptions) -> RenderedBody {
    let kind = BodyKind::detect(body.content_type.as_deref(), &body.bytes);
    let mut rendered = match kind {
        // Text of PDF files is read elsewhere; this is the fallback.
        BodyKind::Pdf => describe_binary(body, Some("application/pdf")),
        BodyKind::Binary(seen) => describe_binary(body, seen),
        _ => {
            let decoded = decode(&body.bytes, body.content_type.as_deref(), body.truncated);
            let broken = decoded.text.contains('\u{fffd}');
            let mut rendered = render_text(decoded.text, kind, body, options);
            if broken {
                rendered.notices.push(format!(
                    "Some bytes are not valid {} and were replaced with \u{fffd}.",
                    decoded.encoding
                ));
            }
            rendered
        }
    };
    rendered.truncated |= body.truncated;
    finalize(rendered, options.max_bytes)
}

/// Truncates the content and removes hidden characters.
pub fn finalize(mut reading: RenderedBody, max_bytes: usize) -> RenderedBody {
    truncate_content(&mut reading, max_bytes);
    sanitize(&mut reading);
    reading
}

fn render_text(text: String, kind: BodyKind, body: &FetchedBody, options: RenderOptions) -> RenderedBody {
    let content = match (kind, options.format) {
        (BodyKind::Html, _) => return render_html(&text, body, options),
        (BodyKind::Json, OutputFormat::Markdown | OutputFormat::Text) => {
            pretty_if_fits(text, options.max_bytes)
        }
        _ => text,
    };
    RenderedBody { content, ..RenderedBody::default() }
}

/// Formats JSON if the result fits; otherwise, or if it is not JSON, returns the text unchanged.
fn pretty_if_fits(text: String, max_bytes: usize) -> String {
    if serde_json::from_str::<serde::de::IgnoredAny>(&text).is_err() {
        return text;
    }
    let pretty = pretty(&text);
    if pretty.len() <= max_bytes { pretty } else { text }
}

fn render_html(html: &str, body: &FetchedBody, options: RenderOptions) -> RenderedBody {
    let about = head_metadata::read_head(html, &body.url);
    let mut rendered = RenderedBody::default();
    if options.format == OutputFormat::Raw {
        html.clone_into(&mut rendered.content);
    }
    let needs_tree = options.links || options.format != OutputFormat::Raw;
    if needs_tree {
        let base = &about.base;
        let document = content_document(html, options, base, &mut rendered);
        if options.links {
            let found = links::collect_links(&document, base, &body.url);
            if found.count > found.listed.len() {
                rendered.notices.push(format!("{} of {} links are listed.", found.listed.len(), found.count));
            }
            rendered.links = found.listed;
        }
        let style = MarkdownStyle {
            plain: options.format == OutputFormat::Text,
            limit: options.max_bytes,
            ..MarkdownStyle::default()
        };
        match options.format {
            OutputFormat::Markdown | OutputFormat::Text => {
                rendered.content = html_to_markdown::render_document(&document, base, style)
            }
            OutputFormat::Html => rendered.content = clean_html(&document),
            OutputFormat::Raw => {}
        }
    }
    if let Some(to) = about.refresh.as_deref().filter(|_| rendered.content.len() < 2_000) {
        rendered.notices.push(format!("The page redirects to {to} (meta refresh); fetch that."));
    }
    if options.metadata {
        rendered.title = about.title;
        rendered.description = about.description;
        rendered.metadata = Some(about.metadata).filter(|metadata| *metadata != Metadata::default());
    }
    rendered
}

/// The requested part of the page.
fn content_document(html: &str, options: RenderOptions, base: &Url, reading: &mut RenderedBody) -> Document {
    if !options.main_content || options.format == OutputFormat::Raw {
        let document = html_to_markdown::parse_html(html);
        if options.format != OutputFormat::Raw && is_shell(html, visible_length(&document)) {
            reading.notices.push(SCRIPT_SHELL_NOTICE.to_owned());
        }
        return document;
    }
    let document = html_to_markdown::parse_html(html);
    let main = extract::extract_document(&document, base);
    if is_shell(html, main.text.len()) {
        reading.notices.push(SCRIPT_SHELL_NOTICE.to_owned());
    }
    if main.text.is_empty() {
        reading.notices.push("No main content found; this is the whole page.".to_owned());
        return document;
    }
    main.content
}

const SCRIPT_SHELL_NOTICE: &str = "The page has almost no text without scripts. Use browser_navigate, if it is enabled, to \
                     render it.";

/// Whether a page is empty without scripts.
fn is_shell(html: &str, visible: usize) -> bool {
    const MAX_SHELL_BYTES: usize = 300;
    if visible > MAX_SHELL_BYTES {
        return false;
    }
    let lower = html.to_ascii_lowercase();
    let scripts = lower.matches("<script").count();
    let asked = lower.split("<noscript").skip(1).any(|part| {
        part.split("</noscript")
            .next()
            .is_some_and(|inside| inside.contains("javascript") || inside.contains("scripts"))
    });
    let mounts = [
        "id=\"root\"",
        "id=\"app\"",
        "id=root>",
        "id=app>",
        "id=\"__next\"",
        "id=\"__nuxt\"",
        "<app-root",
        "data-reactroot",
    ];
    let mounted = mounts.iter().any(|mount| lower.contains(mount));
    let heavy = scripts >= 3 && html.len() > 20 * visible.max(50);
    scripts > 0 && (asked || mounted || heavy)
}

fn visible_length(document: &Document) -> usize {
    let base = Url::parse("http://localhost/");
    let style = MarkdownStyle { plain: true, links: false, images: false, limit: 2_000 };
    base.map_or(0, |base| html_to_markdown::render_document(document, &base, style).len())
}

/// HTML without scripts, styles and embedded data.
fn clean_html(document: &Document) -> String {
    document.select("script, style, noscript, template, svg, iframe, object, embed, link, meta").remove();
    for node in document.select("[src^='data:'], [href^='data:'], [srcset^='data:']").nodes() {
        node.remove_attrs(&["src", "href", "srcset"]);
    }
    let body = document.body().map(|body| body.inner_html().to_string());
    let html = body.unwrap_or_else(|| document.html().to_string());
    html.trim().to_owned()
}

/// Type, size and dimensions of content that is not text.
fn describe_binary(body: &FetchedBody, seen: Option<&'static str>) -> RenderedBody {
    let kind = seen.map(str::to_owned).or_else(|| body.content_type.clone());
    let kind = kind.unwrap_or_else(|| "unknown type".to_owned());
    let size = format!("{}{} bytes", if body.truncated { "more than " } else { "" }, body.bytes.len());
    let dimensions = dimensions(&body.bytes).map(|(width, height)| format!(", {width} x {height} pixels"));
    let content = format!("Binary content: {kind}, {size}{}.", dimensions.unwrap_or_default());
    let notice = "This is not text, so only its type and size are returned.".to_owned();
    RenderedBody { content, notices: vec![notice], ..RenderedBody::default() }
}

/// Truncates the content at a character boundary.
fn truncate_content(reading: &mut RenderedBody, max_bytes: usize) {
    if reading.content.len() > max_bytes {
        let end = (0..=max_bytes).rev().find(|at| reading.content.is_char_boundary(*at)).unwrap_or(0);
        reading.content.truncate(end);
        reading.truncated = true;
    }
}

/// Removes hidden characters from all texts of the reply.
fn sanitize(reading: &mut RenderedBody) {
    let mut removed = 0;
    let mut strip_hidden = |text: &mut String| *text = strip_hidden_owned(std::mem::take(text), &mut removed);
    strip_hidden(&mut reading.content);
    reading.title.iter_mut().for_each(&mut strip_hidden);
    reading.description.iter_mut().for_each(&mut strip_hidden);
    reading.links.iter_mut().for_each(|link| strip_hidden(&mut link.text));
    if let Some(metadata) = &mut reading.metadata {
        let Metadata { canonical, language, site_name, kind, image, author, published, modified } = metadata;
        let all = [canonical, language, site_name, kind, image, author, published, modified];
        all.into_iter().flatten().for_each(&mut strip_hidden);
    }
    if removed > 0 {
        reading.notices.push(format!("Invisible characters removed: {removed}."));
    }
}
