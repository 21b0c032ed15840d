//! The call pipeline, the same for every frontend and every source.

use crate::catalogue::item::Entry;
use crate::catalogue::tool_override;
use crate::find::tools_call::is_call_wrapper;
use crate::hub::Hub;
use crate::hub::call_wrapper::with_schema;
use crate::pipeline::approval::{ApprovalRequest, no_approver_error};
use crate::pipeline::audit_record::AuditRecord;
use crate::pipeline::call_request::{Request, timeout_error};
use crate::pipeline::call_rules::CallRules;
use crate::pipeline::policy::{Denial, Obligations, Permit, is_visible};
use crate::pipeline::redact::redact;
use crate::pipeline::telemetry;
use crate::pipeline::telemetry::CallLog;
use crate::pipeline::upstream_telemetry::UpstreamCallTimer;
use crate::results::reply_size::max_reply_bytes;
use crate::results::result_limit::is_stored;
use crate::trust::{HIDDEN_REMOVED_META_KEY, strip_hub_meta};
use futures_util::FutureExt;
use octo_admission::FairSlot;
use octo_model::{CallId, Caller, JsonObject, Method, Operation, ToolError};
use octo_ports::Outcome;
use octo_toolkit::{CallContext, CallHeader, ReplyBudget, TEXT_ONLY_META_KEY};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use tracing::Instrument;

/// Result of a call.
pub struct CallOutcome {
    pub id: CallId,
    pub took: Duration,
    /// The entry that the call resolved to, as defined at that time.
    pub entry: Option<Entry>,
    /// Whether an MCP App called; no model reads the result.
    pub from_app: bool,
    pub outcome: Result<JsonObject, ToolError>,
}

impl Hub {
    /// The only way to make a call, for every frontend and for nested calls.
    pub async fn call(&self, request: Request) -> CallOutcome {
        let (id, begun, from_app) = (CallId::fresh(), Instant::now(), request.from_app);
        let span = telemetry::span(self.tracer.as_ref(), id, &request);
        let mut log = CallLog::begin(id, &request, begun, self.excerpts());
        let outcome = self.run_recorded(id, &request, &mut log).instrument(span.clone()).await;
        if let Some(tracer) = &self.tracer {
            tracer.end(&span, log.item(), begun.elapsed(), &outcome);
        }
        let entry = log.shown.take();
        drop(log);
        CallOutcome { id, took: begun.elapsed(), entry, from_app, outcome }
    }

    /// Admits a call of a client. Nested calls need no slot: they run within that of their parent.
    pub(crate) fn admit(&self, request: &Request) -> Result<Option<FairSlot>, ToolError> {
        let slot = (request.depth == 0).then(|| self.slots.admit(&request.caller.principal)).transpose();
        slot.map_err(|reason| reason.error("The hub"))
    }

    async fn run_recorded(
        &self,
        id: CallId,
        request: &Request,
        log: &mut CallLog<'_>,
    ) -> Result<JsonObject, ToolError> {
        let slot = self.admit(request);
        let _slot = slot.inspect_err(|error| log.finish(Outcome::Error(error.kind), 0, Some(error)))?;
        let recorded = self.recorded_request(request);
        log.called = recorded.as_ref().map(|recorded| recorded.op.name.clone());
        let recorded = recorded.as_ref().unwrap_or(request);
        let opened = AuditRecord::open(&self.audit_log, id, recorded, self.excerpts()).await;
        let mut record =
            opened.inspect_err(|error| log.finish(Outcome::Error(error.kind), 0, Some(error)))?;
        let outcome = self.run_stages(id, request, &mut record).await;
        let outcome = outcome.map_err(|error| self.finish_error(error));
        let word = record.set_outcome(&outcome);
        log.entry.clone_from(&record.entry);
        log.shown = record.shown_entry().cloned();
        self.record_use(request, record.entry.as_ref(), word);
        log.finish(word, record.bytes(), outcome.as_ref().err());
        outcome
    }

    /// The stages of a call, in order. Each ends the call with an error or passes it on.
    async fn run_stages(
        &self,
        id: CallId,
        request: &Request,
        record: &mut AuditRecord,
    ) -> Result<JsonObject, ToolError> {
        let rules = self.rules();
        // Resolve.
        check_single_uri(&request.op)?;
        let entry = self.find(request).await?;
        record.set_entry(&entry);
        // Visibility.
        let permit = rules
            .authorize(request, &entry, None, record)
            .map_err(|denied| self.denied_error(denied, request, &entry, record))?;
        if is_call_wrapper(&entry) {
            let (request, target) = self.unwrap_call(request).await?;
            record.wrapper = Some(entry.clone());
            record.set_entry(&target);
            let inner = rules.authorize(&request, &target, None, record).map_err(|denied| {
                self.wrapped_error(self.denied_error(denied, &request, &target, record), &request)
            })?;
            let result = self.run_permitted(&rules, id, &request, inner, Some(permit), record).await;
            return result.map(text_only).map_err(|error| with_schema(error, &target));
        }
        let is_text_only = entry.item.is_text_only();
        let result = self.run_permitted(&rules, id, request, permit, None, record).await?;
        Ok(if is_text_only { text_only(result) } else { result })
    }

