//! PDF: what it is, not what it says.

use crate::reading::{Body, Reading};

/// Says what the document is.
pub fn read(body: &Body) -> Reading {
    let version = body.bytes.get(5..8).map(|version| String::from_utf8_lossy(version).into_owned());
    let content = format!("PDF {}, {} bytes.", version.unwrap_or_default(), body.bytes.len());
    let notice = "The text of a PDF is not read here. Download it and run pdftotext with shell_exec, when that is enabled.";
    Reading { content, notices: vec![notice.to_owned()], ..Reading::default() }
}
