//! The index of the tools of all sources. It is brought up to date on a blocking thread; searches wait briefly for that, and
//! then use the last snapshot.

use crate::catalogue::Catalogue;
use crate::catalogue::item::Item;
use crate::catalogue::profile_view::SourceSnapshot;
use crate::find::tool_signatures::input_schema;
use crate::find::tool_vectors::{ToolVectors, texts_of};
use arc_swap::ArcSwap;
use octo_embed::{Embedding, similarity};
use octo_model::{ItemKind, ToolError};
use octo_search::{Document, FieldIndex, Group, ParameterTexts, parameter_texts};
use octo_toolkit::SearchTexts;
use std::collections::{BTreeMap, HashMap};
use std::slice;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Bytes of a text about a server that are indexed.
const MAX_GROUP_TEXT_BYTES: usize = 2_000;
/// Bytes of a description that are indexed.
const MAX_DESCRIPTION_BYTES: usize = 4_000;
/// Bytes of the descriptions and parameters of a source that are indexed: its tools share them.
const MAX_SOURCE_TEXT_BYTES: usize = 1 << 20;
/// Bytes of each of these texts of a tool that are indexed in any case.
const MIN_TEXT_BYTES: usize = 100;
/// How long a search waits for an update of the index.
const MAX_UPDATE_WAIT: Duration = Duration::from_millis(500);
/// Ends the group name of a toolbox, since a server may have the same name.
const TOOLBOX_MARK: char = '\u{1f}';

#[derive(Default)]
pub struct ToolIndex {
    current: Arc<ArcSwap<IndexedTools>>,
    /// Held during an update.
    updating: Arc<tokio::sync::Mutex<()>>,
    /// Whether anybody has searched.
    is_used: AtomicBool,
    /// What knows the embeddings of tools, if they are found by meaning.
    vectors: Arc<OnceLock<Arc<ToolVectors>>>,
}

/// The tools of one version of the catalogue.
#[derive(Default)]
pub struct IndexedTools {
    /// Version of the catalogue.
    version: u64,
    pub index: FieldIndex,
    sources: HashMap<String, IndexedSource>,
}

#[derive(Clone)]
pub struct IndexedSource {
    /// Those of the snapshot, to notice a change.
    items: Arc<Vec<Arc<Item>>>,
    /// In the order of the documents.
    tools: Vec<Arc<Item>>,
    search_texts: Arc<BTreeMap<String, SearchTexts>>,
    /// The embeddings of each tool, once they are computed.
    vectors: Arc<OnceLock<Vec<ToolEmbeddings>>>,
}

/// The embeddings of the texts of a tool.
pub type ToolEmbeddings = Vec<Embedding>;

impl IndexedSource {
    /// The texts of each tool that are embedded.
    pub fn texts(&self) -> Vec<Vec<String>> {
        let requests = |tool: &Item| self.search_texts.get(&tool.key).map(|texts| texts.requests.as_slice());
        self.tools.iter().map(|tool| texts_of(tool, requests(tool).unwrap_or_default())).collect()
    }

    pub fn set_vectors(&self, vectors: Vec<ToolEmbeddings>) {
        let _ = self.vectors.set(vectors);
    }
}

impl IndexedTools {
    /// The tool at a position in its group.
    pub fn tool(&self, group: &str, position: usize) -> Option<&Arc<Item>> {
        self.sources.get(group)?.tools.get(position)
    }

    /// How similar the tools of a group are to a query, in the order of its documents. Nothing until they are embedded.
    pub fn similarities(&self, group: &str, query: &Embedding) -> Option<Vec<f32>> {
        let closest =
            |tool: &ToolEmbeddings| tool.iter().map(|text| similarity(text, query)).fold(f32::MIN, f32::max);
        Some(self.sources.get(group)?.vectors.get()?.iter().map(closest).collect())
    }

    /// The next source after this one whose tools are not embedded. Sources take turns: one that changes all the time does
    /// not keep the others waiting.
    pub fn without_vectors(&self, last: Option<&str>) -> Option<(&str, &IndexedSource)> {
        let missing = self.sources.iter().filter(|(_, source)| source.vectors.get().is_none());
        let missing = missing.map(|(name, source)| (name.as_str(), source));
        missing.min_by_key(|(name, _)| (last.is_some_and(|last| *name <= last), *name))
    }

    /// Takes over the embeddings of sources whose texts are all known.
    fn fill_vectors(&self, known: impl Fn(&[Vec<String>]) -> Option<Vec<ToolEmbeddings>>) {
        for source in self.sources.values().filter(|source| source.vectors.get().is_none()) {
            if let Some(vectors) = known(&source.texts()) {
                source.set_vectors(vectors);
            }
        }
    }
}

