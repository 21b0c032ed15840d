//! Going through an engine's pages until there is enough, without counting one page twice.

use super::failure::Failure;
use super::hit::{Hit, tidy};
use super::wanted::Wanted;
use super::{SearchSettings, address, brave, duckduckgo, searxng};
use moka::future::Cache;
use octo_toolkit::Net;
use octo_toolkit::net::{NetRequest, NetResponse};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Requests to one engine for one call; more looks like a robot to most of them.
const MOST_REQUESTS: u32 = 8;
/// One engine may not use up the time of those after it.
const MOST_TIME: Duration = Duration::from_secs(10);
const MOST_BYTES: usize = 4 << 20;

/// How far engines were gone through, by question, so that the next part neither asks again nor drifts.
pub type Walks = Cache<String, Walk>;

pub fn shelf() -> Walks {
    Cache::builder().max_capacity(128).time_to_live(Duration::from_secs(300)).build()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    Searxng,
    Brave,
    Duckduckgo,
}

impl Engine {
    pub fn name(self) -> &'static str {
        match self {
            Self::Searxng => searxng::NAME,
            Self::Brave => brave::NAME,
            Self::Duckduckgo => duckduckgo::NAME,
        }
    }

    async fn page(self, asking: &Asking<'_>, cursor: &Cursor) -> Result<Page, Failure> {
        match self {
            Self::Searxng => searxng::page(asking, cursor).await,
            Self::Brave => brave::page(asking, cursor).await,
            Self::Duckduckgo => duckduckgo::page(asking, cursor).await,
        }
    }
}

/// What an engine needs to be asked.
pub struct Asking<'a> {
    pub net: &'a Net,
    pub settings: &'a SearchSettings,
    pub wanted: &'a Wanted,
    /// For this engine, all its pages.
    pub time: Duration,
}

impl Asking<'_> {
    pub async fn send(&self, engine: &str, mut ask: NetRequest) -> Result<NetResponse, Failure> {
        ask.timeout = self.time.min(MOST_TIME);
        ask.max_bytes = MOST_BYTES;
        self.net.send(ask).await.map_err(|error| Failure::net(engine, &error))
    }
}

/// Where an engine's next page is.
#[derive(Debug, Clone)]
pub enum Cursor {
    /// The pages before it.
    Number(u32),
    /// The form that leads to it.
    Form(Vec<(String, String)>),
}

/// One answer of an engine.
#[derive(Debug, Default)]
pub struct Page {
    pub hits: Vec<Hit>,
    pub suggestions: Vec<String>,
    pub answers: Vec<String>,
    /// Engines behind this one that gave nothing.
    pub failed: Vec<Failure>,
    pub more: Option<Cursor>,
}

/// All that an engine gave so far.
#[derive(Debug, Clone)]
pub struct Walk {
    pub hits: Vec<Hit>,
    pub suggestions: Vec<String>,
    pub answers: Vec<String>,
    pub failed: Vec<Failure>,
    known: HashMap<String, usize>,
    cursor: Option<Cursor>,
}

impl Walk {
    /// Whether there is, as far as is known, something after so many results.
    pub fn has_after(&self, count: usize) -> bool {
        self.hits.len() > count || (self.cursor.is_some() && self.hits.len() == count)
    }

    fn add(&mut self, page: Page) {
        let before = self.hits.len();
        for hit in page.hits {
            let key = address::key(&hit.url);
            match self.known.get(&key).and_then(|at| self.hits.get_mut(*at)) {
                Some(known) => known.agree(hit),
                None => {
                    self.known.insert(key, self.hits.len());
                    self.hits.push(hit);
                }
            }
        }
        merge(&mut self.suggestions, page.suggestions);
        merge(&mut self.answers, page.answers);
        for failure in page.failed {
            if !self.failed.iter().any(|known| known.engine == failure.engine) {
                self.failed.push(failure);
            }
        }
        // An engine that only repeats itself has come to its end.
        self.cursor = page.more.filter(|_| self.hits.len() > before);
    }
}

fn merge(into: &mut Vec<String>, from: Vec<String>) {
    for text in from {
        let text = tidy(&text, 300);
        if !text.is_empty() && !into.contains(&text) && into.len() < 10 {
            into.push(text);
        }
    }
}

/// Goes through the engine's pages until there are so many results, from where an earlier call ended if `walks` is given.
pub async fn to(
    engine: Engine,
    asking: &Asking<'_>,
    goal: usize,
    walks: Option<&Walks>,
) -> Result<Walk, Failure> {
    let until = Instant::now() + asking.time;
    let earlier = match walks {
        Some(walks) => walks.get(&asking.wanted.key(engine)).await,
        None => None,
    };
    let mut requests = 0;
    let mut walk = match earlier {
        Some(mut walk) => {
            walk.failed.retain(|failure| failure.engine != engine.name());
            walk
        }
        None => {
            requests += 1;
            let page = engine.page(asking, &Cursor::Number(0)).await?;
            let mut walk = Walk {
                hits: Vec::new(),
                suggestions: Vec::new(),
                answers: Vec::new(),
                failed: Vec::new(),
                known: HashMap::new(),
                cursor: None,
            };
            walk.add(page);
            walk
        }
    };
    while walk.hits.len() < goal && requests < MOST_REQUESTS {
        let Some(cursor) = walk.cursor.clone() else { break };
        requests += 1;
        let asking = Asking { time: until.saturating_duration_since(Instant::now()), ..*asking };
        match engine.page(&asking, &cursor).await {
            Ok(page) => walk.add(page),
            // What there is already is an answer; that it could be more is told.
            Err(failure) => {
                walk.failed.push(failure);
                break;
            }
        }
    }
    Ok(walk)
}
