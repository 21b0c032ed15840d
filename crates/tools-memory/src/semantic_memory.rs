//! A memory that is searched by meaning, too, once it has a text encoder.

use crate::fact_vectors::FactVectors;
use crate::query_slots::QuerySlots;
use crate::shown_facts::{QueryWords, show_fact};
use octo_embed::TextEncoder;
use octo_ports::StoreResult;
use octo_search::normalize_name;
use octo_toolkit::memory::{
    Dump, EndedFact, EntityPage, FactOrigin, ForgetTarget, KnownEntity, KnownFact, Link, LinkResult,
    MemoryCaller, MemoryQuery, MemoryStore, NameMatch, NewEntity, PageRequest, QueryResult, Removal,
    UpsertResult,
};
use octo_toolkit::{BoxFuture, Memory};
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use tokio::sync::oneshot;

/// Larger memories are searched by words only: a search by meaning reads all observations.
const MAX_OBSERVATIONS: usize = 5_000;
/// The same for the bytes of these observations.
const MAX_BYTES: usize = 4 << 20;
/// Entities that are counted at a time.
const COUNTED_ENTITIES: usize = 500;
/// Observations that are read at a time, if entities have equally many.
const READ_OBSERVATIONS: usize = 500;
/// Entities that are read at a time.
const MAX_READ_ENTITIES: usize = 100;
/// Share of the meaning in the score of an entity; the rest is that of its words.
const MEANING_WEIGHT: f64 = 0.7;
/// An entity that is less similar to the query is found by its words only.
const MIN_SIMILARITY: f64 = 0.25;
/// The same, as a share of the similarity of the best one.
const MIN_SHARE_OF_BEST: f64 = 0.7;
/// Maximum entities that are found by their meaning alone.
const MAX_FOUND_BY_MEANING: usize = 5;

/// A store of memories and, once it is set, what searches it by meaning.
pub struct SemanticMemory {
    store: Memory,
    vectors: OnceLock<Arc<FactVectors>>,
    slots: QuerySlots,
}

/// An entity whose texts were compared with a query.
struct ComparedEntity {
    name: String,
    /// That of its closest text.
    similarity: f64,
    /// Observations with their similarities.
    facts: Vec<(KnownFact, f32)>,
    /// Whether the closest text is an observation.
    is_closest_fact: bool,
}

impl ComparedEntity {
    /// `similarities` are those of [`texts_of`].
    fn new(entity: KnownEntity, similarities: &[f32], stated_only: bool) -> Self {
        let (of_name, of_facts) = similarities.split_first().unwrap_or((&0.0, &[]));
        let of_fact = of_facts.iter().copied().fold(0.0, f32::max);
        let facts = entity.facts.into_iter().filter(|fact| is_read(fact, stated_only));
        Self {
            name: entity.name,
            similarity: f64::from(of_name.max(of_fact)),
            facts: facts.zip(of_facts.iter().copied()).collect(),
            is_closest_fact: of_fact > *of_name,
        }
    }

    fn closest_fact(&self) -> Option<&KnownFact> {
        let closest = self.facts.iter().max_by(|(_, one), (_, other)| one.total_cmp(other));
        closest.filter(|_| self.is_closest_fact).map(|(fact, _)| fact)
    }

    fn similarity_of(&self, fact: &KnownFact) -> f32 {
        self.facts.iter().find(|(known, _)| known == fact).map_or(0.0, |(_, similarity)| *similarity)
    }
}

/// An entity that a search found.
struct RankedEntity {
    name: String,
    score: f64,
    /// Unless it was found by meaning alone.
    known: Option<KnownEntity>,
}

impl SemanticMemory {
    pub fn new(store: Memory) -> Self {
        Self { store, vectors: OnceLock::new(), slots: QuerySlots::default() }
    }

    /// From now on, questions are answered by meaning, too. Only the first call has an effect.
    pub fn set_text_encoder(&self, encoder: Arc<TextEncoder>) {
        let _ = self.vectors.set(Arc::new(FactVectors::new(encoder)));
    }

