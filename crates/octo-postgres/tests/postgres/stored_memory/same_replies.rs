//! The same memory on SQLite and on PostgreSQL gives the same replies, scores included.

use super::rng::Rng;
use super::*;
use crate::postgres_schema::PostgresSchema;
use jiff::Timestamp;
use octo_ports::memory::{Dump, ForgetTarget, KnownFact, PageRequest, Removal};
use octo_store::{Options, sqlite};

const WORDS: &[&str] = &[
    "tea",
    "teapot",
    "engine",
    "engines",
    "engineering",
    "Café",
    "naïve",
    "Müller",
    "Straße",
    "東京タワー",
    "東京",
    "京都",
    "PaymentService",
    "memory_query",
    "deploy",
    "deployed",
    "don't",
    "the",
    "who",
    "zeppelin",
    "ＦＵＬＬ",
    "water",
    "Λόγος",
    "привет",
    "v2",
    "x9f3aa",
    "internationalization",
    "internal",
    "inter",
];
const KINDS: &[&str] = &["person", "Project", "place", "kind of-thing", "ticket"];
const TEXTS: &[&str] = &[
    "tea",
    "Tea pot",
    "engine",
    "eng",
    "inter",
    "inte",
    "in",
    "cafe",
    "CAFÉ naive",
    "muller strasse",
    "東京",
    "京",
    "東京タワー water",
    "payment service",
    "memory query",
    "paymentservice deploying",
    "the who",
    "who",
    "dont",
    "full",
    "λογος",
    "прив",
    "common",
    "common frequent",
    "common frequent tea",
    "frequent zeppelin",
    "com",
    "comm freq",
    "v2 x9f3aa",
    "x9f",
    "zzz",
    "",
    "?!",
    "log",
    "log 17 oddity",
    "person",
    "project deploy",
    "Tea 7",
    "engine 12",
    "tea engine water zeppelin deploy cafe naive the who v2 internal full common frequent log person place ticket",
];

fn new_text(rng: &mut Rng, count: usize) -> String {
    (0..count).map(|_| WORDS[rng.below(WORDS.len())]).collect::<Vec<_>>().join(" ")
}

fn new_fact(rng: &mut Rng, at: usize) -> Fact {
    let length = 1 + rng.below(12);
    let text = match at % 3 {
        0 => format!("{} common {at}", new_text(rng, length)),
        1 => format!("{} frequent", new_text(rng, length)),
        _ => format!("common {} {at} frequent", new_text(rng, length)),
    };
    match rng.below(4) {
        0 => Fact { text, origin: FactOrigin::Sourced, source: Some("https://example.org".to_owned()) },
        1 => Fact { text, origin: FactOrigin::Imported, source: None },
        _ => Fact { text, origin: FactOrigin::Stated, source: None },
    }
}

fn new_entity(rng: &mut Rng, at: usize) -> NewEntity {
    let name = match rng.below(3) {
        0 => format!("{} {at}", WORDS[rng.below(WORDS.len())]),
        1 => format!("{} {}", new_text(rng, 2), rng.below(40)),
        _ => new_text(rng, 2).to_uppercase(),
    };
    let kind = (rng.below(5) > 0).then(|| KINDS[rng.below(KINDS.len())].to_owned());
    let count = if at.is_multiple_of(40) { 90 } else { rng.below(6) };
    NewEntity { name, kind, facts: (0..count).map(|fact| new_fact(rng, at + fact)).collect() }
}

/// Both backends, and a caller whose call is the same.
struct Pair {
    on_sqlite: Memory,
    on_postgres: Memory,
    asker: MemoryCaller,
    /// Times at which both had the same state.
    moments: Vec<(Timestamp, Timestamp)>,
    _dir: tempfile::TempDir,
    _schema: PostgresSchema,
}

/// The part of a reply that does not depend on the time.
fn timeless(mut known: KnownEntity) -> KnownEntity {
    assert!(known.created <= known.updated);
    (known.created, known.updated) = (Timestamp::UNIX_EPOCH, Timestamp::UNIX_EPOCH);
    let fact = |fact: KnownFact| KnownFact { since: Timestamp::UNIX_EPOCH, ..fact };
    known.facts = known.facts.into_iter().map(fact).collect();
    known
}

