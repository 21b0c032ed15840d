//! One login in use: what each request carries, and what a refusal means.

use super::challenge;
use super::grant::{Age, Held, Mark};
use super::renew::renew;
use super::settings::{Auth, KeyPlace, LoginSpec};
use super::shelf::Shelf;
use crate::fail::{Fail, Outcome};
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri};
use octo_grants::credentials::Owner;
use octo_model::ToolError;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use url::form_urlencoded::byte_serialize;

/// What another process did is noticed within this time.
const RECENT: Duration = Duration::from_secs(2);
/// A token that was refused so many seconds after it was given would be refused again.
const YOUNG: i64 = 10;

/// A person's login at one server, or everybody's. Whoever has it can speak to that server in their name, and to no other.
pub struct Account {
    shelf: Arc<Shelf>,
    spec: Arc<LoginSpec>,
    owner: Owner,
    known: Mutex<Option<Known>>,
    /// What the server did not take.
    unwanted: Mutex<Option<Mark>>,
}

/// What the store had, and when.
#[derive(Clone)]
struct Known {
    at: Instant,
    /// How many logins had begun or ended in this process.
    version: u64,
    held: Option<Arc<Held>>,
}

/// What a request went out with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Used(Option<Mark>);

impl Account {
    pub(super) fn new(shelf: Arc<Shelf>, spec: Arc<LoginSpec>, owner: Owner) -> Self {
        Self { shelf, spec, owner, known: Mutex::default(), unwanted: Mutex::default() }
    }

    pub(super) fn parts(&self) -> (&Shelf, &LoginSpec) {
        (&self.shelf, &self.spec)
    }

    pub(crate) fn owner(&self) -> &Owner {
        &self.owner
    }

    /// Whether there is a login that the server has not refused yet, such as one that another process has made.
    pub(crate) async fn is_new(&self) -> bool {
        let Ok(Some(held)) = self.recent().await else { return false };
        let unwanted = *self.unwanted.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_good(&held) && unwanted != Some(held.mark())
    }

    /// Adds the credential to a request. Without a login the request goes out bare, and the server says what it wants.
    pub(crate) async fn dress(&self, uri: &mut Uri, headers: &mut HeaderMap) -> Outcome<Used> {
        let Some(held) = self.usable().await.map_err(barred)? else { return Ok(Used(None)) };
        let secret = held.grant.access.expose();
        match &self.spec.auth {
            Auth::OAuth(_) => drop(headers.insert(AUTHORIZATION, hidden(&format!("Bearer {secret}"))?)),
            Auth::Key(KeyPlace::Header { name, before }) => {
                let name = HeaderName::try_from(name.as_str()).map_err(|_| unsendable())?;
                headers.insert(name, hidden(&format!("{before}{secret}"))?);
            }
            Auth::Key(KeyPlace::Query(name)) => *uri = with_query(uri, name, secret)?,
            Auth::Key(KeyPlace::Environment(_)) => {}
        }
        Ok(Used(Some(held.mark())))
    }

    /// The variable with which a program is started.
    pub(crate) async fn variable(&self) -> Outcome<Option<(String, String)>> {
        let Auth::Key(KeyPlace::Environment(name)) = &self.spec.auth else { return Ok(None) };
        let held = self.usable().await.map_err(barred)?;
        held.map_or(Err(Fail::Login(401)), |held| {
            Ok(Some((name.clone(), held.grant.access.expose().to_owned())))
        })
    }

    /// Whether a refused request may go out again, with another token than it had.
    pub(crate) async fn refused(&self, used: Used, status: StatusCode, headers: &HeaderMap) -> Outcome<bool> {
        *self.unwanted.lock().unwrap_or_else(PoisonError::into_inner) = used.0;
        let asked = challenge::read(headers);
        let is_unknown = status == StatusCode::UNAUTHORIZED;
        if !is_unknown && !asked.as_ref().is_some_and(challenge::Challenge::needs_more) {
            return Ok(false);
        }
        if let Some(asked) = asked {
            self.shelf.challenged((self.owner.clone(), self.spec.server.clone()), asked);
        }
        let Some(held) = self.look().await.map_err(barred)? else { return Ok(false) };
        if used.0 != Some(held.mark()) {
            return Ok(self.is_good(&held));
        }
        let is_young = self.shelf.now().saturating_sub(held.grant.obtained) < YOUNG;
        if !is_unknown || is_young || held.grant.refresh.is_none() {
            return Ok(false);
        }
        let renewed = self.renewed(&held).await.map_err(barred)?;
        Ok(renewed.is_some_and(|held| self.is_good(&held)))
    }

