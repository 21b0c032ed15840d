use super::{Open, ada, others};
use crate::memory::{
    Fact, FactOrigin, ForgetTarget, KnownEntity, Link, MemoryCaller, MemoryQuery, NameMatch, NewEntity,
    PageRequest, Removal,
};
use crate::{Memory, StoreResult};
use octo_model::{CallId, Caller};

fn asker(caller: &Caller) -> MemoryCaller {
    MemoryCaller::new(caller, CallId::fresh())
}

fn entity(name: &str, kind: &str, facts: &[&str]) -> NewEntity {
    let fact = |text: &&str| Fact { text: (*text).to_owned(), origin: FactOrigin::Stated, source: None };
    NewEntity { name: name.to_owned(), kind: Some(kind.to_owned()), facts: facts.iter().map(fact).collect() }
}

fn link(source: &str, relation: &str, target: &str) -> Link {
    Link { source: source.to_owned(), relation: relation.to_owned(), target: target.to_owned() }
}

fn everything() -> MemoryQuery {
    MemoryQuery { links: true, limit: 20, facts: 30, ..MemoryQuery::default() }
}

async fn put(memory: &Memory, entities: Vec<NewEntity>) -> StoreResult<()> {
    memory.upsert(asker(&ada()), entities, NameMatch::Alike).await.map(drop)
}

async fn find(memory: &Memory, text: &str) -> StoreResult<Vec<String>> {
    let query = MemoryQuery { text: Some(text.to_owned()), ..everything() };
    let found = memory.query(asker(&ada()), query).await?;
    Ok(found.entities.into_iter().map(|known| known.name).collect())
}

async fn known(memory: &Memory, name: &str) -> StoreResult<Option<KnownEntity>> {
    let query = MemoryQuery { name: Some(name.to_owned()), ..everything() };
    Ok(memory.query(asker(&ada()), query).await?.entities.pop())
}

pub async fn owned_by_their_subject(open: &Open) -> StoreResult<()> {
    let memory = open().memory;
    put(&memory, vec![entity("Heron", "bird", &["stands in water"])]).await?;
    for other in &others() {
        assert_eq!(memory.query(asker(other), everything()).await?.total, 0);
        let page = PageRequest { limit: 10, ..PageRequest::default() };
        assert_eq!(memory.list(asker(other), page).await?.total, 0);
        assert!(memory.dump(asker(other), 0, 10).await?.entities.is_empty());
        let gone = memory.delete(asker(other), vec!["Heron".to_owned()], Removal::Erased).await?;
        assert!(gone.is_empty());
    }
    assert_eq!(find(&memory, "water").await?, ["Heron"]);
    Ok(())
}

pub async fn upserted_and_linked(open: &Open) -> StoreResult<()> {
    let memory = open().memory;
    put(&memory, vec![entity("Ada", "person", &["likes tea"])]).await?;
    let again = NewEntity { kind: None, ..entity("ada", "", &["likes tea", "likes engines"]) };
    let done = memory.upsert(asker(&ada()), vec![again], NameMatch::Alike).await?;
    let brief = done.first().map(|one| (one.name.as_str(), one.created, one.added, one.kind_was.as_deref()));
    assert_eq!(brief, Some(("Ada", false, 1, None)));
    let done = memory.upsert(asker(&ada()), vec![entity("Ada", "engineer", &[])], NameMatch::Exact).await?;
    assert_eq!(done.first().and_then(|one| one.kind_was.as_deref()), Some("person"));
    let exact = vec![entity("ada", "cat", &[])];
    let done = memory.upsert(asker(&ada()), exact, NameMatch::Exact).await?;
    assert_eq!(done.first().map(|one| one.created), Some(true), "another one, letter by letter");
    let links = vec![link("Ada", "writes to", "Charles"), link("Ada", "writes to", "Charles")];
    let linked = memory.link(asker(&ada()), links, NameMatch::Exact).await?;
    assert_eq!((linked.added, linked.skipped, linked.created), (1, 1, vec!["Charles".to_owned()]));
    let charles = known(&memory, "Charles").await?;
    let relation = charles.as_ref().and_then(|known| known.links.first());
    let brief = relation.map(|link| (link.relation.as_str(), link.other.as_str(), link.outward));
    assert_eq!(brief, Some(("writes to", "Ada", false)));
    assert_eq!(find(&memory, "engines").await?, ["Ada"]);
    Ok(())
}

