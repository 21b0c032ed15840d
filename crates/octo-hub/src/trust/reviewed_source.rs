//! A source whose listing is reviewed before it is shown, and whose results are sanitized.

use super::review::{Review, review};
use super::server_questions::{QuestionRules, ServerPeer};
use super::{DeclaredEffects, Difference, HeldCalls, SharedPins, TrustSettings, sanitize, worst_severity};
use crate::apps::app_content::{AppContent, app_pins, check_app};
use crate::apps::app_tool::{app_uri, supports_apps};
use crate::catalogue::scoped_uris;
use crate::catalogue::uri_spellings::normalize;
use crate::skills::skill_entry::SkillEntry;
use crate::skills::skill_prompt;
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use octo_model::{ItemKind, Json, JsonObject, Method, Operation, Remedy, ToolError};
use octo_ports::{Changes, Pin, PinKind, PinSet, PinWrite, ServerIdentity};
use octo_toolkit::{
    BoxFuture, CallContext, Definition, Layer, Listing, ListingState, Peer, Source, SourceState,
};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::watch;

/// Delay before pins that could not be read or written are tried again.
const PIN_RETRY_DELAY: Duration = Duration::from_secs(3);
/// Attempts to write pins when other processes write, too.
const MAX_PIN_ATTEMPTS: usize = 20;

/// Reviews the servers of one hub.
pub struct Trust {
    pins: SharedPins,
    /// Names of all configured servers.
    servers: Vec<String>,
}

impl Trust {
    pub fn new(pins: SharedPins, servers: impl IntoIterator<Item = String>) -> Self {
        Self { pins, servers: servers.into_iter().collect() }
    }

    /// Wraps a source. `identity` is a digest of what is behind its name, see [`super::server_identity`]. Needs a
    /// runtime.
    pub fn guard(
        &self,
        source: Arc<dyn Source>,
        identity: String,
        settings: impl Into<TrustSettings>,
        effects: Option<DeclaredEffects>,
        questions: QuestionRules,
    ) -> Arc<dyn Source> {
        let server = source.name().to_owned();
        let others = self.servers.iter().filter(|name| **name != server).cloned().collect();
        let before = source.listing();
        let listing = ListingState { state: SourceState::Starting, listing: Arc::default(), version: 0 };
        let server_name = Arc::from(server.as_str());
        let guard = Arc::new(ReviewedSource {
            source,
            identity: ServerIdentity { server, identity, others },
            settings: settings.into(),
            effects,
            questions,
            voice: server_name,
            pins: Arc::clone(&self.pins),
            listing: watch::Sender::new(listing),
            last_review: Mutex::default(),
        });
        tokio::spawn(run_reviews(Arc::downgrade(&guard), before));
        guard
    }
}

struct ReviewedSource {
    source: Arc<dyn Source>,
    identity: ServerIdentity,
    settings: TrustSettings,
    effects: Option<DeclaredEffects>,
    questions: QuestionRules,
    /// Its name, for what it says to people.
    voice: Arc<str>,
    pins: SharedPins,
    listing: watch::Sender<ListingState>,
    last_review: Mutex<Option<ReviewedListing>>,
}

/// Result of the review of the source's current listing.
#[derive(Clone)]
struct ReviewedListing {
    lists: Arc<Listing>,
    review: Arc<Review>,
    published: Arc<Listing>,
    revision: u64,
}

/// What makes another review necessary, besides a new listing.
#[derive(PartialEq)]
enum NextReview {
    Nothing,
    /// A decision about what is held.
    Decision,
    /// The pins could not be read or written.
    Retry,
}

