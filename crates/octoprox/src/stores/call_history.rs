//! The calls of the past, from which a hub learns what its callers use.

use octo_hub::Hub;
use octo_model::{Method, Principal};
use octo_ports::{AuditReader, AuditRecord, RecordKind};
use std::collections::HashMap;
use std::sync::Arc;

/// The last records of the audit log that are read.
const MAX_RECORDS: usize = 2_000;

/// Lets a hub learn in the background. Needs a runtime.
pub fn learn_from_history(hub: &Arc<Hub>, audit: &Arc<dyn AuditReader>) {
    let (hub, audit) = (Arc::downgrade(hub), Arc::clone(audit));
    tokio::spawn(async move {
        match audit.tail(MAX_RECORDS).await {
            Ok(records) => {
                if let Some(hub) = hub.upgrade() {
                    hub.learn_usage(successful_calls(&records).into_iter());
                }
            }
            Err(error) => tracing::debug!(%error, "the use of tools was not learned from the audit log"),
        }
    });
}

/// Who called which tool, written `source/key`, with success.
fn successful_calls(records: &[AuditRecord]) -> Vec<(Principal, String)> {
    let mut callers: HashMap<&str, Principal> = HashMap::new();
    let mut calls = Vec::new();
    for record in records {
        let AuditRecord { kind, call, tenant, subject, method, target, outcome, .. } = record;
        match kind {
            RecordKind::Open if method.as_deref() == Some(Method::CallTool.as_str()) => {
                if let Some((tenant, subject)) = tenant.as_ref().zip(subject.as_ref()) {
                    callers.insert(call, Principal::new(tenant, subject));
                }
            }
            RecordKind::Close if outcome.as_deref() == Some("ok") => {
                calls.extend(callers.remove(call.as_str()).zip(target.clone()));
            }
            RecordKind::Open | RecordKind::Close | RecordKind::Prune => {}
        }
    }
    calls
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(call: &str, subject: &str, method: &str) -> AuditRecord {
        let some = |text: &str| Some(text.to_owned());
        let (tenant, subject, method) = (some("t"), some(subject), some(method));
        AuditRecord {
            kind: RecordKind::Open,
            call: call.to_owned(),
            tenant,
            subject,
            method,
            ..AuditRecord::default()
        }
    }

    fn close(call: &str, target: Option<&str>, outcome: &str) -> AuditRecord {
        let (target, outcome) = (target.map(str::to_owned), Some(outcome.to_owned()));
        AuditRecord {
            kind: RecordKind::Close,
            call: call.to_owned(),
            target,
            outcome,
            ..AuditRecord::default()
        }
    }

    #[test]
    fn successful_calls_of_tools_are_read_with_their_callers() {
        let records = [
            close("0", Some("mail/send"), "ok"),
            open("1", "ann", "tools/call"),
            open("2", "bob", "tools/call"),
            open("3", "bob", "tools/call"),
            open("4", "bob", "resources/read"),
            close("2", Some("mail/list"), "ok"),
            close("1", Some("mail/send"), "ok"),
            close("3", Some("mail/send"), "failed"),
            close("4", Some("mail/a://b"), "ok"),
            open("5", "ann", "tools/call"),
            close("5", None, "ok"),
        ];
        let expected = [("bob", "mail/list"), ("ann", "mail/send")];
        let expected = expected.map(|(subject, target)| (Principal::new("t", subject), target.to_owned()));
        assert_eq!(successful_calls(&records), expected);
    }
}
