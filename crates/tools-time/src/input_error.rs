//! Why a text could not be read, and what to write instead.

/// A refusal: always the caller's input, never our trouble.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputError {
    pub message: String,
    pub hint: String,
}

impl InputError {
    pub fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { message: message.into(), hint: hint.into() }
    }

    pub fn out_of_range() -> Self {
        Self::new("That moment is outside the calendar.", "Stay between the years -9999 and 9999.")
    }
}