    /// What a caller learns of a denied item: nothing, if it may not even list it, unless the rule has a hint for it.
    /// Administrators may list everything.
    pub(crate) fn denied_error(
        &self,
        denied: Denial,
        request: &Request,
        entry: &Entry,
        record: &mut AuditRecord,
    ) -> ToolError {
        let Request { caller, profile, op, .. } = request;
        if denied.has_hint || caller.is_admin() || is_visible(&*self.rules().policy, profile, caller, entry) {
            return denied.into();
        }
        record.is_hidden = true;
        self.view(profile).map_or_else(|error| error, |view| self.not_found_error(profile, &view, caller, op))
    }

    /// The stages from validation on. `wrapper` is the permit of the tool that was called in place of this one.
    async fn run_permitted(
        &self,
        rules: &CallRules,
        id: CallId,
        request: &Request,
        permit: Permit<'_>,
        wrapper: Option<Permit<'_>>,
        record: &mut AuditRecord,
    ) -> Result<JsonObject, ToolError> {
        let entry = permit.entry();
        // Validate.
        let timeout = rules.timeout(request.timeout);
        let call = self.validator.validate(&request.caller.principal, entry, &request.op, timeout).await?;
        record.set_coerced_arguments(&call.coercions, &call.op);
        // Authorize with arguments.
        let arguments = call.op.params.get("arguments").filter(|_| rules.policy.reads_arguments()).cloned();
        let permit = match &arguments {
            Some(arguments) => rules.authorize(request, entry, Some(arguments), record)?,
            None => permit,
        };
        let permit = match wrapper {
            Some(wrapper) => wrapper.and(permit),
            None => permit,
        };
        // Approve.
        self.approve(&permit, id, request, &call.op).await?;
        // Rate limit.
        rules.limits.check(&request.caller, entry).await?;
        let max_bytes =
            max_reply_bytes(&self.results.limits, request, &call.op, &entry.item, &permit.obligations);
        // Cache. Results with obligations are not cached: another policy may shape them differently. Those for apps are not
        // truncated.
        let slot = (permit.obligations == Obligations::default() && !request.from_app)
            .then(|| rules.cache.slot(&request.caller, &request.profile, entry, &request.op, max_bytes))
            .flatten();
        if let Some(slot) = &slot
            && let Some(answer) = rules.cache.get(slot).await
        {
            return Ok(call.coercions.annotate(answer, request.depth > 0));
        }
        // Run.
        let outdate = rules.cache.invalidate_after(entry, &request.op);
        let result = self.run(&permit, id, call.op, request, timeout, max_bytes).await;
        drop(outdate);
        // Redact.
        let result = remove_hub_meta(result?, entry);
        let is_native = entry.item.source.is_native();
        let result = tool_override::blank_fields(result, &call.blank_fields, is_native);
        let result = self.redact_result(&request.caller, result, &permit.obligations, is_native).await?;
        // Truncate and store.
        let result = self.results.limit(&self.validator, &permit, request, result, max_bytes, record).await?;
        // What is only in the result store for a nested call would be truncated for others.
        if let Some(slot) = slot
            && !(request.depth > 0 && is_stored(&result))
        {
            rules.cache.put(slot, &result).await;
        }
        Ok(call.coercions.annotate(result, request.depth > 0))
    }

    /// Runs off the runtime's threads, since a result may be large.
    async fn redact_result(
        &self,
        caller: &Caller,
        result: JsonObject,
        obligations: &Obligations,
        is_native: bool,
    ) -> Result<JsonObject, ToolError> {
        if obligations.redact.is_empty() {
            return Ok(result);
        }
        let members = obligations.redact.clone();
        self.validator.run_blocking(&caller.principal, move || redact(&result, &members, is_native)).await
    }