    /// How many entities are read at a time, so that these are not too many observations. None if the memory is too
    /// large.
    async fn page_size(&self, asker: &MemoryCaller) -> StoreResult<Option<usize>> {
        let (mut counted, mut observations, mut most) = (0, 0, 0);
        loop {
            let page = PageRequest { kind: None, limit: COUNTED_ENTITIES, offset: counted };
            let EntityPage { entities, total, .. } = self.store.list(asker.clone(), page).await?;
            counted += entities.len() as u64;
            for entity in &entities {
                let count = usize::try_from(entity.fact_count).unwrap_or(usize::MAX).saturating_add(1);
                observations = count.saturating_add(observations);
                most = count.max(most);
            }
            if observations > MAX_OBSERVATIONS || total > MAX_OBSERVATIONS as u64 {
                return Ok(None);
            }
            if entities.is_empty() || counted >= total {
                return Ok(Some((READ_OBSERVATIONS / most.max(1)).clamp(1, MAX_READ_ENTITIES)));
            }
        }
    }

    /// All entities with their observations; none if there are too many.
    async fn all_entities(&self, asker: &MemoryCaller) -> StoreResult<Option<Vec<KnownEntity>>> {
        let Some(page_size) = self.page_size(asker).await? else { return Ok(None) };
        let (mut entities, mut observations, mut bytes, mut after) = (Vec::new(), 0, 0, 0);
        loop {
            let Dump { entities: page, next } = self.store.dump(asker.clone(), after, page_size).await?;
            observations += page.iter().map(|entity| entity.facts.len() + 1).sum::<usize>();
            bytes += page.iter().flat_map(|entity| &entity.facts).map(|fact| fact.text.len()).sum::<usize>();
            if observations > MAX_OBSERVATIONS || bytes > MAX_BYTES {
                return Ok(None);
            }
            // What is not compared need not be held.
            entities.extend(page.into_iter().map(|entity| KnownEntity { links: Vec::new(), ..entity }));
            match next {
                Some(next) => after = next,
                None => return Ok(Some(entities)),
            }
        }
    }

    async fn query_by_meaning(
        &self,
        vectors: &Arc<FactVectors>,
        asker: MemoryCaller,
        question: MemoryQuery,
        text: String,
    ) -> StoreResult<QueryResult> {
        let by_words = self.store.query(asker.clone(), question.clone()).await?;
        let Some(slot) = self.slots.take(&asker.principal).await else { return Ok(by_words) };
        let Some(mut entities) = self.all_entities(&asker).await? else { return Ok(by_words) };
        if let Some(kind) = question.kind.as_deref().map(normalize_name) {
            entities.retain(|entity| normalize_name(&entity.kind) == kind);
        }
        let texts: Vec<Vec<String>> =
            entities.iter().map(|entity| texts_of(entity, question.stated_only)).collect();
        let (vectors, owner, query) = (Arc::clone(vectors), asker.principal.clone(), text.clone());
        let (sender, compared) = oneshot::channel();
        tokio::task::spawn_blocking(move || {
            let similarities = vectors.similarities(&owner, &query, &texts, || !sender.is_closed());
            drop(slot);
            let _ = sender.send(similarities);
        });
        // Without similarities, the words remain.
        let similarities = compared.await.unwrap_or_default();
        let mut compared: HashMap<String, ComparedEntity> = HashMap::new();
        let mut similar = Vec::new();
        for (entity, similarities) in entities.into_iter().zip(similarities) {
            let entity = ComparedEntity::new(entity, &similarities, question.stated_only);
            similar.push((entity.name.clone(), entity.similarity));
            compared.insert(entity.name.clone(), entity);
        }
        // Further ones that words find may be among those that are similar.
        let is_complete = by_words.total == by_words.entities.len() as u64;
        let ranked = rank(by_words.entities, similar);
        let by_meaning = ranked.iter().filter(|entity| entity.known.is_none()).count() as u64;
        let mut found = QueryResult {
            entities: Vec::new(),
            total: if is_complete { by_words.total + by_meaning } else { by_words.total },
            exact: by_words.exact && is_complete,
            nearest: by_words.nearest,
        };
        let words = QueryWords::new(&text);
        for RankedEntity { name, score, known } in ranked.into_iter().take(question.limit) {
            let known = match known {
                Some(known) => Some(known),
                None => self.entity(&asker, &question, name).await?,
            };
            match known {
                Some(mut known) => {
                    if let Some(compared) = compared.remove(&known.name)
                        && let Some(fact) = compared.closest_fact()
                    {
                        let similarity = |fact: &KnownFact| compared.similarity_of(fact);
                        show_fact(&mut known, fact.clone(), question.facts, &words, similarity);
                    }
                    found.entities.push(KnownEntity { score: Some(score), ..known });
                }
                // It was removed meanwhile.
                None if is_complete => found.total = found.total.saturating_sub(1),
                None => {}
            }
        }
        Ok(found)
    }

