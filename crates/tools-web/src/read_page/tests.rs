//! Pages read over loopback.

mod document_ownership;
mod script_pages;

use super::slice_content;
use crate::fake_server::{FakeServer, bench, html, json};
use crate::readability_toolbox;
use octo_toolkit::{Kind, ToolFixture};
use serde_json::{Value, json as value};

const PAGE: &str = "<html lang=en><head><title>Tea - Site</title><meta name=author content='Ann Lee'><meta name=description content='About tea.'></head><body>\
    <nav><a href=/>Home page menu</a></nav><main><article><h1>Tea in the morning</h1><h2>Water</h2><p>The water should be hot, but it must not boil for long, since tea wants air.</p>\
    <table><tr><th>Sort</th><th>Minutes</th></tr><tr><td>green</td><td>2</td></tr></table><h2>Leaves</h2><p>Take one spoon for every cup, and one more for the pot, as people say.</p>\
    <p><img src=/cup.png alt=Cup> Then wait, and <a href=/milk>add milk</a> if you must, although nobody should.</p></article></main><footer>Imprint</footer></body></html>";

async fn site(page: &'static str) -> (FakeServer, ToolFixture) {
    let fake = FakeServer::serve(move |seen| match seen.path.as_str() {
        "/" => html(200, page),
        "/md" => {
            (200, ("content-type", "text/markdown".to_owned()), "# Own\n\nwritten as Markdown\n".to_owned())
        }
        "/data" => json(value!({"a": [1, 2]})),
        "/pdf" => (200, ("content-type", "application/pdf".to_owned()), "%PDF-1.7 x".to_owned()),
        "/llms.txt" => (200, ("content-type", "text/plain".to_owned()), "# Site\n\nfor models".to_owned()),
        _ => html(404, "<title>Not here</title>"),
    })
    .await;
    (fake, bench(readability_toolbox()))
}

async fn read(bench: &ToolFixture, input: Value) -> Value {
    bench.call("read_page", input.clone()).await.unwrap_or_else(|error| panic!("{input}: {error:?}"))
}

#[tokio::test]
async fn a_page_is_read_as_markdown_with_what_it_says_of_itself() {
    let (fake, bench) = site(PAGE).await;
    let found = read(&bench, value!({"url": fake.url.as_str()})).await;
    let content = found["content"].as_str().unwrap();
    assert!(content.contains("## Water") && content.contains("| green | 2 |"), "{content}");
    assert!(content.contains(&format!("[add milk]({}milk)", fake.url)), "{content}");
    assert!(
        !content.contains("Home page menu") && !content.contains("Imprint") && !content.contains("cup.png"),
        "{content}"
    );
    assert_eq!(
        (&found["byline"], &found["excerpt"], &found["lang"]),
        (&value!("Ann Lee"), &value!("About tea."), &value!("en"))
    );
    assert_eq!((&found["truncated"], &found["cached"]), (&value!(false), &value!(false)));
    assert!(fake.requests()[0].headers["accept"].to_str().unwrap().starts_with("text/markdown"));
    let pictures = read(&bench, value!({"url": fake.url.as_str(), "include_images": true})).await;
    assert!(pictures["content"].as_str().unwrap().contains("cup.png"), "{pictures}");
}

