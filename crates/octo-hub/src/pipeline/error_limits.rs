//! Size limits of errors, which may contain text from a server, a tool or a caller.

use octo_model::{Json, JsonObject, ToolError};
use std::borrow::Cow;

/// Maximum bytes of a message and of a hint. Also bounded by the result limit.
const MAX_TEXT_BYTES: usize = 4_096;
/// A sentence fits even into the smallest result limit.
const MIN_TEXT_BYTES: usize = 256;
const MAX_DATA_BYTES: usize = 16 << 10;

/// Truncates the parts of an error, for replies of at most `cap` bytes.
pub fn truncate_error(mut error: ToolError, cap: usize) -> ToolError {
    let text = MAX_TEXT_BYTES.min(cap / 4).max(MIN_TEXT_BYTES);
    let data = MAX_DATA_BYTES.min(cap / 2).max(MIN_TEXT_BYTES);
    error.message = truncate_text(error.message, text);
    error.hint = error.hint.map(|hint| truncate_text(hint, text));
    error.detail =
        error.detail.map(|detail| truncate_text(Cow::Owned(detail), 2 * MAX_TEXT_BYTES).into_owned());
    if let Some(rpc) = &mut error.rpc {
        rpc.message = truncate_text(Cow::Owned(std::mem::take(&mut rpc.message)), text).into_owned();
        let size = rpc.data.as_ref().map_or(0, |data| data.bytes().len());
        if size > data {
            let told = JsonObject::new().with("octoprox/truncated", true).with("bytes", Json::of(&size));
            rpc.data = Some(told.to_json());
        }
    }
    error
}

fn truncate_text(text: Cow<'static, str>, most: usize) -> Cow<'static, str> {
    if text_json_len(&text) <= most {
        return text;
    }
    let mut used = 0;
    let end = text.char_indices().find(|(_, c)| {
        used += char_json_len(*c);
        used > most
    });
    let end = end.map_or(text.len(), |(at, _)| at);
    Cow::Owned(format!("{}… ({} bytes)", text.get(..end).unwrap_or_default(), text.len()))
}

fn text_json_len(text: &str) -> usize {
    if text.len() > MAX_TEXT_BYTES * 2 { text.len() } else { text.chars().map(char_json_len).sum() }
}

/// Length of a character in JSON.
fn char_json_len(c: char) -> usize {
    match c {
        '"' | '\\' | '\n' | '\r' | '\t' => 2,
        '\0'..='\u{1f}' => 6,
        other => other.len_utf8(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use octo_model::RpcError;

    #[test]
    fn short_errors_stay_and_long_ones_are_shortened() {
        let short = ToolError::invalid("No.").hint("Yes.").detail("why");
        assert_eq!(truncate_error(short.clone(), 100_000), short);
        for letter in ["x", "é", "\u{1}", "\"", "\n"] {
            let long = letter.repeat(500_000);
            let data = Some(Json::text(&long));
            let rpc = RpcError { code: -1, message: long.clone(), data };
            let error = ToolError::invalid(long.clone()).hint(long.clone()).detail(&long).rpc(rpc);
            let error = truncate_error(error, 100_000);
            let rpc = error.rpc.as_ref().unwrap();
            let sizes = [Json::text(&error.text()).bytes().len(), Json::text(&rpc.message).bytes().len()];
            assert!(sizes.iter().all(|size| *size < 3 * MAX_TEXT_BYTES), "{letter:?} {sizes:?}");
            assert!(error.detail.unwrap().len() < 3 * MAX_TEXT_BYTES);
            assert_eq!(rpc.data.as_ref().unwrap().members().unwrap().len(), 2);
        }
    }
}
