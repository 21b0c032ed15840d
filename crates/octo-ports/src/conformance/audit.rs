#![expect(clippy::disallowed_methods, reason = "the rule compares with the time of its records")]
use super::Open;
use super::call_samples::{closing, opening};
use crate::{
    Anchor, AuditCursor, AuditReader, AuditRecord, CallStarted, ChainAnchor, Port, RecordKind, Retention,
    StoreError, StoreResult, Stores, Verified,
};
use jiff::Timestamp;
use std::time::Duration;

async fn record(stores: &Stores, name: &str) -> StoreResult<()> {
    let opening = CallStarted { arguments: stores.audit.fingerprint(b"{}"), ..opening(name) };
    let id = opening.id;
    stores.audit.open(opening).await?;
    stores.audit.close(closing(id));
    stores.audit.flush().await
}

/// The end of the only chain.
async fn head(reader: &dyn AuditReader) -> StoreResult<ChainAnchor> {
    let heads = reader.heads().await?;
    assert_eq!(heads.len(), 1);
    Ok(heads.into_iter().next().unwrap_or_default())
}

async fn verify(reader: &dyn AuditReader, anchor: &ChainAnchor) -> StoreResult<Verified> {
    let verified = reader.verify(std::slice::from_ref(anchor)).await?.into_iter().next();
    verified.ok_or(StoreError::NotFound(Port::AuditReader))
}

pub async fn recorded_in_order(open: &Open) -> StoreResult<()> {
    let stores = open();
    assert_eq!(stores.audit.check().await, Ok(()));
    for name in ["one", "two", "three"] {
        record(&stores, name).await?;
    }
    let reader = open().audit_reader;
    let records = reader.tail(100).await?;
    let numbers: Vec<u64> = records.iter().map(|record| record.seq).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6]);
    let brief = |record: &AuditRecord| (record.kind, record.name.clone(), record.outcome.clone());
    let [opening, closing] = [RecordKind::Open, RecordKind::Close];
    assert_eq!(records.first().map(brief), Some((opening, Some("one".to_owned()), None)));
    assert_eq!(records.get(1).map(brief), Some((closing, None, Some("ok".to_owned()))));
    let calls: Vec<&str> = records.iter().take(2).map(|record| record.call.as_str()).collect();
    assert!(calls.first() == calls.last(), "both records of a call have its id");
    assert_eq!(reader.tail(2).await?.first().map(|record| record.seq), Some(5));
    let head = head(&*reader).await?;
    assert_eq!(head.anchor.seq, 6);
    assert!(records.iter().all(|record| record.chain == head.chain), "one writer, one chain");
    let mut cursor = AuditCursor::default();
    assert_eq!(reader.after(&cursor).await?, records);
    cursor.advance(&head.chain, 4);
    assert_eq!(reader.after(&cursor).await?.len(), 2);
    cursor.advance(&head.chain, 6);
    assert_eq!(reader.after(&cursor).await?, []);
    Ok(())
}

pub async fn verified_and_anchored(open: &Open) -> StoreResult<()> {
    let stores = open();
    record(&stores, "one").await?;
    let reader = &stores.audit_reader;
    let before = head(&**reader).await?;
    record(&stores, "two").await?;
    let (verified, after) = (verify(&**reader, &before).await?, head(&**reader).await?);
    assert_eq!((verified.records, verified.pruned), (4, None));
    assert_eq!((verified.chain, verified.head), (after.chain, after.anchor));
    let moved = |seq| ChainAnchor { anchor: Anchor { seq, ..before.anchor }, ..before.clone() };
    let missing = ChainAnchor { chain: "another".to_owned(), ..before.clone() };
    for anchor in [moved(9), moved(1), missing] {
        for anchors in [vec![anchor.clone()], vec![before.clone(), anchor]] {
            let broken = reader.verify(&anchors).await;
            assert!(matches!(broken, Err(StoreError::Corrupt { .. })), "{broken:?}");
        }
    }
    Ok(())
}

pub async fn pruned(open: &Open) -> StoreResult<()> {
    let stores = open();
    for name in ["one", "two", "three"] {
        record(&stores, name).await?;
    }
    let reader = &stores.audit_reader;
    let before = head(&**reader).await?;
    let now = Timestamp::now();
    assert_eq!(reader.prune(Retention::default(), now).await?, 0, "everything is kept");
    let by_number = Retention { max_records: Some(2), max_age: None };
    assert_eq!(reader.prune(by_number, now).await?, 4);
    let verified = verify(&**reader, &before).await?;
    assert_eq!((verified.records, verified.head.seq), (3, 7), "the pruning is a record itself");
    assert_eq!(verified.pruned.map(|pruned| pruned.seq), Some(4));
    assert_eq!(reader.tail(1).await?.first().map(|record| record.kind), Some(RecordKind::Prune));
    let by_age = Retention { max_records: None, max_age: Some(Duration::from_secs(60 * 60)) };
    assert_eq!(reader.prune(by_age, now).await?, 0);
    let ahead = now.checked_add(Duration::from_secs(500 * 24 * 60 * 60)).unwrap_or(now);
    let trusted = reader.trusted_now(ahead).await?;
    assert!(trusted.duration_since(now).as_hours() < 1, "no record proves the time that the clock is ahead");
    assert_eq!(reader.prune_when_due(by_age, trusted).await?, 0);
    let behind = now.checked_sub(Duration::from_secs(500 * 24 * 60 * 60)).unwrap_or(now);
    assert_eq!(reader.prune_when_due(by_age, reader.trusted_now(behind).await?).await?, 0);
    let old = ChainAnchor { anchor: Anchor { seq: 2, ..before.anchor }, ..before.clone() };
    let old = verify(&**reader, &old).await;
    assert!(matches!(old, Err(StoreError::Corrupt { .. })), "the anchor was pruned: {old:?}");
    record(&stores, "four").await?;
    verify(&**reader, &before).await.map(drop)
}
