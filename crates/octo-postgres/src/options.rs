//! Options of the stores.

use crate::PostgresError;
use octo_grants::Net;
use octo_model::Secret;
use std::time::Duration;

/// Maximum length of an identifier in PostgreSQL.
const MAX_IDENTIFIER_LEN: usize = 63;

#[derive(Clone)]
pub struct PostgresOptions {
    /// `postgres://user:password@host:port/database?sslmode=…`. Of several hosts, the primary is used.
    pub dsn: Secret,
    /// The schema with all tables.
    pub schema: Schema,
    /// Name of this hub: holder of leases and name of its chain in the audit log. Unique among the hubs of a
    /// database.
    pub node: String,
    /// The operator's secret, the same for all hubs of a database.
    pub secret: Secret,
    /// Secrets used before. Data sealed with them is resealed with the current one.
    pub previous_secrets: Vec<Secret>,
    /// Egress for the connections.
    pub net: Net,
    /// Maximum connections of this process.
    pub max_connections: usize,
    /// Maximum bytes of one subject's memory, including overhead.
    pub memory_quota_bytes: u64,
    /// How long a stored result can be read.
    pub result_ttl: Duration,
    /// Maximum bytes of all stored results; the oldest of the caller with the most bytes are removed first.
    pub result_quota_bytes: u64,
}

impl PostgresOptions {
    pub fn new(dsn: Secret, secret: Secret, node: impl Into<String>) -> Self {
        Self {
            dsn,
            schema: Schema::default(),
            node: node.into(),
            secret,
            previous_secrets: Vec::new(),
            net: Net::default(),
            max_connections: 16,
            memory_quota_bytes: 4 << 30,
            result_ttl: Duration::from_secs(24 * 60 * 60),
            result_quota_bytes: 1 << 30,
        }
    }
}

/// Name of a schema that needs no quotes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schema(String);

impl Schema {
    pub fn parse(name: &str) -> Result<Self, PostgresError> {
        let is_start = |letter: char| letter.is_ascii_lowercase() || letter == '_';
        let is_valid = name.starts_with(is_start)
            && name.chars().all(|letter| is_start(letter) || letter.is_ascii_digit())
            && name.len() <= MAX_IDENTIFIER_LEN
            && !name.starts_with("pg_");
        if is_valid { Ok(Self(name.to_owned())) } else { Err(PostgresError::SchemaName(name.to_owned())) }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for Schema {
    fn default() -> Self {
        Self("octoprox".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_need_no_quotes() {
        for name in ["octoprox", "_a9", &"a".repeat(63)] {
            assert_eq!(Schema::parse(name).unwrap().as_str(), name);
        }
        for name in ["", "9a", "A", "a-b", "a\"b", "a b", "pg_toast", "é", &"a".repeat(64)] {
            assert!(Schema::parse(name).is_err(), "{name}");
        }
    }
}