    /// An entity as the question asks for it.
    async fn entity(
        &self,
        asker: &MemoryCaller,
        question: &MemoryQuery,
        name: String,
    ) -> StoreResult<Option<KnownEntity>> {
        let named = MemoryQuery { text: None, name: Some(name.clone()), limit: 2, ..question.clone() };
        let found = self.store.query(asker.clone(), named).await?;
        Ok(found.entities.into_iter().find(|entity| entity.name == name))
    }
}

/// The entities that words found, and those that are similar to the query, best first.
fn rank(by_words: Vec<KnownEntity>, similar: Vec<(String, f64)>) -> Vec<RankedEntity> {
    let most = |scores: &mut dyn Iterator<Item = f64>| scores.fold(f64::EPSILON, f64::max);
    let best_score = most(&mut by_words.iter().filter_map(|entity| entity.score));
    let best_similarity = most(&mut similar.iter().map(|(_, similarity)| *similarity));
    let least = (best_similarity * MIN_SHARE_OF_BEST).max(MIN_SIMILARITY);
    let similarities: HashMap<&str, f64> =
        similar.iter().map(|(name, similarity)| (name.as_str(), *similarity)).collect();
    let blended = |name: &str, words: f64| {
        let meaning = similarities.get(name).copied().unwrap_or_default();
        MEANING_WEIGHT * meaning + (1.0 - MEANING_WEIGHT) * words / best_score
    };
    let is_found_by_words = |name: &str| by_words.iter().any(|entity| entity.name == name);
    let others = similar.iter().filter(|(name, similarity)| *similarity >= least && !is_found_by_words(name));
    let mut others: Vec<RankedEntity> = others
        .map(|(name, _)| RankedEntity { name: name.clone(), score: blended(name, 0.0), known: None })
        .collect();
    sort(&mut others);
    others.truncate(MAX_FOUND_BY_MEANING);
    let mut ranked = others;
    ranked.extend(by_words.into_iter().map(|entity| RankedEntity {
        name: entity.name.clone(),
        score: blended(&entity.name, entity.score.unwrap_or_default()),
        known: Some(entity),
    }));
    sort(&mut ranked);
    ranked
}

fn sort(ranked: &mut [RankedEntity]) {
    ranked.sort_by(|one, other| other.score.total_cmp(&one.score).then_with(|| one.name.cmp(&other.name)));
}

fn is_read(fact: &KnownFact, stated_only: bool) -> bool {
    !stated_only || fact.origin == FactOrigin::Stated
}

/// What is embedded of an entity: its name, and then each observation with the name.
fn texts_of(entity: &KnownEntity, stated_only: bool) -> Vec<String> {
    let head = format!("{} ({})", entity.name, entity.kind);
    let facts = entity.facts.iter().filter(|fact| is_read(fact, stated_only));
    let facts = facts.map(|fact| format!("{head}: {}", fact.text));
    std::iter::once(head.clone()).chain(facts).collect()
}

