//! Text of PDF files, page by page.

mod layout;
mod text_device;
mod worker;

#[cfg(test)]
pub mod tests;

pub use octo_toolkit::pdf_text::{MAX_PDF_BYTES, read};
pub use worker::read_pdf;

use crate::render_body::{FetchedBody, RenderedBody};
use octo_toolkit::ToolError;

/// Describes a file whose text cannot be read, with the reason.
pub fn describe_unreadable(body: &FetchedBody, why: &ToolError) -> RenderedBody {
    let version = body.bytes.get(5..8).map(|version| String::from_utf8_lossy(version).into_owned());
    let content = format!("PDF {}, {} bytes.", version.unwrap_or_default(), body.bytes.len());
    RenderedBody { content, notices: vec![why.text()], ..RenderedBody::default() }
}