impl Pair {
    async fn new() -> Self {
        let (dir, schema) = (tempfile::tempdir().unwrap(), PostgresSchema::new().await);
        Self {
            on_sqlite: sqlite(dir.path(), Options::default()).unwrap().memory,
            on_postgres: schema.stores().memory,
            asker: ada(),
            moments: Vec::new(),
            _dir: dir,
            _schema: schema,
        }
    }

    async fn upsert(&self, entities: Vec<NewEntity>, names: NameMatch) {
        let one = self.on_sqlite.upsert(self.asker.clone(), entities.clone(), names).await;
        let other = self.on_postgres.upsert(self.asker.clone(), entities, names).await;
        assert_eq!(one, other);
    }

    async fn link(&self, links: Vec<Link>, names: NameMatch) {
        let one = self.on_sqlite.link(self.asker.clone(), links.clone(), names).await.unwrap();
        let other = self.on_postgres.link(self.asker.clone(), links, names).await.unwrap();
        assert_eq!(one, other);
    }

    async fn forget(&self, what: ForgetTarget, removal: Removal) {
        let one = self.on_sqlite.forget(self.asker.clone(), what.clone(), removal).await.unwrap();
        let other = self.on_postgres.forget(self.asker.clone(), what, removal).await.unwrap();
        assert_eq!(one, other);
    }

    async fn delete(&self, names: Vec<String>, removal: Removal) {
        let one = self.on_sqlite.delete(self.asker.clone(), names.clone(), removal).await.unwrap();
        let other = self.on_postgres.delete(self.asker.clone(), names, removal).await.unwrap();
        assert_eq!(one, other);
    }

    /// A time after everything so far and before everything later.
    async fn mark(&mut self) {
        self.upsert(vec![entity("clock", "thing", &[])], NameMatch::Exact).await;
        let time = async |memory: &Memory| known(memory, "clock").await.unwrap().updated;
        self.moments.push((time(&self.on_sqlite).await, time(&self.on_postgres).await));
    }

    /// Returns the number of entities in the reply.
    async fn compare(&self, question: MemoryQuery, moment: Option<(Timestamp, Timestamp)>) -> usize {
        let then = |at| MemoryQuery { at, ..question.clone() };
        let (one_at, other_at) = (moment.map(|(at, _)| at), moment.map(|(_, at)| at));
        let one = self.on_sqlite.query(self.asker.clone(), then(one_at)).await.unwrap();
        let other = self.on_postgres.query(self.asker.clone(), then(other_at)).await.unwrap();
        assert_eq!(
            (one.total, one.exact, &one.nearest),
            (other.total, other.exact, &other.nearest),
            "{question:?}"
        );
        assert_eq!(one.entities.len(), other.entities.len(), "{question:?}");
        let count = one.entities.len();
        for (one, other) in one.entities.into_iter().zip(other.entities) {
            assert_eq!(timeless(one), timeless(other), "{question:?}");
        }
        count
    }

    async fn compare_lists(&self, page: PageRequest) {
        let one = self.on_sqlite.list(self.asker.clone(), page.clone()).await.unwrap();
        let other = self.on_postgres.list(self.asker.clone(), page.clone()).await.unwrap();
        assert_eq!((one.total, one.kinds), (other.total, other.kinds), "{page:?}");
        let brief = |page: Vec<octo_ports::memory::EntitySummary>| -> Vec<(String, String, u64)> {
            page.into_iter().map(|known| (known.name, known.kind, known.fact_count)).collect()
        };
        assert_eq!(brief(one.entities), brief(other.entities), "{page:?}");
    }

    async fn dump(memory: &Memory, asker: &MemoryCaller) -> Vec<KnownEntity> {
        let (mut all, mut after) = (Vec::new(), Some(0));
        while let Some(from) = after {
            let Dump { entities, next } = memory.dump(asker.clone(), from, 50).await.unwrap();
            all.extend(entities.into_iter().map(timeless));
            after = next;
        }
        all
    }
}

