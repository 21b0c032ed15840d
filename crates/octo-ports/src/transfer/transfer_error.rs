//! Why a copy was not made. Then the target is as it was.

use super::StateKind;
use crate::StoreError;
use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransferError {
    /// The other side has stopped, and knows why.
    Interrupted,
    /// A process works with the source or the target.
    InUse(String),
    /// The target has records of these kinds.
    NotEmpty(Vec<StateKind>),
    /// The chain of the hub that copies would have the name of another one.
    ChainName(String),
    Store(StoreError),
}

impl fmt::Display for TransferError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interrupted => f.write_str("The copy was interrupted."),
            Self::InUse(what) => write!(f, "A hub or a command is running: {what}."),
            Self::NotEmpty(kinds) => {
                let kinds: Vec<&str> = kinds.iter().map(|kind| kind.as_str()).collect();
                write!(f, "The target is not empty: it has {}.", kinds.join(", ").replace('_', " "))
            }
            Self::ChainName(name) => {
                write!(f, "The audit log already has a chain `{name}`, of another hub with this name.")
            }
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for TransferError {}

impl From<StoreError> for TransferError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}
