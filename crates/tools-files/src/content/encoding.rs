//! Text encodings.

use crate::content::file_magic;
use crate::fs_read_media;
use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{EncoderResult, Encoding, UTF_8, UTF_16BE, UTF_16LE};
use octo_toolkit::ToolError;

/// Maximum bytes for detecting an encoding, around the first byte that is not UTF-8.
const MAX_SAMPLE_BYTES: usize = 1 << 20;
const EXAMPLE_LABELS: &str = "utf-8, utf-16le, windows-1252, iso-8859-2, shift_jis, gbk, euc-kr, koi8-r";

/// Default of every `encoding` argument.
pub fn utf8() -> String {
    "utf-8".to_owned()
}

/// Encoding requested by the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EncodingChoice {
    /// UTF-8, or the detected encoding.
    Detect,
    Exactly(&'static Encoding),
}

impl EncodingChoice {
    pub fn from_label(label: &str) -> Result<Self, ToolError> {
        match Encoding::for_label_no_replacement(label.trim().as_bytes()) {
            Some(encoding) if encoding == UTF_8 => Ok(Self::Detect),
            Some(encoding) => Ok(Self::Exactly(encoding)),
            None => Err(ToolError::invalid(format!("Unknown encoding {label:?}."))
                .hint(format!("Use one of the WHATWG labels, such as {EXAMPLE_LABELS}."))),
        }
    }
}

/// Encoding of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextEncoding {
    pub encoding: &'static Encoding,
    /// Starts with a byte order mark.
    pub bom: bool,
}

/// Content that is not text, with its detected type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BinaryContent(Option<file_magic::FileKind>);

impl BinaryContent {
    pub fn to_error(&self, path: &str) -> ToolError {
        let what = self.0.map_or("binary data", |kind| kind.name);
        let (tool, which) = match self.0 {
            Some(kind) if fs_read_media::supports(kind) => ("fs_read_media", "to see it"),
            _ => ("fs_read_bytes", "for its bytes"),
        };
        ToolError::invalid(format!("`{path}` is not text but {what}."))
            .hint(format!("Call {tool} {{\"path\": \"{path}\"}} {which}."))
    }
}

/// Byte order mark at the start, and its length.
pub fn read_bom(bytes: &[u8]) -> Option<(TextEncoding, usize)> {
    Encoding::for_bom(bytes).map(|(encoding, length)| (TextEncoding { encoding, bom: true }, length))
}

/// Detects the encoding: `head` is the start of the file, `part` the requested part.
pub fn detect(asked: EncodingChoice, head: &[u8], part: &[u8]) -> Result<TextEncoding, BinaryContent> {
    let marked = read_bom(head).map(|(form, _)| form);
    if let EncodingChoice::Exactly(encoding) = asked {
        let wide = |encoding| encoding == UTF_16LE || encoding == UTF_16BE;
        let same = |form: &TextEncoding| form.encoding == encoding || (wide(form.encoding) && wide(encoding));
        return Ok(marked.filter(same).unwrap_or(TextEncoding { encoding, bom: false }));
    }
    if let Some(form) = marked {
        return Ok(form);
    }
    let kind = file_magic::kind(head);
    if kind.is_some() {
        return Err(BinaryContent(kind));
    }
    if head.contains(&0) {
        let wide = unmarked_wide(head).map(|encoding| TextEncoding { encoding, bom: false });
        return wide.ok_or(BinaryContent(None));
    }
    if part.contains(&0) {
        return Err(BinaryContent(None));
    }
    detect_non_utf16(part).map(|encoding| TextEncoding { encoding, bom: false })
}

/// UTF-16 without a byte order mark: every second byte of western text is almost always zero, and no other is.
fn unmarked_wide(head: &[u8]) -> Option<&'static Encoding> {
    let pairs = head.len() / 2;
    let zeros = |skip: usize| head.iter().skip(skip).step_by(2).filter(|byte| **byte == 0).count();
    let (first, second) = (zeros(0), zeros(1));
    match (first, second) {
        (0, low) if pairs >= 2 && low * 4 >= pairs * 3 => Some(UTF_16LE),
        (high, 0) if pairs >= 2 && high * 4 >= pairs * 3 => Some(UTF_16BE),
        _ => None,
    }
}

