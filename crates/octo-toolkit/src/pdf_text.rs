//! Text of a PDF by page, as extracted by a worker process.

mod worker_message;

pub use worker_message::{PdfFault, WorkerMessage};

use bytes::Bytes;
use octo_grants::Pdf;
use octo_grants::pdf::WorkerEnd;
use octo_model::{Kind, ToolError};
use std::time::Duration;

/// Maximum bytes of a file; a partial file lacks its cross-reference table.
pub const MAX_PDF_BYTES: usize = 20 << 20;
/// Maximum time per file.
const EXTRACT_TIMEOUT: Duration = Duration::from_secs(20);
/// Part of a call's time that is reserved for the reply.
const REPLY_MARGIN: Duration = Duration::from_millis(300);

/// Extracted text of a PDF.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct PdfText {
    pub title: Option<String>,
    pub author: Option<String>,
    /// Number of pages according to the file.
    pub page_count: usize,
    /// Text of each page that was read.
    pub pages: Vec<String>,
    pub notices: Vec<String>,
    /// Whether there are pages that were not read.
    pub is_truncated: bool,
}

/// Extracts the text in a separate process. Fails if a file has no text, is encrypted or is damaged.
pub async fn read(pdf: &Pdf, file: Bytes, whole: bool, left: Duration) -> Result<PdfText, ToolError> {
    let within = left.saturating_sub(REPLY_MARGIN).min(EXTRACT_TIMEOUT);
    let heard = pdf.extract(file, within).await?;
    parse_messages(&heard.lines, heard.end, whole)
}

fn parse_messages(lines: &[u8], end: WorkerEnd, whole: bool) -> Result<PdfText, ToolError> {
    let (mut paper, mut unknown, mut lost, mut ended) = (None, 0, 0, false);
    let told = lines
        .split(|byte| *byte == b'\n')
        .filter_map(|line| serde_json::from_slice::<WorkerMessage>(line).ok());
    for told in told {
        match told {
            WorkerMessage::Fault(fault) => return Err(fault_error(fault, whole)),
            WorkerMessage::About { pages, title, author } => {
                paper = Some(PdfText { title, author, page_count: pages, ..PdfText::default() });
            }
            WorkerMessage::Page { text, unknown: more } => {
                unknown += more;
                lost += usize::from(text.is_none());
                if let Some(paper) = &mut paper {
                    paper.pages.push(text.unwrap_or_default());
                }
            }
            WorkerMessage::End => ended = true,
        }
    }
    let Some(mut paper) = paper.filter(|paper| ended || !paper.pages.is_empty()) else {
        return Err(worker_error(end));
    };
    let letters: usize = paper.pages.iter().map(|page| page.chars().count()).sum();
    if letters == 0 {
        return Err(no_text_error(paper.page_count, unknown));
    }
    let (read, count) = (paper.pages.len(), paper.page_count);
    if read < count || !whole {
        paper.is_truncated = true;
        paper.notices.push(format!(
            "{read} of {count} pages were read: {}.",
            if !whole {
                "the file is larger than the part that was fetched"
            } else {
                "the rest would take too long"
            }
        ));
    }
    if lost > 0 {
        paper.notices.push(format!("Pages that could not be read and are left empty: {lost}."));
    }
    if unknown * 20 > letters {
        paper.notices.push(format!("Characters without a Unicode mapping in the file, left out: {unknown}."));
    }
    Ok(paper)
}

fn fault_error(fault: PdfFault, whole: bool) -> ToolError {
    match fault {
        PdfFault::Locked => ToolError::invalid("The PDF is encrypted and requires a password.")
            .hint("Get a copy without a password, or use another source."),
        PdfFault::Broken if !whole => ToolError::new(Kind::TooLarge, "The PDF is larger than 20 MB.")
            .hint("Use a smaller version, or read it with another program."),
        PdfFault::Broken => {
            ToolError::invalid("The PDF is damaged and cannot be read.").hint("Get another copy of it.")
        }
    }
}

fn no_text_error(pages: usize, unknown: usize) -> ToolError {
    if pages == 0 {
        return fault_error(PdfFault::Broken, true);
    }
    let why = if unknown > 0 {
        "the file does not map its glyphs to characters"
    } else {
        "its pages are probably scanned images"
    };
    ToolError::invalid(format!("The PDF has no text on its pages ({pages}): {why}."))
        .hint("Use a version with text, or run OCR.")
}

fn worker_error(end: WorkerEnd) -> ToolError {
    match end {
        WorkerEnd::TimedOut => ToolError::new(Kind::Timeout, "The PDF took too long to read."),
        _ => ToolError::new(Kind::TooLarge, "Reading the PDF exceeds the memory or time limit."),
    }
    .hint("Use another version of it.")
}

impl PdfText {
    /// The text of all pages, each under its page number.
    pub fn text(&self, markdown: bool) -> String {
        let mut out = String::new();
        for (at, page) in self.pages.iter().enumerate() {
            if !out.is_empty() {
                out.push('\n');
            }
            out.push_str(if markdown { "## " } else { "" });
            out.push_str(&format!("Page {}\n\n", at + 1));
            for line in page.lines() {
                // Only page titles are headings.
                out.push_str(if markdown && line.starts_with('#') { "\\" } else { "" });
                out.push_str(line);
                out.push('\n');
            }
        }
        out
    }
}
