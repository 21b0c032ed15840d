//! From an answer to what is given to the model: which kind it is, and the text in the wanted shape.

use crate::about::{self, Metadata};
use crate::charset::decode;
use crate::extract;
use crate::kind::{Kind, dimensions};
use crate::links::{self, Link};
use crate::markdown::{self, Style};
use crate::pretty::pretty;
use dom_query::Document;
use octo_toolkit::hidden_text::strip_hidden_owned;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::Url;

/// How the content should be given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    #[default]
    Markdown,
    Text,
    Html,
    Raw,
}

/// What is wanted of an answer.
#[derive(Clone, Copy)]
pub struct Want {
    pub format: Format,
    pub main_content: bool,
    pub links: bool,
    pub metadata: bool,
    pub max_bytes: usize,
}

/// What came, as far as reading it matters.
pub struct Body {
    pub url: Url,
    pub content_type: Option<String>,
    pub bytes: bytes::Bytes,
    pub truncated: bool,
}

#[derive(Default)]
pub struct Reading {
    pub content: String,
    pub title: Option<String>,
    pub description: Option<String>,
    pub metadata: Option<Metadata>,
    pub links: Vec<Link>,
    pub truncated: bool,
    pub notices: Vec<String>,
}

/// Pure; run it beside the asynchronous threads.
pub fn read(body: &Body, want: Want) -> Reading {
    let kind = Kind::of(body.content_type.as_deref(), &body.bytes);
    let mut reading = match kind {
        // Its text is read elsewhere; this is what is left without.
        Kind::Pdf => binary(body, Some("application/pdf")),
        Kind::Binary(seen) => binary(body, seen),
        _ => {
            let decoded = decode(&body.bytes, body.content_type.as_deref(), body.truncated);
            let broken = decoded.text.contains('\u{fffd}');
            let mut reading = text_of(decoded.text, kind, body, want);
            if broken {
                reading
                    .notices
                    .push(format!("Some bytes are no {} text and stand as \u{fffd}.", decoded.encoding));
            }
            reading
        }
    };
    reading.truncated |= body.truncated;
    finished(reading, want.max_bytes)
}

/// Within its bound and without hidden characters, as everything that is told.
pub fn finished(mut reading: Reading, max_bytes: usize) -> Reading {
    cap(&mut reading, max_bytes);
    scrub(&mut reading);
    reading
}

fn text_of(text: String, kind: Kind, body: &Body, want: Want) -> Reading {
    let content = match (kind, want.format) {
        (Kind::Html, _) => return page(&text, body, want),
        (Kind::Json, Format::Markdown | Format::Text) => laid_out(text, want.max_bytes),
        _ => text,
    };
    Reading { content, ..Reading::default() }
}

/// Readable when it fits, else as it came; what is no JSON stays as it is.
fn laid_out(text: String, max_bytes: usize) -> String {
    if serde_json::from_str::<serde::de::IgnoredAny>(&text).is_err() {
        return text;
    }
    let pretty = pretty(&text);
    if pretty.len() <= max_bytes { pretty } else { text }
}

fn page(html: &str, body: &Body, want: Want) -> Reading {
    let about = about::about(html, &body.url);
    let mut reading = Reading::default();
    if want.format == Format::Raw {
        html.clone_into(&mut reading.content);
    }
    let needs_tree = want.links || want.format != Format::Raw;
    if needs_tree {
        let base = &about.base;
        let document = tree(html, want, base, &mut reading);
        if want.links {
            let found = links::links(&document, base, &body.url);
            if found.count > found.listed.len() {
                reading.notices.push(format!("{} of {} links are listed.", found.listed.len(), found.count));
            }
            reading.links = found.listed;
        }
        let style = Style { plain: want.format == Format::Text, limit: want.max_bytes, ..Style::default() };
        match want.format {
            Format::Markdown | Format::Text => {
                reading.content = markdown::of_document(&document, base, style)
            }
            Format::Html => reading.content = tidy(&document),
            Format::Raw => {}
        }
    }
    if let Some(to) = about.refresh.as_deref().filter(|_| reading.content.len() < 2_000) {
        reading.notices.push(format!("The page sends its readers on to {to} by itself; fetch that."));
    }
    if want.metadata {
        reading.title = about.title;
        reading.description = about.description;
        reading.metadata = Some(about.metadata).filter(|metadata| *metadata != Metadata::default());
    }
    reading
}