fn detect_non_utf16(part: &[u8]) -> Result<&'static Encoding, BinaryContent> {
    if std::str::from_utf8(part).is_ok() {
        return Ok(UTF_8);
    }
    let (mut wrong, mut right, mut seen, mut first) = (0_usize, 0_usize, 0_usize, None);
    for chunk in part.utf8_chunks() {
        seen += chunk.valid().len();
        right += chunk.valid().chars().filter(|char| !char.is_ascii()).count();
        // A character truncated at the end of the part is not an error.
        let cut = seen + chunk.invalid().len() == part.len()
            && std::str::from_utf8(chunk.invalid()).is_err_and(|error| error.error_len().is_none());
        if !chunk.invalid().is_empty() && !cut {
            wrong += 1;
            first.get_or_insert(seen);
        }
        seen += chunk.invalid().len();
    }
    if wrong == 0 || right > wrong * 4 {
        return Ok(UTF_8);
    }
    let telling = part.get(first.unwrap_or(0).saturating_sub(MAX_SAMPLE_BYTES / 2)..).unwrap_or(part);
    let sample = telling.get(..MAX_SAMPLE_BYTES).unwrap_or(telling);
    let control = |byte: &&u8| **byte < 0x20 && !matches!(**byte, b'\t' | b'\n' | b'\r' | 0x0c | 0x1b);
    if sample.iter().filter(control).count() * 20 > sample.len() {
        return Err(BinaryContent(None));
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Allow);
    detector.feed(sample, true);
    Ok(detector.guess(None, Utf8Detection::Deny))
}

impl TextEncoding {
    pub const UTF8: Self = Self { encoding: UTF_8, bom: false };

    pub fn name(self) -> String {
        self.encoding.name().to_ascii_lowercase()
    }

    pub fn is_utf16(self) -> bool {
        self.encoding == UTF_16LE || self.encoding == UTF_16BE
    }

    fn bom_bytes(self) -> &'static [u8] {
        match self.encoding {
            _ if !self.bom => b"",
            wide if wide == UTF_16LE => b"\xff\xfe",
            wide if wide == UTF_16BE => b"\xfe\xff",
            _ => b"\xef\xbb\xbf",
        }
    }

    /// Decodes these bytes, without the byte order mark; returns true if some are invalid.
    /// `whole` means that the bytes do not end within a character.
    pub fn decode(self, bytes: &[u8], whole: bool) -> (String, bool) {
        let bytes = bytes.strip_prefix(self.bom_bytes()).unwrap_or(bytes);
        let mut decoder = self.encoding.new_decoder_without_bom_handling();
        let room = decoder.max_utf8_buffer_length(bytes.len()).unwrap_or(bytes.len());
        let mut text = String::with_capacity(room);
        let (_, _, wrong) = decoder.decode_to_string(bytes, &mut text, whole);
        (text, wrong)
    }

    /// Number of leading bytes that form complete characters.
    pub fn whole_char_len(self, bytes: &[u8]) -> usize {
        let length = |end: usize| self.decode(bytes.get(..end).unwrap_or(bytes), false).0.len();
        let all = length(bytes.len());
        let mut end = bytes.len();
        while end > 1 && bytes.len() - end < 3 && length(end - 1) == all {
            end -= 1;
        }
        end
    }

    /// Encodes a text, with the byte order mark; refuses a character that the encoding lacks.
    pub fn encode(self, text: &str) -> Result<Vec<u8>, ToolError> {
        let mut bytes = self.bom_bytes().to_vec();
        // A byte order mark in the text is not written twice.
        let text = if self.bom { text.strip_prefix('\u{feff}').unwrap_or(text) } else { text };
        match self.encoding {
            utf8 if utf8 == UTF_8 => bytes.extend_from_slice(text.as_bytes()),
            wide if wide == UTF_16LE => bytes.extend(text.encode_utf16().flat_map(u16::to_le_bytes)),
            wide if wide == UTF_16BE => bytes.extend(text.encode_utf16().flat_map(u16::to_be_bytes)),
            narrow => encode_narrow(narrow, text, &mut bytes)?,
        }
        Ok(bytes)
    }
}