/// Reviews every listing in turn.
async fn run_reviews(guard: Weak<ReviewedSource>, mut listing: watch::Receiver<ListingState>) {
    // Subscribed while something is held.
    let mut decisions: Option<Changes> = None;
    loop {
        let now = listing.borrow_and_update().clone();
        let Some(strong) = guard.upgrade() else { return };
        let next = strong.apply_listing(now).await;
        if next != NextReview::Decision {
            decisions = None;
        } else if decisions.is_none() {
            decisions = Some(strong.pins.changes());
            // The decision may have been made before the subscription.
            continue;
        }
        drop(strong);
        let again = async {
            match (next, &mut decisions) {
                (NextReview::Retry, _) => tokio::time::sleep(PIN_RETRY_DELAY).await,
                (_, Some(decisions)) => decisions.changed().await,
                (_, None) => std::future::pending().await,
            }
        };
        tokio::select! {
            changed = listing.changed() => if changed.is_err() {
                return;
            },
            () = again => {}
        }
    }
}

impl ReviewedSource {
    /// Publishes the reviewed listing.
    async fn apply_listing(&self, now: ListingState) -> NextReview {
        if now.state == SourceState::Starting && is_empty(&now.listing) {
            self.publish(now.state, Arc::default());
            return NextReview::Nothing;
        }
        let judged = match self.review_listing(&now.listing).await {
            Ok(judged) => judged,
            Err(error) => {
                tracing::error!(target: "trust", server = %self.identity.server, %error, detail = error.detail, "cannot review definitions");
                let before = self.listing.borrow().listing.clone();
                self.publish(SourceState::Down("its definitions cannot be reviewed".to_owned()), before);
                return NextReview::Retry;
            }
        };
        let next = if judged.review.held.is_empty() { NextReview::Nothing } else { NextReview::Decision };
        self.publish(now.state, Arc::clone(&judged.published));
        *self.last_review.lock().unwrap_or_else(PoisonError::into_inner) = Some(judged);
        next
    }

    async fn review_listing(&self, lists: &Arc<Listing>) -> Result<ReviewedListing, ToolError> {
        let before = self.last_review.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut approvals = 0;
        if let Some(before) = before {
            let decided = !before.review.held.is_empty()
                && self.pins.revision(&self.identity.server).await? != before.revision;
            if !decided && Arc::ptr_eq(&before.lists, lists) {
                return Ok(before);
            }
            approvals = before.published.approvals + u64::from(decided);
        }
        for _ in 0..MAX_PIN_ATTEMPTS {
            let pinned = self.pins.load(&self.identity).await?;
            let revision = pinned.revision;
            let mut verdict = self.review_blocking(lists, pinned).await?;
            let noted = self.pins.write(&self.identity, std::mem::take(&mut verdict.news)).await?;
            if let PinWrite::Written(fresh) = noted {
                self.report(&verdict, &fresh);
                let shown = Arc::new(Listing { approvals, ..verdict.lists.clone() });
                return Ok(ReviewedListing {
                    lists: Arc::clone(lists),
                    review: Arc::new(verdict),
                    published: shown,
                    revision,
                });
            }
        }
        Err(ToolError::unavailable("Could not update pins: too many concurrent writers."))
    }

    /// Thousands of texts take a while; no call should wait for it.
    async fn review_blocking(&self, lists: &Arc<Listing>, pinned: PinSet) -> Result<Review, ToolError> {
        let (lists, whose, settings) = (Arc::clone(lists), self.identity.clone(), self.settings);
        let effects = self.effects.clone();
        let judged =
            tokio::task::spawn_blocking(move || review(&lists, &pinned, &whose, settings, effects.as_ref()));
        judged.await.map_err(ToolError::internal)
    }

    fn publish(&self, state: SourceState, lists: Arc<Listing>) {
        self.listing.send_if_modified(|listing| {
            let same = listing.state == state && Arc::ptr_eq(&listing.listing, &lists);
            if !same {
                *listing = ListingState { state, listing: lists, version: listing.version + 1 };
            }
            !same
        });
    }