/// Some hundred entities, some of which change, end or are erased.
async fn filled() -> Pair {
    let (mut pair, mut rng) = (Pair::new().await, Rng(7));
    let all: Vec<NewEntity> = (0..400).map(|at| new_entity(&mut rng, at)).collect();
    for (at, part) in all.chunks(25).enumerate() {
        let names = if at % 3 == 0 { NameMatch::Exact } else { NameMatch::Alike };
        pair.upsert(part.to_vec(), names).await;
    }
    let log: Vec<String> = (0..300).map(|day| format!("Day {day} of the log")).collect();
    let mut log: Vec<&str> = log.iter().map(String::as_str).collect();
    log.insert(17, "An oddity");
    pair.upsert(vec![entity("Log", "log", &log)], NameMatch::Alike).await;
    for part in all.chunks(40) {
        let relations = ["knows", "needs", "Besitzt", "次"];
        let name = |rng: &mut Rng| part[rng.below(part.len())].name.clone();
        let mut links: Vec<Link> = Vec::new();
        for at in 0..60 {
            links.push(link(&name(&mut rng), relations[rng.below(4)], &name(&mut rng)));
            if at % 4 == 0 {
                links.push(link("Hub", "has", &name(&mut rng)));
            }
        }
        pair.link(links, NameMatch::Alike).await;
    }
    pair.mark().await;
    let again: Vec<NewEntity> = all
        .iter()
        .step_by(7)
        .map(|known| NewEntity {
            kind: Some(KINDS[rng.below(KINDS.len())].to_owned()),
            facts: vec![
                new_fact(&mut rng, 1),
                known.facts.first().cloned().unwrap_or_else(|| new_fact(&mut rng, 2)),
            ],
            ..known.clone()
        })
        .collect();
    pair.upsert(again, NameMatch::Alike).await;
    pair.mark().await;
    for (at, known) in all.iter().enumerate().skip(3).step_by(11) {
        let removal = if at % 2 == 0 { Removal::Ended } else { Removal::Erased };
        for fact in known.facts.iter().take(2) {
            let what = ForgetTarget::Fact { entity: known.name.clone(), text: fact.text.clone() };
            pair.forget(what, removal).await;
        }
        pair.forget(ForgetTarget::Link(link("Hub", "has", &known.name)), removal).await;
    }
    pair.mark().await;
    let names = |from: usize| all.iter().skip(from).step_by(23).map(|known| known.name.clone()).collect();
    pair.delete(names(5), Removal::Ended).await;
    pair.delete(names(9), Removal::Erased).await;
    pair.upsert(all.iter().skip(5).step_by(46).cloned().collect(), NameMatch::Alike).await;
    pair.mark().await;
    pair
}

#[tokio::test(flavor = "multi_thread")]
async fn queries_lists_and_dumps() {
    let pair = filled().await;
    let mut found = 0;
    for (at, text) in TEXTS.iter().enumerate() {
        let question = words(text);
        for limit in [5, 100] {
            found += pair.compare(MemoryQuery { limit, ..question.clone() }, None).await;
        }
        for facts in [at % 4, 100] {
            found += pair.compare(MemoryQuery { facts, ..question.clone() }, None).await;
        }
        found += pair.compare(MemoryQuery { stated_only: true, ..question.clone() }, None).await;
        let kind = ["PERSON", "project", "kind of-thing", "nothing"][at % 4].to_owned();
        let of_kind = MemoryQuery { kind: Some(kind), ..question.clone() };
        found += pair.compare(of_kind.clone(), None).await;
        found += pair.compare(question, Some(pair.moments[at % 4])).await;
        found += pair.compare(of_kind, Some(pair.moments[(at + 1) % 4])).await;
    }
    for name in ["Hub", "log", "LOG", "nobody", "tea 7", "common frequent", "clock"] {
        found += pair.compare(named(name), None).await;
        let with_text = MemoryQuery { text: Some("oddity tea".to_owned()), facts: 50, ..named(name) };
        found += pair.compare(with_text, None).await;
        let of_kind = MemoryQuery { kind: Some("log".to_owned()), facts: 400, ..named(name) };
        found += pair.compare(of_kind, pair.moments.first().copied()).await;
    }
    assert!(found > 1_500, "{found}");
    for kind in [None, Some("Person"), Some("PROJECT"), Some("nothing")] {
        let kind = kind.map(str::to_owned);
        for moment in [None].into_iter().chain(pair.moments.iter().copied().map(Some)) {
            pair.compare(MemoryQuery { kind: kind.clone(), limit: 500, ..everything() }, moment).await;
            pair.compare(MemoryQuery { kind: kind.clone(), limit: 7, ..everything() }, moment).await;
        }
        for offset in [0, 3, 100, 390, u64::MAX] {
            pair.compare_lists(PageRequest { kind: kind.clone(), limit: 50, offset }).await;
        }
    }
    let (one, other) =
        (Pair::dump(&pair.on_sqlite, &pair.asker).await, Pair::dump(&pair.on_postgres, &pair.asker).await);
    assert!(one.len() > 300);
    assert_eq!(one, other);
}

