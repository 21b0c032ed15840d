//! File type detection by the first bytes.

/// A type that is not text: display name and media type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileKind {
    pub name: &'static str,
    pub mime: &'static str,
}

/// Offset, bytes, name, media type.
type MagicRow = (usize, &'static [u8], &'static str, &'static str);

const MAGIC_TABLE: &[MagicRow] = &[
    (0, b"\x89PNG\r\n\x1a\n", "a PNG image", "image/png"),
    (0, b"\xff\xd8\xff", "a JPEG image", "image/jpeg"),
    (0, b"GIF87a", "a GIF image", "image/gif"),
    (0, b"GIF89a", "a GIF image", "image/gif"),
    (8, b"WEBP", "a WebP image", "image/webp"),
    (0, b"II*\0", "a TIFF image", "image/tiff"),
    (0, b"MM\0*", "a TIFF image", "image/tiff"),
    (0, b"\0\0\x01\0", "an icon", "image/x-icon"),
    (0, b"%PDF-", "a PDF document", "application/pdf"),
    (0, b"PK\x03\x04", "a ZIP archive (or an Office document)", "application/zip"),
    (0, b"PK\x05\x06", "an empty ZIP archive", "application/zip"),
    (0, b"\x1f\x8b", "a gzip archive", "application/gzip"),
    (0, b"BZh", "a bzip2 archive", "application/x-bzip2"),
    (0, b"\xfd7zXZ\0", "an xz archive", "application/x-xz"),
    (0, b"\x28\xb5\x2f\xfd", "a Zstandard archive", "application/zstd"),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive", "application/x-7z-compressed"),
    (257, b"ustar", "a tar archive", "application/x-tar"),
    (0, b"\x7fELF", "an ELF program", "application/x-elf"),
    (0, b"\xca\xfe\xba\xbe", "a Java class or Mach-O program", "application/octet-stream"),
    (0, b"\xcf\xfa\xed\xfe", "a Mach-O program", "application/x-mach-binary"),
    (0, b"\0asm", "a WebAssembly module", "application/wasm"),
    (0, b"SQLite format 3\0", "an SQLite database", "application/vnd.sqlite3"),
    (0, b"OggS", "an Ogg stream", "application/ogg"),
    (0, b"fLaC", "FLAC audio", "audio/flac"),
    (0, b"ID3", "MP3 audio", "audio/mpeg"),
    (8, b"WAVE", "WAVE audio", "audio/wav"),
    (4, b"ftyp", "an MP4 or similar film", "video/mp4"),
    (0, b"\x1a\x45\xdf\xa3", "a Matroska or WebM film", "video/webm"),
    (0, b"wOFF", "a web font", "font/woff"),
    (0, b"wOF2", "a web font", "font/woff2"),
];

pub fn kind(head: &[u8]) -> Option<FileKind> {
    MAGIC_TABLE
        .iter()
        .find(|(at, magic, ..)| fits(head, *at, magic))
        .map(|(_, _, name, mime)| FileKind { name, mime })
}

/// Some magic values are words that a text might start with; those count only together with bytes that no text has.
fn fits(head: &[u8], at: usize, magic: &[u8]) -> bool {
    let found = head.get(at..).is_some_and(|rest| rest.starts_with(magic));
    let telling = magic.iter().any(|byte| !(0x20..0x7f).contains(byte)) || magic == b"%PDF-";
    found && (telling || std::str::from_utf8(head).is_err() || head.contains(&0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_by_their_first_bytes() {
        let rows: &[(&[u8], Option<&str>)] = &[
            (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", Some("image/png")),
            (b"%PDF-1.7\n%text", Some("application/pdf")),
            (b"PK\x03\x04rest", Some("application/zip")),
            (b"RIFF\x10\0\0\0WEBPVP8 ", Some("image/webp")),
            (b"RIFF\x10\0\0\0WAVEfmt ", Some("audio/wav")),
            (b"BZhello is a word", None),
            (b"ID3 tags explained", None),
            (b"BZh9\x31\x41\x59\xff", Some("application/x-bzip2")),
            (b"alpha\n", None),
            (b"", None),
        ];
        for (bytes, mime) in rows {
            assert_eq!(kind(bytes).map(|kind| kind.mime), *mime, "{bytes:?}");
        }
    }
}
