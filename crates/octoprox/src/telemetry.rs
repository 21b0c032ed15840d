//! What operators see: logs, spans and numbers, none of which ever holds a secret.

mod contents;
mod encodings;
mod export;
mod exposition;
mod json_line;
mod logs;
mod numbers;
mod process;
mod redact;
mod secrets;
mod trace;
mod writer;

pub use contents::Contents;
pub use export::Export;
pub use logs::{Logs, Talk, start};
pub use numbers::Numbers;
pub use redact::Redactor;
pub use secrets::secrets;
pub use trace::Traces;
