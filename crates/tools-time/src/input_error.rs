//! Errors for texts that cannot be parsed, with a hint.

/// Invalid input of the caller.
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
        Self::new("The moment is outside the calendar.", "Use years between -9999 and 9999.")
    }
}
