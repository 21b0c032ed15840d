//! Access tokens as request headers.

use http::HeaderValue;
use octo_toolkit::net::secret_header;
use octo_toolkit::{Remedy, Secret, ToolError};

/// `setting` is named in the error if the token cannot be sent.
pub(crate) fn token_header(
    scheme: &str,
    token: &Secret,
    setting: &'static [&'static str],
) -> Result<HeaderValue, ToolError> {
    secret_header(scheme, token).ok_or_else(|| {
        ToolError::unavailable("The configured token contains characters that are not allowed in a header.")
            .hint(format!("Ask the operator to check {}.", setting.join(", ")))
            .remedy(Remedy::settings(setting))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_never_shown() {
        let shown = token_header("Bearer ", &Secret::new(" secret-1 "), &["x"]).unwrap();
        assert_eq!(shown.to_str().unwrap(), "Bearer secret-1");
        assert!(!format!("{shown:?}").contains("secret-1"));
        let error = token_header("", &Secret::new("secret\n2"), &["the.setting"]).unwrap_err();
        assert!(!format!("{error:?}").contains("secret"), "{error:?}");
        assert!(error.text().contains("the.setting"));
    }
}
