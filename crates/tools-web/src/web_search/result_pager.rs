//! Going through an engine's pages until there is enough, without counting one page twice.

use super::engine_failure::EngineFailure;
use super::search_query::SearchQuery;
use super::search_result::{SearchResult, clean_line};
use super::{SearchSettings, brave, duckduckgo, result_url, searxng};
use moka::future::Cache;
use octo_toolkit::Net;
use octo_toolkit::net::{NetRequest, NetResponse};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Requests to one engine for one call; more looks like a robot to most of them.
const MAX_REQUESTS: u32 = 8;
/// One engine may not use up the time of those after it.
const MAX_ENGINE_TIME: Duration = Duration::from_secs(10);
const MAX_ANSWER_BYTES: usize = 4 << 20;

/// How far engines were gone through, by question, so that the next part neither asks again nor drifts.
pub type PagerCache = Cache<String, ResultPager>;

pub fn new_pager_cache() -> PagerCache {
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

    async fn page(self, asking: &EngineRequest<'_>, cursor: &Cursor) -> Result<ResultPage, EngineFailure> {
        match self {
            Self::Searxng => searxng::fetch_page(asking, cursor).await,
            Self::Brave => brave::fetch_page(asking, cursor).await,
            Self::Duckduckgo => duckduckgo::fetch_page(asking, cursor).await,
        }
    }
}

/// What an engine needs to be asked.
pub struct EngineRequest<'a> {
    pub net: &'a Net,
    pub settings: &'a SearchSettings,
    pub query: &'a SearchQuery,
    /// For this engine, all its pages.
    pub time_left: Duration,
}

impl EngineRequest<'_> {
    pub async fn send(&self, engine: &str, mut ask: NetRequest) -> Result<NetResponse, EngineFailure> {
        ask.timeout = self.time_left.min(MAX_ENGINE_TIME);
        ask.max_bytes = MAX_ANSWER_BYTES;
        self.net.send(ask).await.map_err(|error| EngineFailure::from_net_error(engine, &error))
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
pub struct ResultPage {
    pub hits: Vec<SearchResult>,
    pub suggestions: Vec<String>,
    pub answers: Vec<String>,
    /// Engines behind this one that gave nothing.
    pub failed: Vec<EngineFailure>,
    pub next: Option<Cursor>,
}

/// All that an engine gave so far.
#[derive(Debug, Clone)]
pub struct ResultPager {
    pub hits: Vec<SearchResult>,
    pub suggestions: Vec<String>,
    pub answers: Vec<String>,
    pub failed: Vec<EngineFailure>,
    index: HashMap<String, usize>,
    cursor: Option<Cursor>,
}

impl ResultPager {
    /// Whether there is, as far as is known, something after so many results.
    pub fn has_more_than(&self, count: usize) -> bool {
        self.hits.len() > count || (self.cursor.is_some() && self.hits.len() == count)
    }

    fn add(&mut self, page: ResultPage) {
        let before = self.hits.len();
        for hit in page.hits {
            let key = result_url::dedup_key(&hit.url);
            match self.index.get(&key).and_then(|at| self.hits.get_mut(*at)) {
                Some(known) => known.merge(hit),
                None => {
                    self.index.insert(key, self.hits.len());
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
        self.cursor = page.next.filter(|_| self.hits.len() > before);
    }
}

fn merge(into: &mut Vec<String>, from: Vec<String>) {
    for text in from {
        let text = clean_line(&text, 300);
        if !text.is_empty() && !into.contains(&text) && into.len() < 10 {
            into.push(text);
        }
    }
}

/// Goes through the engine's pages until there are so many results, from where an earlier call ended if `cache` is given.
pub async fn collect_pages(
    engine: Engine,
    asking: &EngineRequest<'_>,
    min_results: usize,
    cache: Option<&PagerCache>,
) -> Result<ResultPager, EngineFailure> {
    let until = Instant::now() + asking.time_left;
    let earlier = match cache {
        Some(walks) => walks.get(&asking.query.cache_key(engine)).await,
        None => None,
    };
    let mut requests = 0;
    let mut pager = match earlier {
        Some(mut walk) => {
            walk.failed.retain(|failure| failure.engine != engine.name());
            walk
        }
        None => {
            requests += 1;
            let page = engine.page(asking, &Cursor::Number(0)).await?;
            let mut pager = ResultPager {
                hits: Vec::new(),
                suggestions: Vec::new(),
                answers: Vec::new(),
                failed: Vec::new(),
                index: HashMap::new(),
                cursor: None,
            };
            pager.add(page);
            pager
        }
    };
    while pager.hits.len() < min_results && requests < MAX_REQUESTS {
        let Some(cursor) = pager.cursor.clone() else { break };
        requests += 1;
        let asking = EngineRequest { time_left: until.saturating_duration_since(Instant::now()), ..*asking };
        match engine.page(&asking, &cursor).await {
            Ok(page) => pager.add(page),
            // What there is already is an answer; that it could be more is told.
            Err(failure) => {
                pager.failed.push(failure);
                break;
            }
        }
    }
    Ok(pager)
}