    /// Reports every definition once, even if a server alternates between versions.
    fn report(&self, verdict: &Review, fresh: &[Pin]) {
        for pin in fresh {
            let place = (pin.kind, pin.key.clone());
            let why = |found: &HashMap<(PinKind, String), Vec<Difference>>| {
                let found = found.get(&place)?;
                let first =
                    found.first().map(|one| format!("{} {}", one.path, one.message)).unwrap_or_default();
                Some((
                    worst_severity(found).as_str(),
                    octo_toolkit::hidden_text::strip_hidden_owned(first, &mut 0),
                ))
            };
            let name = octo_toolkit::hidden_text::strip_hidden_owned(pin.key.clone(), &mut 0);
            let (server, what) = (&self.identity.server, pin.kind.as_str());
            if let Some((severity, why)) = why(&verdict.held) {
                tracing::warn!(target: "trust", %server, what, name, severity, why, "definition held until it is reviewed");
            } else if let Some((severity, why)) =
                why(&verdict.reported).filter(|(severity, _)| *severity == "harmless")
            {
                tracing::info!(target: "trust", %server, what, name, severity, why, "definition changed");
            } else if let Some((severity, why)) = why(&verdict.reported) {
                tracing::warn!(target: "trust", %server, what, name, severity, why, "definition changed");
            }
        }
    }

    /// Refuses an app that differs from its pin, whatever type its content has. Apps that are neither listed nor named by a
    /// tool are not pinned: a server may generate any number of them, and clients do not show them.
    async fn check_app(&self, uri: &str, result: &JsonObject) -> Result<(), ToolError> {
        let listing = Arc::clone(&self.listing.borrow().listing);
        let scoped = scoped_uris::to_scoped(&self.identity.server, uri).unwrap_or_default();
        let listed = listing.resources.iter().find(|resource| resource.key == scoped);
        let is_named = |tool: &Definition| app_uri(&tool.members).as_deref() == Some(&*scoped);
        let is_pinned = listed.is_some() || listing.tools.iter().any(is_named);
        if !is_pinned && !is_html(result) && !self.has_app_pin(uri).await? {
            return Ok(());
        }
        let listed = listed.and_then(|resource| resource.members.inner("_meta", "ui"));
        let app = AppContent { uri, result, listed, is_pinned };
        check_app(self.pins.as_ref(), &self.identity, app, self.settings.changes).await
    }

    async fn has_app_pin(&self, uri: &str) -> Result<bool, ToolError> {
        let pinned = self.pins.load(&app_pins(&self.identity)).await?;
        Ok(pinned.pins.iter().any(|pin| pin.key == uri))
    }

    /// The answer to `skills/get` for a listed skill: the reviewed entry.
    fn listed_skill(&self, uri: &str) -> Option<JsonObject> {
        let listing = Arc::clone(&self.listing.borrow().listing);
        let skill = listing.skills.iter().find(|skill| skill.key == uri)?;
        Some(JsonObject::new().with("skill", skill.members.clone()))
    }

    fn reviewed(&self) -> Option<Arc<Review>> {
        let reviewed = self.last_review.lock().unwrap_or_else(PoisonError::into_inner);
        reviewed.as_ref().map(|reviewed| Arc::clone(&reviewed.review))
    }

    fn skill_of_prompt(&self, name: &str) -> Option<SkillEntry> {
        self.reviewed()?.skill_prompts.get(name).cloned()
    }

    /// Reads the instructions of a skill as a prompt.
    async fn run_skill_prompt(&self, skill: &SkillEntry, cx: &CallContext) -> Result<JsonObject, ToolError> {
        let server = &self.identity.server;
        let params = JsonObject::new().with("uri", skill.uri.as_str());
        let op = Operation { method: Method::ReadResource, name: skill.uri.clone(), params };
        let result = self.source.run(op, cx).await.map_err(sanitize::sanitize_error)?;
        self.check_skill_file(&skill.uri, &result)?;
        let text = result.list("contents").first().and_then(|part| part.member("text")?.to_text());
        let scope = |uri: &str| scoped_uris::to_scoped(server, uri).unwrap_or_else(|| uri.to_owned());
        let prompt = skill_prompt::prompt_result(skill, &text.unwrap_or_default(), scope);
        sanitize::sanitize_result(Method::GetPrompt, prompt).map(|(prompt, _)| prompt)
    }

