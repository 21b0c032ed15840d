//! Files made to hang, exhaust memory or crash the parser.
#![expect(clippy::disallowed_methods, reason = "the test inspects its own processes")]

use super::{pdf_capability, pdf_files};
use crate::pdf::{read, worker};
use bytes::Bytes;
use octo_toolkit::pdf::WorkerEnd;
use octo_toolkit::{Kind, Pdf};
use std::time::{Duration, Instant};

const TEST_TIMEOUT: Duration = Duration::from_secs(15);

/// Grant whose processes can be told from those of other tests by an extra argument, which the test runner ignores.
fn pdf_with_marker(mark: &str) -> Pdf {
    let mut words = octo_toolkit::exec::launcher::test_launcher("pdf::tests::worker").unwrap();
    words.push(mark.into());
    Pdf::new(words)
}

/// Number of running worker processes with this marker.
fn count_workers(mark: &str) -> usize {
    let has_mark = |id: &str| {
        let line = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        line.windows(mark.len()).any(|window| window == mark.as_bytes())
    };
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    all.filter(|entry| has_mark(&entry.file_name().to_string_lossy())).count()
}

#[tokio::test]
async fn a_file_that_grows_to_a_gigabyte_ends_its_own_reader_only() {
    let file = pdf_files::bomb(1 << 30);
    assert!(file.len() < 8 << 20, "{}", file.len());
    let begun = Instant::now();
    let told = read(&pdf_capability(), Bytes::from(file), true, TEST_TIMEOUT).await;
    let error = told.unwrap_err();
    assert!(matches!(error.kind, Kind::TooLarge | Kind::Invalid), "{error}");
    assert!(begun.elapsed() < TEST_TIMEOUT, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_file_that_takes_for_ever_is_ended_at_its_time() {
    let begun = Instant::now();
    let heard = pdf_capability()
        .extract(Bytes::from(pdf_files::billion_laughs(9)), Duration::from_millis(900))
        .await
        .unwrap();
    assert_eq!(heard.end, WorkerEnd::TimedOut, "{}", String::from_utf8_lossy(&heard.lines));
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    let error =
        read(&pdf_capability(), Bytes::from(pdf_files::billion_laughs(9)), true, Duration::from_secs(1))
            .await
            .unwrap_err();
    assert_eq!(error.kind, Kind::Timeout, "{error}");
}

#[tokio::test]
async fn nobody_works_on_for_a_call_that_was_given_up() {
    let mark = format!("given-up-{}", std::process::id());
    let pdf = pdf_with_marker(&mark);
    let call =
        tokio::spawn(
            async move { pdf.extract(Bytes::from(pdf_files::billion_laughs(9)), TEST_TIMEOUT).await },
        );
    let late = Instant::now() + Duration::from_secs(10);
    while count_workers(&mark) == 0 {
        assert!(Instant::now() < late, "nobody works");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    call.abort();
    while count_workers(&mark) > 0 {
        assert!(Instant::now() < late, "the process goes on");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn trees_that_lead_to_themselves_end() {
    let catalogue = || b"<< /Type /Catalog /Pages 2 0 R >>".to_vec();
    let rows = [
        ("a tree in itself", vec![b"<< /Type /Pages /Kids [2 0 R] /Count 9 >>".to_vec()]),
        (
            "a parent below its child",
            vec![
                b"<< /Type /Pages /Kids [3 0 R] /Count 1 /Parent 3 0 R >>".to_vec(),
                b"<< /Type /Pages /Kids [2 0 R 3 0 R] /Count 1 /Parent 2 0 R >>".to_vec(),
            ],
        ),
        (
            "a drawing that draws itself",
            vec![
                b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_vec(),
                b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R /Resources << /XObject << /X 4 0 R >> >> >>".to_vec(),
                pdf_files::stream(
                    "/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /X 4 0 R >> >>",
                    b"/X Do /X Do",
                ),
            ],
        ),
        ("a length that is itself", vec![b"<< /Type /Pages /Kids [3 0 R] /Count 1 /Length 2 0 R >>".to_vec()]),
        ("millions of pages", vec![b"<< /Type /Pages /Kids [] /Count 4000000000 >>".to_vec()]),
        ("arrays in arrays", vec!["[".repeat(100_000).into_bytes()]),
    ];
    for (what, rest) in rows {
        let objects: Vec<Vec<u8>> = std::iter::once(catalogue()).chain(rest).collect();
        let file = Bytes::from(pdf_files::file(&objects, ""));
        let begun = Instant::now();
        let error = read(&pdf_capability(), file, true, TEST_TIMEOUT).await.unwrap_err();
        assert!(matches!(error.kind, Kind::Invalid | Kind::TooLarge), "{what}: {error}");
        assert!(begun.elapsed() < Duration::from_secs(10), "{what}: {:?}", begun.elapsed());
    }
}

/// Deterministic random number generator.
struct Lcg(u64);

impl Lcg {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % most.max(1)
    }
}

fn mutate(file: &[u8], numbers: &mut Lcg) -> Vec<u8> {
    let mut out = file.to_vec();
    for _ in 0..=numbers.below(12) {
        let at = numbers.below(out.len());
        match numbers.below(5) {
            0 => out[at] = u8::try_from(numbers.below(256)).unwrap(),
            1 => out[at] ^= 1 << numbers.below(8),
            2 => drop(out.drain(at..(at + numbers.below(40)).min(out.len()))),
            3 => {
                let copy: Vec<u8> = out[at..(at + 30).min(out.len())].to_vec();
                let there = numbers.below(out.len());
                out.splice(there..there, copy);
            }
            _ => {
                let number =
                    ["-1", "0", "4294967295", "99999999999999999999", "1e400", "/"][numbers.below(6)];
                out.splice(at..at, number.bytes());
            }
        }
        if out.is_empty() {
            out.push(b'%');
        }
    }
    out
}

/// The same files as in the next test, without a process around each: only the parser's own limits apply.
#[test]
fn mutated_files_are_read_or_refused_and_nothing_panics_through() {
    let seeds = [
        pdf_files::with_pages(
            &["First page of some text", "Second"],
            pdf_files::plain,
            "/Info << /Title (T) >>",
        ),
        pdf_files::with_pages(&["First page of some text", "Second"], pdf_files::deflated, ""),
    ];
    let mut numbers = Lcg(7);
    let (mut read, mut refused) = (0, 0);
    for at in 0..500 {
        let file = mutate(&seeds[at % seeds.len()], &mut numbers);
        let mut told = Vec::new();
        worker::extract_pdf(&file[..], &mut told).unwrap();
        match String::from_utf8(told).unwrap() {
            told if told.starts_with("{\"about\"") && told.ends_with("\"end\"\n") => read += 1,
            told if told.starts_with("{\"fault\"") => refused += 1,
            told => panic!("{told}"),
        }
    }
    assert!(read > 100 && refused > 10, "{read} read, {refused} refused");
}

#[tokio::test]
async fn mutated_files_leave_their_processes_alone() {
    let seed = pdf_files::with_pages(&["First page of some text", "Second"], pdf_files::deflated, "");
    let mut numbers = Lcg(7);
    let mark = format!("mutated-{}", std::process::id());
    let pdf = pdf_with_marker(&mark);
    let calls: Vec<_> = (0..40)
        .map(|_| {
            let (pdf, file): (Pdf, _) = (pdf.clone(), Bytes::from(mutate(&seed, &mut numbers)));
            tokio::spawn(async move { read(&pdf, file, true, Duration::from_secs(30)).await })
        })
        .collect();
    for call in calls {
        if let Err(error) = call.await.unwrap() {
            assert!(matches!(error.kind, Kind::Invalid | Kind::TooLarge), "{error}");
        }
    }
    assert_eq!(count_workers(&mark), 0);
}
