//! SQL types, as far as needed to write their values as JSON.

use super::json_values;
use super::message_batch::MessageBatch;
use super::query_response::ReadLimits;
use octo_grants::sql::Lease;
use octo_toolkit::{CallContext, ToolError};
use serde::Deserialize;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A composite type may get another column; cached types expire after this time.
const TYPE_TTL: Duration = Duration::from_secs(60);
/// Arrays of composites of arrays …
const MAX_TYPE_DEPTH: usize = 32;

#[derive(Debug)]
pub struct SqlType {
    pub name: String,
    pub kind: TypeKind,
}

#[derive(Debug, Clone)]
pub enum TypeKind {
    Bool,
    /// Integers that all JSON readers represent exactly.
    SafeInteger,
    /// Integers up to 64 bits.
    BigInteger,
    Float,
    Numeric,
    Json,
    /// Date and time, with or without zone.
    Timestamp,
    /// A time of day with an offset.
    TimeTz,
    Text,
    Void,
    Array(Arc<SqlType>, char),
    /// `int2vector` and `oidvector`, which are separated by spaces.
    Vector(Arc<SqlType>),
    Composite(Vec<(String, Arc<SqlType>)>),
    /// A row without a declared type: its fields are text.
    Record,
    Range(Arc<SqlType>),
    Multirange(Arc<SqlType>),
    Hstore,
}

/// Types known without a query: those of nearly every column.
fn builtin_type(oid: u32) -> Option<(&'static str, TypeKind)> {
    Some(match oid {
        16 => ("boolean", TypeKind::Bool),
        17 => ("bytea", TypeKind::Text),
        18 => ("\"char\"", TypeKind::Text),
        19 => ("name", TypeKind::Text),
        20 => ("bigint", TypeKind::BigInteger),
        21 => ("smallint", TypeKind::SafeInteger),
        23 => ("integer", TypeKind::SafeInteger),
        25 => ("text", TypeKind::Text),
        26 => ("oid", TypeKind::SafeInteger),
        28 => ("xid", TypeKind::SafeInteger),
        29 => ("cid", TypeKind::SafeInteger),
        114 => ("json", TypeKind::Json),
        700 => ("real", TypeKind::Float),
        701 => ("double precision", TypeKind::Float),
        1042 => ("character", TypeKind::Text),
        1043 => ("character varying", TypeKind::Text),
        1082 => ("date", TypeKind::Text),
        1083 => ("time without time zone", TypeKind::Text),
        1114 => ("timestamp without time zone", TypeKind::Timestamp),
        1184 => ("timestamp with time zone", TypeKind::Timestamp),
        1186 => ("interval", TypeKind::Text),
        1266 => ("time with time zone", TypeKind::TimeTz),
        1700 => ("numeric", TypeKind::Numeric),
        2249 => ("record", TypeKind::Record),
        2278 => ("void", TypeKind::Void),
        2950 => ("uuid", TypeKind::Text),
        3802 => ("jsonb", TypeKind::Json),
        5069 => ("xid8", TypeKind::BigInteger),
        _ => return None,
    })
}

#[derive(Default)]
pub struct TypeCache(Mutex<HashMap<u32, (Instant, Arc<SqlType>)>>);

/// A row of `pg_type`.
#[derive(Deserialize)]
struct TypeRow {
    oid: u32,
    name: String,
    short: String,
    class: String,
    element: u32,
    delimiter: String,
    base: u32,
    subtype: u32,
    range: u32,
    fields: Option<Vec<(String, u32)>>,
}

impl TypeCache {
    /// Resolves these types, in the same order. Queries the server for unknown ones.
    pub async fn resolve(
        &self,
        lease: &mut Lease,
        oids: &[u32],
        cx: &CallContext,
    ) -> Result<Vec<Arc<SqlType>>, ToolError> {
        let mut entries: HashMap<u32, TypeRow> = HashMap::new();
        let mut missing: BTreeSet<u32> =
            oids.iter().copied().filter(|oid| self.cached(*oid).is_none()).collect();
        while !missing.is_empty() {
            let found = ask(lease, &missing, cx).await?;
            let next: Vec<u32> = found.iter().flat_map(TypeRow::needs).collect();
            entries.extend(missing.iter().map(|oid| (*oid, TypeRow::unknown(*oid))));
            entries.extend(found.into_iter().map(|entry| (entry.oid, entry)));
            missing = next
                .into_iter()
                .filter(|oid| !entries.contains_key(oid) && self.cached(*oid).is_none())
                .collect();
        }
        Ok(oids.iter().map(|oid| self.build(*oid, &entries, 0)).collect())
    }

