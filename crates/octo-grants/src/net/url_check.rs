//! Checks of a URL's text before any request. A single parser, so that there is one interpretation.

use super::allow_list::AllowList;
use octo_model::ToolError;
use url::{ParseError, Url};

/// Most servers refuse longer ones as well.
const MAX_URL_LEN: usize = 8192;

/// Ports of other protocols, to which requests could be smuggled; the list that browsers block.
const BLOCKED_PORTS: [u16; 83] = [
    0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103,
    104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514,
    515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723,
    2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
];

pub(super) fn parse_url(text: &str, allow: &AllowList) -> Result<Url, ToolError> {
    if text.len() > MAX_URL_LEN {
        return Err(too_long());
    }
    let url = Url::parse(text).map_err(|error| invalid_url(text, error))?;
    check_url(&url, allow)?;
    Ok(url)
}

/// Checks the first URL and every redirect.
pub(super) fn check_url(url: &Url, allow: &AllowList) -> Result<(), ToolError> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(ToolError::denied(format!("Unsupported scheme `{}:`.", display_text(url.scheme())))
            .hint("Use an address that starts with https:// or http://."));
    }
    if url.as_str().len() > MAX_URL_LEN {
        return Err(too_long());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(ToolError::invalid("The address contains a user name or password.")
            .hint("Remove the part before the `@`; send credentials in an Authorization header."));
    }
    let (Some(host), Some(port)) = (url.host(), url.port_or_known_default()) else {
        return Err(ToolError::invalid("The address has no host.").hint("Use the form https://HOST/PATH."));
    };
    let host = match host {
        url::Host::Domain(name) if name.trim_end_matches('.').is_empty() => {
            return Err(
                ToolError::invalid("The address has no host.").hint("Use the form https://HOST/PATH.")
            );
        }
        host => host,
    };
    if is_blocked_port(port) && !allow.names_port(&host, port) {
        return Err(blocked_port_error(port));
    }
    Ok(())
}

pub(super) fn is_blocked_port(port: u16) -> bool {
    BLOCKED_PORTS.binary_search(&port).is_ok()
}

pub(super) fn blocked_port_error(port: u16) -> ToolError {
    ToolError::denied(format!("Port {port} belongs to another protocol and is blocked."))
        .hint("Use the port of a web server; the operator can allow HOST:PORT with net.allow.")
}

fn invalid_url(text: &str, error: ParseError) -> ToolError {
    let hint = match error {
        ParseError::RelativeUrlWithoutBase => "Use the full address, including https://.",
        ParseError::EmptyHost => "Use the form https://HOST/PATH.",
        _ => "Check its spelling; an address looks like https://example.com/page.",
    };
    // Not repeated, because it may contain a password.
    let message = if text.contains('@') {
        "The address is invalid.".to_owned()
    } else {
        format!("`{}` is not a valid address.", display_text(text))
    };
    ToolError::invalid(message).hint(hint).detail(error)
}

fn too_long() -> ToolError {
    ToolError::invalid(format!("The address is longer than {MAX_URL_LEN} bytes."))
        .hint("Shorten it, or send the data in the body.")
}

/// Enough to recognize it, without control characters.
fn display_text(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(120).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use octo_model::Kind;

    fn parsed(text: &str, allow: &[&str]) -> Result<String, Kind> {
        let allow = AllowList::parse("net.allow", &allow.iter().map(ToString::to_string).collect::<Vec<_>>())
            .unwrap();
        parse_url(text, &allow).map(|url| url.to_string()).map_err(|error| error.kind)
    }

    #[test]
    fn addresses_are_read_by_one_parser() {
        for (text, read) in [
            ("https://example.com", "https://example.com/"),
            ("HTTP://EXAMPLE.com:80/a b", "http://example.com/a%20b"),
            ("https://bücher.example/", "https://xn--bcher-kva.example/"),
            ("http://127.1/", "http://127.0.0.1/"),
            ("http:\\\\example.com\\x", "http://example.com/x"),
            ("  https://example.com/ ", "https://example.com/"),
            ("https://example.com:8443/", "https://example.com:8443/"),
        ] {
            assert_eq!(parsed(text, &[]).as_deref(), Ok(read), "{text}");
        }
    }

    #[test]
    fn what_is_no_web_address_is_refused() {
        for (text, kind) in [
            ("file:///etc/passwd", Kind::Denied),
            ("gopher://example.com/", Kind::Denied),
            ("ftp://example.com/", Kind::Denied),
            ("data:text/html,x", Kind::Denied),
            ("javascript:alert(1)", Kind::Denied),
            ("blob:https://example.com/x", Kind::Denied),
            ("view-source:https://example.com/", Kind::Denied),
            ("localhost:8080/x", Kind::Denied),
            ("ws://example.com/", Kind::Denied),
            ("example.com", Kind::Invalid),
            ("//example.com/", Kind::Invalid),
            ("", Kind::Invalid),
            ("http://", Kind::Invalid),
            ("http://./", Kind::Invalid),
            ("http://user@example.com/", Kind::Invalid),
            ("http://user:word@example.com/", Kind::Invalid),
            ("http://:word@example.com/", Kind::Invalid),
            ("http://example.com:99999/", Kind::Invalid),
            ("http://1.2.3.4.5/", Kind::Invalid),
            ("http://[::1/", Kind::Invalid),
            ("http://[fe80::1%25eth0]/", Kind::Invalid),
            ("http://exa mple.com/", Kind::Invalid),
            ("http://example.com:22/", Kind::Denied),
            ("http://example.com:25/", Kind::Denied),
            ("http://example.com:0/", Kind::Denied),
            ("https://example.com:6667/", Kind::Denied),
        ] {
            assert_eq!(parsed(text, &[]), Err(kind), "{text}");
        }
        assert_eq!(parsed(&format!("http://x.example/{}", "a".repeat(MAX_URL_LEN)), &[]), Err(Kind::Invalid));
        assert_eq!(
            parsed(&format!("http://x.example/{}", "ä".repeat(MAX_URL_LEN / 4)), &[]),
            Err(Kind::Invalid)
        );
    }

    #[test]
    fn a_port_of_another_protocol_needs_to_be_named() {
        assert!(parsed("http://git.local:22/", &["git.local:22"]).is_ok());
        assert!(parsed("http://10.0.0.1:22/", &["10.0.0.0/8:22"]).is_ok());
        assert!(parsed("http://git.local:22/", &["git.local"]).is_err());
        assert!(parsed("http://git.local:23/", &["git.local:22"]).is_err());
    }

    #[test]
    fn a_password_is_not_repeated() {
        for text in
            ["http://user:topsecret@exa mple/", "http://user:topsecret@example.com/", "user:topsecret@x"]
        {
            let error = parse_url(text, &AllowList::default()).expect_err(text);
            assert!(!format!("{error:?}").contains("topsecret"), "{error:?}");
        }
    }

    #[test]
    fn the_list_of_ports_is_sorted() {
        assert!(BLOCKED_PORTS.is_sorted());
    }
}
