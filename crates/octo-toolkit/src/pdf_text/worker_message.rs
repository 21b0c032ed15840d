//! What the process that takes a PDF apart tells, one line of JSON each.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkerMessage {
    /// Comes first.
    About { pages: usize, title: Option<String>, author: Option<String> },
    /// The next page; without text when it could not be read.
    Page {
        text: Option<String>,
        /// Letters whose meaning the file does not say.
        unknown: usize,
    },
    /// Comes instead of everything else.
    Fault(PdfFault),
    /// Comes last.
    End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PdfFault {
    /// It wants a password.
    Locked,
    /// It is no PDF, or too damaged.
    Broken,
}
