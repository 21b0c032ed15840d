//! Worker process that parses a PDF. Files from the web may attack parsers, so the process is limited and sandboxed,
//! and can be killed at any time; it writes each page as soon as it is parsed.

use super::layout::PageText;
use super::text_device::TextDevice;
use hayro_interpret::hayro_syntax::{LoadPdfError, Pdf, page};
use hayro_interpret::{Context, InterpreterCache, InterpreterSettings, TransformExt, interpret_page};
use octo_toolkit::pdf_text::{PdfFault, WorkerMessage};
use std::io::{self, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Maximum number of pages read; more are only counted.
const MAX_PAGES: usize = 3_000;
/// Maximum bytes of text per page.
const MAX_PAGE_BYTES: usize = 1 << 20;
/// Maximum characters of title and author.
const MAX_FIELD_CHARS: usize = 300;

/// Entry point of the process. It is already sandboxed.
pub fn read_pdf(input: impl Read, output: impl Write) -> io::Result<()> {
    // Panics on unreadable pages are expected and not printed.
    std::panic::set_hook(Box::new(|_| {}));
    extract_pdf(input, output)
}

/// Reads a PDF and writes lines of JSON.
pub fn extract_pdf(mut input: impl Read, mut output: impl Write) -> io::Result<()> {
    let mut bytes = Vec::new();
    input.read_to_end(&mut bytes)?;
    let pdf = match catch_unwind(|| Pdf::new(bytes)) {
        Ok(Ok(pdf)) => pdf,
        Ok(Err(LoadPdfError::Decryption(_))) => {
            return write_message(&mut output, &WorkerMessage::Fault(PdfFault::Locked));
        }
        Ok(Err(LoadPdfError::Invalid)) | Err(_) => {
            return write_message(&mut output, &WorkerMessage::Fault(PdfFault::Broken));
        }
    };
    let pages = pdf.pages();
    let about = pdf.metadata();
    write_message(
        &mut output,
        &WorkerMessage::About {
            pages: pages.len(),
            title: about.title.as_deref().and_then(decode_field),
            author: about.author.as_deref().and_then(decode_field),
        },
    )?;
    let cache = InterpreterCache::new();
    for page in pages.iter().take(MAX_PAGES) {
        let read = catch_unwind(AssertUnwindSafe(|| page_text(page, &cache)));
        let (text, unknown) = read.map_or((None, 0), |(text, unknown)| (Some(text), unknown));
        write_message(&mut output, &WorkerMessage::Page { text, unknown })?;
    }
    write_message(&mut output, &WorkerMessage::End)
}

fn page_text<'a>(page: &page::Page<'a>, cache: &InterpreterCache<'a>) -> (String, usize) {
    let upright = page.initial_transform(true).to_kurbo();
    let (width, height) = page.render_dimensions();
    let frame = hayro_interpret::kurbo::Rect::new(0.0, 0.0, f64::from(width), f64::from(height));
    let mut context = Context::new(upright, frame, cache, page.xref(), InterpreterSettings::default());
    let mut letters = TextDevice::new(PageText::new(MAX_PAGE_BYTES));
    interpret_page(page, &mut context, &mut letters);
    (letters.page.finish(), letters.unmapped)
}

fn write_message(output: &mut impl Write, told: &WorkerMessage) -> io::Result<()> {
    let mut line = serde_json::to_vec(told)?;
    line.push(b'\n');
    output.write_all(&line)?;
    output.flush()
}

/// Text of a metadata field, which is UTF-16 or UTF-8 with a byte order mark, or nearly Latin-1.
fn decode_field(bytes: &[u8]) -> Option<String> {
    let text = match bytes {
        [0xfe, 0xff, rest @ ..] => decode_utf16(rest, u16::from_be_bytes),
        [0xff, 0xfe, rest @ ..] => decode_utf16(rest, u16::from_le_bytes),
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8_lossy(rest).into_owned(),
        all => match std::str::from_utf8(all) {
            Ok(text) => text.to_owned(),
            Err(_) => all.iter().map(|byte| char::from(*byte)).collect(),
        },
    };
    let text: String =
        text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(MAX_FIELD_CHARS).collect();
    (!text.is_empty()).then_some(text)
}

fn decode_utf16(bytes: &[u8], unit: impl Fn([u8; 2]) -> u16) -> String {
    let units = bytes.as_chunks::<2>().0.iter().map(|pair| unit(*pair));
    char::decode_utf16(units).map(|letter| letter.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

#[cfg(test)]
mod tests {
    use super::decode_field;

    #[test]
    fn fields_are_read_in_every_encoding_they_come_in() {
        for (bytes, text) in [
            (&b"Plain  title\n"[..], Some("Plain title")),
            (b"\xfe\xff\0G\0r\0\xfc\0n", Some("Grün")),
            (b"\xff\xfeG\0r\0\xfc\0n\0", Some("Grün")),
            (b"\xef\xbb\xbfGr\xc3\xbcn", Some("Grün")),
            (b"Gr\xc3\xbcn", Some("Grün")),
            (b"Gr\xfcn", Some("Grün")),
            (b"  ", None),
            (b"\xfe\xff\xd8", None),
        ] {
            assert_eq!(decode_field(bytes).as_deref(), text, "{bytes:?}");
        }
    }
}