fn encode_narrow(encoding: &'static Encoding, text: &str, bytes: &mut Vec<u8>) -> Result<(), ToolError> {
    let name = encoding.name().to_ascii_lowercase();
    let mut encoder = encoding.new_encoder();
    let room = encoder.max_buffer_length_from_utf8_without_replacement(text.len()).unwrap_or(text.len());
    bytes.reserve(room);
    match encoder.encode_from_utf8_to_vec_without_replacement(text, bytes, true) {
        (EncoderResult::InputEmpty, _) => Ok(()),
        (EncoderResult::Unmappable(char), _) => Err(ToolError::invalid(format!(
            "The text contains {char:?} (U+{:04X}), which {name} cannot encode; nothing was written.",
            u32::from(char)
        ))
        .hint("Replace that character, or write the whole file with encoding utf-8.")),
        (EncoderResult::OutputFull, _) => Err(ToolError::internal("encoder output buffer too small")),
    }
}

/// A whole file as text, and how to write it back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecodedText {
    pub text: String,
    encoding: TextEncoding,
    /// Bytes that are not valid UTF-8 are represented by private characters.
    has_stray_bytes: bool,
}

/// A stray byte is this character plus its value: private use, at the very end of Unicode.
const STRAY_BYTE_BASE: u32 = 0x10_FF00;

impl DecodedText {
    pub fn empty() -> Self {
        Self { text: String::new(), encoding: TextEncoding::UTF8, has_stray_bytes: false }
    }

    /// Decodes text that encodes to the same bytes again; refuses anything else, because changing it would damage it.
    pub fn lossless(bytes: &[u8], path: &str) -> Result<Self, ToolError> {
        let form = detect(EncodingChoice::Detect, bytes, bytes).map_err(|binary| binary.to_error(path))?;
        let (text, wrong) = form.decode(bytes, true);
        let plain = Self { text, encoding: form, has_stray_bytes: false };
        let candidate = if wrong && form.encoding == UTF_8 { plain.with_strays(bytes) } else { plain };
        if candidate.encode(&candidate.text).ok().as_deref() == Some(bytes) {
            return Ok(candidate);
        }
        Err(ToolError::invalid(format!(
            "`{path}` has bytes that are not valid {}; changing it as text would damage it.",
            form.name()
        ))
        .hint("Rewrite the whole file with fs_write_text, or fix the bytes with another program."))
    }

    fn with_strays(self, bytes: &[u8]) -> Self {
        let bytes = bytes.strip_prefix(self.encoding.bom_bytes()).unwrap_or(bytes);
        let stray = |byte: &u8| char::from_u32(STRAY_BYTE_BASE + u32::from(*byte));
        let text = bytes.utf8_chunks().fold(String::with_capacity(bytes.len()), |mut text, chunk| {
            text.push_str(chunk.valid());
            text.extend(chunk.invalid().iter().filter_map(stray));
            text
        });
        Self { text, has_stray_bytes: true, ..self }
    }

