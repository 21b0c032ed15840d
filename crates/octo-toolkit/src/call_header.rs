//! The data of a call: the part of its context that can cross to another process.

use crate::ReplyBudget;
use octo_model::{CallId, Caller, Frontend, Json};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Instant;

/// It names a verified caller, so a process must accept one only from the hub.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CallHeader {
    pub id: CallId,
    pub caller: Arc<Caller>,
    pub frontend: Frontend,
    /// Name of the profile; empty for everything.
    pub profile: String,
    /// In JSON the remaining time, since clocks differ.
    #[serde(rename = "remaining_ms", with = "remaining_ms")]
    pub deadline: Instant,
    pub reply: ReplyBudget,
    /// The number of calls around this one.
    pub depth: u8,
    /// The `traceparent` to pass on, if the call belongs to a trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
    /// The client's token, if it requests progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress_token: Option<Json>,
}

impl CallHeader {
    /// For a call without a hub. It counts as made by a model, which is trusted least.
    pub fn new(caller: Arc<Caller>, deadline: Instant) -> Self {
        Self {
            id: CallId::fresh(),
            caller,
            frontend: Frontend::Stdio,
            profile: String::new(),
            deadline,
            reply: ReplyBudget::UNLIMITED,
            depth: 0,
            trace: None,
            progress_token: None,
        }
    }
}

mod remaining_ms {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::time::{Duration, Instant};

    pub fn serialize<S: Serializer>(deadline: &Instant, serializer: S) -> Result<S::Ok, S::Error> {
        let remaining = deadline.saturating_duration_since(Instant::now());
        u64::try_from(remaining.as_millis()).unwrap_or(u64::MAX).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Instant, D::Error> {
        let remaining = Duration::from_millis(u64::deserialize(deserializer)?);
        Instant::now()
            .checked_add(remaining)
            .ok_or_else(|| D::Error::custom("the remaining time is too long"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CallContext, NoPeer};
    use serde_json::{Value, json};
    use std::time::Duration;
    use tokio_util::sync::CancellationToken;

    fn wire_form(cx: &CallContext) -> Value {
        serde_json::to_value(cx.header()).unwrap()
    }

    /// The context that another process makes of a header.
    fn across(form: &Value) -> CallContext {
        let header = serde_json::from_str(&form.to_string()).unwrap();
        CallContext::from_header(header, CancellationToken::new(), Arc::new(NoPeer))
    }

    #[test]
    fn only_the_remaining_time_changes_on_the_way() {
        let deadline = Instant::now() + Duration::from_secs(60);
        let plain = CallHeader::new(Arc::new(Caller::local()), deadline);
        let full = CallHeader {
            frontend: Frontend::Rest,
            profile: "work".to_owned(),
            reply: ReplyBudget::new(4_096),
            depth: 3,
            trace: Some("00-1-2-00".to_owned()),
            progress_token: Some(Json::text("t")),
            ..plain.clone()
        };
        for (header, trace, token) in
            [(plain, Value::Null, Value::Null), (full, json!("00-1-2-00"), json!("t"))]
        {
            let expected = json!({
                "id": header.id.to_string(),
                "caller": {"principal": {"tenant": "default", "subject": "local"}, "scopes": ["admin"]},
                "frontend": header.frontend.as_str(),
                "profile": header.profile,
                "reply": header.reply,
                "depth": header.depth,
            });
            let cx = CallContext::from_header(header, CancellationToken::new(), Arc::new(NoPeer));
            let mut sent = wire_form(&cx);
            let received = across(&sent);
            let mut again = wire_form(&received);
            assert_eq!((received.caller.as_ref(), received.id), (cx.caller.as_ref(), cx.id));
            for form in [&mut sent, &mut again] {
                let members = form.as_object_mut().unwrap();
                let remaining = members.remove("remaining_ms").unwrap().as_u64().unwrap();
                assert!(remaining > 0 && remaining <= 60_000, "{remaining}");
                assert_eq!(members.remove("trace").unwrap_or_default(), trace);
                assert_eq!(members.remove("progress_token").unwrap_or_default(), token);
                assert_eq!(*form, expected);
            }
        }
    }

    #[tokio::test]
    async fn the_remaining_time_shrinks_and_ends_at_zero() {
        let remaining = |cx: &CallContext| wire_form(cx)["remaining_ms"].as_u64().unwrap();
        let cx = |deadline| CallContext::new(Arc::new(Caller::local()), deadline, CancellationToken::new());
        let running = cx(Instant::now() + Duration::from_secs(60));
        let before = remaining(&running);
        tokio::time::sleep(Duration::from_millis(5)).await;
        assert!(remaining(&running) + 5 <= before);
        assert!(across(&wire_form(&running)).deadline <= Instant::now() + Duration::from_secs(60));
        assert_eq!(remaining(&cx(Instant::now())), 0);
    }
}