    /// Refuses a file of a skill that differs from the reviewed entry, or whose entry was not reviewed.
    fn check_skill_file(&self, uri: &str, result: &JsonObject) -> Result<(), ToolError> {
        let reviewed = self.reviewed().ok_or_else(|| {
            ToolError::unavailable(format!("The server `{}` is still starting.", self.identity.server))
                .hint("Try again in a few seconds.")
        })?;
        let normalized = normalize(uri);
        let is_held = reviewed.held.keys().any(|(kind, key)| {
            let root = key.strip_suffix("SKILL.md").filter(|_| *kind == PinKind::Item(ItemKind::Skill));
            root.is_some_and(|root| uri.starts_with(root) || normalized.starts_with(root))
        });
        let is_inside = |skill: &&SkillEntry| skill.contains(uri) || skill.contains(&normalized);
        let skills: Vec<&SkillEntry> = reviewed.skills.iter().filter(is_inside).collect();
        if skills.is_empty() && !is_held {
            return Ok(());
        }
        let is_genuine = |content: &[u8]| skills.iter().all(|skill| skill.is_genuine(uri, content));
        if !skills.is_empty() && only_content(uri, result).is_some_and(|content| is_genuine(&content)) {
            return Ok(());
        }
        Err(self.unreviewed_error(&format!("the file `{uri}` of a skill")))
    }

    /// Refuses the entry of a skill that is not listed, if it is not the reviewed one, or no entry of this skill.
    fn check_skill_entry(&self, uri: &str, result: &JsonObject) -> Result<(), ToolError> {
        let entry = SkillEntry::parse(&result.object("skill")).ok().filter(|entry| entry.uri == uri);
        let entry = entry.ok_or_else(|| {
            ToolError::unavailable(format!(
                "The server `{}` returned an invalid skill.",
                self.identity.server
            ))
            .hint("Inform the operator of the server.")
        })?;
        let reviewed = self.reviewed();
        let is_held =
            |review: &Review| review.held.contains_key(&(PinKind::Item(ItemKind::Skill), uri.to_owned()));
        let is_changed =
            |review: &Review| review.skills.iter().any(|known| known.uri == uri && *known != entry);
        match reviewed {
            Some(review) if !is_held(&review) && !is_changed(&review) => Ok(()),
            _ => Err(self.unreviewed_error(&format!("the skill `{uri}`"))),
        }
    }

    fn unreviewed_error(&self, what: &str) -> ToolError {
        let server = &self.identity.server;
        ToolError::denied(format!(
            "The server `{server}` has changed {what}, and the change has not been reviewed."
        ))
        .remedy(Remedy::ReviewDefinitions { server: server.clone() })
    }

    fn refuse_held(&self, op: &Operation) -> Result<(), ToolError> {
        if self.settings.held_calls == HeldCalls::Pinned {
            return Ok(());
        }
        let what = match op.method {
            Method::CallTool => ItemKind::Tool,
            Method::GetPrompt => ItemKind::Prompt,
            Method::ReadResource | Method::Subscribe | Method::Unsubscribe => ItemKind::Resource,
            Method::GetSkill => ItemKind::Skill,
            Method::Complete => return Ok(()),
        };
        let judged = self.last_review.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if !judged
            .is_some_and(|judged| judged.review.held.contains_key(&(PinKind::Item(what), op.name.clone())))
        {
            return Ok(());
        }
        let (server, word) = (&self.identity.server, what.as_str());
        Err(ToolError::denied(format!(
            "The server `{server}` has changed the definition of this {word}, and the change has not been reviewed."
        ))
        .remedy(Remedy::ReviewDefinitions { server: server.clone() }))
    }
}

