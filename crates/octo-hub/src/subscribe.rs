//! Subscribing to a resource: recorded, decided and limited like every other call.

use crate::audit::Record;
use crate::bound::bounded;
use crate::call::{Request, names_one_uri};
use crate::hub::Hub;
use crate::watches::Subscription;
use octo_model::{CallId, Kind, Members, ToolError};

/// Bytes of the longest URI that can be subscribed to.
pub const MAX_SUBSCRIBED_URI_BYTES: usize = 8 << 10;
/// Resources that one session may be subscribed to at once.
pub const MAX_SUBSCRIPTIONS: usize = 256;

impl Hub {
    /// Subscribes the caller of `request` to the resource that it names, if they may read it.
    pub async fn subscribe(&self, request: &Request) -> Result<Subscription, ToolError> {
        if request.op.name.len() > MAX_SUBSCRIBED_URI_BYTES {
            return Err(ToolError::invalid(format!(
                "This URI is longer than the {MAX_SUBSCRIBED_URI_BYTES} bytes that can be subscribed to."
            ))
            .hint("Read the resource when it is needed."));
        }
        let mut record = Record::open(&self.ledger, CallId::fresh(), request, None).await?;
        let subscribed = self.decide_and_subscribe(request, &mut record).await;
        let subscribed = subscribed.map_err(|error| bounded(error, self.shape.max_bytes));
        record.ended(&subscribed.as_ref().map(|_| Members::new()).map_err(ToolError::clone));
        subscribed
    }

    async fn decide_and_subscribe(
        &self,
        request: &Request,
        record: &mut Record,
    ) -> Result<Subscription, ToolError> {
        names_one_uri(&request.op)?;
        let entry = self.find(request).await?;
        record.found(&entry.item);
        let rules = self.rules();
        let decision = rules.policy.decide_op(&request.caller, &entry, &request.op);
        let permit = decision.inspect_err(|denial| record.rule(&denial.rule))?;
        record.rule(permit.rule());
        rules.limits.take(&request.caller, &entry)?;
        let begun = self.watches.begin(&entry.item.source, &request.op.name);
        tokio::time::timeout(rules.timeout(None), begun).await.unwrap_or_else(|_| {
            Err(ToolError::new(Kind::Timeout, "The server did not answer whether it can be subscribed to.")
                .hint("Read the resource again instead."))
        })
    }

    /// Ends a subscription of the caller of `request`.
    pub async fn unsubscribe(&self, request: &Request, subscription: Subscription) -> Result<(), ToolError> {
        let mut record = Record::open(&self.ledger, CallId::fresh(), request, None).await?;
        let ended = subscription.end().await;
        record.ended(&ended.as_ref().map(|()| Members::new()).map_err(ToolError::clone));
        ended
    }
}
