//! PDF files, each parsed in a process of its own.

mod hostile_pdfs;
mod pdf_files;
mod pdf_reading;

use crate::fetch_toolbox;
use octo_toolkit::exec::launcher;
use octo_toolkit::{Pdf, ToolFixture};
use serde_json::{Value, json};

/// The worker process that the other tests start: this binary.
#[test]
#[ignore = "worker process, started by other tests"]
fn worker() {
    // Ends the line that the test runner has started.
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
