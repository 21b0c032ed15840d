//! Percent-encoding of everything but letters, digits and `-._~`, so that no value can mean more than itself.

/// Encodes a value for any place in a URL.
pub(crate) fn encode(text: &str) -> String {
    keeping(text, b"")
}

/// Encodes a value declared `allowReserved`: separators of parameters and of the query stay encoded.
pub(crate) fn encode_allow_reserved(text: &str) -> String {
    keeping(text, b":/?@!$'()*,;")
}

/// Encodes the fixed text of a path template, which may already contain escapes.
pub(crate) fn encode_path_literal(text: &str) -> String {
    keeping(text, b"!$&'()*+,;=:@%")
}

fn keeping(text: &str, keep: &[u8]) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || keep.contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

/// Decodes escapes; everything else is unchanged.
pub(crate) fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let hex = tail.get(..2).filter(|_| *first == b'%').and_then(|hex| std::str::from_utf8(hex).ok());
        let byte = hex.filter(|hex| hex.bytes().all(|digit| digit.is_ascii_hexdigit()));
        match byte.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = tail.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_stays_and_what_does_not() {
        assert_eq!(encode("a/b?c#d%e f\r\n\0ü:@&=+"), "a%2Fb%3Fc%23d%25e%20f%0D%0A%00%C3%BC%3A%40%26%3D%2B");
        assert_eq!(encode_allow_reserved("a/b:c&d#e"), "a/b:c%26d%23e");
        assert_eq!(encode_path_literal("v1%20x:do y"), "v1%20x:do%20y");
        assert_eq!(decode("%2e%2E%2f%zz%4"), "../%zz%4");
    }

    proptest! {
        #[test]
        fn decoding_gives_back_every_text(text in "\\PC{0,40}") {
            prop_assert_eq!(decode(&encode(&text)), text);
        }
    }
}
