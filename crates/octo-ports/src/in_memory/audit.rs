//! In-memory audit log.

use super::ready;
use crate::audit_format::chain_verifier::{anchors_of, verify_missing_chains};
use crate::retention_clock::{RecordsAround, trusted_now};
use crate::{
    Anchor, AuditCursor, AuditLog, AuditReader, AuditRecord, CallEnded, CallStarted, ChainAnchor, Hash, Port,
    RecordKind, Retention, StoreError, StoreResult, Verified,
};
use aws_lc_rs::digest::{SHA256, digest};
use jiff::Timestamp;
use octo_model::BoxFuture;
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Default)]
pub struct InMemoryAudit(Mutex<Log>);

#[derive(Default)]
struct Log {
    records: Vec<AuditRecord>,
    /// The last record that was pruned.
    pruned: Option<Anchor>,
}

impl InMemoryAudit {
    fn lock(&self) -> MutexGuard<'_, Log> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn link(before: Hash, record: &AuditRecord) -> Hash {
    let unlinked = AuditRecord { hash: String::new(), ..record.clone() };
    let bytes = [before.0.as_slice(), format!("{unlinked:?}").as_bytes()].concat();
    Hash::from_bytes(digest(&SHA256, &bytes).as_ref()).unwrap_or_default()
}

fn anchor(record: &AuditRecord) -> Anchor {
    Anchor { seq: record.seq, hash: record.hash.parse().unwrap_or_default() }
}

impl Log {
    fn head(&self) -> Anchor {
        self.records.last().map(anchor).or(self.pruned).unwrap_or_default()
    }

    fn push(&mut self, record: AuditRecord) {
        let head = self.head();
        let record = AuditRecord { seq: head.seq + 1, ..record };
        let hash = link(head.hash, &record).to_string();
        self.records.push(AuditRecord { hash, ..record });
    }

    fn verify(&self, anchors: &[ChainAnchor]) -> StoreResult<Verified> {
        verify_missing_chains(anchors, str::is_empty)
            .map_err(|broken| StoreError::corrupt(Port::AuditReader, broken))?;
        let noted: Vec<Anchor> = anchors_of("", anchors).collect();
        let broken = |seq: u64, why: &str| {
            StoreError::corrupt(Port::AuditReader, format!("broken at record {seq}: {why}"))
        };
        let mut at = self.pruned.unwrap_or_default();
        for record in &self.records {
            let hash = link(at.hash, record);
            if record.seq != at.seq + 1 || record.hash != hash.to_string() {
                return Err(broken(at.seq + 1, "its hash does not match it and the record before"));
            }
            at = Anchor { seq: record.seq, hash };
            if noted.iter().any(|noted| noted.seq == at.seq && noted.hash != at.hash) {
                return Err(broken(at.seq, "it does not match the anchor"));
            }
        }
        if noted.iter().any(|noted| noted.seq > at.seq) {
            return Err(broken(at.seq + 1, "it and all later records are missing"));
        }
        let first = self.pruned.map_or(0, |pruned| pruned.seq);
        if let Some(noted) = noted.iter().find(|noted| noted.seq < first) {
            return Err(broken(noted.seq, "it was pruned, so the anchor cannot be verified"));
        }
        let (chain, records) = (String::new(), self.records.len() as u64);
        Ok(Verified { chain, records, head: at, pruned: self.pruned })
    }

    /// The newest record is always kept.
    fn prune(&mut self, retention: Retention, now: Timestamp) -> u64 {
        let most = retention.max_records.map(|most| usize::try_from(most.max(1)).unwrap_or(usize::MAX));
        let by_number = most.map_or(0, |most| self.records.len().saturating_sub(most));
        let oldest = retention.max_age.and_then(|age| now.checked_sub(age).ok());
        let is_old = |record: &&AuditRecord| oldest.is_some_and(|oldest| record.at < oldest);
        let by_age = self.records.iter().take_while(is_old).count();
        let count = by_number.max(by_age).min(self.records.len().saturating_sub(1));
        let Some(last) = self.records.drain(..count).next_back() else { return 0 };
        let pruned = anchor(&last);
        self.pruned = Some(pruned);
        let kind = RecordKind::Prune;
        let target = Some(pruned.to_string());
        self.push(AuditRecord { at: now, kind, target, ..AuditRecord::default() });
        count as u64
    }
}

impl AuditLog for InMemoryAudit {
    fn open(&self, opening: CallStarted) -> BoxFuture<'_, StoreResult<()>> {
        self.lock().push(AuditRecord {
            at: Timestamp::now(),
            kind: RecordKind::Open,
            call: opening.id.to_string(),
            subject: Some(opening.principal.subject),
            tenant: Some(opening.principal.tenant),
            frontend: Some(opening.frontend.as_str().to_owned()),
            profile: Some(opening.profile),
            method: Some(opening.method.as_str().to_owned()),
            name: Some(opening.name),
            arguments: Some(opening.arguments),
            shown: opening.shown,
            trace: opening.trace,
            ..AuditRecord::default()
        });
        ready(Ok(()))
    }

    fn close(&self, closing: CallEnded) {
        self.lock().push(AuditRecord {
            at: Timestamp::now(),
            kind: RecordKind::Close,
            call: closing.id.to_string(),
            target: closing.target,
            rule: closing.rule,
            outcome: Some(closing.outcome.as_str().to_owned()),
            millis: Some(closing.micros as f64 / 1000.0),
            bytes: Some(closing.bytes),
            result_handle: closing.result_handle,
            arguments: closing.arguments,
            ..AuditRecord::default()
        });
    }
}

impl AuditReader for InMemoryAudit {
    fn tail(&self, count: usize) -> BoxFuture<'_, StoreResult<Vec<AuditRecord>>> {
        let log = self.lock();
        let skipped = log.records.len().saturating_sub(count);
        ready(Ok(log.records.iter().skip(skipped).cloned().collect()))
    }

    fn after<'a>(&'a self, cursor: &'a AuditCursor) -> BoxFuture<'a, StoreResult<Vec<AuditRecord>>> {
        let seq = cursor.seq("");
        ready(Ok(self.lock().records.iter().filter(|record| record.seq > seq).cloned().collect()))
    }

    fn heads(&self) -> BoxFuture<'_, StoreResult<Vec<ChainAnchor>>> {
        ready(Ok(vec![self.lock().head().into()]))
    }

    fn verify<'a>(&'a self, anchors: &'a [ChainAnchor]) -> BoxFuture<'a, StoreResult<Vec<Verified>>> {
        ready(self.lock().verify(anchors).map(|verified| vec![verified]))
    }

    fn trusted_now(&self, now: Timestamp) -> BoxFuture<'_, StoreResult<Timestamp>> {
        let log = self.lock();
        ready(trusted_now(now, |moment| {
            let times = || log.records.iter().map(|record| record.at);
            let before = times().filter(|at| *at < moment).max();
            Ok(RecordsAround { before, after: times().filter(|at| *at >= moment).min() })
        }))
    }

    fn prune(&self, retention: Retention, now: Timestamp) -> BoxFuture<'_, StoreResult<u64>> {
        ready(Ok(self.lock().prune(retention, now)))
    }

    fn prune_when_due(&self, retention: Retention, now: Timestamp) -> BoxFuture<'_, StoreResult<u64>> {
        self.prune(retention, now)
    }
}
