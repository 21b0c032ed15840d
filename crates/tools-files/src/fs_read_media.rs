//! `fs_read_media`.

use crate::content::file_magic;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use octo_toolkit::fs::Read;
use octo_toolkit::pdf_text::{self, PdfText};
use octo_toolkit::reply_budget::prefix_within;
use octo_toolkit::{
    CallContext, Effect, Example, Fs, Image, Json, Kind, Pdf, Tool, ToolError, WorkPath, json_len,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Maximum bytes of a picture; models see larger ones scaled down anyway.
pub const MAX_PICTURE_BYTES: u64 = 1 << 20;
/// Maximum bytes of page text in a reply.
const MAX_TEXT_BYTES: usize = 40_000;
/// Minimum part of a page that is longer than a reply.
const MIN_PART_BYTES: usize = 64;
const PDF_TYPE: &str = "application/pdf";
/// Types that clients show to their models.
const PICTURE_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// Shows a picture of the workspace (PNG, JPEG, GIF, WebP, up to 1 MiB), or returns the text of a PDF page by page.
/// Prefer fs_read_text for text files.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Picture or PDF, relative to the workspace.
    path: WorkPath,
    /// First page of a PDF, counted from 1.
    #[serde(default = "default_start_page")]
    start_page: usize,
    /// Last page of a PDF, inclusive.
    #[serde(default)]
    end_page: Option<usize>,
    /// Character of the first page to start at, counted from 0; to continue within a page that is longer than a reply.
    #[serde(default)]
    start_char: usize,
}

fn default_start_page() -> usize {
    1
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// The file.
    path: String,
    /// Media type.
    media_type: String,
    /// Size of the file.
    size_bytes: u64,
    /// The text of a PDF, each page under its number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    content: Option<String>,
    /// Pages of a PDF.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    page_count: Option<usize>,
    /// Pass as start_page to continue reading.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    next: Option<usize>,
    /// Pass as start_char with it: the reply ends within a page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    next_char: Option<usize>,
    /// What is missing or unusual.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    notices: Vec<String>,
    #[serde(skip)]
    picture: Option<Image>,
}

impl Output {
    fn new(path: String, media_type: &str, size_bytes: u64) -> Self {
        Self {
            path,
            media_type: media_type.to_owned(),
            size_bytes,
            content: None,
            page_count: None,
            next: None,
            next_char: None,
            notices: Vec::new(),
            picture: None,
        }
    }
}

pub struct ReadMedia;

impl Tool for ReadMedia {
    const NAME: &'static str = "fs_read_media";
    const TITLE: &'static str = "Read a picture or a PDF";
    const KEYWORDS: &'static str = "image photo picture view look see PDF document";
    const REQUESTS: &'static [&'static str] = &[
        "show me logo.png",
        "look at the photo in the assets folder",
        "what is on the scan receipt.jpg",
        "read the contract.pdf that lies in the workspace",
        "get pages 3 to 5 of a local pdf",
        "view the diagram image from the docs directory",
    ];
    const EFFECT: Effect = Effect::reads();
    const IS_READER: bool = true;
    const HAS_OUTPUT_SCHEMA: bool = false;
    type Input = Input;
    type Output = Output;
    type Grants = (Fs<Read>, Pdf);

    fn examples() -> Vec<Example> {
        vec![Example::new("Look at a picture", json!({"path": "docs/logo.png"}))]
    }

    fn images(output: &Output) -> Vec<Image> {
        output.picture.iter().cloned().collect()
    }

    async fn run(
        &self,
        input: Input,
        (fs, pdf): Self::Grants,
        cx: &CallContext,
    ) -> Result<Output, ToolError> {
        if input.start_page == 0 || input.end_page.is_some_and(|end| end < input.start_page) {
            return Err(ToolError::invalid("The page range is empty.")
                .hint("Pages count from 1, and end_page must not be before start_page."));
        }
        let path = input.path.clone();
        let (told, bytes) = fs
            .run(move |fs| {
                let place = fs.place(&path)?;
                let (bytes, _) = fs.read(&place, pdf_text::MAX_PDF_BYTES as u64)?;
                Ok((place.display(), bytes))
            })
            .await?;
        let kind = file_magic::kind(&bytes).ok_or_else(|| match std::str::from_utf8(&bytes) {
            Ok(_) => other(&told, "text", "fs_read_text"),
            Err(_) => other(&told, "of an unknown type", "fs_read_bytes"),
        })?;
        let mut output = Output::new(told, kind.mime, bytes.len() as u64);
        if let Some(mime) = PICTURE_TYPES.into_iter().find(|shown| *shown == kind.mime) {
            if output.size_bytes > MAX_PICTURE_BYTES {
                let size = output.size_bytes;
                return Err(ToolError::new(Kind::TooLarge, format!("The picture has {size} bytes.")).hint(
                    "The limit is 1 MiB. Make a smaller copy, for example with a program in shell_exec.",
                ));
            }
            output.picture = Some(Image { mime, base64: STANDARD.encode(&bytes) });
        } else if kind.mime == PDF_TYPE {
            let paper = pdf_text::read(&pdf, bytes.into(), true, cx.time_left()).await?;
            let room = cx.reply.remaining_beside(&(&output, &paper.notices))?.min(MAX_TEXT_BYTES);
            tell(&mut output, paper, &input, room)?;
        } else {
            return Err(other(&output.path, kind.name, "fs_read_bytes"));
        }
        Ok(output)
    }
}

