//! Encoding of records: the bytes that are stored and hashed.
//!
//! Their length dominates the cost of the audit log, so they are compact. A record is its version (1), its
//! kind (1 open, 2 close), the microseconds since 1970 (eight bytes, big-endian), the sixteen bytes of the
//! call's id, and then
//!
//! - open: subject, tenant, frontend, profile, method, name, arguments, trace, and in version 2 the shown
//!   arguments;
//! - close: target, rule, outcome, duration in microseconds, bytes of the reply, result handle, and, only if
//!   they differ from the opening, arguments;
//! - prune (kind 3): number and hash of the last removed record.
//!
//! A number is LEB128. A text is a number, four times its length plus its form (0 absent, 1 plain, 2 packed
//! from lower-case hexadecimal digits), followed by that many bytes. So records and encodings correspond one
//! to one, and nothing is re-encoded for verification.

use crate::{Anchor, AuditRecord, CallEnded, CallStarted, RecordKind};
use jiff::Timestamp;
use octo_model::{CallId, hex};

const RECORD_VERSION: u8 = 1;
/// Of an `open` record that shows arguments.
const RECORD_VERSION_WITH_ARGUMENTS: u8 = 2;
const OPEN: u8 = 1;
const CLOSE: u8 = 2;
pub const PRUNE: u8 = 3;

const ABSENT: u64 = 0;
const PLAIN: u64 = 1;
const PACKED: u64 = 2;
/// Hexadecimal digits are packed from this length on: digests and traces, not names that look like numbers.
const MIN_PACKED_LEN: usize = 16;
/// Maximum bytes of text chosen by the caller (a name, a URI): a record is a line, not a document.
const MAX_TEXT_LEN: usize = 2048;

/// Appends an `open` record.
pub fn encode_open(out: &mut Vec<u8>, at: i64, opening: &CallStarted) {
    let version = if opening.shown.is_some() { RECORD_VERSION_WITH_ARGUMENTS } else { RECORD_VERSION };
    encode_header(out, version, OPEN, at, opening.id);
    encode_text(out, &opening.principal.subject);
    encode_text(out, &opening.principal.tenant);
    encode_text(out, opening.frontend.as_str());
    encode_text(out, &opening.profile);
    encode_text(out, opening.method.as_str());
    encode_text(out, &opening.name);
    encode_text(out, &opening.arguments);
    encode_optional(out, opening.trace.as_deref());
    if let Some(shown) = &opening.shown {
        encode_text(out, shown);
    }
}

/// Appends a `close` record.
pub fn encode_close(out: &mut Vec<u8>, at: i64, closing: &CallEnded) {
    encode_header(out, RECORD_VERSION, CLOSE, at, closing.id);
    encode_optional(out, closing.target.as_deref());
    encode_optional(out, closing.rule.as_deref());
    encode_text(out, closing.outcome.as_str());
    encode_number(out, closing.micros);
    encode_number(out, closing.bytes);
    encode_optional(out, closing.result_handle.as_deref());
    if let Some(arguments) = &closing.arguments {
        encode_text(out, arguments);
    }
}

/// Appends a record of a pruning.
pub fn encode_prune(out: &mut Vec<u8>, at: i64, anchor: Anchor) {
    encode_header(out, RECORD_VERSION, PRUNE, at, CallId::fresh());
    encode_text(out, &anchor.to_string());
}

/// Time of a record.
pub fn timestamp(bytes: &[u8]) -> Option<Timestamp> {
    Timestamp::from_microsecond(micros(bytes)?).ok()
}

/// Time of a record in microseconds since 1970.
pub fn micros(bytes: &[u8]) -> Option<i64> {
    Some(i64::from_be_bytes(bytes.get(2..10)?.try_into().ok()?))
}

/// The last removed record, in a record of a pruning.
pub fn pruned(bytes: &[u8]) -> Option<Anchor> {
    if bytes.get(1) != Some(&PRUNE) {
        return None;
    }
    decode(bytes).ok()?.target?.parse().ok()
}

fn encode_header(out: &mut Vec<u8>, version: u8, kind: u8, at: i64, call: CallId) {
    out.extend_from_slice(&[version, kind]);
    out.extend_from_slice(&at.to_be_bytes());
    out.extend_from_slice(call.0.as_bytes());
}

