//! Where a page is, where it goes, and when it is at rest.

use super::tab::LEAVING;
use super::{Navigated, Page, Settled, WaitUntil, World, scheme};
use octo_toolkit::{Kind, ToolError};
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use url::Url;

/// Nothing may be asked for this long before the network counts as idle, when scripts of the page ask for things.
const IDLE: Duration = Duration::from_millis(500);

/// The same for a page with scripts that have not asked for anything so far. One without scripts needs no time at all.
const STILL: Duration = Duration::from_millis(150);

/// Whether anything on the page could ask for more once it has loaded.
const ALIVE: &str = "document.scripts.length > 0 || !!document.querySelector('iframe, frame, object, embed, meta[http-equiv], body[onload]')";

/// How long a page is left alone that does not change although something is waited for.
const LULL: Duration = Duration::from_millis(400);

/// Resolves when something in the document changes, or when it is time to look again anyway.
const CHANGE: &str = r"new Promise(done => {
    const observer = new MutationObserver(() => end());
    const last = setTimeout(() => end(), CAP);
    const end = () => { observer.disconnect(); clearTimeout(last); done(true); };
    observer.observe(document, {subtree: true, childList: true, attributes: true, characterData: true});
})";

/// Older requests are taken for such as never end.
const ENDLESS: Duration = Duration::from_secs(10);

/// Resolves when nothing in the document has changed for a while.
const QUIET: &str = r"new Promise(done => {
    const observer = new MutationObserver(() => { clearTimeout(timer); timer = setTimeout(end, 100); });
    const end = () => { observer.disconnect(); clearTimeout(timer); clearTimeout(last); done(true); };
    let timer = setTimeout(end, 100);
    const last = setTimeout(() => { observer.disconnect(); clearTimeout(timer); done(false); }, CAP);
    observer.observe(document, {subtree: true, childList: true, attributes: true, characterData: true});
})";

/// How long a page that shows nothing yet may take to fill itself.
const FILL_TIMEOUT: Duration = Duration::from_secs(3);

/// Resolves when a page shows something: text, an element to use, a picture. A few words may only say that it is loading.
const FILLED: &str = r"new Promise(done => {
    const shows = () => !!document.body && (document.body.innerText.trim().length > 40
        || !!document.querySelector('a[href], button, input:not([type=hidden]), select, textarea, canvas, video, img, svg, iframe, object, embed')
        || [...document.body.querySelectorAll('*')].slice(0, 1000).some(e => e.shadowRoot));
    const observer = new MutationObserver(() => shows() && end(true));
    const end = filled => { observer.disconnect(); clearTimeout(last); done(filled); };
    const last = setTimeout(() => end(false), document.body?.innerText.trim() ? Math.min(CAP, 1000) : CAP);
    observer.observe(document, {subtree: true, childList: true, characterData: true, attributes: true});
    if (shows()) { observer.disconnect(); clearTimeout(last); done(null); }
})";

