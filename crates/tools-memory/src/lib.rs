//! The memory toolbox: entities, what is known of them and how they are related, kept from one conversation to the next.

mod add_relations;
mod delete;
mod document;
mod export;
mod forget;
mod given;
mod import;
mod list;
mod query;
mod upsert_entities;

use octo_toolkit::Toolbox;

/// The tools of the domain `memory`.
pub fn toolbox() -> Toolbox {
    Toolbox::new("memory", "Remembers entities, observations and relations, and finds them again.")
        .with(upsert_entities::UpsertEntities)
        .with(add_relations::AddRelations)
        .with(query::Query)
        .with(list::List)
        .with(delete::Delete)
        .with(forget::ForgetOne)
        .with(import::Import)
        .with(export::Export)
}

#[cfg(test)]
mod tests;
