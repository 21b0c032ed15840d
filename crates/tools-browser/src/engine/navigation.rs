//! Navigation: location, history, and waiting for a page to settle.

use super::tab::NAVIGATION_START_TIMEOUT;
use super::{NavigationResult, Page, SettleResult, WaitUntil, World, url_scheme};
use octo_toolkit::{Kind, ToolError};
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use url::Url;

/// Time without requests before the network counts as idle, if scripts of the page make requests.
const NETWORK_IDLE_DELAY: Duration = Duration::from_millis(500);

/// The same for a page whose scripts have made no requests so far. A page without scripts needs no delay.
const QUIET_SCRIPTS_DELAY: Duration = Duration::from_millis(150);

/// Whether anything on the page could make requests after it has loaded.
const HAS_SCRIPTS_JS: &str = "document.scripts.length > 0 || !!document.querySelector('iframe, frame, object, embed, meta[http-equiv], body[onload]')";

/// Maximum time between two checks of a page that does not change.
const MAX_CHANGE_WAIT: Duration = Duration::from_millis(400);

/// Resolves when the document changes, or after a timeout.
const WAIT_FOR_CHANGE_JS: &str = r"new Promise(done => {
    const observer = new MutationObserver(() => end());
    const last = setTimeout(() => end(), CAP);
    const end = () => { observer.disconnect(); clearTimeout(last); done(true); };
    observer.observe(document, {subtree: true, childList: true, attributes: true, characterData: true});
})";

/// Older requests are assumed to never end.
const MAX_REQUEST_AGE: Duration = Duration::from_secs(10);

/// Resolves when the document has not changed for a while.
const WAIT_FOR_QUIET_JS: &str = r"new Promise(done => {
    const observer = new MutationObserver(() => { clearTimeout(timer); timer = setTimeout(end, 100); });
    const end = () => { observer.disconnect(); clearTimeout(timer); clearTimeout(last); done(true); };
    let timer = setTimeout(end, 100);
    const last = setTimeout(() => { observer.disconnect(); clearTimeout(timer); done(false); }, CAP);
    observer.observe(document, {subtree: true, childList: true, attributes: true, characterData: true});
})";

/// Maximum time for an empty page to show content.
const CONTENT_TIMEOUT: Duration = Duration::from_secs(3);

/// Resolves when a page shows text, an element to use or an image. A few words may only be a loading message.
const WAIT_FOR_CONTENT_JS: &str = r"new Promise(done => {
    const shows = () => !!document.body && (document.body.innerText.trim().length > 40
        || !!document.querySelector('a[href], button, input:not([type=hidden]), select, textarea, canvas, video, img, svg, iframe, object, embed')
        || [...document.body.querySelectorAll('*')].slice(0, 1000).some(e => e.shadowRoot));
    const observer = new MutationObserver(() => shows() && end(true));
    const end = filled => { observer.disconnect(); clearTimeout(last); done(filled); };
    const last = setTimeout(() => end(false), document.body?.innerText.trim() ? Math.min(CAP, 1000) : CAP);
    observer.observe(document, {subtree: true, childList: true, characterData: true, attributes: true});
    if (shows()) { observer.disconnect(); clearTimeout(last); done(null); }
})";

/// Minimum time between two checks.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(30);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NavigateReply {
    loader_id: Option<String>,
    error_text: Option<String>,
    #[serde(default)]
    is_download: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct History {
    current_index: i64,
    entries: Vec<HistoryEntry>,
}

#[derive(Deserialize)]
struct HistoryEntry {
    id: i64,
    url: String,
    title: String,
}

impl Page {
    /// The same id as in [`super::TabInfo`].
    pub fn id(&self) -> &str {
        &self.tab.id
    }