/// The content of a result that consists of exactly the requested file.
fn only_content(uri: &str, result: &JsonObject) -> Option<Vec<u8>> {
    let contents = result.get("contents")?.elements_up_to(2).ok()?;
    let [part] = contents.as_slice() else { return None };
    let part = part.members().ok().filter(|part| part.text("uri").as_deref() == Some(uri))?;
    match (part.get("text"), part.get("blob")) {
        (Some(text), None) => text.to_text().map(String::into_bytes),
        (None, Some(blob)) => BASE64.decode(blob.to_text()?).ok(),
        _ => None,
    }
}

/// Whether the contents are HTML, which clients show as an app.
fn is_html(result: &JsonObject) -> bool {
    let is_html = |part: &Json| {
        let kind = part.member("mimeType").and_then(|kind| kind.to_text()).unwrap_or_default();
        kind.trim_start().to_ascii_lowercase().starts_with("text/html")
    };
    result.list("contents").iter().any(is_html)
}

fn is_empty(lists: &Listing) -> bool {
    let lengths = [
        lists.tools.len(),
        lists.prompts.len(),
        lists.resources.len(),
        lists.templates.len(),
        lists.skills.len(),
    ];
    lengths == [0; 5] && lists.instructions.is_none()
}

impl Layer for ReviewedSource {
    fn inner(&self) -> &Arc<dyn Source> {
        &self.source
    }

    fn run<'a>(&'a self, op: Operation, cx: &'a CallContext) -> BoxFuture<'a, Result<JsonObject, ToolError>> {
        Box::pin(async move {
            let server = &self.identity.server;
            let listed = (op.method == Method::GetSkill).then(|| self.listed_skill(&op.name)).flatten();
            let op = scoped_uris::own_operation(server, op);
            self.refuse_held(&op)?;
            if let Some(listed) = listed {
                return Ok(listed);
            }
            let (server_name, rules) = (Arc::clone(&self.voice), self.questions.clone());
            let client = Arc::new(ServerPeer { server: server_name, rules, cx: cx.clone() });
            let cx = cx.with_peer(Arc::clone(&client) as Arc<dyn Peer>);
            if op.method == Method::GetPrompt
                && let Some(skill) = self.skill_of_prompt(&op.name)
            {
                return self.run_skill_prompt(&skill, &cx).await;
            }
            let (method, name) = (op.method, op.name.clone());
            let result = self.source.run(op, &cx).await.map_err(sanitize::sanitize_error)?;
            if method == Method::ReadResource
                && scoped_uris::is_app_uri(&name)
                && supports_apps(cx.peer.capabilities())
            {
                self.check_app(&name, &result).await?;
                if is_html(&result) {
                    // It is for a browser, and any change could break it.
                    let result = sanitize::strip_hub_meta(result, &[]);
                    return Ok(scoped_uris::scope_result(server, method, result));
                }
            }
            match method {
                Method::ReadResource if scoped_uris::is_scoped(&name) => {
                    self.check_skill_file(&name, &result)?
                }
                Method::GetSkill => self.check_skill_entry(&name, &result)?,
                _ => {}
            }
            let (result, removed) = sanitize::sanitize_result_blocking(method, result).await?;
            let result = scoped_uris::scope_result(server, method, result);
            let result = match result.text("resultType").as_deref() {
                Some("input_required") => client.input_required(result).await?,
                _ => result,
            };
            if removed > 0 {
                tracing::warn!(target: "trust", server = %self.identity.server, call = %cx.id, removed, "removed hidden text from a reply");
            }
            Ok(result)
        })
    }

    fn listing(&self) -> watch::Receiver<ListingState> {
        self.listing.subscribe()
    }

    fn watch<'a>(&'a self, uri: &'a str, on: bool) -> BoxFuture<'a, Result<(), ToolError>> {
        match scoped_uris::to_own(&self.identity.server, uri) {
            Some(own) => Box::pin(async move { self.source.watch(&own, on).await }),
            None => self.source.watch(uri, on),
        }
    }
}