    fn cached(&self, oid: u32) -> Option<Arc<SqlType>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((since, known)) = kept.get(&oid)
            && (since.elapsed() < TYPE_TTL || builtin_type(oid).is_some())
        {
            return Some(Arc::clone(known));
        }
        let (name, kind) = builtin_type(oid)?;
        let fresh = Arc::new(SqlType { name: name.to_owned(), kind });
        kept.insert(oid, (Instant::now(), Arc::clone(&fresh)));
        Some(fresh)
    }

    fn build(&self, oid: u32, entries: &HashMap<u32, TypeRow>, depth: usize) -> Arc<SqlType> {
        if let Some(known) = self.cached(oid) {
            return known;
        }
        let built = match entries.get(&oid) {
            Some(entry) if depth < MAX_TYPE_DEPTH => SqlType {
                name: entry.name.clone(),
                kind: entry.kind(|oid| self.build(oid, entries, depth + 1)),
            },
            _ => SqlType { name: oid.to_string(), kind: TypeKind::Text },
        };
        let built = Arc::new(built);
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.insert(oid, (Instant::now(), Arc::clone(&built)));
        built
    }
}

impl TypeRow {
    fn unknown(oid: u32) -> Self {
        Self {
            oid,
            name: oid.to_string(),
            short: String::new(),
            class: "b".to_owned(),
            element: 0,
            delimiter: ",".to_owned(),
            base: 0,
            subtype: 0,
            range: 0,
            fields: None,
        }
    }

    fn needs(&self) -> Vec<u32> {
        let one = [self.element, self.base, self.subtype, self.range];
        let fields = self.fields.iter().flatten().map(|(_, oid)| *oid);
        one.into_iter().filter(|oid| *oid != 0).chain(fields).collect()
    }

    fn kind(&self, of: impl Fn(u32) -> Arc<SqlType>) -> TypeKind {
        match self.class.as_str() {
            "b" | "p" if self.element != 0 && matches!(self.short.as_str(), "int2vector" | "oidvector") => {
                TypeKind::Vector(of(self.element))
            }
            _ if self.element != 0 => {
                TypeKind::Array(of(self.element), self.delimiter.chars().next().unwrap_or(','))
            }
            "c" => TypeKind::Composite(
                self.fields.iter().flatten().map(|(name, oid)| (name.clone(), of(*oid))).collect(),
            ),
            // The base type of a domain determines its format.
            "d" => of(self.base).kind.clone(),
            "r" => TypeKind::Range(of(self.subtype)),
            "m" => TypeKind::Multirange(of(self.range)),
            _ if self.short == "hstore" => TypeKind::Hstore,
            _ => TypeKind::Text,
        }
    }
}

/// All names are schema-qualified, because the search path is the caller's.
async fn ask(lease: &mut Lease, oids: &BTreeSet<u32>, cx: &CallContext) -> Result<Vec<TypeRow>, ToolError> {
    let list: Vec<String> = oids.iter().map(u32::to_string).collect();
    let sql = format!(
        "SELECT pg_catalog.json_build_object('oid', t.oid::int8, 'name', pg_catalog.format_type(t.oid, NULL), \
         'short', t.typname, 'class', t.typtype, \
         'element', CASE WHEN t.typoutput = 'pg_catalog.array_out'::regproc OR t.typname IN ('int2vector', 'oidvector') \
           THEN t.typelem::int8 ELSE 0 END, 'delimiter', t.typdelim, 'base', t.typbasetype::int8, \
         'subtype', COALESCE((SELECT r.rngsubtype::int8 FROM pg_catalog.pg_range r WHERE r.rngtypid = t.oid), 0), \
         'range', COALESCE((SELECT r.rngtypid::int8 FROM pg_catalog.pg_range r WHERE t.typtype = 'm' \
           AND (pg_catalog.to_jsonb(r) ->> 'rngmultitypid')::oid = t.oid), 0), \
         'fields', (SELECT pg_catalog.json_agg(pg_catalog.json_build_array(a.attname, a.atttypid::int8) ORDER BY a.attnum) \
           FROM pg_catalog.pg_attribute a WHERE a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped)) \
         FROM pg_catalog.pg_type t WHERE t.oid IN ({})",
        list.join(", ")
    );
    let mut script = MessageBatch::default();
    script.simple_query(&sql)?;
    let heard = script.send(lease, &ReadLimits::for_catalog(), cx).await?;
    if let Some(said) = heard.error {
        return Err(ToolError::internal(said.message));
    }
    heard
        .rows
        .iter()
        .map(|row| serde_json::from_str(&json_values::first_text(row)).map_err(ToolError::internal))
        .collect()
}
