//! Request headers that carry a secret.

use http::HeaderValue;
use octo_model::Secret;

/// `prefix` and the secret without surrounding white space, marked as sensitive; nothing if it cannot be sent as a header.
pub fn secret_header(prefix: &str, secret: &Secret) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(&format!("{prefix}{}", secret.expose().trim())).ok()?;
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_sent_and_not_shown() {
        let header = secret_header("Bearer ", &Secret::new(" secret-1 ")).unwrap();
        assert_eq!(header.to_str().unwrap(), "Bearer secret-1");
        assert!(!format!("{header:?}").contains("secret-1"));
        assert!(secret_header("", &Secret::new("secret\n2")).is_none());
    }
}