/// Whether this tool can read a file type.
pub fn supports(kind: file_magic::FileKind) -> bool {
    kind.mime == PDF_TYPE || PICTURE_TYPES.contains(&kind.mime)
}

fn other(path: &str, what: &str, tool: &str) -> ToolError {
    ToolError::invalid(format!("`{path}` is neither a supported picture nor a PDF, but {what}."))
        .hint(format!("Call {tool} {}.", json!({ "path": path })))
}

/// Bytes of a text in a reply: the reply is JSON within a block of text, so escaping happens twice.
fn reply_len(text: &str) -> usize {
    json_len(Json::text(text).as_str())
}

/// As much of a text as fits into a reply.
fn fitting(text: &str, room: usize) -> &str {
    let mut part = prefix_within(text, room);
    while reply_len(part) > room {
        part = prefix_within(part, json_len(part) * 3 / 4);
    }
    part
}

/// Adds the requested pages that fit, at least a part of one.
fn tell(output: &mut Output, paper: PdfText, input: &Input, room: usize) -> Result<(), ToolError> {
    let read = paper.pages.len();
    if input.start_page > read {
        return Err(ToolError::invalid(format!("Page {} does not exist.", input.start_page))
            .hint(format!("{read} pages can be read.")));
    }
    let last = input.end_page.unwrap_or(read).min(read);
    let (mut content, mut used) = (String::new(), 0);
    for (number, page) in (1..).zip(&paper.pages).take(last).skip(input.start_page - 1) {
        let skipped = if number == input.start_page { input.start_char } else { 0 };
        let begin = page.char_indices().nth(skipped).map_or(page.len(), |(at, _)| at);
        let rest = page.get(begin..).unwrap_or_default();
        let head =
            if skipped > 0 { format!("Page {number}, continued\n\n") } else { format!("Page {number}\n\n") };
        let whole = format!("{head}{rest}\n");
        used += reply_len(&whole);
        if used <= room {
            content.push_str(&whole);
            continue;
        }
        output.next = Some(number);
        if content.is_empty() {
            let part = fitting(rest, room.saturating_sub(reply_len(&head)).max(MIN_PART_BYTES));
            content = format!("{head}{part}");
            output.next_char = Some(skipped + part.chars().count());
        }
        break;
    }
    output.content = Some(content);
    output.page_count = Some(paper.page_count);
    output.notices = paper.notices;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blank() -> Output {
        Output::new(String::new(), PDF_TYPE, 0)
    }

    #[test]
    fn pages_are_given_as_far_as_there_is_room() {
        let told = |input: serde_json::Value, size: usize, room: usize| {
            let pages = (1..=3).map(|n| n.to_string().repeat(size)).collect();
            let paper = PdfText { page_count: 3, pages, ..PdfText::default() };
            let mut output = blank();
            let input: Input = serde_json::from_value(input).unwrap();
            tell(&mut output, paper, &input, room)
                .map(|()| (output.content.unwrap(), output.next, output.next_char))
        };
        let all = "Page 1\n\n1\nPage 2\n\n2\nPage 3\n\n3\n".to_owned();
        assert_eq!(told(json!({"path": "x"}), 1, MAX_TEXT_BYTES).unwrap(), (all, None, None));
        let second = "Page 2\n\n2\n".to_owned();
        assert_eq!(
            told(json!({"path": "x", "start_page": 2, "end_page": 2}), 1, MAX_TEXT_BYTES).unwrap(),
            (second, None, None)
        );
        let first = "Page 1\n\n1\nPage 2\n\n2\n".to_owned();
        assert_eq!(told(json!({"path": "x"}), 1, 50).unwrap(), (first, Some(3), None));
        assert!(told(json!({"path": "x", "start_page": 4}), 1, MAX_TEXT_BYTES).is_err());
    }

    #[test]
    fn a_page_that_is_longer_than_a_reply_comes_in_parts() {
        let page = "She said \"ä\\ö\".\n".repeat(500);
        let paper =
            || PdfText { page_count: 2, pages: vec![page.clone(), "last".to_owned()], ..PdfText::default() };
        for room in [300, 1_000, 5_000] {
            let (mut read, mut at) = (String::new(), json!({"path": "x"}));
            loop {
                let mut output = blank();
                let input: Input = serde_json::from_value(at).unwrap();
                tell(&mut output, paper(), &input, room).unwrap();
                let content = output.content.unwrap();
                assert!(reply_len(&content) <= room, "{} of {room}", reply_len(&content));
                read.push_str(content.split_once("\n\n").unwrap().1);
                let Some(next) = output.next else { break };
                at = json!({"path": "x", "start_page": next, "start_char": output.next_char.unwrap_or(0)});
            }
            assert_eq!(read.replace("Page 2\n\n", ""), format!("{page}\nlast\n"), "{room}");
        }
    }
}
