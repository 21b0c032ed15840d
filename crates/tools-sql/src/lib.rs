//! Toolbox `database`. The tools use one trait, [`engine::SqlEngine`]; the PostgreSQL engine implements it.

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

/// Tools of the domain `database`.
pub fn sql_toolbox() -> Toolbox {
    let engines = Arc::new(EngineCache::default());
    Toolbox::new("database", "Queries and changes SQL databases that the operator has configured.")
        .with(db_query::Query(Arc::clone(&engines)))
        .with(execute::Execute(Arc::clone(&engines)))
        .with(db_schema::Schema(Arc::clone(&engines)))
        .with(explain::Explain(engines))
        .with(connections::Connections)
}