/// The least time between two looks.
const STEP: Duration = Duration::from_millis(30);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Going {
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
    /// The same as in [`super::TabInfo`].
    pub fn id(&self) -> &str {
        &self.tab.id
    }

    /// Goes to an address. Only `http`, `https` and `about:blank` are allowed; a private address is refused by the
    /// proxy, and the refusal comes back as an error.
    pub async fn navigate(
        &self,
        url: &str,
        until: WaitUntil,
        timeout: Duration,
    ) -> Result<Navigated, ToolError> {
        self.touch();
        let url = url.trim();
        if url == "about:blank" {
            return self.go(url, until, timeout).await;
        }
        scheme::check(url)?;
        let url = self.browser.launched.url(url)?;
        let since = Instant::now();
        let gone = self.go(url.as_str(), until, timeout).await;
        // The proxy knows better why than the browser.
        let at = gone.as_ref().ok().and_then(|gone| Url::parse(&gone.url).ok()).unwrap_or(url);
        match (at.host_str(), at.port_or_known_default()) {
            (Some(host), Some(port)) => match self.browser.launched.refusal_since(host, port, since) {
                Some(refusal)
                    if gone.as_ref().map_or(true, |gone| matches!(gone.status, Some(403 | 502))) =>
                {
                    Err(refusal)
                }
                _ => gone,
            },
            _ => gone,
        }
    }

    pub(super) async fn go(
        &self,
        url: &str,
        until: WaitUntil,
        timeout: Duration,
    ) -> Result<Navigated, ToolError> {
        self.tab.check()?;
        let deadline = Instant::now() + timeout;
        self.tab.change(|state| state.status = None);
        let going = match self.call_within("Page.navigate", json!({"url": url}), timeout).await {
            Ok(going) => going,
            Err(error) => {
                self.tab.wire.post(Some(&self.tab.session), "Page.stopLoading", json!({}));
                let timed_out = error.kind == Kind::Timeout;
                return Err(if timed_out { no_answer(url) } else { error });
            }
        };
        let Going { loader_id, error_text, is_download } = going;
        if is_download {
            return Err(ToolError::new(
                Kind::Conflict,
                "The address is a file that was downloaded, not a page.",
            )
            .hint("Take it from the downloads, or read it with fetch_url."));
        }
        // An answer of 400 or more without a body is an answer, too; the browser shows a page of its own for it.
        if error_text.as_deref() == Some("net::ERR_HTTP_RESPONSE_CODE_FAILURE") {
            return self.navigated(true).await;
        }
        if let Some(text) = error_text.filter(|text| !text.is_empty()) {
            return Err(failed(url, &text));
        }
        let complete = match loader_id {
            Some(loader) => self.rest(until, deadline, |state| state.loader == loader).await?,
            // Within the document.
            None => true,
        };
        self.navigated(complete).await
    }

    /// Waits for a document to be loaded; false when the time was over first.
    async fn rest(
        &self,
        until: WaitUntil,
        deadline: Instant,
        arrived: impl Fn(&super::tab::State) -> bool,
    ) -> Result<bool, ToolError> {
        // Another document may take its place at once: a redirect by script, say.
        let mut there = false;
        let loaded = self.tab.wait(deadline, |state| {
            there |= arrived(state);
            let enough = match until {
                WaitUntil::DomContentLoaded => state.content_loaded,
                WaitUntil::Load | WaitUntil::NetworkIdle => state.loaded,
            };
            if there && enough { Ok(()) } else { Err(None) }
        });
        let loaded = in_time(loaded.await)?;
        if !loaded || until != WaitUntil::NetworkIdle {
            return Ok(loaded);
        }
        let alive = self.evaluate(ALIVE, World::Isolated, Duration::from_secs(1)).await;
        let alive = !matches!(alive, Ok(Value::Bool(false)));
        let idle = self.tab.wait(deadline, |state| {
            let pause = match (alive, state.lively) {
                (false, _) => Duration::ZERO,
                (true, false) => STILL,
                (true, true) => IDLE,
            };
            let quiet = state.stirred.map_or(Instant::now(), |stirred| stirred + pause);
            match state.loaded && !state.busy(ENDLESS) {
                true if quiet <= Instant::now() => Ok(()),
                true => Err(Some(quiet)),
                false => Err(None),
            }
        });
        let idle = in_time(idle.await)?;
        if idle && alive {
            self.fill_up(deadline).await?;
        }
        Ok(idle)
    }

    /// Waits while a page with scripts shows nothing, since it may fill itself without asking for anything.
    async fn fill_up(&self, deadline: Instant) -> Result<(), ToolError> {
        let left = deadline.saturating_duration_since(Instant::now()).min(FILL_TIMEOUT);
        let script = FILLED.replace("CAP", &left.as_millis().to_string());
        let filled = self.evaluate(&script, World::Isolated, left + Duration::from_millis(100)).await;
        if matches!(filled, Ok(Value::Bool(true))) {
            let left = deadline.saturating_duration_since(Instant::now()).min(FILL_TIMEOUT);
            self.settle(left).await?;
        }
        self.tab.check()
    }

    /// Waits until the page changes, or for a moment: whoever waits for something looks again then.
    pub async fn stirred(&self, deadline: Instant) -> Result<(), ToolError> {
        let left = deadline.saturating_duration_since(Instant::now()).min(LULL);
        let script = CHANGE.replace("CAP", &left.as_millis().to_string());
        let begun = Instant::now();
        match self.evaluate(&script, World::Isolated, left + Duration::from_millis(200)).await {
            // The document was left, or does not react: no reason to ask without pause.
            Err(error) if matches!(error.kind, Kind::Conflict | Kind::Timeout | Kind::Internal) => {
                tokio::time::sleep_until((begun + STEP).into()).await;
                self.tab.check()
            }
            Err(error) => Err(error),
            Ok(_) => {
                // A page that changes all the time is not looked at all the time.
                tokio::time::sleep_until((begun + STEP).into()).await;
                Ok(())
            }
        }
    }

    async fn navigated(&self, complete: bool) -> Result<Navigated, ToolError> {
        let (url, title) = self.location().await?;
        let status = self.tab.state().status;
        Ok(Navigated { url, title, status, complete })
    }

    /// One step back in the history; none when there is nothing to go back to.
    pub async fn back(&self, until: WaitUntil, timeout: Duration) -> Result<Option<Navigated>, ToolError> {
        self.step(-1, until, timeout).await
    }

    /// One step forward in the history; none when there is nothing to go forward to.
    pub async fn forward(&self, until: WaitUntil, timeout: Duration) -> Result<Option<Navigated>, ToolError> {
        self.step(1, until, timeout).await
    }

    async fn step(
        &self,
        by: i64,
        until: WaitUntil,
        timeout: Duration,
    ) -> Result<Option<Navigated>, ToolError> {
        self.touch();
        let deadline = Instant::now() + timeout;
        let history = self.history().await?;
        let wanted = usize::try_from(history.current_index + by).ok().and_then(|at| history.entries.get(at));
        let Some(entry) = wanted else { return Ok(None) };
        let before = self.tab.change(|state| {
            state.status = None;
            state.moves
        });
        let params = json!({"entryId": entry.id});
        self.call::<Value>("Page.navigateToHistoryEntry", params).await?;
        let complete = self.rest(until, deadline, |state| state.moves > before).await?;
        self.navigated(complete).await.map(Some)
    }

    async fn history(&self) -> Result<History, ToolError> {
        self.call("Page.getNavigationHistory", json!({})).await
    }

    /// Address and title now.
    pub async fn location(&self) -> Result<(String, String), ToolError> {
        let now =
            self.evaluate("[location.href, document.title]", World::Isolated, Duration::from_secs(2)).await;
        if let Ok((url, title)) =
            now.and_then(|now| serde_json::from_value::<(String, String)>(now).map_err(ToolError::internal))
            && !url.starts_with("chrome-error:")
        {
            return Ok((url, title));
        }
        // The browser itself knows where a page is that does not react.
        let history = self.history().await?;
        let at = usize::try_from(history.current_index).ok();
        let entry = at.and_then(|at| history.entries.into_iter().nth(at));
        Ok(entry.map(|entry| (entry.url, entry.title)).unwrap_or_default())
    }

    /// Changes whenever the main frame loads another document; refs may be kept while it stays the same.
    pub fn document(&self) -> String {
        self.tab.state().loader.clone()
    }

    /// Waits for the end of what an action has set off: no change of the DOM for 100 ms and no request that is
    /// under way; a navigation is waited for. Never longer than `cap` (3 s is good).
    pub async fn settle(&self, cap: Duration) -> Result<Settled, ToolError> {
        let deadline = Instant::now() + cap;
        let (document, dialogs) = {
            let state = self.tab.state();
            (state.loader.clone(), state.dialogs.last())
        };
        let quiet = self.quiet(cap, deadline).await?;
        let state = self.tab.state();
        Ok(Settled { quiet, navigated: state.loader != document, dialog: state.dialogs.last() > dialogs })
    }

    async fn quiet(&self, cap: Duration, deadline: Instant) -> Result<bool, ToolError> {
        loop {
            // A tab that closes itself is at rest.
            if self.tab.check().is_err() {
                return Ok(true);
            }
            let arrived = self.tab.wait(deadline, |state| match state.leaving {
                Some(since) if since.elapsed() < LEAVING => Err(Some(since + LEAVING)),
                _ if !state.content_loaded => Err(None),
                _ => Ok(()),
            });
            if arrived.await.is_err() {
                return Ok(self.tab.check().is_err());
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let script = QUIET.replace("CAP", &left.as_millis().to_string());
            let still = self.evaluate(&script, World::Isolated, left + Duration::from_millis(50)).await;
            let busy = {
                let state = self.tab.state();
                state.busy(cap) || state.leaving.is_some_and(|since| since.elapsed() < LEAVING)
            };
            match still {
                Ok(Value::Bool(true)) if !busy => return Ok(true),
                // The document was left; the next one is waited for.
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
        if let Some(held) = &self.held {
            held.touch();
        }
    }
}

/// False when the time was over first.
fn in_time(waited: Result<(), ToolError>) -> Result<bool, ToolError> {
    match waited {
        Ok(()) => Ok(true),
        Err(error) if error.kind == Kind::Timeout => Ok(false),
        Err(error) => Err(error),
    }
}

fn no_answer(url: &str) -> ToolError {
    ToolError::new(Kind::Timeout, format!("{url} gave no answer in time."))
        .hint("Try again with a longer timeout_ms, or another address.")
}

fn failed(url: &str, text: &str) -> ToolError {
    let error = match text {
        "net::ERR_NAME_NOT_RESOLVED" => ToolError::not_found(format!("The host of {url} does not exist.")),
        "net::ERR_ABORTED" => {
            ToolError::new(Kind::Conflict, format!("The navigation to {url} was broken off."))
        }
        _ => ToolError::unavailable(format!("{url} cannot be opened ({text}).")),
    };
    error.hint("Check the address, or try again later.")
}
