//! Values of statements. Each one knows its type, so that no statement needs to be prepared.

use tokio_postgres::types::{ToSql, Type};

pub(crate) trait Value: Sync {
    fn pg_type(&self) -> Type;
    fn as_sql(&self) -> &(dyn ToSql + Sync);
}

macro_rules! values {
    ($($rust:ty => $pg:ident),+ $(,)?) => {
        $(impl Value for $rust {
            fn pg_type(&self) -> Type {
                Type::$pg
            }
            fn as_sql(&self) -> &(dyn ToSql + Sync) {
                self
            }
        })+
    };
}

values! {
    &str => TEXT,
    String => TEXT,
    Option<&str> => TEXT,
    Option<String> => TEXT,
    Vec<&str> => TEXT_ARRAY,
    Vec<String> => TEXT_ARRAY,
    &[String] => TEXT_ARRAY,
    Vec<Option<String>> => TEXT_ARRAY,
    Vec<Option<&str>> => TEXT_ARRAY,
    i64 => INT8,
    Option<i64> => INT8,
    Vec<i64> => INT8_ARRAY,
    &[i64] => INT8_ARRAY,
    bool => BOOL,
    Vec<bool> => BOOL_ARRAY,
    &[u8] => BYTEA,
    Vec<u8> => BYTEA,
    Option<&[u8]> => BYTEA,
    Option<Vec<u8>> => BYTEA,
    Vec<&[u8]> => BYTEA_ARRAY,
    Vec<Option<&[u8]>> => BYTEA_ARRAY,
    Vec<Vec<u8>> => BYTEA_ARRAY,
}

/// The form that a client takes.
pub(crate) fn typed<'a>(values: &[&'a dyn Value]) -> Vec<(&'a (dyn ToSql + Sync), Type)> {
    values.iter().map(|value| (value.as_sql(), value.pg_type())).collect()
}
