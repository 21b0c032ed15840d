#![expect(clippy::disallowed_methods, reason = "the rule compares with the time of its records")]
use super::{Open, ada};
use crate::{
    Anchor, AuditRecord, CallEnded, CallStarted, Outcome, RecordKind, Retention, StoreError, StoreResult,
    Stores,
};
use jiff::Timestamp;
use octo_model::{CallId, Frontend, Method};
use std::time::Duration;

async fn record(stores: &Stores, name: &str) -> StoreResult<()> {
    let id = CallId::fresh();
    let opening = CallStarted {
        id,
        principal: ada().principal,
        frontend: Frontend::Cli,
        profile: "default".to_owned(),
        method: Method::CallTool,
        name: name.to_owned(),
        arguments: stores.audit.fingerprint(b"{}"),
        shown: None,
        trace: None,
    };
    stores.audit.open(opening).await?;
    stores.audit.close(CallEnded {
        id,
        target: Some("time/time_now".to_owned()),
        rule: None,
        outcome: Outcome::Ok,
        micros: 1500,
        bytes: 42,
        result_handle: None,
        arguments: None,
    });
    stores.audit.flush().await
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
    assert_eq!(reader.after(4).await?.len(), 2);
    assert_eq!(reader.after(6).await?, []);
    assert_eq!(reader.head().await?.seq, 6);
    Ok(())
}

pub async fn verified_and_anchored(open: &Open) -> StoreResult<()> {
    let stores = open();
    record(&stores, "one").await?;
    let reader = &stores.audit_reader;
    let head = reader.head().await?;
    record(&stores, "two").await?;
    let verified = reader.verify(Some(head)).await?;
    assert_eq!((verified.records, verified.head, verified.pruned), (4, reader.head().await?, None));
    let cut_off = Anchor { seq: 9, ..head };
    let foreign = Anchor { seq: 1, ..head };
    for anchor in [cut_off, foreign] {
        let broken = reader.verify(Some(anchor)).await;
        assert!(matches!(broken, Err(StoreError::Corrupt { .. })), "{broken:?}");
    }
    Ok(())
}

pub async fn pruned(open: &Open) -> StoreResult<()> {
    let stores = open();
    for name in ["one", "two", "three"] {
        record(&stores, name).await?;
    }
    let reader = &stores.audit_reader;
    let before = reader.head().await?;
    let now = Timestamp::now();
    assert_eq!(reader.prune(Retention::default(), now).await?, 0, "everything is kept");
    let by_number = Retention { max_records: Some(2), max_age: None };
    assert_eq!(reader.prune(by_number, now).await?, 4);
    let verified = reader.verify(Some(before)).await?;
    assert_eq!((verified.records, verified.head.seq), (3, 7), "the pruning is a record itself");
    assert_eq!(verified.pruned.map(|pruned| pruned.seq), Some(4));
    assert_eq!(reader.tail(1).await?.first().map(|record| record.kind), Some(RecordKind::Prune));
    let by_age = Retention { max_records: None, max_age: Some(Duration::from_secs(60 * 60)) };
    assert_eq!(reader.prune(by_age, now).await?, 0);
    let old = reader.verify(Some(Anchor { seq: 2, ..before })).await;
    assert!(matches!(old, Err(StoreError::Corrupt { .. })), "the anchor was pruned: {old:?}");
    record(&stores, "four").await?;
    reader.verify(Some(before)).await.map(drop)
}