/// The part of the page that is wanted.
fn tree(html: &str, want: Want, base: &Url, reading: &mut Reading) -> Document {
    if !want.main_content || want.format == Format::Raw {
        let document = markdown::parsed(html);
        if want.format != Format::Raw && is_shell(html, visible_length(&document)) {
            reading.notices.push(SHELL.to_owned());
        }
        return document;
    }
    let document = markdown::parsed(html);
    let main = extract::of_document(&document, base);
    if is_shell(html, main.text.len()) {
        reading.notices.push(SHELL.to_owned());
    }
    if main.text.is_empty() {
        reading.notices.push("No main content was found; this is the whole page.".to_owned());
        return document;
    }
    main.content
}

const SHELL: &str = "The page has almost no text of its own; scripts fill it. Use browser_navigate, when it is enabled, to \
                     see it as a person does.";

/// Whether a page waits for scripts to show anything.
fn is_shell(html: &str, visible: usize) -> bool {
    const LITTLE: usize = 300;
    if visible > LITTLE {
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
    let style = Style { plain: true, links: false, images: false, limit: 2_000 };
    base.map_or(0, |base| markdown::of_document(document, &base, style).len())
}

/// HTML without what does not belong to its text.
fn tidy(document: &Document) -> String {
    document.select("script, style, noscript, template, svg, iframe, object, embed, link, meta").remove();
    for node in document.select("[src^='data:'], [href^='data:'], [srcset^='data:']").nodes() {
        node.remove_attrs(&["src", "href", "srcset"]);
    }
    let body = document.body().map(|body| body.inner_html().to_string());
    let html = body.unwrap_or_else(|| document.html().to_string());
    html.trim().to_owned()
}

/// What can be said of something that is no text.
fn binary(body: &Body, seen: Option<&'static str>) -> Reading {
    let kind = seen.map(str::to_owned).or_else(|| body.content_type.clone());
    let kind = kind.unwrap_or_else(|| "unknown type".to_owned());
    let size = format!("{}{} bytes", if body.truncated { "more than " } else { "" }, body.bytes.len());
    let dimensions = dimensions(&body.bytes).map(|(width, height)| format!(", {width} x {height} pixels"));
    let content = format!("Binary content: {kind}, {size}{}.", dimensions.unwrap_or_default());
    let notice = "This is no text, so only its type and size are given.".to_owned();
    Reading { content, notices: vec![notice], ..Reading::default() }
}

/// Cuts the content where a character ends.
fn cap(reading: &mut Reading, max_bytes: usize) {
    if reading.content.len() > max_bytes {
        let end = (0..=max_bytes).rev().find(|at| reading.content.is_char_boundary(*at)).unwrap_or(0);
        reading.content.truncate(end);
        reading.truncated = true;
    }
}

/// Takes hidden characters out of everything that is told.
fn scrub(reading: &mut Reading) {
    let mut removed = 0;
    let mut wash = |text: &mut String| *text = strip_hidden_owned(std::mem::take(text), &mut removed);
    wash(&mut reading.content);
    reading.title.iter_mut().for_each(&mut wash);
    reading.description.iter_mut().for_each(&mut wash);
    reading.links.iter_mut().for_each(|link| wash(&mut link.text));
    if let Some(metadata) = &mut reading.metadata {
        let Metadata { canonical, language, site_name, kind, image, author, published, modified } = metadata;
        let all = [canonical, language, site_name, kind, image, author, published, modified];
        all.into_iter().flatten().for_each(&mut wash);
    }
    if removed > 0 {
        reading.notices.push(format!("Invisible characters taken out: {removed}."));
    }
}
