//! What operators see: logs, spans and numbers, none of which ever holds a secret.

mod encodings;
mod export;
mod logs;
mod numbers;
mod redact;
mod secrets;
mod trace;
mod writer;

pub use export::Export;
pub use logs::{Talk, start};
pub use numbers::Numbers;
pub use redact::Redactor;
pub use secrets::secrets;
pub use trace::Traces;
