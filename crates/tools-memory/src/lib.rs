//! Toolbox `memory`: entities, observations and relations that persist across conversations.

mod add_relations;
mod delete;
mod export;
mod fact_vectors;
mod forget;
mod import;
mod input_validation;
mod memory_file;
mod memory_list;
mod query;
mod query_slots;
mod semantic_memory;
mod shown_facts;
mod upsert_entities;

pub use semantic_memory::SemanticMemory;

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
