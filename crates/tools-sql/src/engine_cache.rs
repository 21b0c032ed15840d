//! Engines per database, cached because they cache types.

use crate::engine::SqlEngine;
use crate::postgres::Postgres;
use octo_grants::sql::{Database, Dialect};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

#[derive(Default)]
pub struct EngineCache(Mutex<HashMap<u64, Arc<dyn SqlEngine>>>);

impl EngineCache {
    pub fn get_or_create(&self, database: &Arc<Database>) -> Arc<dyn SqlEngine> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = || -> Arc<dyn SqlEngine> {
            match database.dialect {
                Dialect::Postgres => Arc::new(Postgres::new(Arc::clone(database))),
            }
        };
        Arc::clone(kept.entry(database.id).or_insert_with(fresh))
    }
}
