use super::*;

fn document(name: &str, description: &str) -> Document {
    Document { name: name.to_owned(), description: description.to_owned(), ..Document::default() }
}

fn group(name: &str, text: &str, documents: &[(&str, &str)]) -> Group {
    let documents = documents.iter().map(|(name, description)| document(name, description)).collect();
    Group { name: name.to_owned(), text: text.to_owned(), documents }
}

fn files(text: &str) -> Group {
    let tools = [
        ("read_file", "Read the content of a file."),
        ("writeFile", "Write text to a file; it replaces what was there."),
        ("list_dir", "List the entries of a directory."),
    ];
    group("files", text, &tools)
}

fn index() -> FieldIndex {
    let mail = [("send", "Send a message to somebody."), ("search", "Search messages for words.")];
    let search = [("search", "Search the web."), ("fetch", "Fetch a page of the web.")];
    let zoo = [("查询天气", "查询指定城市的天气预报"), ("do", "Does a thing.")];
    FieldIndex::default().with_groups([
        files("Files on disk"),
        group("mail", "Electronic mail", &mail),
        group("web", "", &search),
        group("zoo", "", &zoo),
    ])
}

fn names<'a>(hits: &[Hit<'a>]) -> Vec<String> {
    hits.iter().map(|hit| format!("{}.{}", hit.group, hit.name)).collect()
}

fn found(index: &FieldIndex, query: &str) -> Vec<String> {
    names(&index.search(query, 10, |_| true))
}

#[test]
fn queries_find_documents_in_order() {
    let index = index();
    let rows: &[(&str, &[&str])] = &[
        ("reading files", &["files.read_file", "files.writeFile", "files.list_dir"]),
        ("write to a file", &["files.writeFile", "files.read_file", "files.list_dir"]),
        ("directories", &["files.list_dir"]),
        ("electronic", &["mail.search", "mail.send"]),
        ("search in messages", &["mail.search", "web.search", "mail.send"]),
        ("天气", &["zoo.查询天气"]),
        ("the", &[]),
        ("nothing-like-it", &[]),
        ("", &[]),
        ("?!", &[]),
    ];
    for (query, expected) in rows {
        assert_eq!(&found(&index, query), expected, "{query}");
    }
}

#[test]
fn a_whole_name_comes_first() {
    let loud =
        [("file_reader", "read_file read file read file read file"), ("read_file_read_file", "read file")];
    let index = index().with_groups([group("loud", "read file read_file", &loud)]);
    for query in ["read_file", "READ-FILE", "readFile", "files__read_file", "files.read_file", " read file? "]
    {
        let hits = index.search(query, 10, |_| true);
        assert_eq!(names(&hits).first().map(String::as_str), Some("files.read_file"), "{query}");
        assert_eq!(hits.iter().filter(|hit| hit.is_exact).count(), 1, "{query}");
    }
    // Stop words and names of several servers.
    assert_eq!(found(&index, "do"), ["zoo.do"]);
    let hits = index.search("search", 10, |_| true);
    let exact: Vec<bool> = hits.iter().map(|hit| hit.is_exact).collect();
    assert_eq!(exact, [true, true], "{hits:?}");
}

#[test]
fn other_spellings_of_a_name_do_not_push_it_out() {
    let spellings = ["mail_send", "mailSend", "m_ail_send", "MAIL.send", "mail-send", "ma.il.send"];
    let spellings = spellings.map(|name| (name, "mail send mail send"));
    let index = index().with_groups([group("evil", "mail send", &spellings)]);
    for query in ["mail__send", "mail:send", " mail__send"] {
        let hits = index.search(query, 10, |_| true);
        assert_eq!(names(&hits).first().map(String::as_str), Some("mail.send"), "{query}");
        assert_eq!(hits.iter().filter(|hit| hit.is_exact).count(), 3, "{query}");
    }
    // A name as it is written comes before others, and none is lost.
    let hits = index.search("MAIL.send", 10, |_| true);
    assert_eq!(names(&hits).first().map(String::as_str), Some("evil.MAIL.send"));
    assert_eq!(hits.iter().filter(|hit| hit.group == "evil").count(), 6);
}