pub async fn ended_or_erased(open: &Open) -> StoreResult<()> {
    let memory = open().memory;
    put(&memory, vec![entity("Heron", "bird", &["grey", "patient"])]).await?;
    memory.link(asker(&ada()), vec![link("Heron", "eats", "Frog")], NameMatch::Exact).await?;
    let fact = |text: &str| ForgetTarget::Fact { entity: "Heron".to_owned(), text: text.to_owned() };
    assert_eq!(memory.forget(asker(&ada()), fact("patient"), Removal::Ended).await?, 1);
    assert_eq!(memory.forget(asker(&ada()), fact("patient"), Removal::Ended).await?, 0);
    let eats = ForgetTarget::Link(link("Heron", "eats", "Frog"));
    assert_eq!(memory.forget(asker(&ada()), eats, Removal::Ended).await?, 1);
    let heron = known(&memory, "Heron").await?;
    let brief = heron.map(|known| (known.fact_count, known.links.len()));
    assert_eq!(brief, Some((1, 0)));
    for (name, removal) in [("Heron", Removal::Ended), ("Frog", Removal::Erased)] {
        let names = vec![name.to_owned(), "nobody".to_owned()];
        assert_eq!(memory.delete(asker(&ada()), names, removal).await?, [name]);
    }
    assert_eq!(memory.query(asker(&ada()), everything()).await?.total, 0);
    // What has ended is known, latest first; what was erased is not.
    assert_eq!(past(&memory, &ada(), "heron", 10).await?, ["grey", "patient"]);
    assert_eq!(past(&memory, &ada(), "Heron", 1).await?, ["grey"]);
    assert!(past(&memory, &ada(), "Frog", 10).await?.is_empty());
    for other in &others() {
        assert!(past(&memory, other, "Heron", 10).await?.is_empty());
    }
    memory.delete(asker(&ada()), vec!["Heron".to_owned()], Removal::Erased).await?;
    assert!(past(&memory, &ada(), "Heron", 10).await?.is_empty());
    Ok(())
}

/// The observations of an entity that have ended.
async fn past(memory: &Memory, caller: &Caller, name: &str, limit: usize) -> StoreResult<Vec<String>> {
    let ended = memory.history(asker(caller), name.to_owned(), limit).await?;
    assert!(ended.iter().all(|ended| ended.entity == "Heron" && ended.fact.since <= ended.until));
    Ok(ended.into_iter().map(|ended| ended.fact.text).collect())
}

/// Names on a page, total number of entities, and types.
type Page = (Vec<String>, u64, Vec<(String, u64)>);

async fn page(memory: &Memory, kind: Option<&str>, offset: u64) -> StoreResult<Page> {
    let page = PageRequest { kind: kind.map(str::to_owned), limit: 2, offset };
    let page = memory.list(asker(&ada()), page).await?;
    Ok((page.entities.into_iter().map(|known| known.name).collect(), page.total, page.kinds))
}

pub async fn listed_in_pages(open: &Open) -> StoreResult<()> {
    let memory = open().memory;
    let all = [("delta", "b"), ("alpha", "a"), ("charlie", "a"), ("bravo", "a")];
    put(&memory, all.map(|(name, kind)| entity(name, kind, &["x"])).to_vec()).await?;
    let kinds = vec![("a".to_owned(), 3), ("b".to_owned(), 1)];
    let named = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    assert_eq!(page(&memory, None, 0).await?, (named(&["alpha", "bravo"]), 4, kinds));
    assert_eq!(page(&memory, None, 2).await?.0, named(&["charlie", "delta"]));
    let (names, total, _) = page(&memory, Some("a"), 2).await?;
    assert_eq!((names, total), (named(&["charlie"]), 3));
    Ok(())
}

pub async fn dumped_in_order(open: &Open) -> StoreResult<()> {
    let memory = open().memory;
    put(&memory, ["one", "two", "three"].map(|name| entity(name, "thing", &["x"])).to_vec()).await?;
    memory.link(asker(&ada()), vec![link("three", "after", "two")], NameMatch::Exact).await?;
    let (mut names, mut links, mut after) = (Vec::new(), 0, 0);
    loop {
        let part = memory.dump(asker(&ada()), after, 2).await?;
        links += part.entities.iter().map(|known| known.links.len()).sum::<usize>();
        names.extend(part.entities.into_iter().map(|known| known.name));
        match part.next {
            Some(next) => after = next,
            None => break,
        }
    }
    assert_eq!((names.join(" ").as_str(), links), ("one two three", 1), "relations where they begin");
    Ok(())
}

pub async fn durable(open: &Open) -> StoreResult<()> {
    put(&open().memory, vec![entity("Heron", "bird", &["stands in water"])]).await?;
    let memory = open().memory;
    assert_eq!(find(&memory, "water").await?, ["Heron"]);
    assert_eq!(memory.delete(asker(&ada()), vec!["Heron".to_owned()], Removal::Erased).await?, ["Heron"]);
    assert!(known(&open().memory, "Heron").await?.is_none());
    Ok(())
}
