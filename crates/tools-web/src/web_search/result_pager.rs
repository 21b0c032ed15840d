//! Pager: requests pages of an engine until there are enough results, without duplicates.

use super::engine_failure::EngineFailure;
use super::search_query::SearchQuery;
use super::search_result::{SearchResult, clean_line};
use super::{SearchSettings, brave, duckduckgo, result_url, searxng};
use moka::future::Cache;
use octo_toolkit::Net;
use octo_toolkit::net::{NetRequest, NetResponse};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Requests to one engine per call; more would trigger the bot detection of most of them.
const MAX_REQUESTS: u32 = 8;
/// Time limit of one engine, so that later ones get their turn.
const MAX_ENGINE_TIME: Duration = Duration::from_secs(10);
const MAX_ANSWER_BYTES: usize = 4 << 20;

/// Pagers by query, so that the next page neither repeats requests nor sees shifted results.
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

/// Context of a request to an engine.
pub struct EngineRequest<'a> {
    pub net: &'a Net,
    pub settings: &'a SearchSettings,
    pub query: &'a SearchQuery,
    /// Time left for this engine, for all its pages.
    pub time_left: Duration,
}

impl EngineRequest<'_> {
    pub async fn send(&self, engine: &str, mut ask: NetRequest) -> Result<NetResponse, EngineFailure> {
        ask.timeout = self.time_left.min(MAX_ENGINE_TIME);
        ask.max_bytes = MAX_ANSWER_BYTES;
        self.net.send(ask).await.map_err(|error| EngineFailure::from_net_error(engine, &error))
    }
}

/// Position of an engine's next page.
#[derive(Debug, Clone)]
pub enum Cursor {
    /// Number of pages before it.
    Number(u32),
    /// Form that requests it.
    Form(Vec<(String, String)>),
}

/// One page of results.
#[derive(Debug, Default)]
pub struct ResultPage {
    pub hits: Vec<SearchResult>,
    pub suggestions: Vec<String>,
    pub answers: Vec<String>,
    /// Engines behind this one that failed.
    pub failed: Vec<EngineFailure>,
    pub next: Option<Cursor>,
}

/// Results of an engine so far.
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
    /// Whether there are more than `count` results, as far as is known.
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
        // An engine that repeats its results has no more of them.
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

/// Requests pages until there are `min_results` results; resumes where an earlier call ended if `cache` is given.
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
            // Partial results are returned together with the failure.
            Err(failure) => {
                pager.failed.push(failure);
                break;
            }
        }
    }
    Ok(pager)
}
