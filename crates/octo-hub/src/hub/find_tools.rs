//! The search for tools on behalf of a caller: what may not be called is not found.

use crate::catalogue::item::Entry;
use crate::catalogue::profile_view::View;
use crate::find::tool_index::{IndexedTools, group_name, source_of_group};
use crate::find::tool_signatures::{entry_schema, entry_signature, is_plain_name, shown_name};
use crate::find::tool_usage::ToolUsage;
use crate::find::tools_call::is_find_or_call_tool;
use crate::hub::Hub;
use crate::pipeline::call_request::Request;
use crate::pipeline::policy::{PolicyEngine, is_visible};
use octo_model::{ItemKind, Json, Method, Principal, ToolError, nearest};
use octo_ports::Outcome;
use octo_search::{Hit, Ranking, repetition};
use octo_toolkit::{CallContext, FoundTool, FoundTools, SiblingTool, SiblingTools, ToolSearch};
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Servers whose other tools are named.
const MAX_SIBLING_SERVERS: usize = 3;
/// Tools that match next best and are named, whichever their server.
const MAX_NEXT_HITS: usize = 12;
/// Names of other tools of a server.
const MAX_SIBLINGS: usize = 20;
/// Hits of which the caller's are looked for.
const MAX_CHECKED_HITS: usize = 20_000;
/// Hits of the caller that are looked at.
const MAX_HITS: usize = 1_000;
/// The best hits, among which those come first that the caller uses.
const BOOSTED_HITS: usize = 32;
/// Schemas that are shown if the query may be the name of several tools.
const MAX_SCHEMAS: usize = 2;
/// Other servers of the same tool that are named.
const MAX_SAME: usize = 10;
/// Servers that are named if nothing is found.
const MAX_SERVERS: usize = 30;
/// A tool of the hub comes before a tool of a server that fits about equally well.
const NATIVE_FACTOR: f32 = 1.3;
/// A description with a larger share of repeated words is written for searches.
const MAX_REPETITION: f32 = 0.25;
/// Share of the meaning in the score of a tool; the rest is that of its words.
const MEANING_WEIGHT: f32 = 0.7;
/// Longer schemas are not shown: bytes of all in a reply.
const MAX_SCHEMA_BYTES: usize = 8_000;

/// What a caller may find.
struct Visibility<'a> {
    view: &'a View,
    policy: Arc<dyn PolicyEngine>,
    cx: &'a CallContext,
    search: &'a ToolSearch,
}

impl Visibility<'_> {
    fn shows(&self, entry: &Entry) -> bool {
        let item = &entry.item;
        let has_effect = self.search.max_effect.is_none_or(|max| entry.effect().class() <= max);
        !is_find_or_call_tool(entry)
            && has_effect
            && item.app.is_for_model
            && is_visible(&*self.policy, &self.cx.profile, &self.cx.caller, entry)
    }

    fn is_of_server(&self, source: &str) -> bool {
        self.search.server.as_ref().is_none_or(|server| server == source)
    }

    /// Whether the caller may find tools of this group.
    fn includes(&self, group: &str) -> bool {
        let source = source_of_group(group);
        self.is_of_server(source) && self.view.profile.shows_source(source)
    }

    /// The entry that has this name in the profile.
    fn named(&self, name: &str) -> Option<FoundEntry> {
        let entry = self.view.by_name(ItemKind::Tool, name)?;
        let is_found = self.is_of_server(entry.source_name()) && self.shows(entry);
        is_found.then(|| {
            let group = group_name(entry.item.source.is_native(), entry.source_name());
            FoundEntry { entry: entry.clone(), group, score: 0.0, is_exact: true }
        })
    }

    /// What a ranking finds for the caller, best first.
    fn ranked(&self, tools: &IndexedTools, ranking: &Ranking<'_>) -> impl Iterator<Item = FoundEntry> {
        let hits = ranking.hits_in(|group| self.includes(group)).take(MAX_CHECKED_HITS);
        let found = move |hit: Hit<'_>| {
            let (group, score, is_exact) = (hit.group.to_owned(), hit.score, hit.is_exact);
            let entries = self.entries(tools, &hit).into_iter();
            entries.map(move |entry| FoundEntry { entry, group: group.clone(), score, is_exact })
        };
        hits.flat_map(found).take(MAX_HITS)
    }

    /// The entries of a hit that the caller may see.
    fn entries(&self, tools: &IndexedTools, hit: &Hit<'_>) -> Vec<Entry> {
        let entries = tools.tool(hit.group, hit.position).map(|item| self.view.entries_of(item));
        entries.into_iter().flatten().filter(|entry| self.shows(entry)).collect()
    }
}

