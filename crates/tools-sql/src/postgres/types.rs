//! What a type is, as far as writing its values as JSON needs it.

use super::hear::Bounds;
use super::json;
use super::script::Script;
use octo_grants::sql::Lease;
use octo_toolkit::{CallContext, ToolError};
use serde::Deserialize;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A composite type may get another column; after so long it is looked up anew.
const FRESH: Duration = Duration::from_secs(60);
/// Arrays of composites of arrays …
const DEEP: usize = 32;

#[derive(Debug)]
pub struct Type {
    pub name: String,
    pub kind: Kind,
}

#[derive(Debug, Clone)]
pub enum Kind {
    Bool,
    /// Whole numbers that every reader of JSON holds exactly.
    Small,
    /// Whole numbers up to 64 bits.
    Big,
    Float,
    Numeric,
    Json,
    /// Date and time, with or without zone.
    Moment,
    /// A time of day with an offset.
    TimeTz,
    Text,
    Void,
    Array(Arc<Type>, char),
    /// `int2vector` and `oidvector`, which write themselves with spaces.
    Vector(Arc<Type>),
    Composite(Vec<(String, Arc<Type>)>),
    /// A row without a type: its fields are text.
    Record,
    Range(Arc<Type>),
    Multirange(Arc<Type>),
    Hstore,
}

/// Types that need no question: those of nearly every column.
fn plain(oid: u32) -> Option<(&'static str, Kind)> {
    Some(match oid {
        16 => ("boolean", Kind::Bool),
        17 => ("bytea", Kind::Text),
        18 => ("\"char\"", Kind::Text),
        19 => ("name", Kind::Text),
        20 => ("bigint", Kind::Big),
        21 => ("smallint", Kind::Small),
        23 => ("integer", Kind::Small),
        25 => ("text", Kind::Text),
        26 => ("oid", Kind::Small),
        28 => ("xid", Kind::Small),
        29 => ("cid", Kind::Small),
        114 => ("json", Kind::Json),
        700 => ("real", Kind::Float),
        701 => ("double precision", Kind::Float),
        1042 => ("character", Kind::Text),
        1043 => ("character varying", Kind::Text),
        1082 => ("date", Kind::Text),
        1083 => ("time without time zone", Kind::Text),
        1114 => ("timestamp without time zone", Kind::Moment),
        1184 => ("timestamp with time zone", Kind::Moment),
        1186 => ("interval", Kind::Text),
        1266 => ("time with time zone", Kind::TimeTz),
        1700 => ("numeric", Kind::Numeric),
        2249 => ("record", Kind::Record),
        2278 => ("void", Kind::Void),
        2950 => ("uuid", Kind::Text),
        3802 => ("jsonb", Kind::Json),
        5069 => ("xid8", Kind::Big),
        _ => return None,
    })
}

#[derive(Default)]
pub struct Types(Mutex<HashMap<u32, (Instant, Arc<Type>)>>);

/// A row of the catalogue.
#[derive(Deserialize)]
struct Entry {
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

impl Types {
    /// The types of these numbers, in the same order. Asks the server for those that are not known yet.
    pub async fn of(
        &self,
        lease: &mut Lease,
        oids: &[u32],
        cx: &CallContext,
    ) -> Result<Vec<Arc<Type>>, ToolError> {
        let mut entries: HashMap<u32, Entry> = HashMap::new();
        let mut missing: BTreeSet<u32> =
            oids.iter().copied().filter(|oid| self.known(*oid).is_none()).collect();
        while !missing.is_empty() {
            let found = ask(lease, &missing, cx).await?;
            let next: Vec<u32> = found.iter().flat_map(Entry::needs).collect();
            entries.extend(missing.iter().map(|oid| (*oid, Entry::unknown(*oid))));
            entries.extend(found.into_iter().map(|entry| (entry.oid, entry)));
            missing = next
                .into_iter()
                .filter(|oid| !entries.contains_key(oid) && self.known(*oid).is_none())
                .collect();
        }
        Ok(oids.iter().map(|oid| self.build(*oid, &entries, 0)).collect())
    }

    fn known(&self, oid: u32) -> Option<Arc<Type>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((since, known)) = kept.get(&oid)
            && (since.elapsed() < FRESH || plain(oid).is_some())
        {
            return Some(Arc::clone(known));
        }
        let (name, kind) = plain(oid)?;
        let fresh = Arc::new(Type { name: name.to_owned(), kind });
        kept.insert(oid, (Instant::now(), Arc::clone(&fresh)));
        Some(fresh)
    }

    fn build(&self, oid: u32, entries: &HashMap<u32, Entry>, depth: usize) -> Arc<Type> {
        if let Some(known) = self.known(oid) {
            return known;
        }
        let built = match entries.get(&oid) {
            Some(entry) if depth < DEEP => {
                Type { name: entry.name.clone(), kind: entry.kind(|oid| self.build(oid, entries, depth + 1)) }
            }
            _ => Type { name: oid.to_string(), kind: Kind::Text },
        };
        let built = Arc::new(built);
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.insert(oid, (Instant::now(), Arc::clone(&built)));
        built
    }
}

impl Entry {
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

    fn kind(&self, of: impl Fn(u32) -> Arc<Type>) -> Kind {
        match self.class.as_str() {
            "b" | "p" if self.element != 0 && matches!(self.short.as_str(), "int2vector" | "oidvector") => {
                Kind::Vector(of(self.element))
            }
            _ if self.element != 0 => {
                Kind::Array(of(self.element), self.delimiter.chars().next().unwrap_or(','))
            }
            "c" => Kind::Composite(
                self.fields.iter().flatten().map(|(name, oid)| (name.clone(), of(*oid))).collect(),
            ),
            // What a domain is made of decides how it looks; its kind has nothing of its own.
            "d" => of(self.base).kind.clone(),
            "r" => Kind::Range(of(self.subtype)),
            "m" => Kind::Multirange(of(self.range)),
            _ if self.short == "hstore" => Kind::Hstore,
            _ => Kind::Text,
        }
    }
}

/// Everything is named with its schema, since the search path is the caller's.
async fn ask(lease: &mut Lease, oids: &BTreeSet<u32>, cx: &CallContext) -> Result<Vec<Entry>, ToolError> {
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
    let mut script = Script::default();
    script.simple(&sql)?;
    let heard = script.play(lease, &Bounds::of_ours(), cx).await?;
    if let Some(said) = heard.fault {
        return Err(ToolError::internal(said.message));
    }
    heard
        .rows
        .iter()
        .map(|row| serde_json::from_str(&json::first_text(row)).map_err(ToolError::internal))
        .collect()
}
