//! Content type detection: the declared type, unless the first bytes contradict it.

/// Kind of a response body, as far as rendering is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyKind {
    Html,
    Json,
    Xml,
    Markdown,
    Text,
    Pdf,
    /// Not text; the type detected from the first bytes.
    Binary(Option<&'static str>),
}

impl BodyKind {
    /// Detects the kind from the declared type and the body.
    pub fn detect(content_type: Option<&str>, body: &[u8]) -> Self {
        let declared = content_type.map(media_type).unwrap_or_default();
        match sniff_magic(body) {
            Some("application/pdf") => return Self::Pdf,
            Some(kind) => return Self::Binary(Some(kind)),
            // The PDF header may be preceded by other bytes.
            None if declared == "application/pdf" && has_pdf_header(body) => return Self::Pdf,
            None => {}
        }
        if looks_binary(body) {
            return Self::Binary(None);
        }
        let declared_kind = Self::from_media_type(&declared);
        let sniffed = Self::sniff_text(body);
        match (declared_kind, sniffed) {
            // HTML source is served as text on purpose.
            (Some(said @ (Self::Text | Self::Markdown)), _) => said,
            // JSON requests may be answered with a page, and the other way round.
            (Some(Self::Html), Some(Self::Json)) => Self::Json,
            (Some(Self::Json), Some(Self::Html)) => Self::Html,
            (Some(Self::Xml), Some(Self::Html)) => Self::Html,
            (Some(said), _) => said,
            (None, seen) => seen.unwrap_or(Self::Text),
        }
    }

    fn from_media_type(essence: &str) -> Option<Self> {
        Some(match essence {
            "text/html" | "application/xhtml+xml" => Self::Html,
            "application/json" | "text/json" => Self::Json,
            "text/markdown" | "text/x-markdown" => Self::Markdown,
            "text/xml" | "application/xml" => Self::Xml,
            "application/x-ndjson"
            | "application/jsonl"
            | "application/javascript"
            | "application/x-yaml"
            | "application/yaml"
            | "application/toml"
            | "application/sql"
            | "application/x-sh"
            | "application/graphql" => Self::Text,
            other if other.ends_with("+json") => Self::Json,
            other if other.ends_with("+xml") => Self::Xml,
            other if other.starts_with("text/") => Self::Text,
            _ => return None,
        })
    }

    /// Detects the kind from the beginning of the text.
    fn sniff_text(body: &[u8]) -> Option<Self> {
        let start = skip_preamble(body);
        let lower: Vec<u8> = start.iter().take(64).map(u8::to_ascii_lowercase).collect();
        if lower.starts_with(b"<?xml") {
            let far = body.get(..body.len().min(512)).unwrap_or_default().to_ascii_lowercase();
            let page = far.windows(5).any(|window| window == b"<html");
            return Some(if page { Self::Html } else { Self::Xml });
        }
        if [&b"<rss"[..], b"<feed", b"<rdf:", b"<urlset", b"<sitemapindex", b"<svg"]
            .iter()
            .any(|tag| lower.starts_with(tag))
        {
            return Some(Self::Xml);
        }
        let tags = [
            &b"<!doctype html"[..],
            b"<html",
            b"<head",
            b"<body",
            b"<title",
            b"<meta",
            b"<script",
            b"<div",
            b"<h1",
            b"<p>",
            b"<table",
            b"<style",
            b"<link",
            b"<main",
            b"<article",
            b"<ul",
            b"<a ",
            b"<br",
            b"<span",
            b"<section",
            b"<p ",
        ];
        if tags.iter().any(|tag| lower.starts_with(tag)) {
            return Some(Self::Html);
        }
        let brackets = matches!(start.first(), Some(b'{' | b'['));
        (brackets && serde_json::from_slice::<serde::de::IgnoredAny>(start).is_ok()).then_some(Self::Json)
    }
}