impl ToolIndex {
    /// From now on, embeddings that are known are those of changed tools at once.
    pub fn set_vectors(&self, vectors: &Arc<ToolVectors>) {
        let _ = self.vectors.set(Arc::clone(vectors));
    }

    /// The tools of the catalogue as it is now.
    pub async fn current(&self, catalogue: &Arc<Catalogue>) -> Result<Arc<IndexedTools>, ToolError> {
        self.is_used.store(true, Ordering::Relaxed);
        let known = self.current.load_full();
        if known.version == catalogue.version() {
            return Ok(known);
        }
        let update = self.update(catalogue);
        if known.sources.is_empty() {
            return update.await;
        }
        match tokio::time::timeout(MAX_UPDATE_WAIT, update).await {
            Ok(updated) => updated,
            Err(_) => Ok(known),
        }
    }

    async fn update(&self, catalogue: &Arc<Catalogue>) -> Result<Arc<IndexedTools>, ToolError> {
        let updating = Arc::clone(&self.updating).lock_owned().await;
        let current = Arc::clone(&self.current);
        let (catalogue, vectors) = (Arc::clone(catalogue), Arc::clone(&self.vectors));
        let updated = tokio::task::spawn_blocking(move || {
            let _updating = updating;
            let known = current.load_full();
            let (version, snapshots) = catalogue.snapshots();
            if known.version == version {
                return known;
            }
            let updated = Arc::new(known.updated(version, &snapshots));
            if let Some(vectors) = vectors.get() {
                updated.fill_vectors(|texts| vectors.known(texts));
            }
            current.store(Arc::clone(&updated));
            updated
        });
        updated.await.map_err(ToolError::internal)
    }

    /// Follows the catalogue once somebody has searched, so that searches need not wait.
    pub async fn follow(&self, catalogue: &Arc<Catalogue>) {
        if self.is_used.load(Ordering::Relaxed)
            && let Err(error) = self.current(catalogue).await
        {
            tracing::warn!(%error, "the index of tools was not updated");
        }
    }
}

impl IndexedTools {
    /// Only sources whose items have changed are indexed anew.
    fn updated(&self, version: u64, snapshots: &[SourceSnapshot]) -> Self {
        let mut sources = HashMap::new();
        let mut changed = Vec::new();
        for snapshot in snapshots {
            let name = group_name(snapshot.is_native, &snapshot.name);
            match self.sources.get(&name) {
                Some(known) if Arc::ptr_eq(&known.items, &snapshot.items) => {
                    sources.insert(name, known.clone());
                }
                _ => {
                    let tools = snapshot.items.iter().filter(|item| item.kind == ItemKind::Tool);
                    let tools: Vec<Arc<Item>> = tools.cloned().collect();
                    changed.push(group(&name, snapshot, &tools));
                    let items = Arc::clone(&snapshot.items);
                    let search_texts = Arc::new(snapshot.listing.listing.search_texts.clone());
                    let vectors = Arc::default();
                    sources.insert(name, IndexedSource { items, tools, search_texts, vectors });
                }
            }
        }
        let removed = self.sources.keys().filter(|name| !sources.contains_key(*name));
        let index = removed.fold(self.index.clone(), |index, name| index.without_group(name));
        let index = if changed.is_empty() { index } else { index.with_groups(changed) };
        Self { version, index, sources }
    }
}

/// Name of the group of a source.
pub fn group_name(is_native: bool, source: &str) -> String {
    if is_native { format!("{source}{TOOLBOX_MARK}") } else { source.to_owned() }
}

/// The name of the source of a group.
pub fn source_of_group(group: &str) -> &str {
    group.trim_end_matches(TOOLBOX_MARK)
}

fn group(name: &str, snapshot: &SourceSnapshot, tools: &[Arc<Item>]) -> Group {
    let listing = &snapshot.listing.listing;
    let text = listing.instructions.as_deref().unwrap_or_default();
    let aliases = |item: &Item| {
        let texts = listing.search_texts.get(&item.key)?;
        Some([slice::from_ref(&texts.keywords), texts.requests.as_slice()].concat().join(" "))
    };
    let share = (MAX_SOURCE_TEXT_BYTES / 3 / tools.len().max(1)).clamp(MIN_TEXT_BYTES, MAX_DESCRIPTION_BYTES);
    Group {
        name: name.to_owned(),
        text: beginning(text, MAX_GROUP_TEXT_BYTES).to_owned(),
        documents: tools
            .iter()
            .map(|item| document(item, aliases(item).unwrap_or_default(), share))
            .collect(),
    }
}

