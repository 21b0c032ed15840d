//! Messages of the PDF worker process, one line of JSON each.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkerMessage {
    /// Sent first.
    About { pages: usize, title: Option<String>, author: Option<String> },
    /// The next page; without text if it could not be read.
    Page {
        text: Option<String>,
        /// Characters without a Unicode mapping.
        unknown: usize,
    },
    /// Sent instead of everything else.
    Fault(PdfFault),
    /// Sent last.
    End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PdfFault {
    /// It requires a password.
    Locked,
    /// It is not a PDF, or too damaged.
    Broken,
}
