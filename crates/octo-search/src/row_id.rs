//! Ids of the rows of an index. Those of observations start with the id of their entity, so that the observations of
//! an entity are adjacent and a row identifies its entity.

/// Bits for the observations of one entity, including past ones.
const FACT_BITS: u32 = 20;

/// The row for an entity's own name and type; its observations follow.
pub const fn first_row(entity: i64) -> i64 {
    entity << FACT_BITS
}

pub const fn last_row(entity: i64) -> i64 {
    first_row(entity + 1) - 1
}

pub const fn entity_of(row: i64) -> i64 {
    row >> FACT_BITS
}
