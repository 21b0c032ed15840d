//! Files as they come from the web, each taken apart in a process of its own.

mod hostile_pdfs;
mod pdf_files;
mod pdf_reading;

use crate::fetch_toolbox;
use octo_toolkit::exec::launcher;
use octo_toolkit::{Pdf, ToolFixture};
use serde_json::{Value, json};

/// The process that the others start: this very binary.
#[test]
#[ignore = "a process that other tests start"]
fn worker() {
    // What the test runner has begun to say on this line is none of ours.
    println!();
    Pdf::confine_worker().unwrap();
    super::read_pdf(std::io::stdin().lock(), std::io::stdout().lock()).unwrap();
}

pub fn pdf_capability() -> Pdf {
    Pdf::new(launcher::test_launcher("pdf::tests::worker").unwrap())
}

async fn fetch(bench: &ToolFixture, url: &str) -> Value {
    let input = json!({"url": url});
    bench.call("fetch_url", input).await.unwrap_or_else(|error| panic!("{url}: {error:?}"))
}

fn bench() -> ToolFixture {
    crate::fake_server::bench(fetch_toolbox())
}

/// A file with two pages, a title and an author.
pub fn sample() -> Vec<u8> {
    let about = "/Info << /Title (Tea) /Author (Ann) >>";
    pdf_files::with_pages(&["Green tea", "Black tea"], pdf_files::deflated, about)
}