/// What is indexed of a tool: of each text so many bytes.
fn document(item: &Item, aliases: String, max_bytes: usize) -> Document {
    let schema = input_schema(&item.members).unwrap_or_default();
    let ParameterTexts { names, descriptions } = parameter_texts(&schema);
    let description = item.members.text("description").unwrap_or_default();
    Document {
        name: item.key.clone(),
        description: beginning(&description, max_bytes).to_owned(),
        parameter_names: beginning(&names, max_bytes).to_owned(),
        parameter_texts: beginning(&descriptions, max_bytes).to_owned(),
        aliases,
    }
}

fn beginning(text: &str, max_bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(max_bytes)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::item::tests::{stub_item, stub_source};
    use octo_toolkit::{Listing, ListingState, SourceState};
    use serde_json::json;

    fn snapshot(name: &'static str, tools: &[(&str, &str)]) -> SourceSnapshot {
        let source = stub_source(name);
        let item = |(key, about): &(&str, &str)| {
            Arc::new(stub_item(&source, ItemKind::Tool, key, json!({"name": key, "description": about})))
        };
        SourceSnapshot {
            listing: ListingState {
                state: SourceState::Ready,
                listing: Arc::new(Listing::default()),
                version: 1,
            },
            items: Arc::new(tools.iter().map(item).collect()),
            name: name.to_owned(),
            is_native: false,
            is_carried_over: false,
            source,
        }
    }

    fn found(tools: &IndexedTools, query: &str) -> Vec<String> {
        let hits = tools.index.search(query, 5, |_| true);
        let item = |group: &str, at| tools.tool(group, at).map(|item| item.target()).unwrap();
        hits.iter().map(|hit| item(hit.group, hit.position)).collect()
    }

    #[tokio::test]
    async fn a_search_waits_briefly_for_a_long_update() {
        let catalogue = Catalogue::new(Vec::new(), Vec::new(), |_| String::new());
        let index = ToolIndex::default();
        let known =
            IndexedTools::default().updated(catalogue.version() + 1, &[snapshot("mail", &[("send", "")])]);
        index.current.store(Arc::new(known));
        let updating = Arc::clone(&index.updating).lock_owned().await;
        let known = index.current(&catalogue).await.unwrap();
        assert!(known.sources.contains_key("mail"), "the last snapshot");
        drop(updating);
        assert!(index.current(&catalogue).await.unwrap().sources.is_empty(), "the catalogue as it is");
    }

    #[test]
    fn an_update_indexes_changed_sources_only() {
        let mail = snapshot("mail", &[("send", "Send a letter"), ("list", "List letters")]);
        let maps = snapshot("maps", &[("route", "Find a route between places")]);
        let first = IndexedTools::default().updated(1, &[mail.clone(), maps.clone()]);
        assert_eq!(found(&first, "send letter"), ["mail/send", "mail/list"]);
        assert_eq!(found(&first, "route"), ["maps/route"]);

        let changed = snapshot("maps", &[("tile", "Render a tile of a map")]);
        let second = first.updated(2, &[mail.clone(), changed]);
        assert_eq!(found(&second, "route"), Vec::<String>::new());
        assert_eq!(found(&second, "tile"), ["maps/tile"]);
        assert!(Arc::ptr_eq(&second.sources["mail"].items, &mail.items));

        let third = second.updated(3, &[mail]);
        assert_eq!(found(&third, "tile"), Vec::<String>::new());
        assert_eq!(third.index.len(), 2);
    }

    #[test]
    fn sources_take_turns_until_all_are_embedded() {
        let snapshots = ["b", "a", "c"].map(|name| snapshot(name, &[("t", name)]));
        let tools = IndexedTools::default().updated(1, &snapshots);
        let next = |last| tools.without_vectors(last).map(|(name, _)| name);
        for (last, expected) in
            [(None, "a"), (Some("a"), "b"), (Some("b"), "c"), (Some("c"), "a"), (Some("bb"), "c")]
        {
            assert_eq!(next(last), Some(expected), "{last:?}");
        }
        tools.sources["a"].set_vectors(Vec::new());
        assert_eq!(next(Some("c")), Some("b"));
        // Known embeddings are taken over.
        tools.fill_vectors(|texts| (texts[0][0] == "t: c").then(Vec::new));
        assert_eq!(next(Some("b")), Some("b"));
        tools.fill_vectors(|_| Some(Vec::new()));
        assert_eq!(next(None), None);
    }

    #[test]
    fn a_toolbox_and_a_server_of_the_same_name_are_two_groups() {
        let mut native = snapshot("files", &[("fs_read", "Read a file")]);
        native.is_native = true;
        let server = snapshot("files", &[("read", "Read a file")]);
        let tools = IndexedTools::default().updated(1, &[native, server]);
        assert_eq!(tools.index.len(), 2);
        assert!(tools.index.group_names().all(|group| source_of_group(group) == "files"));
    }
}