fn encode_number(out: &mut Vec<u8>, mut value: u64) {
    while value > 0x7f {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn encode_optional(out: &mut Vec<u8>, value: Option<&str>) {
    match value {
        Some(value) => encode_text(out, value),
        None => encode_number(out, ABSENT),
    }
}

fn encode_text(out: &mut Vec<u8>, value: &str) {
    if value.len() > MAX_TEXT_LEN {
        let (start, _) = value.split_at(value.floor_char_boundary(MAX_TEXT_LEN));
        let cut = format!("{start}… ({} bytes)", value.len());
        encode_plain(out, cut.as_bytes());
    } else if is_packable(value) {
        encode_number(out, (value.len() as u64 / 2) << 2 | PACKED);
        let digit = |digit: u8| {
            if digit > b'9' { digit - b'a' + 10 } else { digit - b'0' }
        };
        out.extend(value.as_bytes().as_chunks().0.iter().map(|&[high, low]| digit(high) << 4 | digit(low)));
    } else {
        encode_plain(out, value.as_bytes());
    }
}

fn encode_plain(out: &mut Vec<u8>, value: &[u8]) {
    encode_number(out, (value.len() as u64) << 2 | PLAIN);
    out.extend_from_slice(value);
}

fn is_packable(value: &str) -> bool {
    value.len() >= MIN_PACKED_LEN
        && value.len().is_multiple_of(2)
        && value.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Decodes a record; number and hash are stored beside it.
pub fn decode(bytes: &[u8]) -> Result<AuditRecord, &'static str> {
    let mut rest = Decoder(bytes);
    let [version, kind] = rest.take()?;
    let at =
        Timestamp::from_microsecond(i64::from_be_bytes(rest.take()?)).map_err(|_| "invalid timestamp")?;
    let call = hex(&rest.take::<16>()?);
    let record = match (version, kind) {
        (RECORD_VERSION | RECORD_VERSION_WITH_ARGUMENTS, OPEN) => AuditRecord {
            kind: RecordKind::Open,
            subject: rest.text()?,
            tenant: rest.text()?,
            frontend: rest.text()?,
            profile: rest.text()?,
            method: rest.text()?,
            name: rest.text()?,
            arguments: rest.text()?,
            trace: rest.text()?,
            shown: if version == RECORD_VERSION_WITH_ARGUMENTS { rest.text()? } else { None },
            ..AuditRecord::default()
        },
        (RECORD_VERSION, CLOSE) => AuditRecord {
            kind: RecordKind::Close,
            target: rest.text()?,
            rule: rest.text()?,
            outcome: rest.text()?,
            millis: Some(rest.number()? as f64 / 1000.0),
            bytes: Some(rest.number()?),
            result_handle: rest.text()?,
            arguments: rest.optional_last_text()?,
            ..AuditRecord::default()
        },
        (RECORD_VERSION, PRUNE) => {
            AuditRecord { kind: RecordKind::Prune, target: rest.text()?, ..AuditRecord::default() }
        }
        _ => return Err("unsupported record format"),
    };
    if rest.0.is_empty() { Ok(AuditRecord { at, call, ..record }) } else { Err("trailing bytes") }
}

struct Decoder<'a>(&'a [u8]);

impl<'a> Decoder<'a> {
    const TOO_SHORT: &'static str = "unexpected end";

    /// A text that is omitted, rather than encoded as absent, if there is none.
    fn optional_last_text(&mut self) -> Result<Option<String>, &'static str> {
        match self.0.is_empty() {
            true => Ok(None),
            false => self.text()?.map(Some).ok_or("trailing bytes"),
        }
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], &'static str> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(Self::TOO_SHORT)?;
        self.0 = rest;
        Ok(*taken)
    }

    fn number(&mut self) -> Result<u64, &'static str> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let [byte] = self.take()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err("number too large")
    }

    fn text(&mut self) -> Result<Option<String>, &'static str> {
        let head = self.number()?;
        let length = usize::try_from(head >> 2).map_err(|_| Self::TOO_SHORT)?;
        let (bytes, rest): (&'a [u8], _) = self.0.split_at_checked(length).ok_or(Self::TOO_SHORT)?;
        self.0 = rest;
        match head & 3 {
            ABSENT if length == 0 => Ok(None),
            PLAIN => String::from_utf8(bytes.to_vec()).map(Some).map_err(|_| "text is not UTF-8"),
            PACKED => Ok(Some(hex(bytes))),
            _ => Err("unknown text encoding"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::call_samples as sample;

    fn encoded(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::new();
        write(&mut out);
        out
    }

    #[test]
    fn the_bytes_are_these_and_no_others() {
        let id = CallId("0190f5a0-0000-7000-8000-000000000001".parse().unwrap());
        let start = "00060a24181e40010190f5a0000070008000000000000001";
        let open =
            CallStarted { id, trace: Some("4bf92f3577b34da6".to_owned()), ..sample::opening("time_now") };
        assert_eq!(
            hex(&encoded(|out| encode_open(out, 1_700_000_000_000_001, &open))),
            ["0101", start, "0d616461", "1d64656661756c74", "0d636c69", "1d64656661756c74"].concat()
                + "29746f6f6c732f63616c6c"
                + "2174696d655f6e6f77"
                + &["8201", &"5e".repeat(32)].concat()
                + "224bf92f3577b34da6"
        );
        assert_eq!(
            hex(&encoded(|out| encode_close(out, 1_700_000_000_000_001, &sample::closing(id)))),
            ["0102", start, "3574696d652f74696d655f6e6f77", "00", "096f6b", "dc0b", "2a", "00"].concat()
        );
    }

    #[test]
    fn whatever_is_written_can_be_read() {
        let digits = "0123456789abcdef";
        for name in
            ["plain", "quo\"te", "\u{0}\n", "grün 🐙", "", digits, "0123456789ABCDEF", "0123456789abcde"]
        {
            let open = sample::opening(name);
            let record = decode(&encoded(|out| encode_open(out, 5, &open))).unwrap();
            assert_eq!(record.name.as_deref(), Some(name));
            assert_eq!(record.arguments, Some(open.arguments));
            assert_eq!((record.call, record.outcome, record.trace), (open.id.to_string(), None, None));
        }
        let last =
            CallEnded { micros: u64::MAX, rule: Some(String::new()), ..sample::closing(CallId::fresh()) };
        let close = decode(&encoded(|out| encode_close(out, 5, &last))).unwrap();
        assert_eq!((close.millis, close.rule.as_deref()), (Some(u64::MAX as f64 / 1000.0), Some("")));
        assert_eq!((close.bytes, close.outcome.as_deref()), (Some(42), Some("ok")));
        assert_eq!(close.arguments, None);
        let coerced = CallEnded { arguments: Some("5e".repeat(32)), ..last };
        let bytes = encoded(|out| encode_close(out, 5, &coerced));
        assert_eq!(decode(&bytes).unwrap().arguments, coerced.arguments);
        let padded =
            [encoded(|out| encode_close(out, 5, &sample::closing(CallId::fresh()))), vec![0]].concat();
        assert_eq!(decode(&padded).unwrap_err(), "trailing bytes");
        assert_eq!(serde_json::to_value(&close).unwrap()["at"], "1970-01-01T00:00:00.000005Z");
    }

    #[test]
    fn an_endless_name_is_cut_and_says_so() {
        let record =
            decode(&encoded(|out| encode_open(out, 5, &sample::opening(&"ü".repeat(5000))))).unwrap();
        let name = record.name.unwrap();
        assert!(name.len() < 2100 && name.ends_with("ü… (10000 bytes)"), "{name}");
    }

    #[test]
    fn other_bytes_are_not_guessed_at() {
        let whole = encoded(|out| encode_open(out, 5, &sample::opening("time_now")));
        for end in 0..whole.len() {
            assert!(decode(&whole[..end]).is_err(), "{end} bytes");
        }
        assert!(decode(&[&whole[..], &[0]].concat()).is_err());
        for (at, byte) in [(0, 2), (1, 3), (26, 0b11)] {
            let mut changed = whole.clone();
            changed[at] = byte;
            assert!(decode(&changed).is_err(), "byte {at}");
        }
    }
}
