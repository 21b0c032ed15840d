//! Small records that all hubs of a backend know, such as the tokens that were revoked.

use crate::{Changes, StoreResult};
use octo_model::BoxFuture;

pub trait FleetRecords: Send + Sync {
    fn changes(&self) -> Changes;

    /// The names that begin with `prefix`, in order, with their values.
    fn with_prefix<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, StoreResult<Vec<(String, String)>>>;

    /// Writes a record, unless there is one of this name. Returns the value on record.
    fn add<'a>(&'a self, name: &'a str, value: &'a str) -> BoxFuture<'a, StoreResult<String>>;

    /// Writes a record, also in place of another value.
    fn put<'a>(&'a self, name: &'a str, value: &'a str) -> BoxFuture<'a, StoreResult<()>>;
}