/// Media type without parameters, in lower case.
pub fn media_type(content_type: &str) -> String {
    content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// Skips the byte order mark, white space and comments at the beginning.
fn skip_preamble(body: &[u8]) -> &[u8] {
    let mut rest = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    loop {
        rest = rest.trim_ascii_start();
        if !rest.starts_with(b"<!--") {
            return rest;
        }
        let Some(end) = rest.windows(3).position(|window| window == b"-->") else { return rest };
        rest = rest.get(end + 3..).unwrap_or_default();
    }
}

/// Whether the body contains bytes that do not occur in text. UTF-16 is recognized by its byte order mark.
fn looks_binary(body: &[u8]) -> bool {
    if body.starts_with(b"\xff\xfe") || body.starts_with(b"\xfe\xff") {
        return false;
    }
    let start = body.get(..body.len().min(1_024)).unwrap_or_default();
    let odd = start.iter().filter(|byte| matches!(byte, 0..=8 | 0x0e..=0x1a | 0x1c..=0x1f)).count();
    odd * 10 > start.len()
}

fn has_pdf_header(body: &[u8]) -> bool {
    body.get(..body.len().min(1_024)).unwrap_or_default().windows(5).any(|window| window == b"%PDF-")
}

/// Media type by magic number.
fn sniff_magic(body: &[u8]) -> Option<&'static str> {
    const STARTS: &[(&[u8], &str)] = &[
        (b"%PDF-", "application/pdf"),
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"\xff\xd8\xff", "image/jpeg"),
        (b"GIF87a", "image/gif"),
        (b"GIF89a", "image/gif"),
        (b"BM", "image/bmp"),
        (b"\0\0\x01\0", "image/x-icon"),
        (b"II*\0", "image/tiff"),
        (b"MM\0*", "image/tiff"),
        (b"PK\x03\x04", "application/zip"),
        (b"\x1f\x8b", "application/gzip"),
        (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
        (b"Rar!\x1a\x07", "application/vnd.rar"),
        (b"BZh", "application/x-bzip2"),
        (b"\xfd7zXZ\0", "application/x-xz"),
        (b"\x28\xb5\x2f\xfd", "application/zstd"),
        (b"OggS", "application/ogg"),
        (b"ID3", "audio/mpeg"),
        (b"fLaC", "audio/flac"),
        (b"\x1aE\xdf\xa3", "video/webm"),
        (b"\0asm", "application/wasm"),
        (b"\x7fELF", "application/x-executable"),
        (b"SQLite format 3\0", "application/vnd.sqlite3"),
        (b"wOFF", "font/woff"),
        (b"wOF2", "font/woff2"),
    ];
    let tagged = |at: usize, tag: &[u8]| body.get(at..).is_some_and(|rest| rest.starts_with(tag));
    match () {
        () if body.starts_with(b"RIFF") && tagged(8, b"WEBP") => return Some("image/webp"),
        () if body.starts_with(b"RIFF") && tagged(8, b"WAVE") => return Some("audio/wav"),
        () if tagged(4, b"ftypavif") => return Some("image/avif"),
        () if tagged(4, b"ftyphei") => return Some("image/heic"),
        () if tagged(4, b"ftyp") => return Some("video/mp4"),
        () => {}
    }
    let found = STARTS.iter().find(|(start, _)| body.starts_with(start))?;
    // Two or three ASCII letters may be the beginning of a text.
    let weak = matches!(found.0, b"BM" | b"BZh" | b"ID3");
    (!weak
        || std::str::from_utf8(body.get(..body.len().min(64)).unwrap_or_default()).is_err()
        || looks_binary(body))
    .then_some(found.1)
}

/// Width and height of an image, if the first bytes contain them.
pub fn dimensions(body: &[u8]) -> Option<(u32, u32)> {
    let big = |at: usize| Some(u32::from_be_bytes(body.get(at..at + 4)?.try_into().ok()?));
    let small = |at: usize| Some(u32::from(u16::from_le_bytes(body.get(at..at + 2)?.try_into().ok()?)));
    match sniff_magic(body)? {
        "image/png" => Some((big(16)?, big(20)?)),
        "image/gif" => Some((small(6)?, small(8)?)),
        "image/bmp" => Some((small(18)?, small(22)?)),
        "image/jpeg" => jpeg_size(body),
        "image/webp" => match body.get(12..16)? {
            b"VP8 " => Some((small(26)? & 0x3fff, small(28)? & 0x3fff)),
            b"VP8X" => {
                let three = |at: usize| Some(small(at)? | (u32::from(*body.get(at + 2)?) << 16));
                Some((three(24)? + 1, three(27)? + 1))
            }
            b"VP8L" => {
                let bits = u32::from_le_bytes(body.get(21..25)?.try_into().ok()?);
                Some(((bits & 0x3fff) + 1, ((bits >> 14) & 0x3fff) + 1))
            }
            _ => None,
        },
        _ => None,
    }
}