    /// Opens a URL. Only `http`, `https` and `about:blank` are allowed; a private address is refused by the proxy, and
    /// the refusal is returned as an error.
    pub async fn navigate(
        &self,
        url: &str,
        until: WaitUntil,
        timeout: Duration,
    ) -> Result<NavigationResult, ToolError> {
        self.touch();
        let url = url.trim();
        if url == "about:blank" {
            return self.load(url, until, timeout).await;
        }
        url_scheme::check_navigable(url)?;
        let url = self.browser.launched.url(url)?;
        let since = Instant::now();
        let result = self.load(url.as_str(), until, timeout).await;
        // The proxy has a more precise reason than the browser.
        let at = result.as_ref().ok().and_then(|gone| Url::parse(&gone.url).ok()).unwrap_or(url);
        match (at.host_str(), at.port_or_known_default()) {
            (Some(host), Some(port)) => match self.browser.launched.refusal_since(host, port, since) {
                Some(refusal)
                    if result.as_ref().map_or(true, |gone| matches!(gone.status, Some(403 | 502))) =>
                {
                    Err(refusal)
                }
                _ => result,
            },
            _ => result,
        }
    }

    pub(super) async fn load(
        &self,
        url: &str,
        until: WaitUntil,
        timeout: Duration,
    ) -> Result<NavigationResult, ToolError> {
        self.tab.check()?;
        let deadline = Instant::now() + timeout;
        self.tab.change(|state| state.status = None);
        let reply = match self.call_within("Page.navigate", json!({"url": url}), timeout).await {
            Ok(going) => going,
            Err(error) => {
                self.tab.cdp.post(Some(&self.tab.session), "Page.stopLoading", json!({}));
                let timed_out = error.kind == Kind::Timeout;
                return Err(if timed_out { navigation_timeout_error(url) } else { error });
            }
        };
        let NavigateReply { loader_id, error_text, is_download } = reply;
        if is_download {
            return Err(ToolError::new(Kind::Conflict, "The URL is a file that was downloaded, not a page.")
                .hint("Save it with browser_downloads, or read it with fetch_url."));
        }
        // A status of 400 or more without a body is a valid result; the browser shows its own page for it.
        if error_text.as_deref() == Some("net::ERR_HTTP_RESPONSE_CODE_FAILURE") {
            return self.navigation_result(true).await;
        }
        if let Some(text) = error_text.filter(|text| !text.is_empty()) {
            return Err(navigation_error(url, &text));
        }
        let complete = match loader_id {
            Some(loader) => self.wait_until_loaded(until, deadline, |state| state.loader == loader).await?,
            // Navigation within the document.
            None => true,
        };
        self.navigation_result(complete).await
    }

    /// Waits for a document to load; false on timeout.
    async fn wait_until_loaded(
        &self,
        until: WaitUntil,
        deadline: Instant,
        arrived: impl Fn(&super::tab::TabState) -> bool,
    ) -> Result<bool, ToolError> {
        // Another document may replace it immediately, for example by a script redirect.
        let mut has_arrived = false;
        let loaded = self.tab.wait_for(deadline, |state| {
            has_arrived |= arrived(state);
            let enough = match until {
                WaitUntil::DomContentLoaded => state.content_loaded,
                WaitUntil::Load | WaitUntil::NetworkIdle => state.loaded,
            };
            if has_arrived && enough { Ok(()) } else { Err(None) }
        });
        let loaded = false_on_timeout(loaded.await)?;
        if !loaded || until != WaitUntil::NetworkIdle {
            return Ok(loaded);
        }
        let has_scripts = self.evaluate(HAS_SCRIPTS_JS, World::Isolated, Duration::from_secs(1)).await;
        let has_scripts = !matches!(has_scripts, Ok(Value::Bool(false)));
        let idle = self.tab.wait_for(deadline, |state| {
            let pause = match (has_scripts, state.has_script_requests) {
                (false, _) => Duration::ZERO,
                (true, false) => QUIET_SCRIPTS_DELAY,
                (true, true) => NETWORK_IDLE_DELAY,
            };
            let quiet = state.last_network_activity.map_or(Instant::now(), |stirred| stirred + pause);
            match state.loaded && !state.is_busy(MAX_REQUEST_AGE) {
                true if quiet <= Instant::now() => Ok(()),
                true => Err(Some(quiet)),
                false => Err(None),
            }
        });
        let idle = false_on_timeout(idle.await)?;
        if idle && has_scripts {
            self.wait_for_content(deadline).await?;
        }
        Ok(idle)
    }