impl MemoryStore for SemanticMemory {
    fn upsert(
        &self,
        asker: MemoryCaller,
        entities: Vec<NewEntity>,
        names: NameMatch,
    ) -> BoxFuture<'_, StoreResult<Vec<UpsertResult>>> {
        self.store.upsert(asker, entities, names)
    }

    fn link(
        &self,
        asker: MemoryCaller,
        links: Vec<Link>,
        names: NameMatch,
    ) -> BoxFuture<'_, StoreResult<LinkResult>> {
        self.store.link(asker, links, names)
    }

    fn query(&self, asker: MemoryCaller, question: MemoryQuery) -> BoxFuture<'_, StoreResult<QueryResult>> {
        match (self.vectors.get(), &question) {
            // The past and entities that are named are found exactly.
            (Some(vectors), MemoryQuery { text: Some(text), name: None, at: None, .. }) => {
                let text = text.clone();
                Box::pin(self.query_by_meaning(vectors, asker, question, text))
            }
            _ => self.store.query(asker, question),
        }
    }

    fn history(
        &self,
        asker: MemoryCaller,
        name: String,
        limit: usize,
    ) -> BoxFuture<'_, StoreResult<Vec<EndedFact>>> {
        self.store.history(asker, name, limit)
    }

    fn list(&self, asker: MemoryCaller, page: PageRequest) -> BoxFuture<'_, StoreResult<EntityPage>> {
        self.store.list(asker, page)
    }

    fn delete(
        &self,
        asker: MemoryCaller,
        names: Vec<String>,
        removal: Removal,
    ) -> BoxFuture<'_, StoreResult<Vec<String>>> {
        self.store.delete(asker, names, removal)
    }

    fn forget(
        &self,
        asker: MemoryCaller,
        what: ForgetTarget,
        removal: Removal,
    ) -> BoxFuture<'_, StoreResult<u64>> {
        self.store.forget(asker, what, removal)
    }

    fn dump(&self, asker: MemoryCaller, after: i64, limit: usize) -> BoxFuture<'_, StoreResult<Dump>> {
        self.store.dump(asker, after, limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use octo_toolkit::memory::DEFAULT_KIND;

    fn entity(name: &str, score: f64) -> KnownEntity {
        KnownEntity {
            name: name.to_owned(),
            kind: DEFAULT_KIND.to_owned(),
            facts: Vec::new(),
            fact_count: 0,
            links: Vec::new(),
            links_left_out: false,
            created: jiff::Timestamp::UNIX_EPOCH,
            updated: jiff::Timestamp::UNIX_EPOCH,
            score: Some(score),
        }
    }

    #[test]
    fn words_and_meaning_are_ranked_together() {
        let ranked = |words: &[(&str, f64)], similar: &[(&str, f64)]| -> Vec<String> {
            let words = words.iter().map(|(name, score)| entity(name, *score)).collect();
            let similar = similar.iter().map(|(name, score)| ((*name).to_owned(), *score)).collect();
            rank(words, similar).into_iter().map(|entity| entity.name).collect()
        };
        type Scores<'a> = &'a [(&'a str, f64)];
        let rows: &[(Scores<'_>, Scores<'_>, &[&str])] = &[
            (&[], &[], &[]),
            (&[("a", 3.0), ("b", 1.0)], &[], &["a", "b"]),
            // Words that match weakly do not outweigh the meaning.
            (&[("a", 0.1), ("b", 3.0)], &[("a", 0.1), ("b", 0.1), ("c", 0.6)], &["c", "b", "a"]),
            (&[("b", 3.0)], &[("b", 0.5), ("c", 0.6)], &["b", "c"]),
            // Neither what means nothing like it, nor what means much less than the best.
            (&[], &[("a", 0.2), ("b", 0.1)], &[]),
            (&[], &[("a", 0.8), ("b", 0.4), ("c", 0.7)], &["a", "c"]),
            (&[], &[("a", 0.6); 9], &["a"; MAX_FOUND_BY_MEANING]),
        ];
        for (words, similar, expected) in rows {
            assert_eq!(ranked(words, similar), *expected, "{words:?} {similar:?}");
        }
    }
}