    /// A login that can be used now, renewed where it is time for that.
    async fn usable(&self) -> Result<Option<Arc<Held>>, ToolError> {
        let Some(held) = self.recent().await? else { return Ok(None) };
        if !self.is_good(&held) {
            return Ok(None);
        }
        let can_renew = held.grant.refresh.is_some();
        match held.grant.age(self.shelf.now(), self.shelf.early) {
            Age::Fresh => Ok(Some(held)),
            Age::Due => {
                if can_renew {
                    self.renew_beside(&held);
                }
                Ok(Some(held))
            }
            Age::Over if can_renew => {
                let renewed = Box::pin(self.renewed(&held)).await?;
                Ok(renewed.filter(|held| self.is_good(held)))
            }
            Age::Over => Ok(None),
        }
    }

    fn is_good(&self, held: &Held) -> bool {
        held.grant.lost.is_none()
            && !held.grant.access.is_empty()
            && held.grant.is_for(self.spec.url.as_deref())
    }

    /// While the token is still good, nobody waits for the next one.
    fn renew_beside(&self, held: &Held) {
        // Whoever is at the gate already does it.
        if self.shelf.gate(&held.slot).try_lock().is_err() || self.shelf.resting(&held.slot).is_some() {
            return;
        }
        let (shelf, spec, slot, mark) =
            (self.shelf.clone(), self.spec.clone(), held.slot.clone(), held.mark());
        tokio::spawn(async move {
            if let Err(error) = renew(&shelf, &spec, &slot, mark).await {
                tracing::warn!(target: "upstream", server = %spec.server, %error, "the login is not renewed yet");
            }
        });
    }

    async fn renewed(&self, held: &Held) -> Result<Option<Arc<Held>>, ToolError> {
        let version = self.version();
        let renewed = renew(&self.shelf, &self.spec, &held.slot, held.mark()).await?.map(Arc::new);
        self.know(version, renewed.clone());
        Ok(renewed)
    }

    /// What was seen a moment ago, or what the store has.
    async fn recent(&self) -> Result<Option<Arc<Held>>, ToolError> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match known {
            Some(known) if known.at.elapsed() < RECENT && known.version == self.version() => Ok(known.held),
            _ => self.look().await,
        }
    }

    fn version(&self) -> u64 {
        *self.shelf.changed.borrow()
    }

    async fn look(&self) -> Result<Option<Arc<Held>>, ToolError> {
        let version = self.version();
        let held = self.shelf.newest(&self.owner, &self.spec.server).await?.map(Arc::new);
        self.know(version, held.clone());
        Ok(held)
    }

    fn know(&self, version: u64, held: Option<Arc<Held>>) {
        let known = Known { at: Instant::now(), version, held };
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = Some(known);
    }
}

fn hidden(text: &str) -> Outcome<HeaderValue> {
    let mut value = HeaderValue::from_str(text).map_err(|_| unsendable())?;
    value.set_sensitive(true);
    Ok(value)
}

fn with_query(uri: &Uri, name: &str, secret: &str) -> Outcome<Uri> {
    let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
    let joint = if uri.query().is_some() { '&' } else { '?' };
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let whole = format!("{path}{joint}{}={}", encoded(name), encoded(secret));
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(whole.try_into().map_err(|_| unsendable())?);
    Uri::from_parts(parts).map_err(|_| unsendable())
}

fn unsendable() -> Fail {
    Fail::Barred(Box::new(
        ToolError::invalid("The credential of the server cannot be sent in this place.")
            .hint("Check the name of the header in the server's `auth`, and log in again."),
    ))
}

fn barred(error: ToolError) -> Fail {
    Fail::Barred(Box::new(error))
}
