//! Text queries find what is meant.

use super::*;

#[tokio::test]
async fn questions_in_other_words_of_the_same_kind_find_something() {
    let dir = tempfile::tempdir().unwrap();
    let memories = open(dir.path());
    put(&memories, "Ada Lovelace", "person", &["Works on the analytical engine", "Prefers tea"]).await;
    put(&memories, "Grace Hopper", "person", &["Invented the compiler", "Met Ada's biographer"]).await;
    put(&memories, "PaymentService", "service", &["Charges credit cards", "Retries three times"]).await;
    put(&memories, "Café Lumière", "place", &["Sells tea and cake"]).await;
    let rows = [
        ("Where does Ada work?", "Ada Lovelace"),
        ("who is working on engines", "Ada Lovelace"),
        ("compilers", "Grace Hopper"),
        ("payment service", "PaymentService"),
        ("retrying", "PaymentService"),
        ("cafe LUMIERE", "Café Lumière"),
        ("ada", "Ada Lovelace"),
        ("comp", "Grace Hopper"),
        ("PERSON compiler tea invented", "Grace Hopper"),
    ];
    for (text, expected) in rows {
        assert_eq!(find(&memories, text).await.first().map(String::as_str), Some(expected), "{text}");
    }
    for text in ["", "?", "zeppelin", "\"", "a AND b NEAR(", "* OR *", "tea\" OR \"1_", "live_words:ada -x"] {
        let answer = ask(&memories, words(text)).await;
        assert!(answer.exact, "{text}");
    }
    assert!(find(&memories, "zeppelin").await.is_empty());
}

#[tokio::test]
async fn what_is_found_shows_first_what_fits() {
    let dir = tempfile::tempdir().unwrap();
    let memories = open(dir.path());
    let log: Vec<String> = (0..200).map(|day| format!("Day {day}: nothing")).collect();
    put(&memories, "Log", "log", &["The zeppelin landed"]).await;
    put(&memories, "Log", "log", &log.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let answer = ask(&memories, MemoryQuery { facts: 3, ..words("zeppelin landing") }).await;
    assert_eq!(facts(&answer.entities[0]), ["The zeppelin landed", "Day 198: nothing", "Day 199: nothing"]);
    assert_eq!(answer.entities[0].fact_count, 201);
    let both = MemoryQuery { name: Some("log".to_owned()), facts: 2, ..words("nothing day 7") };
    assert_eq!(ask(&memories, both).await.total, 1);
    let neither = MemoryQuery { name: Some("log".to_owned()), ..words("submarine") };
    assert_eq!(ask(&memories, neither).await.total, 0);
}

#[tokio::test]
async fn an_unknown_name_is_answered_with_similar_ones() {
    let dir = tempfile::tempdir().unwrap();
    let memories = open(dir.path());
    put(&memories, "Ada Lovelace", "person", &[]).await;
    let answer = ask(&memories, named("Ada King")).await;
    assert!(answer.entities.is_empty());
    assert_eq!(answer.nearest, ["Ada Lovelace"]);
}

#[tokio::test]
async fn frequent_words_cost_little_and_what_has_several_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let memories = open(dir.path());
    let both = "A common word beside a frequent phrase";
    put(&memories, "Old", "thing", &[both]).await;
    for part in 0..6 {
        let text = |at: usize| if at.is_multiple_of(2) { "A common word" } else { "A frequent phrase" };
        let many = (0..500).map(|at| entity(&format!("n{part} {at}"), "thing", &[text(at)]));
        memories.upsert(ada(), many.collect(), NameMatch::Exact).await.unwrap();
    }
    let answer = ask(&memories, words("common frequent")).await;
    assert_eq!(answer.entities[0].name, "Old");
    assert!(!answer.exact && answer.total >= 1_000);
    let answer = ask(&memories, words("n3 17 common")).await;
    assert_eq!(answer.entities[0].name, "n3 17");
    let of_kind = MemoryQuery { kind: Some("other".to_owned()), ..words("common") };
    assert_eq!(ask(&memories, of_kind).await.total, 0);
}
