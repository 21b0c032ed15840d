//! Subscribing to a resource: audited, authorized and rate limited like any other call.

use crate::hub::Hub;
use crate::hub::call_pipeline::check_single_uri;
use crate::pipeline::audit_record::AuditRecord;
use crate::pipeline::call_request::Request;
use crate::subscriptions::subscription_counts::Subscription;
use octo_model::{CallId, JsonObject, Kind, ToolError};

/// Maximum bytes of a URI that can be subscribed to.
pub const MAX_SUBSCRIBED_URI_BYTES: usize = 8 << 10;
/// Maximum subscriptions per session.
pub const MAX_SUBSCRIPTIONS: usize = 256;

impl Hub {
    /// Subscribes the caller of `request` to the resource that it names, if the policy permits reading it.
    pub async fn subscribe(&self, request: &Request) -> Result<Subscription, ToolError> {
        if request.op.name.len() > MAX_SUBSCRIBED_URI_BYTES {
            return Err(ToolError::invalid(format!(
                "The URI exceeds the limit of {MAX_SUBSCRIBED_URI_BYTES} bytes for subscriptions."
            ))
            .hint("Read the resource when you need it."));
        }
        let _slot = self.admit(request)?;
        self.restore_subscription(request).await
    }

    /// Subscribes to what another hub has subscribed to for the same session. That needs no slot: the client has no request
    /// that could be refused.
    pub async fn restore_subscription(&self, request: &Request) -> Result<Subscription, ToolError> {
        let mut record = AuditRecord::open(&self.audit_log, CallId::fresh(), request, None).await?;
        let subscribed = self.decide_and_subscribe(request, &mut record).await;
        let subscribed = subscribed.map_err(|error| self.finish_error(error));
        record.set_outcome(&subscribed.as_ref().map(|_| JsonObject::new()).map_err(ToolError::clone));
        subscribed
    }

    async fn decide_and_subscribe(
        &self,
        request: &Request,
        record: &mut AuditRecord,
    ) -> Result<Subscription, ToolError> {
        check_single_uri(&request.op)?;
        let entry = self.find(request).await?;
        record.set_entry(&entry);
        let rules = self.rules();
        let permit = rules
            .authorize(request, &entry, None, record)
            .map_err(|denied| self.denied_error(denied, request, &entry, record))?;
        self.approve(&permit, record.id, request, &request.op).await?;
        rules.limits.check(&request.caller, &entry).await?;
        let begun = self.subscriptions.subscribe(&entry.item.source, &request.op.name);
        tokio::time::timeout(rules.timeout(None), begun).await.unwrap_or_else(|_| {
            Err(ToolError::new(Kind::Timeout, "The server did not answer the subscription request.")
                .hint("Read the resource again instead."))
        })
    }

    /// Ends a subscription of the caller of `request`.
    pub async fn unsubscribe(&self, request: &Request, subscription: Subscription) -> Result<(), ToolError> {
        let mut record = AuditRecord::open(&self.audit_log, CallId::fresh(), request, None).await?;
        let ended = subscription.end().await.map_err(|error| self.finish_error(error));
        record.set_outcome(&ended.as_ref().map(|()| JsonObject::new()).map_err(ToolError::clone));
        ended
    }
}
