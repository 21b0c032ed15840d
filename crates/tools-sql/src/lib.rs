//! The database toolbox. The tools know one trait, [`engine::SqlEngine`]; what speaks PostgreSQL stands behind it.

mod connections;
mod db_query;
mod db_schema;
mod engine;
mod engine_cache;
mod execute;
mod explain;
mod postgres;
mod statement_args;

use engine_cache::EngineCache;
use octo_toolkit::Toolbox;
use std::sync::Arc;

/// The tools of the domain `database`.
pub fn sql_toolbox() -> Toolbox {
    let engines = Arc::new(EngineCache::default());
    Toolbox::new("database", "Asks and changes SQL databases that the operator has named.")
        .with(db_query::Query(Arc::clone(&engines)))
        .with(execute::Execute(Arc::clone(&engines)))
        .with(db_schema::Schema(Arc::clone(&engines)))
        .with(explain::Explain(engines))
        .with(connections::Connections)
}
