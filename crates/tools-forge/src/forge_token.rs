//! A secret that can be sent and nothing else.

use http::HeaderValue;
use octo_toolkit::ToolError;

/// A token: it has no `Debug`, no `Display` and no way to serialize.
#[derive(Clone)]
pub struct Token(String);

impl From<String> for Token {
    fn from(token: String) -> Self {
        Self(token.trim().to_owned())
    }
}

impl Token {
    /// The token as a header that does not show itself in logs either. `setting` is what to repair when it cannot be one.
    pub(crate) fn header(&self, scheme: &str, setting: &'static str) -> Result<HeaderValue, ToolError> {
        let unfit = || {
            ToolError::unavailable("The token that is set has characters that cannot be sent.")
                .hint(format!("Ask the operator to check {setting}."))
        };
        let mut value = HeaderValue::from_str(&format!("{scheme}{}", self.0)).map_err(|_| unfit())?;
        value.set_sensitive(true);
        Ok(value)
    }

    /// Whether its text is like this; the text itself stays here.
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
