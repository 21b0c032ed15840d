//! Errors of a copy, before it is known which port they concern.

use crate::SqliteError;
use crate::lazy_database::WorkError;
use octo_ports::transfer::TransferError;
use octo_ports::{Port, StoreError};

#[derive(Debug)]
pub(super) enum CopyError {
    Sqlite(SqliteError),
    Transfer(TransferError),
}

pub(super) type CopyResult<T> = Result<T, CopyError>;

impl From<rusqlite::Error> for CopyError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error.into())
    }
}

impl From<SqliteError> for CopyError {
    fn from(error: SqliteError) -> Self {
        Self::Sqlite(error)
    }
}

impl From<TransferError> for CopyError {
    fn from(error: TransferError) -> Self {
        Self::Transfer(error)
    }
}

impl From<StoreError> for CopyError {
    fn from(error: StoreError) -> Self {
        Self::Transfer(error.into())
    }
}

impl From<WorkError> for CopyError {
    fn from(error: WorkError) -> Self {
        match error {
            WorkError::Refused(error) => error.into(),
            WorkError::Sqlite(error) => error.into(),
        }
    }
}

/// The error as one of a port.
pub(super) trait OfPort<T> {
    fn of_port(self, port: Port) -> Result<T, TransferError>;
}

impl<T, E: Into<CopyError>> OfPort<T> for Result<T, E> {
    fn of_port(self, port: Port) -> Result<T, TransferError> {
        self.map_err(|error| match error.into() {
            CopyError::Transfer(error) => error,
            CopyError::Sqlite(SqliteError::InUse { path }) => {
                TransferError::InUse(format!("it uses {}", path.display()))
            }
            CopyError::Sqlite(SqliteError::Broken(broken)) => StoreError::corrupt(port, broken).into(),
            CopyError::Sqlite(error) => StoreError::unavailable(port, error).into(),
        })
    }
}