#[test]
fn only_documents_of_included_groups_are_found() {
    let index = index();
    let hits: Vec<Hit<'_>> = index.rank("search").hits_in(|group| group == "web").collect();
    assert_eq!(names(&hits), ["web.search"]);
}

#[test]
fn parameters_and_aliases_are_searched_with_less_weight() {
    let named = document("rain", "");
    let aliased = Document { aliases: "rain shower".to_owned(), ..document("wet", "") };
    let described = Document { parameter_texts: "rain in mm".to_owned(), ..document("a", "") };
    let with_parameter = Document { parameter_names: "rain\nsnow".to_owned(), ..document("b", "") };
    let documents = vec![described, with_parameter, aliased, named];
    let index = FieldIndex::default().with_groups([Group { documents, ..group("weather", "", &[]) }]);
    assert_eq!(found(&index, "rain"), ["weather.rain", "weather.wet", "weather.b", "weather.a"]);
}

#[test]
fn a_replaced_group_ranks_as_in_a_fresh_index() {
    let queries =
        ["read a file", "files", "disk", "search", "read_file", "messages of the web", "cloud", "天气预报"];
    let old = index();
    let other =
        group("files", "Files in the cloud", &[("read_file", "Read a file of the cloud."), ("stat", "")]);
    let changes = [
        (old.with_groups([other.clone()]), vec![other.clone()]),
        (old.with_groups([files("gone"), other.clone()]), vec![other]),
        (old.without_group("files").with_groups([files("Files on disk")]), vec![files("Files on disk")]),
        (old.without_group("files"), vec![]),
        (old.without_group("no such group"), vec![files("Files on disk")]),
        (old.with_groups([group("files", "", &[])]), vec![group("files", "", &[])]),
        (old.with_groups([]), vec![files("Files on disk")]),
    ];
    let others = || {
        let rest = index().without_group("files");
        // In another order: slots differ.
        let groups = [
            group("zoo", "", &[("查询天气", "查询指定城市的天气预报"), ("do", "Does a thing.")]),
            group("web", "", &[("search", "Search the web."), ("fetch", "Fetch a page of the web.")]),
        ];
        let mail = [("send", "Send a message to somebody."), ("search", "Search messages for words.")];
        assert_eq!(rest.group_names().collect::<Vec<_>>(), ["mail", "web", "zoo"]);
        groups.into_iter().chain([group("mail", "Electronic mail", &mail)])
    };
    for (at, (changed, groups)) in changes.into_iter().enumerate() {
        let fresh = FieldIndex::default().with_groups(groups.into_iter().chain(others()));
        assert_eq!((changed.len(), changed.is_empty()), (fresh.len(), fresh.is_empty()), "{at}");
        assert_eq!(changed.postings.len(), fresh.postings.len(), "{at}");
        assert_eq!(changed.names.len(), fresh.names.len(), "{at}");
        for query in queries {
            let all = |index: &FieldIndex| format!("{:?}", index.search(query, 100, |_| true));
            assert_eq!(all(&changed), all(&fresh), "{at} {query}");
        }
    }
    // The old snapshot is as it was.
    assert_eq!(
        format!("{:?}", old.search("disk", 9, |_| true)),
        format!("{:?}", index().search("disk", 9, |_| true))
    );
}

#[test]
fn hidden_documents_are_passed_over() {
    let index = index();
    let visible = |hit: &Hit<'_>| hit.name != "read_file";
    assert_eq!(names(&index.search("read a file", 1, visible)), ["files.writeFile"]);
    assert_eq!(names(&index.search("read_file", 1, visible)), ["files.writeFile"]);
    assert!(index.search("read a file", 9, |_| false).is_empty());
    assert!(index.search("read a file", 0, |_| true).is_empty());
    let mut calls = 0;
    let hits = index.search("file", 1, |_| {
        calls += 1;
        true
    });
    assert_eq!((hits.len(), calls), (1, 1));
}