    /// Waits while a page with scripts shows nothing, since scripts may fill it without requests.
    async fn wait_for_content(&self, deadline: Instant) -> Result<(), ToolError> {
        let left = deadline.saturating_duration_since(Instant::now()).min(CONTENT_TIMEOUT);
        let script = WAIT_FOR_CONTENT_JS.replace("CAP", &left.as_millis().to_string());
        let has_content = self.evaluate(&script, World::Isolated, left + Duration::from_millis(100)).await;
        if matches!(has_content, Ok(Value::Bool(true))) {
            let left = deadline.saturating_duration_since(Instant::now()).min(CONTENT_TIMEOUT);
            self.settle(left).await?;
        }
        self.tab.check()
    }

    /// Waits until the page changes, or for a moment, so that the caller can check again.
    pub async fn wait_for_change(&self, deadline: Instant) -> Result<(), ToolError> {
        let left = deadline.saturating_duration_since(Instant::now()).min(MAX_CHANGE_WAIT);
        let script = WAIT_FOR_CHANGE_JS.replace("CAP", &left.as_millis().to_string());
        let started = Instant::now();
        match self.evaluate(&script, World::Isolated, left + Duration::from_millis(200)).await {
            // The document was left or does not respond: do not poll without a pause.
            Err(error) if matches!(error.kind, Kind::Conflict | Kind::Timeout | Kind::Internal) => {
                tokio::time::sleep_until((started + MIN_POLL_INTERVAL).into()).await;
                self.tab.check()
            }
            Err(error) => Err(error),
            Ok(_) => {
                // Limits the rate of checks on a page that changes all the time.
                tokio::time::sleep_until((started + MIN_POLL_INTERVAL).into()).await;
                Ok(())
            }
        }
    }

    async fn navigation_result(&self, complete: bool) -> Result<NavigationResult, ToolError> {
        let (url, title) = self.location().await?;
        let status = self.tab.state().status;
        Ok(NavigationResult { url, title, status, complete })
    }

    /// Goes one step back in the history; None if there is no previous entry.
    pub async fn back(
        &self,
        until: WaitUntil,
        timeout: Duration,
    ) -> Result<Option<NavigationResult>, ToolError> {
        self.history_step(-1, until, timeout).await
    }

    /// Goes one step forward in the history; None if there is no next entry.
    pub async fn forward(
        &self,
        until: WaitUntil,
        timeout: Duration,
    ) -> Result<Option<NavigationResult>, ToolError> {
        self.history_step(1, until, timeout).await
    }

    async fn history_step(
        &self,
        by: i64,
        until: WaitUntil,
        timeout: Duration,
    ) -> Result<Option<NavigationResult>, ToolError> {
        self.touch();
        let deadline = Instant::now() + timeout;
        let history = self.history().await?;
        let target_entry =
            usize::try_from(history.current_index + by).ok().and_then(|at| history.entries.get(at));
        let Some(entry) = target_entry else { return Ok(None) };
        let before = self.tab.change(|state| {
            state.status = None;
            state.navigation_count
        });
        let params = json!({"entryId": entry.id});
        self.call::<Value>("Page.navigateToHistoryEntry", params).await?;
        let complete =
            self.wait_until_loaded(until, deadline, |state| state.navigation_count > before).await?;
        self.navigation_result(complete).await.map(Some)
    }

    async fn history(&self) -> Result<History, ToolError> {
        self.call("Page.getNavigationHistory", json!({})).await
    }

