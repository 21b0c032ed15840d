//! Pages that only scripts fill, with and without a browser.

use crate::fake_server::{FakeServer, capabilities, html};
use crate::readability_toolbox;
use octo_toolkit::{BoxFuture, Caller, PageRenderer, Render, RenderedPage, ToolError, ToolFixture};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use url::Url;

const SHELL: &str = "<title>App</title><div id=root></div><script src=/app.js></script>";

/// Renders a page of this many words, or fails.
struct FakeRenderer(Option<usize>);

impl PageRenderer for FakeRenderer {
    fn render<'a>(
        &'a self,
        caller: &'a Caller,
        url: &'a Url,
        within: Duration,
    ) -> BoxFuture<'a, Result<RenderedPage, ToolError>> {
        Box::pin(async move {
            assert!(within <= Duration::from_secs(15));
            let words = self.0.ok_or_else(|| ToolError::unavailable("There is no Chromium."))?;
            let html = format!(
                "<title>App of {}</title><main><p>{}</p></main>",
                caller.principal.subject,
                "word ".repeat(words)
            );
            Ok(RenderedPage {
                url: url.join("/shown").unwrap(),
                status: Some(200),
                html,
                complete: words != 60,
            })
        })
    }
}

async fn read(renderer: Option<FakeRenderer>) -> Result<serde_json::Value, ToolError> {
    let fake = FakeServer::serve(|seen| match seen.path.as_str() {
        "/" => html(200, SHELL),
        _ => html(404, ""),
    })
    .await;
    let capabilities = match renderer {
        Some(shows) => capabilities().with(Render::new(Arc::new(shows))),
        None => capabilities(),
    };
    ToolFixture::new(readability_toolbox(), capabilities)
        .call("read_page", json!({"url": fake.url.as_str()}))
        .await
}

#[tokio::test]
async fn the_browser_reads_what_only_scripts_show_and_it_is_said() {
    let found = read(Some(FakeRenderer(Some(80)))).await.unwrap();
    assert_eq!((&found["word_count"], &found["title"]), (&json!(80), &json!("App of local")));
    assert!(found["url"].as_str().unwrap().ends_with("/shown"), "{found}");
    assert!(found["note"].as_str().unwrap().contains("read through the browser"), "{found}");
    let unfinished = read(Some(FakeRenderer(Some(60)))).await.unwrap();
    assert!(unfinished["note"].as_str().unwrap().contains("still loading"), "{unfinished}");
}

#[tokio::test]
async fn without_a_browser_or_with_one_that_fails_the_way_on_is_told() {
    for (shows, said) in [
        (None, "enable the toolbox `browser`"),
        (Some(FakeRenderer(None)), "The browser could not render it"),
        (
            Some(FakeRenderer(Some(0))),
            "the page may load its content later. Open it with browser_navigate, wait",
        ),
    ] {
        let error = read(shows).await.unwrap_err();
        assert!(error.text().contains("JavaScript") && error.text().contains(said), "{error}");
    }
}