#[test]
fn ties_are_in_the_order_of_names() {
    let same =
        |name: &str| group(name, "", &[("tool_y", "Equal."), ("tool_x", "Equal."), ("tool_x", "Equal.")]);
    let expected = ["one.tool_x", "one.tool_x", "one.tool_y", "two.tool_x", "two.tool_x", "two.tool_y"];
    for groups in [[same("one"), same("two")], [same("two"), same("one")]] {
        let index = FieldIndex::default().with_groups(groups);
        let hits = index.search("equal", 10, |_| true);
        assert_eq!(names(&hits), expected);
        assert_eq!(hits.iter().map(|hit| hit.position).collect::<Vec<_>>(), [1, 2, 0, 1, 2, 0]);
    }
}

#[test]
fn all_documents_of_a_group_are_ranked() {
    let index = index();
    let ranking = index.rank("list what is there");
    let hits: Vec<_> = ranking.group_hits("files").collect();
    assert_eq!(names(&hits), ["files.list_dir", "files.read_file", "files.writeFile"]);
    assert!(
        hits.first().is_some_and(|hit| hit.score > 0.0) && hits.last().is_some_and(|hit| hit.score == 0.0)
    );
    assert!(ranking.group_hits("no such group").next().is_none());
}

#[test]
fn hostile_texts_are_read_in_part() {
    let long = "many different words 很多字 ".repeat(10_000);
    let name = "x".repeat(100_000);
    let hostile = Document {
        name: name.clone(),
        description: long.clone(),
        parameter_names: long.clone(),
        parameter_texts: long.clone(),
        aliases: "\u{0}\u{202e}\u{fffd}".repeat(10_000),
    };
    let empty = Document::default();
    let groups = [
        Group { name: "hostile".to_owned(), text: long.clone(), documents: vec![hostile, empty] },
        Group::default(),
        files(""),
    ];
    let index = FieldIndex::default().with_groups(groups);
    assert_eq!(index.len(), 5);
    assert_eq!(found(&index, "different words").len(), 2);
    assert_eq!(found(&index, "list entries"), ["files.list_dir"]);
    let queries = [
        long,
        name,
        "a ".repeat(500_000),
        "字".repeat(300_000),
        "\u{301}".repeat(500_000),
        "_".repeat(1_000_000),
    ];
    for query in queries {
        assert!(index.search(&query, 10, |_| true).len() <= 2);
    }
    assert!(FieldIndex::default().search("file", 10, |_| true).is_empty());
    assert!(FieldIndex::default().with_groups([Group::default()]).rank("a").group_hits("").next().is_none());
}

#[test]
fn the_text_of_a_group_is_kept_once() {
    let text: String = (0..500).map(|number| format!("word{number} ")).collect();
    let documents: Vec<(String, &str)> = (0..1_000).map(|number| (format!("tool{number}"), "x")).collect();
    let documents: Vec<(&str, &str)> =
        documents.iter().map(|(name, about)| (name.as_str(), *about)).collect();
    let index = FieldIndex::default().with_groups([group("g", &text, &documents), files("Files on disk")]);
    let postings: usize = index.postings.values().map(|list| list.as_slice().len()).sum();
    assert!(postings < 10_000, "{postings}");
    assert_eq!(index.rank("word7").hits().count(), 1_000);
    let index = index.without_group("g");
    assert!(index.rank("word7").hits().next().is_none() && index.rank("disk").hits().next().is_some());
}

#[test]
fn many_documents_of_one_name_are_ranked() {
    let documents = vec![("search", "Search."); 20_000];
    let index = FieldIndex::default().with_groups([group("one", "", &documents)]);
    let positions: Vec<usize> = index.rank("search").hits().map(|hit| hit.position).collect();
    assert_eq!(positions, (0..20_000).collect::<Vec<_>>());
}