    /// Waits for approval if the policy requires it.
    pub(crate) async fn approve(
        &self,
        permit: &Permit<'_>,
        id: CallId,
        request: &Request,
        op: &Operation,
    ) -> Result<(), ToolError> {
        if !permit.needs_approval {
            return Ok(());
        }
        let approver = self.approver().ok_or_else(|| no_approver_error(permit.entry(), permit.rule()))?;
        let asked = approver.approve(ApprovalRequest {
            call: id,
            caller: &request.caller,
            profile: &request.profile,
            entry: permit.entry(),
            rule: permit.rule(),
            arguments: op.params.get("arguments"),
            peer: &request.peer,
        });
        tokio::select! {
            biased;
            answer = asked => answer,
            () = request.cancel.cancelled() => Err(ToolError::cancelled()),
        }
    }

    /// Runs within the timeout. A panic fails only this call; dropping the future cancels the operation.
    async fn run(
        &self,
        permit: &Permit<'_>,
        id: CallId,
        mut op: Operation,
        request: &Request,
        allowed: Duration,
        max_bytes: usize,
    ) -> Result<JsonObject, ToolError> {
        let item = &permit.entry().item;
        let who = &request.caller.principal;
        let at_source = || self.slots.admit_to_source(item.source.name(), who);
        let _slot = (request.depth == 0).then(at_source).transpose()?;
        let cancel = request.cancel.child_token();
        let _cancelled_with_this_future = cancel.clone().drop_guard();
        let progress_token = op.params.inner("_meta", "progressToken");
        use_source_name(&mut op, &item.key);
        let upstream = UpstreamCallTimer::begin(item, op.method);
        let span = upstream.as_ref().map(|call| call.span.clone()).filter(|span| !span.is_none());
        let span = span.unwrap_or_else(tracing::Span::current);
        let parent = self.tracer.as_ref().and_then(|it| it.parent_for_target(&span));
        if let Some(parent) = &parent {
            let meta = op.params.object("_meta").with("traceparent", parent.as_str());
            op.params.set("_meta", meta);
        }
        let header = CallHeader {
            id,
            caller: Arc::clone(&request.caller),
            frontend: request.frontend,
            profile: request.profile.clone(),
            deadline: Instant::now() + allowed,
            reply: ReplyBudget::new(max_bytes),
            depth: request.depth,
            trace: parent.or_else(|| request.trace.clone()),
            progress_token,
        };
        let cx = CallContext::from_header(header, cancel, Arc::clone(&request.peer))
            .with_nested_calls(Weak::<Self>::clone(&self.this));
        let run = AssertUnwindSafe(item.source.run(op, &cx)).catch_unwind().instrument(span);
        let outcome = tokio::select! {
            biased;
            done = run => done.unwrap_or_else(|panic| Err(panic_error(panic.as_ref()))),
            () = cx.cancel.cancelled() => Err(ToolError::cancelled()),
            () = tokio::time::sleep_until(cx.deadline.into()) => Err(timeout_error(allowed)),
        };
        upstream.into_iter().for_each(|call| call.finish(&outcome));
        outcome
    }
}

/// Marks a result whose structure is not for models.
fn text_only(result: JsonObject) -> JsonObject {
    let meta = result.object("_meta").with(TEXT_ONLY_META_KEY, true);
    result.with("_meta", meta)
}

/// Removes `_meta` members of an upstream in the hub's namespace, except the note of its sanitizer.
fn remove_hub_meta(result: JsonObject, entry: &Entry) -> JsonObject {
    if entry.item.source.is_native() { result } else { strip_hub_meta(result, &[HIDDEN_REMOVED_META_KEY]) }
}

/// Ensures that the policy decides on the URI that the source receives.
pub(crate) fn check_single_uri(op: &Operation) -> Result<(), ToolError> {
    let inner = match op.method {
        Method::ReadResource | Method::Subscribe | Method::Unsubscribe | Method::GetSkill => {
            op.params.text("uri")
        }
        Method::Complete => op.params.inner_text("ref", "uri"),
        Method::CallTool | Method::GetPrompt => return Ok(()),
    };
    match inner {
        Some(uri) if uri != op.name => {
            Err(ToolError::invalid("The request contains two different URIs.").hint("Send one URI."))
        }
        _ => Ok(()),
    }
}

/// From here on the operation uses the source's own names.
fn use_source_name(op: &mut Operation, key: &str) {
    if op.method == Method::Complete {
        let reference = op.params.object("ref");
        if reference.get("name").is_some() {
            op.params.set("ref", reference.with("name", key));
        }
    }
    if !op.method.names_resource() {
        op.name = key.to_owned();
    }
}

fn panic_error(panic: &(dyn std::any::Any + Send)) -> ToolError {
    let text =
        panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    ToolError::internal(format!("panic: {}", text.unwrap_or("unknown")))
}