/// So many that only the newest rows of a word are read.
#[tokio::test(flavor = "multi_thread")]
async fn frequent_words_of_frequent_and_rare_types() {
    let pair = Pair::new().await;
    let both = "A common word beside a frequent phrase";
    pair.upsert(vec![entity("Old", "thing", &[both]), entity("Rare", "rarity", &[both])], NameMatch::Exact)
        .await;
    for part in 0..3 {
        let new = (0..500).map(|at| {
            let text = if at % 2 == 0 { "A common word" } else { "A frequent phrase" };
            let kind = if at % 9 == 4 { "other" } else { "thing" };
            entity(&format!("n{part} {at}"), kind, &[text, &format!("commonly frequented x{at}")])
        });
        pair.upsert(new.collect(), NameMatch::Exact).await;
    }
    let mut is_exact = [0, 0];
    for text in
        ["common", "common frequent", "n1 17 common", "comm", "comm frequ", "x17 frequent", "phrase word"]
    {
        for kind in [None, Some("thing"), Some("OTHER"), Some("rarity"), Some("nothing")] {
            let question = MemoryQuery { kind: kind.map(str::to_owned), limit: 100, ..words(text) };
            pair.compare(question.clone(), None).await;
            is_exact[usize::from(ask(&pair.on_postgres, question).await.exact)] += 1;
        }
    }
    assert!(is_exact.iter().all(|count| *count > 5), "{is_exact:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn quotas_are_counted_alike() {
    let (dir, schema) = (tempfile::tempdir().unwrap(), PostgresSchema::new().await);
    let options = Options { memory_quota_bytes: 3_000, ..Options::default() };
    let postgres = octo_postgres::PostgresOptions { memory_quota_bytes: 3_000, ..schema.options.clone() };
    let memories =
        [sqlite(dir.path(), options).unwrap().memory, octo_postgres::postgres(&postgres).unwrap().memory];
    let mut logs = Vec::new();
    for memory in memories {
        let mut log = Vec::new();
        for at in 0..40 {
            let name = format!("e{}", at % 12);
            let put = entity(&name, "thing", &[&"x".repeat(at * 7), "same"]);
            log.push(format!("{:?}", memory.upsert(ada(), vec![put], NameMatch::Alike).await));
            let linked = memory.link(ada(), vec![link(&name, "to", "e0")], NameMatch::Alike).await;
            log.push(format!("{linked:?}"));
            if at % 5 == 4 {
                let removal = if at % 2 == 0 { Removal::Erased } else { Removal::Ended };
                let gone = memory.delete(ada(), vec![format!("e{}", at % 7)], removal).await;
                log.push(format!("{gone:?}"));
            }
            if at % 6 == 1 {
                let what = ForgetTarget::Fact { entity: name.clone(), text: "same".to_owned() };
                log.push(format!("{:?}", memory.forget(ada(), what, Removal::Erased).await));
                let what = ForgetTarget::Link(link(&name, "to", "e0"));
                log.push(format!("{:?}", memory.forget(ada(), what, Removal::Erased).await));
            }
        }
        assert!(log.iter().any(|line| line.contains("MemoryBytes(3000)")));
        logs.push(log);
    }
    assert_eq!(logs[0], logs[1]);
}
