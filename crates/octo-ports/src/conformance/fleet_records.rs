use super::Open;
use crate::{FleetRecords, StoreResult};
use std::sync::Arc;

fn records(open: &Open) -> Arc<dyn FleetRecords> {
    open().fleet_records.unwrap_or_else(crate::in_memory::fleet_records)
}

pub async fn first_value_stays(open: &Open) -> StoreResult<()> {
    let records = records(open);
    assert_eq!(records.add("a/1", "one").await?, "one");
    assert_eq!(records.add("a/1", "two").await?, "one");
    records.put("a/1", "two").await?;
    assert_eq!(records.add("a/1", "three").await?, "two");
    Ok(())
}

pub async fn listed_by_prefix(open: &Open) -> StoreResult<()> {
    let records = records(open);
    for name in ["a/2", "a/1", "a%", "b/1", "a_1"] {
        records.put(name, "x").await?;
    }
    let found = records.with_prefix("a/").await?;
    assert_eq!(found, [("a/1".to_owned(), "x".to_owned()), ("a/2".to_owned(), "x".to_owned())]);
    assert_eq!(records.with_prefix("c").await?, []);
    assert_eq!(records.with_prefix("").await?.len(), 5);
    Ok(())
}

pub async fn changes_wake(open: &Open) -> StoreResult<()> {
    let (records, mut changes) = {
        let records = records(open);
        let changes = records.changes();
        (records, changes)
    };
    records.put("a", "x").await?;
    changes.changed().await;
    assert_eq!(records.with_prefix("a").await?.len(), 1);
    Ok(())
}