#[tokio::test]
async fn a_page_once_read_is_not_fetched_again_until_told_to() {
    let (fake, bench) = site(PAGE).await;
    let url = fake.url.as_str();
    let first = read(&bench, value!({"url": url})).await;
    let handle = &first["handle"];
    assert_eq!(read(&bench, value!({"url": url})).await["cached"], true);
    let outline = read(&bench, value!({"url": url, "handle": handle, "outline": true})).await;
    assert_eq!(outline["content"], "");
    let names: Vec<&str> =
        outline["outline"].as_array().unwrap().iter().map(|one| one["text"].as_str().unwrap()).collect();
    assert!(names.ends_with(&["Water", "Leaves"]), "{names:?}");
    let section = read(&bench, value!({"url": url, "handle": handle, "section": "leaves"})).await;
    assert!(section["content"].as_str().unwrap().starts_with("## Leaves"), "{section}");
    let query = read(&bench, value!({"url": url, "handle": handle, "query": "how many spoons"})).await;
    assert!(query["passages"][0]["text"].as_str().unwrap().contains("one spoon"), "{query}");
    let (mut whole, mut next) = (String::new(), Some(value!(0)));
    while let Some(offset) = next {
        let part =
            read(&bench, value!({"url": url, "handle": handle, "offset": offset, "max_chars": 90})).await;
        whole.push_str(part["content"].as_str().unwrap());
        next = part.get("next").cloned();
        assert_eq!(part["truncated"], next.is_some());
    }
    assert_eq!(whole, first["content"].as_str().unwrap());
    assert_eq!(fake.requests().len(), 1);
    read(&bench, value!({"url": url, "use_cache": false})).await;
    assert_eq!(fake.requests().len(), 2);
    let error = bench.call("read_page", value!({"url": url, "handle": "page_0"})).await.unwrap_err();
    assert_eq!(error.kind, Kind::NotFound);
    let error = bench.call("read_page", value!({"url": url, "section": "Sugar"})).await.unwrap_err();
    assert!(error.text().contains("Leaves"), "{error}");
}

#[tokio::test]
async fn what_is_no_page_is_read_as_what_it_is_or_handed_on() {
    let (fake, bench) = site(PAGE).await;
    let at = |path: &str| fake.url.join(path).unwrap().to_string();
    let found = read(&bench, value!({"url": at("md")})).await;
    assert_eq!(
        (found["title"].as_str(), found["content"].as_str()),
        (Some("Own"), Some("# Own\n\nwritten as Markdown\n"))
    );
    let found = read(&bench, value!({"url": at("data")})).await;
    assert!(found["content"].as_str().unwrap().contains("\"a\": ["), "{found}");
    let found = read(&bench, value!({"url": at("x"), "llms_txt": true})).await;
    assert!(found["content"].as_str().unwrap().contains("for models"));
    let error = bench.call("read_page", value!({"url": at("pdf")})).await.unwrap_err();
    assert!(error.text().contains("PDF is damaged"), "{error}");
    let error = bench.call("read_page", value!({"url": at("gone")})).await.unwrap_err();
    assert!(error.kind == Kind::NotFound && error.text().contains("Not here"), "{error}");
}

#[tokio::test]
async fn a_page_that_scripts_fill_says_so() {
    let shell = "<html><head><title>App</title></head><body><div id=root></div><script src=/app.js></script></body></html>";
    let (fake, bench) = site(shell).await;
    let found = read(&bench, value!({"url": fake.url.as_str()})).await;
    assert!(
        found["note"].as_str().unwrap().contains("llms.txt")
            && found["content"].as_str().unwrap().contains("for models"),
        "{found}"
    );
    let alone =
        FakeServer::serve(move |seen| if seen.path == "/" { html(200, shell) } else { html(404, "") }).await;
    let error = bench.call("read_page", value!({"url": alone.url.as_str()})).await.unwrap_err();
    assert!(error.text().contains("JavaScript") && error.text().contains("browser_navigate"), "{error}");
}

#[test]
fn parts_join_to_the_whole() {
    let text = "first line ü\nsecond line\nthird line that is rather long\n".repeat(40);
    let whole = text.chars().count();
    for most in [1, 7, 30, 200, whole - 1, whole] {
        let (mut joined, mut offset) = (String::new(), 0);
        loop {
            let part = slice_content(&text, 0..whole, offset, most);
            assert!(part.content.chars().count() <= most);
            joined.push_str(&part.content);
            match part.next {
                Some(next) => offset = next,
                None => break,
            }
        }
        assert_eq!(joined, text, "{most}");
    }
    assert_eq!(slice_content(&text, 5..9, 100, 10).content, "");
}
