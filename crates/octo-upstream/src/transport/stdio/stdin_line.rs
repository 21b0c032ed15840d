//! Lines for a child's stdin.

use bytes::Bytes;

#[derive(Debug)]
pub(super) enum StdinLine {
    /// A message, and the request that fails if it cannot be written.
    Text(Option<u64>, Bytes),
    /// Closes the child's stdin.
    End,
}

impl StdinLine {
    pub(super) fn request_id(&self) -> Option<u64> {
        match self {
            StdinLine::Text(id, _) => *id,
            StdinLine::End => None,
        }
    }
}
