//! PDF as text, page by page.

mod glyphs;
mod layout;
mod worker;

#[cfg(test)]
pub mod tests;

pub use octo_toolkit::pdf_text::{MAX_PDF_BYTES, read};
pub use worker::read_pdf;

use crate::reading::{Body, Reading};
use octo_toolkit::ToolError;

/// Says what a file is whose text cannot be had, and why.
pub fn described(body: &Body, why: &ToolError) -> Reading {
    let version = body.bytes.get(5..8).map(|version| String::from_utf8_lossy(version).into_owned());
    let content = format!("PDF {}, {} bytes.", version.unwrap_or_default(), body.bytes.len());
    Reading { content, notices: vec![why.text()], ..Reading::default() }
}
