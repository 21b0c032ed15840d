//! Decodes bytes to text: by byte order mark, header, declaration in the markup, and otherwise by detection.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

/// Bytes at the beginning of a page that are searched for a declared encoding.
const PRESCAN_BYTES: usize = 4_096;
/// Bytes used for detection.
const MAX_DETECT_BYTES: usize = 64 * 1_024;

pub struct DecodedText {
    pub text: String,
    pub encoding: &'static str,
}

/// Decodes a body. Invalid bytes become U+FFFD; a character truncated at the end is dropped.
pub fn decode(body: &[u8], content_type: Option<&str>, cut: bool) -> DecodedText {
    if let Some((encoding, length)) = Encoding::for_bom(body) {
        return decode_as(encoding, body.get(length..).unwrap_or_default(), cut);
    }
    let declared = content_type.and_then(charset_of).or_else(|| declared_in_markup(body));
    decode_as(choose_encoding(declared, body, cut), body, cut)
}

fn decode_as(encoding: &'static Encoding, body: &[u8], cut: bool) -> DecodedText {
    let body = if cut && encoding == UTF_8 { without_partial_char(body) } else { body };
    let (text, _) = encoding.decode_without_bom_handling(body);
    DecodedText { text: text.into_owned(), encoding: encoding.name() }
}

/// The `charset` parameter of a content type.
fn charset_of(content_type: &str) -> Option<&'static Encoding> {
    let mut parameters = content_type.split(';').skip(1);
    let charset = parameters.find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("charset").then_some(value)
    })?;
    Encoding::for_label(charset.trim().trim_matches(['"', '\'']).as_bytes())
}

/// Encoding declared near the beginning of an HTML or XML document.
fn declared_in_markup(body: &[u8]) -> Option<&'static Encoding> {
    let start: Vec<u8> = body.iter().take(PRESCAN_BYTES).map(u8::to_ascii_lowercase).collect();
    let text = String::from_utf8_lossy(&start);
    let xml = text.trim_start().strip_prefix("<?xml").and_then(|rest| rest.split_once("?>"));
    let by_xml = xml.and_then(|(declaration, _)| value_after(declaration, "encoding"));
    let metas = text.split("<meta").skip(1).filter_map(|rest| rest.split('>').next());
    let label = by_xml.or_else(|| metas.filter_map(|meta| value_after(meta, "charset")).next())?;
    let encoding = Encoding::for_label(label.as_bytes())?;
    // A declaration that is readable byte by byte is not in UTF-16.
    Some(if encoding == UTF_16LE || encoding == UTF_16BE { UTF_8 } else { encoding })
}

/// The value in `name=value`, `name = "value"`.
fn value_after<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(name)?;
    let rest = rest.trim_start().strip_prefix('=')?.trim_start().trim_start_matches(['"', '\'']);
    rest.split(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ';' | '/' | '>'))
        .next()
        .filter(|value| !value.is_empty())
}

/// Uses the declared encoding unless the bytes contradict it.
fn choose_encoding(declared: Option<&'static Encoding>, body: &[u8], cut: bool) -> &'static Encoding {
    let utf8 = std::str::from_utf8(if cut { without_partial_char(body) } else { body }).is_ok();
    match declared {
        // Long runs of valid UTF-8 do not occur by chance; servers with an outdated default do.
        Some(encoding) if encoding == WINDOWS_1252 && utf8 && !body.is_ascii() => UTF_8,
        Some(encoding) if encoding == UTF_8 && !utf8 && mostly_broken(body) => detect_encoding(body),
        Some(encoding) => encoding,
        None if utf8 => UTF_8,
        None => detect_encoding(body),
    }
}

/// Whether invalid bytes outnumber valid non-ASCII characters.
fn mostly_broken(body: &[u8]) -> bool {
    let (mut right, mut wrong) = (0, 0);
    for chunk in body.utf8_chunks() {
        right += chunk.valid().chars().filter(|c| !c.is_ascii()).count();
        wrong += usize::from(!chunk.invalid().is_empty());
    }
    wrong > right
}

fn detect_encoding(body: &[u8]) -> &'static Encoding {
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Allow);
    detector.feed(
        body.get(..body.len().min(MAX_DETECT_BYTES)).unwrap_or_default(),
        body.len() <= MAX_DETECT_BYTES,
    );
    detector.guess(None, Utf8Detection::Allow)
}

/// The body without a partial character at the end.
fn without_partial_char(body: &[u8]) -> &[u8] {
    let tail = body.len().saturating_sub(3);
    let last = body.iter().skip(tail).rposition(|byte| *byte >= 0xc0).map(|at| at + tail);
    let Some(last) = last else { return body };
    let cut = body.get(last..).unwrap_or_default();
    match std::str::from_utf8(cut) {
        Err(error) if error.error_len().is_none() => body.get(..last).unwrap_or_default(),
        _ => body,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_found_by_mark_header_page_and_guess() {
        let russian =
            encoding_rs::WINDOWS_1251.encode("Съешь же ещё этих мягких французских булок, да выпей чаю").0;
        let rows: &[(&[u8], Option<&str>, &str, &str)] = &[
            (b"\xef\xbb\xbfgr\xc3\xbcn", Some("text/html; charset=iso-8859-1"), "grün", "UTF-8"),
            (b"\xff\xfeg\0\xfc\0", None, "gü", "UTF-16LE"),
            (b"gr\xfcn", Some("text/html; charset=\"ISO-8859-1\""), "grün", "windows-1252"),
            (b"gr\xc3\xbcn", Some("text/html; charset=iso-8859-1"), "grün", "UTF-8"),
            (b"gr\xc3\xbcn", Some("text/html"), "grün", "UTF-8"),
            (b"<meta charset=windows-1252>gr\xfcn", None, "<meta charset=windows-1252>grün", "windows-1252"),
            (
                b"<META http-equiv=x content='text/html; charset=koi8-r'>\xc4\xc1",
                None,
                "<META http-equiv=x content='text/html; charset=koi8-r'>да",
                "KOI8-R",
            ),
            (b"<meta charset=utf-16>\xc3\xbc", None, "<meta charset=utf-16>ü", "UTF-8"),
            (
                b"<?xml version='1.0' encoding='Shift_JIS'?>\x82\xa0",
                None,
                "<?xml version='1.0' encoding='Shift_JIS'?>あ",
                "Shift_JIS",
            ),
            (&russian, None, "Съешь же ещё этих мягких французских булок, да выпей чаю", "windows-1251"),
            (
                &russian,
                Some("text/html; charset=utf-8"),
                "Съешь же ещё этих мягких французских булок, да выпей чаю",
                "windows-1251",
            ),
            (b"\xc3\xbc\xc3\xbc\xc3\xbc\xff", Some("text/html; charset=utf-8"), "üüü\u{fffd}", "UTF-8"),
            (b"x", Some("text/html; charset=nonsense"), "x", "UTF-8"),
            (b"", None, "", "UTF-8"),
        ];
        for (body, content_type, text, encoding) in rows {
            let decoded = decode(body, *content_type, false);
            assert_eq!((decoded.text.as_str(), decoded.encoding), (*text, *encoding), "{content_type:?}");
        }
    }

    #[test]
    fn a_character_that_was_cut_is_left_out() {
        assert_eq!(decode(b"ab\xe2\x82", None, true).text, "ab");
        assert_eq!(decode(b"ab\xe2\x82\xac", None, true).text, "ab€");
        assert_eq!(decode(b"ab\xe2\x82", Some("text/plain; charset=utf-8"), true).text, "ab");
    }
}
