//! The database toolbox. The tools know one trait, [`engine::Engine`]; what speaks PostgreSQL stands behind it.

mod ask;
mod connections;
mod engine;
mod engines;
mod execute;
mod explain;
mod postgres;
mod query;
mod schema;

use engines::Engines;
use octo_toolkit::Toolbox;
use std::sync::Arc;

/// The tools of the domain `database`.
pub fn sql_toolbox() -> Toolbox {
    let engines = Arc::new(Engines::default());
    Toolbox::new("database", "Asks and changes SQL databases that the operator has named.")
        .with(query::Query(Arc::clone(&engines)))
        .with(execute::Execute(Arc::clone(&engines)))
        .with(schema::Schema(Arc::clone(&engines)))
        .with(explain::Explain(engines))
        .with(connections::Connections)
}