#[test]
fn scores_follow_the_formula() {
    // Both documents have the average length; two documents, one of them with the word.
    let index = FieldIndex::default().with_groups([group("g", "", &[("x", "tea"), ("y", "milk")])]);
    for (query, weight) in [("tea", 1.0), ("x", 3.0)] {
        let expected = 2.0_f32.ln() * weight * 2.2 / (weight + 1.2);
        let hits = index.search(query, 9, |_| true);
        assert!((hits[0].score - expected).abs() < 1e-5, "{query}: {hits:?}");
    }
}

#[test]
fn settings_change_the_ranking() {
    let documents = [("a", "tea"), ("b", "tea and a very long story of other things entirely")];
    for (b, is_equal) in [(0.75, false), (0.0, true)] {
        let settings = FieldSettings { b, ..FieldSettings::default() };
        let index = FieldIndex::new(settings).with_groups([group("g", "", &documents)]);
        let scores: Vec<f32> = index.search("tea", 9, |_| true).iter().map(|hit| hit.score).collect();
        assert_eq!(scores[0] == scores[1], is_equal, "{scores:?}");
    }
}

#[test]
fn groups_without_similarities_are_ranked_among_the_others() {
    let index = FieldIndex::default().with_groups([
        group("new", "", &[("heat", "Heat water in a kettle."), ("cool", "Cool water.")]),
        group("old", "", &[("boil", "Boil an egg."), ("water", "Water a plant.")]),
    ]);
    let similarities = |group: &str| (group == "old").then(|| vec![0.35, 0.3]);
    let hits: Vec<Hit<'_>> =
        index.rank("heat water in the kettle").blended(0.7, similarities).hits().collect();
    assert_eq!(names(&hits), ["new.heat", "old.water", "old.boil", "new.cool"]);
    // A tool that fits much better by its meaning comes first.
    let similarities = |group: &str| (group == "old").then(|| vec![0.95, 0.3]);
    let hits: Vec<Hit<'_>> =
        index.rank("heat water in the kettle").blended(0.7, similarities).hits().collect();
    assert_eq!(names(&hits).first().map(String::as_str), Some("old.boil"));
}

/// Similarities to the query of the documents of groups.
type GroupSimilarities<'a> = &'a [(&'a str, &'a [f32])];

#[test]
fn meaning_is_blended_with_words() {
    let index = index();
    let blended = |query, similarities: GroupSimilarities<'_>| {
        let of_group = |group: &str| {
            let known = similarities.iter().find(|(name, _)| *name == group);
            known.map(|(_, similarities)| similarities.to_vec())
        };
        let hits: Vec<Hit<'_>> = index.rank(query).blended(0.7, of_group).hits().collect();
        assert!(hits.iter().all(|hit| hit.score > 0.0 && hit.score <= 1.0), "{hits:?}");
        names(&hits)
    };
    // In no word of the tools.
    let query = "gaze upon the contents";
    assert_eq!(found(&index, query), ["files.read_file"]);
    let rows: &[(&str, GroupSimilarities<'_>, &[&str])] = &[
        (query, &[], &["files.read_file"]),
        ("nothing-like-it", &[("mail", &[0.1, 0.6])], &["mail.search"]),
        ("search in messages", &[("mail", &[0.9, 0.1])], &["mail.send", "web.search", "mail.search"]),
        // A tool that is called by its name comes first, whatever it means.
        ("fetch", &[("mail", &[0.9, 0.9])], &["web.fetch", "mail.search", "mail.send"]),
        ("directories", &[("files", &[-1.0, -0.5, -0.5])], &["files.list_dir"]),
        // Too few, too many and no numbers.
        ("nothing-like-it", &[("mail", &[0.6])], &["mail.send"]),
        ("nothing-like-it", &[("web", &[0.3, 0.6, 1.0]), ("none", &[1.0])], &["web.fetch", "web.search"]),
        ("directories", &[("files", &[f32::NAN, f32::NAN, f32::NAN])], &["files.list_dir"]),
    ];
    for (query, similarities, expected) in rows {
        assert_eq!(&blended(query, similarities), expected, "{query} {similarities:?}");
    }
}