/// A tool that matches.
struct FoundEntry {
    entry: Entry,
    group: String,
    score: f32,
    /// The query is its name.
    is_exact: bool,
}

impl Hub {
    /// Learns from calls of the past which tools their callers use: targets are written `source/key`.
    pub fn learn_usage(&self, calls: impl Iterator<Item = (Principal, String)>) {
        for (principal, target) in calls {
            if let Some((source, key)) = target.split_once('/') {
                self.tool_usage.record(&principal, source, key);
            }
        }
    }

    /// Remembers a call that succeeded.
    pub(crate) fn record_use(&self, request: &Request, entry: Option<&Entry>, outcome: Outcome) {
        if let Some(entry) = entry
            && outcome == Outcome::Ok
            && request.op.method == Method::CallTool
            && !is_find_or_call_tool(entry)
        {
            self.tool_usage.record(&request.caller.principal, entry.source_name(), &entry.item.key);
        }
    }

    /// The tools that match a search best, and the names of others on the same servers.
    pub(crate) async fn search_tools(
        &self,
        cx: &CallContext,
        search: ToolSearch,
    ) -> Result<FoundTools, ToolError> {
        self.wait_for_startup_listing(&cx.profile).await;
        let tools = self.tool_index.current(&self.catalogue).await?;
        let view = self.view(&cx.profile)?;
        let seen = Visibility { view: &view, policy: Arc::clone(&self.rules().policy), cx, search: &search };
        if let Some(server) = &search.server {
            check_server(&seen, server)?;
        }
        let mut ranking = tools.index.rank(&search.query);
        let who = &cx.caller.principal;
        // Without the meaning of the query, the words remain.
        if let Some(vectors) = self.tool_vectors.get()
            && let Some(query) = vectors.embed_query(who, &search.query).await
        {
            ranking = ranking.blended(MEANING_WEIGHT, |group| tools.similarities(group, &query));
        }
        // The name of a tool finds that tool first, whatever others are called.
        let named = seen.named(search.query.trim());
        let max_schemas = if named.is_some() { 1 } else { MAX_SCHEMAS };
        let mut ranked = seen.ranked(&tools, &ranking);
        let mut first: Vec<FoundEntry> = ranked.by_ref().take(BOOSTED_HITS).collect();
        weigh_tools(&self.tool_usage, who, &search.query, &mut first);
        let mut found = FoundTools::default();
        let mut groups: Vec<String> = Vec::new();
        let mut shown = BTreeSet::new();
        let (mut schemas, mut schema_bytes) = (0, 0);
        let mut matching = named.into_iter().chain(first).chain(ranked);
        while found.tools.len() < search.limit
            && let Some(FoundEntry { entry, group, is_exact, .. }) = matching.next()
        {
            if !shown.insert(entry.listed_name.to_string()) {
                continue;
            }
            if !groups.contains(&group) {
                groups.push(group);
            }
            let is_shown = is_exact && schemas < max_schemas;
            let schema = is_shown.then(|| entry_schema(&entry, MAX_SCHEMA_BYTES - schema_bytes)).flatten();
            schema_bytes += schema.as_ref().map_or(0, |schema| schema.bytes().len());
            schemas += usize::from(schema.is_some());
            add_tool(&mut found, &view, &entry, schema);
        }
        for group in groups.into_iter().take(MAX_SIBLING_SERVERS) {
            found.siblings.extend(siblings(&seen, &tools, &ranking, &group, &shown));
        }
        for FoundEntry { entry, .. } in matching.take(MAX_NEXT_HITS) {
            if shown.insert(entry.listed_name.to_string()) {
                name_tool(&mut found.siblings, &view, &entry);
            }
        }
        if found.tools.is_empty() {
            found.servers = servers(&seen);
        }
        Ok(found)
    }
}

/// Moves tools that the caller uses, and those of the hub, ahead of others that fit about equally well, and tools whose
/// servers repeat words to be found behind them. A request in three words or more is no name: a server could name its tools like
/// requests.
fn weigh_tools(usage: &ToolUsage, who: &Principal, query: &str, found: &mut [FoundEntry]) {
    let is_request = query.split_whitespace().nth(2).is_some();
    for FoundEntry { entry, score, is_exact, .. } in found.iter_mut() {
        *score *= usage.factor(who, entry.source_name(), &entry.item.key);
        if entry.item.source.is_native() {
            *score *= NATIVE_FACTOR;
            continue;
        }
        *is_exact &= !is_request;
        let repeated = repetition(&entry.item.members.text("description").unwrap_or_default());
        if repeated > MAX_REPETITION {
            *score *= 1.0 - repeated;
        }
    }
    found.sort_by(|one, other| match (one.is_exact, other.is_exact) {
        (false, false) => other.score.total_cmp(&one.score),
        (true, true) => Ordering::Equal,
        (one, other) => other.cmp(&one),
    });
}