    /// Encodes a changed text in the encoding of this one.
    pub fn encode(&self, text: &str) -> Result<Vec<u8>, ToolError> {
        if !self.has_stray_bytes {
            return self.encoding.encode(text);
        }
        let mut bytes = self.encoding.bom_bytes().to_vec();
        for char in text.chars() {
            match u32::from(char).checked_sub(STRAY_BYTE_BASE).and_then(|byte| u8::try_from(byte).ok()) {
                Some(byte) => bytes.push(byte),
                None => bytes.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detected_name(bytes: &[u8]) -> Result<String, BinaryContent> {
        detect(EncodingChoice::Detect, bytes, bytes)
            .map(|form| form.name() + if form.bom { "+bom" } else { "" })
    }

    #[test]
    fn encodings_are_found() {
        let wide: Vec<u8> = "alpha\nbeta\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = "alpha\nbeta\n".encode_utf16().flat_map(u16::to_be_bytes).collect();
        let rows: Vec<(Vec<u8>, &str)> = vec![
            (b"alpha\n".to_vec(), "utf-8"),
            (b"".to_vec(), "utf-8"),
            ("grün\n".into(), "utf-8"),
            (b"\xef\xbb\xbfalpha".to_vec(), "utf-8+bom"),
            ([b"\xff\xfe".to_vec(), wide.clone()].concat(), "utf-16le+bom"),
            ([b"\xfe\xff".to_vec(), big.clone()].concat(), "utf-16be+bom"),
            (wide, "utf-16le"),
            (big, "utf-16be"),
            (b"gr\xfcn und sch\xf6n, stra\xdfe".to_vec(), "windows-1252"),
            (
                encoding_rs::SHIFT_JIS.encode("こんにちは、世界。日本語の文章です。").0.into_owned(),
                "shift_jis",
            ),
            (["grün schön süß über Öl Änderung Maß".as_bytes(), b" \xff"].concat(), "utf-8"),
        ];
        for (bytes, name) in rows {
            assert_eq!(detected_name(&bytes).as_deref(), Ok(name), "{bytes:?}");
        }
    }

    #[test]
    fn what_is_no_text_is_named() {
        let png = detected_name(b"\x89PNG\r\n\x1a\n\0\0").unwrap_err().to_error("a.png");
        assert_eq!(png.message, "`a.png` is not text but a PNG image.");
        assert!(png.hint.unwrap().contains("fs_read_media {\"path\": \"a.png\"}"));
        assert_eq!(detected_name(b"a\0b\0\0\0c"), Err(BinaryContent(None)));
        assert_eq!(detected_name(b"\x01\x02\x03\xff\x04\x05\xfe"), Err(BinaryContent(None)));
    }

    #[test]
    fn labels_are_obeyed_or_refused_with_examples() {
        assert_eq!(EncodingChoice::from_label("UTF-8").unwrap(), EncodingChoice::Detect);
        assert_eq!(
            EncodingChoice::from_label("latin1").unwrap(),
            EncodingChoice::Exactly(encoding_rs::WINDOWS_1252)
        );
        let error = EncodingChoice::from_label("utf-9").unwrap_err();
        assert!(error.hint.unwrap().contains("windows-1252"));
        let form =
            detect(EncodingChoice::from_label("latin1").unwrap(), "ü".as_bytes(), "ü".as_bytes()).unwrap();
        assert_eq!(form.decode("ü".as_bytes(), true), ("Ã¼".to_owned(), false));
        let marked = b"\xfe\xff\0a";
        let form = detect(EncodingChoice::from_label("utf-16").unwrap(), marked, marked).unwrap();
        assert_eq!(form.decode(marked, true).0, "a");
    }

    #[test]
    fn a_character_that_the_encoding_lacks_is_refused() {
        let form = TextEncoding { encoding: encoding_rs::WINDOWS_1252, bom: false };
        assert_eq!(form.encode("é€").unwrap(), b"\xe9\x80");
        let error = form.encode("price: 5 ₿").unwrap_err();
        assert!(error.message.contains("'₿' (U+20BF)"), "{error}");
    }

    #[test]
    fn a_mark_is_written_once() {
        let form = TextEncoding { encoding: UTF_8, bom: true };
        assert_eq!(form.encode("\u{feff}a").unwrap(), b"\xef\xbb\xbfa");
        assert_eq!(form.encode("a").unwrap(), b"\xef\xbb\xbfa");
    }

    #[test]
    fn only_what_comes_back_byte_for_byte_is_editable() {
        let bytes = b"\xff\xfea\0\n\0";
        let text = DecodedText::lossless(bytes, "f").unwrap();
        assert_eq!(
            (text.text.as_str(), text.encoding.encode(&text.text).unwrap().as_slice()),
            ("a\n", &bytes[..])
        );
        assert!(DecodedText::lossless(b"\xff\xfea\0\n", "f").is_err());
        let stray = ["grün schön süß über Öl Änderung Maß".as_bytes(), b" \xff\xc3 end"].concat();
        let text = DecodedText::lossless(&stray, "f").unwrap();
        assert_eq!(text.encode(&text.text).unwrap(), stray);
        let changed = text.encode(&text.text.replace("end", "Ende")).unwrap();
        assert!(changed.ends_with(b" \xff\xc3 Ende"), "{changed:?}");
    }
}
