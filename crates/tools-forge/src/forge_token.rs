//! A secret that can only be sent.

use http::HeaderValue;
use octo_toolkit::ToolError;

/// A token without `Debug`, `Display` or serialization.
#[derive(Clone)]
pub struct Token(String);

impl From<String> for Token {
    fn from(token: String) -> Self {
        Self(token.trim().to_owned())
    }
}

impl Token {
    /// The token as a header that is hidden from logs, too. `setting` names what to fix if it is not a valid header.
    pub(crate) fn header(&self, scheme: &str, setting: &'static str) -> Result<HeaderValue, ToolError> {
        let unfit = || {
            ToolError::unavailable(
                "The configured token contains characters that are not allowed in a header.",
            )
            .hint(format!("Ask the operator to check {setting}."))
        };
        let mut value = HeaderValue::from_str(&format!("{scheme}{}", self.0)).map_err(|_| unfit())?;
        value.set_sensitive(true);
        Ok(value)
    }

    /// Whether the text satisfies a predicate; the text itself is not exposed.
    pub(crate) fn matches(&self, like: impl Fn(&str) -> bool) -> bool {
        like(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_never_shown() {
        let shown = Token::from(" secret-1 ".to_owned()).header("Bearer ", "X").unwrap();
        assert_eq!(shown.to_str().unwrap(), "Bearer secret-1");
        assert!(!format!("{shown:?}").contains("secret-1"));
        let error = Token::from("secret\n2".to_owned()).header("", "THE_SETTING").unwrap_err();
        assert!(!format!("{error:?}").contains("secret"), "{error:?}");
        assert!(error.text().contains("THE_SETTING"));
    }
}
