//! Toolbox `memory`: entities, observations and relations that persist across conversations.

mod add_relations;
mod delete;
mod export;
mod forget;
mod import;
mod input_validation;
mod memory_file;
mod memory_list;
mod query;
mod upsert_entities;

use octo_toolkit::Toolbox;

/// Tools of the domain `memory`.
pub fn toolbox() -> Toolbox {
    Toolbox::new("memory", "Remembers entities, observations and relations, and finds them again.")
        .with(upsert_entities::UpsertEntities)
        .with(add_relations::AddRelations)
        .with(query::Query)
        .with(memory_list::List)
        .with(delete::Delete)
        .with(forget::ForgetTool)
        .with(import::Import)
        .with(export::Export)
}

#[cfg(test)]
mod tests;
