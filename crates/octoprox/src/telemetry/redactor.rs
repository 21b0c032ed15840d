//! Redaction of secrets.

use super::secret_encodings::encoded_forms;
use arc_swap::ArcSwap;
use octo_model::MASK;
use octo_toolkit::secrets;
use std::borrow::Cow;

/// Redacts the secrets of this process in all encodings, and strings in well-known secret formats.
#[derive(Default)]
pub struct Redactor {
    known_secrets: ArcSwap<Vec<String>>,
}

impl Redactor {
    pub fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        let redactor = Self::default();
        redactor.add_secrets(secrets);
        redactor
    }

    /// Adds secrets.
    pub fn add_secrets(&self, secrets: impl IntoIterator<Item = String>) {
        let fresh: Vec<String> = secrets.into_iter().flat_map(|secret| encoded_forms(&secret)).collect();
        self.known_secrets.rcu(|known| {
            let mut known = [known.as_slice(), &fresh].concat();
            known.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
            known.dedup();
            known
        });
    }

    /// Redacts known secrets and everything that looks like one.
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let text = self.without_known(text);
        match text {
            Cow::Borrowed(text) => secrets::mask(text),
            Cow::Owned(text) => Cow::Owned(secrets::mask(&text).into_owned()),
        }
    }

    /// Redacts only the known secrets of this process.
    pub fn redact_known(&self, text: &str) -> String {
        self.without_known(text).into_owned()
    }

    fn without_known<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.known_secrets.load().iter().fold(Cow::Borrowed(text), |text, secret| {
            if text.contains(secret.as_str()) {
                Cow::Owned(text.replace(secret.as_str(), MASK))
            } else {
                text
            }
        })
    }

    /// Returns the redacted beginning of a text, at most `limit` bytes. A secret that crosses the end of the examined
    /// part is removed with it, since a partial secret would not be recognized.
    pub fn excerpt(&self, text: &str, limit: usize) -> String {
        let window = text.floor_char_boundary(limit.saturating_mul(2));
        let looked_at = text.get(..window).unwrap_or_default();
        let mut shown = self.redact(looked_at).into_owned();
        if window < text.len() {
            let unsure = self.known_secrets.load().first().map_or(0, String::len).max(256);
            shown.truncate(shown.floor_char_boundary(shown.len().saturating_sub(unsure)));
        }
        shown.truncate(shown.floor_char_boundary(limit));
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;

    const CANARY: &str = "Canary/7+äöü secret?&=";

    #[test]
    fn canaries_are_found_in_every_form() {
        let redactor = Redactor::new([CANARY.to_owned()]);
        let url: String = url::form_urlencoded::byte_serialize(CANARY.as_bytes()).collect();
        for line in [
            format!("plain {CANARY} text"),
            format!("base64 {}", STANDARD.encode(format!("user:{CANARY}"))),
            format!("url ?q={url}&x"),
            serde_json::json!({"message": CANARY}).to_string(),
        ] {
            let shown = redactor.redact(&line);
            assert!(
                shown.contains(MASK) && !shown.contains("anary") && !shown.contains("Q2FuYXJ5"),
                "{shown}"
            );
        }
        assert_eq!(redactor.redact("nothing to see"), "nothing to see");
    }

    #[test]
    fn an_excerpt_never_ends_in_half_a_secret() {
        let redactor = Redactor::new(["0123456789abcdef".to_owned()]);
        for before in 0..200 {
            let text =
                format!("{}{}", "0123456789abcdef ".repeat(20), "x".repeat(before)) + "0123456789abcdef tail";
            let shown = redactor.excerpt(&text, 100);
            assert!(shown.len() <= 100 && !shown.contains("0123"), "{shown}");
        }
        assert_eq!(redactor.excerpt("short", 100), "short");
    }
}