    /// Current URL and title.
    pub async fn location(&self) -> Result<(String, String), ToolError> {
        let now =
            self.evaluate("[location.href, document.title]", World::Isolated, Duration::from_secs(2)).await;
        if let Ok((url, title)) =
            now.and_then(|now| serde_json::from_value::<(String, String)>(now).map_err(ToolError::internal))
            && !url.starts_with("chrome-error:")
        {
            return Ok((url, title));
        }
        // The browser process knows the location of a page that does not respond.
        let history = self.history().await?;
        let at = usize::try_from(history.current_index).ok();
        let entry = at.and_then(|at| history.entries.into_iter().nth(at));
        Ok(entry.map(|entry| (entry.url, entry.title)).unwrap_or_default())
    }

    /// Changes whenever the main frame loads another document; refs are valid as long as it stays the same.
    pub fn document(&self) -> String {
        self.tab.state().loader.clone()
    }

    /// Waits for the effects of an action to end: no DOM change for 100 ms, no pending request, and a navigation has
    /// completed. At most `cap` (3 s is good).
    pub async fn settle(&self, cap: Duration) -> Result<SettleResult, ToolError> {
        let deadline = Instant::now() + cap;
        let (document, dialogs) = {
            let state = self.tab.state();
            (state.loader.clone(), state.dialogs.last())
        };
        let quiet = self.wait_until_quiet(cap, deadline).await?;
        let state = self.tab.state();
        Ok(SettleResult {
            quiet,
            navigated: state.loader != document,
            dialog: state.dialogs.last() > dialogs,
        })
    }

    async fn wait_until_quiet(&self, cap: Duration, deadline: Instant) -> Result<bool, ToolError> {
        loop {
            // A tab that closes itself has settled.
            if self.tab.check().is_err() {
                return Ok(true);
            }
            let arrived = self.tab.wait_for(deadline, |state| match state.pending_navigation {
                Some(since) if since.elapsed() < NAVIGATION_START_TIMEOUT => {
                    Err(Some(since + NAVIGATION_START_TIMEOUT))
                }
                _ if !state.content_loaded => Err(None),
                _ => Ok(()),
            });
            if arrived.await.is_err() {
                return Ok(self.tab.check().is_err());
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let script = WAIT_FOR_QUIET_JS.replace("CAP", &left.as_millis().to_string());
            let quiet_result =
                self.evaluate(&script, World::Isolated, left + Duration::from_millis(50)).await;
            let busy = {
                let state = self.tab.state();
                state.is_busy(cap)
                    || state
                        .pending_navigation
                        .is_some_and(|since| since.elapsed() < NAVIGATION_START_TIMEOUT)
            };
            match quiet_result {
                Ok(Value::Bool(true)) if !busy => return Ok(true),
                // The document was left; wait for the next one.
                Err(error) if error.kind == Kind::Conflict => {}
                Err(_) if self.tab.check().is_err() => return Ok(true),
                Err(_) => return Ok(false),
                Ok(_) => {}
            }
            if Instant::now() >= deadline {
                return Ok(false);
            }
        }
    }

    pub(super) fn touch(&self) {
        if let Some(held) = &self.session {
            held.touch();
        }
    }
}

/// Maps a timeout to false.
fn false_on_timeout(waited: Result<(), ToolError>) -> Result<bool, ToolError> {
    match waited {
        Ok(()) => Ok(true),
        Err(error) if error.kind == Kind::Timeout => Ok(false),
        Err(error) => Err(error),
    }
}

fn navigation_timeout_error(url: &str) -> ToolError {
    ToolError::new(Kind::Timeout, format!("{url} did not respond in time."))
        .hint("Try again with a longer timeout_ms, or another URL.")
}

fn navigation_error(url: &str, text: &str) -> ToolError {
    let error = match text {
        "net::ERR_NAME_NOT_RESOLVED" => ToolError::not_found(format!("The host of {url} does not exist.")),
        "net::ERR_ABORTED" => {
            ToolError::new(Kind::Conflict, format!("The navigation to {url} was interrupted."))
        }
        _ => ToolError::unavailable(format!("{url} cannot be opened ({text}).")),
    };
    error.hint("Check the URL, or try again later.")
}