/// Skips the segments of a JPEG up to the start of frame.
fn jpeg_size(body: &[u8]) -> Option<(u32, u32)> {
    let word = |at: usize| Some(usize::from(u16::from_be_bytes(body.get(at..at + 2)?.try_into().ok()?)));
    let mut at = 2;
    loop {
        let (mark, kind) = (body.get(at)?, body.get(at + 1)?);
        if *mark != 0xff {
            return None;
        }
        if matches!(kind, 0xc0..=0xcf) && !matches!(kind, 0xc4 | 0xc8 | 0xcc) {
            return Some((u32::try_from(word(at + 7)?).ok()?, u32::try_from(word(at + 5)?).ok()?));
        }
        at += 2 + word(at + 2)?.max(2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_known_by_type_and_by_their_bytes() {
        let rows: &[(Option<&str>, &[u8], BodyKind)] = &[
            (Some("text/html; charset=utf-8"), b"<p>x", BodyKind::Html),
            (None, b"\xef\xbb\xbf \n<!-- hi --><!DOCTYPE html>", BodyKind::Html),
            (Some("application/octet-stream"), b"<html>", BodyKind::Html),
            (Some("text/plain"), b"<html>source</html>", BodyKind::Text),
            (Some("text/html"), b"{\"a\": 1}", BodyKind::Json),
            (Some("text/html"), b"{{ template }}", BodyKind::Html),
            (Some("application/json"), b"<!doctype html><title>Log in", BodyKind::Html),
            (Some("application/json"), b"{broken", BodyKind::Json),
            (Some("application/problem+json"), b"{}", BodyKind::Json),
            (None, b"[1, 2]", BodyKind::Json),
            (None, b"[not json", BodyKind::Text),
            (Some("application/rss+xml"), b"<?xml version='1.0'?><rss/>", BodyKind::Xml),
            (None, b"<?xml version='1.0'?><feed/>", BodyKind::Xml),
            (None, b"<?xml version='1.0'?><!DOCTYPE html><html>", BodyKind::Html),
            (Some("text/markdown"), b"# x", BodyKind::Markdown),
            (Some("text/html"), b"%PDF-1.7\n", BodyKind::Pdf),
            (Some("application/pdf"), b"\r\nHTTP junk\r\n%PDF-1.4\n", BodyKind::Pdf),
            (Some("application/pdf"), b"<!doctype html><title>Log in", BodyKind::Html),
            (Some("text/plain"), b"\x89PNG\r\n\x1a\n....", BodyKind::Binary(Some("image/png"))),
            (None, b"RIFF....WEBPVP8 ", BodyKind::Binary(Some("image/webp"))),
            (None, b"BMX is a sport", BodyKind::Text),
            (None, b"\0\x01\x02\x03\x04\x05", BodyKind::Binary(None)),
            (Some("text/plain; charset=utf-16le"), b"\xff\xfea\0b\0", BodyKind::Text),
            (None, b"", BodyKind::Text),
        ];
        for (declared, body, kind) in rows {
            assert_eq!(BodyKind::detect(*declared, body), *kind, "{declared:?} {body:?}");
        }
    }

    #[test]
    fn pictures_tell_their_size() {
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x02\0\0\0\x01\0";
        assert_eq!(dimensions(png), Some((512, 256)));
        assert_eq!(dimensions(b"GIF89a\x10\0\x20\0"), Some((16, 32)));
        let jpeg = b"\xff\xd8\xff\xe0\0\x04ab\xff\xc0\0\x0b\x08\0\x20\0\x10";
        assert_eq!(dimensions(jpeg), Some((16, 32)));
        assert_eq!(dimensions(b"\x89PNG\r\n\x1a\n"), None);
        assert_eq!(dimensions(b"\xff\xd8\xff\xe0\0\0"), None);
        assert_eq!(dimensions(b"hello"), None);
    }
}