/// Adds a tool, or its server to the same tool of another one.
fn add_tool(found: &mut FoundTools, view: &View, entry: &Entry, schema: Option<Json>) {
    let (server, tool) = (entry.source_name().to_owned(), own_name(entry));
    let signature = entry_signature(entry, &call_name(view, entry));
    let same = found.tools.iter_mut().find(|other| other.signature == signature && other.server != server);
    if let Some(same) = same {
        if same.same_on.len() < MAX_SAME {
            same.same_on.push(server);
        }
        return;
    }
    let name = entry.listed_name.to_string();
    found.tools.push(FoundTool { name, server, tool, signature, schema, same_on: Vec::new() });
}

/// The name of a tool after that of its server.
fn own_name(entry: &Entry) -> String {
    if entry.tool_override.is_some() { entry.listed_name.to_string() } else { entry.item.key.clone() }
}

/// The name by which `tools_call` calls an entry, as short as possible. A server decides how its tools are called: what
/// could be mistaken for something else is not shown, or in quotes.
fn call_name(view: &View, entry: &Entry) -> String {
    let own = own_name(entry);
    let is_of_other = || {
        let known = view.by_name(ItemKind::Tool, &own);
        known.is_some_and(|known| known.listed_name != entry.listed_name)
    };
    if is_plain_name(&own) && !is_of_other() { own } else { shown_name(&entry.listed_name).into_owned() }
}

/// Adds the name of a tool to those of its server.
fn name_tool(named: &mut Vec<SiblingTools>, view: &View, entry: &Entry) {
    let tool = SiblingTool { tool: own_name(entry), call_name: call_name(view, entry) };
    match named.iter_mut().find(|siblings| siblings.server == entry.source_name()) {
        Some(siblings) if siblings.tools.contains(&tool) => {}
        Some(siblings) => siblings.tools.push(tool),
        None => {
            let server = entry.source_name().to_owned();
            named.push(SiblingTools { server, tools: vec![tool], is_truncated: true });
        }
    }
}

/// The tools of a group that are not shown yet, best first.
fn siblings(
    seen: &Visibility<'_>,
    tools: &IndexedTools,
    ranking: &Ranking<'_>,
    group: &str,
    shown: &BTreeSet<String>,
) -> Option<SiblingTools> {
    let entries = ranking.group_hits(group).flat_map(|hit| seen.entries(tools, &hit));
    let mut others = entries.filter(|entry| !shown.contains(&*entry.listed_name));
    let sibling =
        |entry: Entry| SiblingTool { tool: own_name(&entry), call_name: call_name(seen.view, &entry) };
    let first: Vec<SiblingTool> = others.by_ref().take(MAX_SIBLINGS).map(sibling).collect();
    let is_truncated = others.next().is_some();
    (!first.is_empty()).then(|| SiblingTools {
        server: source_of_group(group).to_owned(),
        tools: first,
        is_truncated,
    })
}

/// Servers and toolboxes with tools for the caller.
fn servers(seen: &Visibility<'_>) -> Vec<String> {
    let entries = seen.view.list(ItemKind::Tool).iter().filter(|entry| seen.shows(entry));
    let names: BTreeSet<&str> = entries.map(Entry::source_name).collect();
    names.into_iter().take(MAX_SERVERS).map(str::to_owned).collect()
}

/// Fails if the caller has no tools of this server, and names those that it has.
fn check_server(seen: &Visibility<'_>, server: &str) -> Result<(), ToolError> {
    let is_of_caller = |entry: &&Entry| {
        !is_find_or_call_tool(entry) && is_visible(&*seen.policy, &seen.cx.profile, &seen.cx.caller, entry)
    };
    let mut of_server = seen.view.list(ItemKind::Tool).iter().filter(|entry| entry.source_name() == server);
    if of_server.any(|entry| is_of_caller(&entry)) {
        return Ok(());
    }
    let all = seen.view.list(ItemKind::Tool).iter().filter(is_of_caller);
    let all: BTreeSet<&str> = all.map(Entry::source_name).collect();
    let hint = match nearest(server, all.iter().copied()) {
        Some(close) => format!("Did you mean `{close}`?"),
        None => format!("Servers: {}.", all.into_iter().take(MAX_SERVERS).collect::<Vec<_>>().join(", ")),
    };
    let server: String = server.chars().take(80).collect();
    Err(ToolError::not_found(format!("Server not found: `{server}`.")).hint(hint))
}
