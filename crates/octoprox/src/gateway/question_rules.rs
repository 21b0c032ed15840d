//! What a server may ask the client of a call, from its settings.

use crate::settings::Server;
use octo_hub::trust::QuestionRules;
use octo_model::ServerRequest;
use octo_oauth::is_same_site;
use std::sync::Arc;
use url::Url;

/// The rules of a server. It may send a person to its own site, to that of the issuer in its settings, and to the hosts that
/// the operator permits.
pub fn question_rules(server: &Server) -> QuestionRules {
    let kinds = server.questions.iter().map(|kind| ServerRequest::from(*kind)).collect();
    let issuer = server.auth.as_ref().and_then(|auth| auth.issuer.as_ref());
    let sites: Vec<Url> = server.url.iter().chain(issuer).filter_map(|url| Url::parse(url).ok()).collect();
    let hosts: Vec<String> = server.question_hosts.iter().map(|host| host.to_ascii_lowercase()).collect();
    let may_open = move |url: &str| {
        let Ok(url) = Url::parse(url) else { return false };
        // What is before the `@` looks like the host.
        if !url.username().is_empty() || url.password().is_some() {
            return false;
        }
        let is_permitted = url.scheme() == "https"
            && url.host_str().is_some_and(|host| hosts.iter().any(|permitted| permitted == host));
        is_permitted || sites.iter().any(|site| is_same_site(site, &url))
    };
    QuestionRules::new(kinds, Arc::new(may_open))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_opens_urls_of_its_own_site_only() {
        for (entry, url, may) in [
            ("{url: 'https://mcp.notion.com/mcp'}", "https://www.notion.com/authorize?x=1", true),
            ("{url: 'https://mcp.notion.com/mcp'}", "https://login-notion.example/authorize", false),
            ("{url: 'https://mcp.notion.com/mcp'}", "https://notion.com.evil.test/", false),
            ("{url: 'https://mcp.notion.com/mcp'}", "https://www.notion.com@evil.test/", false),
            ("{url: 'https://mcp.notion.com/mcp'}", "https://evil@www.notion.com/", false),
            ("{url: 'https://mcp.notion.com/mcp'}", "http://www.notion.com/", false),
            ("{url: 'https://mcp.notion.com/mcp'}", "javascript:alert(1)", false),
            ("{url: 'https://mcp.notion.com/mcp'}", "notion", false),
            ("{url: 'https://a.github.io/mcp'}", "https://b.github.io/", false),
            ("{url: 'http://127.0.0.1:9/mcp'}", "http://127.0.0.1:9/form", true),
            ("{url: 'http://127.0.0.1:9/mcp'}", "http://127.0.0.1:10/form", false),
            (
                "{url: 'https://a.test/mcp', auth: {type: oauth2, issuer: 'https://id.example.com'}}",
                "https://login.example.com/",
                true,
            ),
            ("{command: x}", "https://x.test/", false),
            ("{command: x, question_hosts: [Login.example.com]}", "https://login.example.com/a", true),
            ("{command: x, question_hosts: [login.example.com]}", "https://x.login.example.com/a", false),
            ("{command: x, question_hosts: [login.example.com]}", "http://login.example.com/a", false),
        ] {
            let server: Server = serde_saphyr::from_str(entry).unwrap();
            assert_eq!((question_rules(&server).may_open)(url), may, "{entry} {url}");
        }
    }

    #[test]
    fn sampling_is_off_until_the_settings_permit_it() {
        for (entry, expected) in [
            ("{command: x}", &[ServerRequest::Elicitation, ServerRequest::Roots][..]),
            ("{command: x, questions: []}", &[]),
            ("{command: x, questions: [elicitation, sampling, roots]}", &ServerRequest::ALL),
        ] {
            let server: Server = serde_saphyr::from_str(entry).unwrap();
            assert!(question_rules(&server).kinds.iter().eq(expected), "{entry}");
        }
    }
}
