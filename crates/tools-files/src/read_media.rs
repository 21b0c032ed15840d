//! `fs_read_media`.

use crate::magic;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use octo_toolkit::fs::Read;
use octo_toolkit::paper::{self, Paper};
use octo_toolkit::{Cx, Effect, Example, Fs, Json, Kind, Pdf, Picture, Tool, ToolError, WorkPath, json_len};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Bytes of a picture that is shown; models see larger ones scaled down anyway.
pub const MAX_PICTURE: u64 = 1 << 20;
/// Bytes that the text of pages takes in a reply, at most.
const MAX_TEXT: usize = 40_000;
const PDF: &str = "application/pdf";
/// What clients show to their models.
const SHOWN: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// Shows a picture of the workspace (PNG, JPEG, GIF, WebP, up to 1 MiB), or gives the text of a PDF page by page. Prefer
/// fs_read_text for text files.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Picture or PDF, relative to the workspace.
    path: WorkPath,
    /// First page of a PDF to give, counted from 1.
    #[serde(default = "one")]
    start_page: usize,
    /// Last page of a PDF to give, itself included.
    #[serde(default)]
    end_page: Option<usize>,
}

fn one() -> usize {
    1
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// The file.
    path: String,
    /// Its media type.
    media_type: String,
    /// Size of the file.
    size_bytes: u64,
    /// The text of a PDF, each page under its number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    content: Option<String>,
    /// Pages of a PDF.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    page_count: Option<usize>,
    /// Give it as start_page to continue reading.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    next: Option<usize>,
    /// What is missing or special.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    notices: Vec<String>,
    #[serde(skip)]
    picture: Option<Picture>,
}

pub struct ReadMedia;

impl Tool for ReadMedia {
    const NAME: &'static str = "fs_read_media";
    const TITLE: &'static str = "Read a picture or a PDF";
    const EFFECT: Effect = Effect::reads();
    const TYPED: bool = false;
    type Input = Input;
    type Output = Output;
    type Grants = (Fs<Read>, Pdf);

    fn examples() -> Vec<Example> {
        vec![Example::new("Look at a picture", json!({"path": "docs/logo.png"}))]
    }

    fn pictures(output: &Output) -> Vec<Picture> {
        output.picture.iter().cloned().collect()
    }

    async fn run(&self, input: Input, (fs, pdf): Self::Grants, cx: &Cx) -> Result<Output, ToolError> {
        if input.start_page == 0 || input.end_page.is_some_and(|end| end < input.start_page) {
            return Err(ToolError::invalid("The page range is empty.")
                .hint("Pages count from 1, and end_page does not come before start_page."));
        }
        let path = input.path.clone();
        let (told, bytes) = fs
            .run(move |fs| {
                let place = fs.place(&path)?;
                let (bytes, _) = fs.read(&place, paper::LARGEST as u64)?;
                Ok((place.told(), bytes))
            })
            .await?;
        let kind = magic::kind(&bytes).ok_or_else(|| other(&told, "text"))?;
        let mut output = Output {
            path: told,
            media_type: kind.mime.to_owned(),
            size_bytes: bytes.len() as u64,
            content: None,
            page_count: None,
            next: None,
            notices: Vec::new(),
            picture: None,
        };
        if let Some(mime) = SHOWN.into_iter().find(|shown| *shown == kind.mime) {
            if output.size_bytes > MAX_PICTURE {
                let size = output.size_bytes;
                return Err(ToolError::new(Kind::TooLarge, format!("The picture has {size} bytes.")).hint(
                    "At most 1 MiB is shown. Make a smaller copy, with a program in shell_exec for instance.",
                ));
            }
            output.picture = Some(Picture { mime, base64: STANDARD.encode(&bytes) });
        } else if kind.mime == PDF {
            let paper = paper::read(&pdf, bytes.into(), true, cx.time_left()).await?;
            let room = cx.reply.beside(&(&output, &paper.notices))?.min(MAX_TEXT);
            tell(&mut output, paper, &input, room)?;
        } else {
            return Err(other(&output.path, kind.name));
        }
        Ok(output)
    }
}

/// Whether this tool has something to say about a kind of file.
pub fn reads(kind: magic::Kind) -> bool {
    kind.mime == PDF || SHOWN.contains(&kind.mime)
}

fn other(path: &str, what: &str) -> ToolError {
    let tool = if what == "text" { "fs_read_text" } else { "fs_read_bytes" };
    ToolError::invalid(format!("`{path}` is no picture that can be shown and no PDF, but {what}."))
        .hint(format!("Call {tool} {{\"path\": \"{path}\"}}."))
}

/// The wanted pages as far as there is room, at least one.
fn tell(output: &mut Output, paper: Paper, input: &Input, room: usize) -> Result<(), ToolError> {
    let read = paper.pages.len();
    if input.start_page > read {
        return Err(ToolError::invalid(format!("There is no page {}.", input.start_page))
            .hint(format!("{read} pages can be read.")));
    }
    let last = input.end_page.unwrap_or(read).min(read);
    let (mut content, mut used) = (String::new(), 0);
    for (number, page) in (1..).zip(&paper.pages).take(last).skip(input.start_page - 1) {
        let page = format!("Page {number}\n\n{page}\n");
        // The answer is JSON within a block of text, so what is escaped is escaped twice.
        used += json_len(Json::text(&page).as_str());
        if !content.is_empty() && used > room {
            output.next = Some(number);
            break;
        }
        content.push_str(&page);
    }
    output.content = Some(content);
    output.page_count = Some(paper.count);
    output.notices = paper.notices;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_given_as_far_as_there_is_room() {
        let told = |input: serde_json::Value, size: usize, room: usize| {
            let pages = (1..=3).map(|n| n.to_string().repeat(size)).collect();
            let paper = Paper { count: 3, pages, ..Paper::default() };
            let mut output: Output = Output {
                path: String::new(),
                media_type: String::new(),
                size_bytes: 0,
                content: None,
                page_count: None,
                next: None,
                notices: Vec::new(),
                picture: None,
            };
            let input: Input = serde_json::from_value(input).unwrap();
            tell(&mut output, paper, &input, room).map(|()| (output.content.unwrap(), output.next))
        };
        let all = "Page 1\n\n1\nPage 2\n\n2\nPage 3\n\n3\n".to_owned();
        assert_eq!(told(json!({"path": "x"}), 1, MAX_TEXT).unwrap(), (all, None));
        let second = "Page 2\n\n2\n".to_owned();
        assert_eq!(
            told(json!({"path": "x", "start_page": 2, "end_page": 2}), 1, MAX_TEXT).unwrap(),
            (second, None)
        );
        let first = "Page 1\n\n1\nPage 2\n\n2\n".to_owned();
        assert_eq!(told(json!({"path": "x"}), 1, 50).unwrap(), (first, Some(3)));
        let (content, next) = told(json!({"path": "x", "start_page": 2}), 50_000, MAX_TEXT).unwrap();
        assert_eq!((content.len() > 50_000, next), (true, Some(3)));
        assert!(told(json!({"path": "x", "start_page": 4}), 1, MAX_TEXT).is_err());
    }
}
