//! Names that could be mistaken for a server of the catalogue.

use crate::catalogue::Catalogue;
use crate::catalogue_entry::CatalogueEntry;
use crate::server_reference::PackageReference;
use octo_model::edit_distance;
use url::Url;

/// Words that name no service.
const GENERIC_WORDS: [&str; 10] =
    ["mcp", "server", "servers", "official", "tools", "tool", "modelcontextprotocol", "npm", "js", "py"];
/// Shorter names differ by a letter without being similar.
const MIN_SIMILAR_CHARS: usize = 6;

/// An entry of the catalogue that a package or URL resembles without being it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LookAlike<'a> {
    pub name: &'a str,
    pub entry: &'a CatalogueEntry,
}

impl Catalogue {
    /// The entry that a package outside the catalogue resembles.
    pub fn look_alike_package(&self, package: &PackageReference) -> Option<LookAlike<'_>> {
        if self.find_package(package.registry, &package.name).is_some() {
            return None;
        }
        let service = service_words(&package.name);
        if service.is_empty() {
            return None;
        }
        self.find_look_alike(|name, entry| {
            let known = entry.package.as_ref().map(|package| package.name.as_str());
            known.is_some_and(|known| is_similar(bare_name(known), bare_name(&package.name)))
                || std::iter::once(name)
                    .chain(entry.aliases.iter().map(String::as_str))
                    .any(|name| service_words(name) == service)
        })
    }

    /// The entry that a URL outside the catalogue resembles.
    pub fn look_alike_url(&self, url: &Url) -> Option<LookAlike<'_>> {
        let host = url.host_str()?;
        let known_host = |entry: &CatalogueEntry| {
            let known = entry.remote.as_ref().and_then(|remote| Url::parse(&remote.url).ok());
            known.and_then(|known| known.host_str().map(str::to_owned))
        };
        if self.iter().any(|(_, entry)| known_host(entry).is_some_and(|known| known == host)) {
            return None;
        }
        self.find_look_alike(|_, entry| known_host(entry).is_some_and(|known| is_similar(&known, host)))
    }

    fn find_look_alike(&self, resembles: impl Fn(&str, &CatalogueEntry) -> bool) -> Option<LookAlike<'_>> {
        self.iter()
            .find(|(name, entry)| resembles(name, entry))
            .map(|(name, entry)| LookAlike { name, entry })
    }
}

/// Name without the scope or the image's registry.
fn bare_name(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// The words that name a service: `@acme/github-mcp-server` names `github`.
fn service_words(name: &str) -> Vec<String> {
    let words = bare_name(name).split(|sign: char| !sign.is_alphanumeric()).map(readable_letters);
    let mut words: Vec<String> =
        words.filter(|word| !word.is_empty() && !GENERIC_WORDS.contains(&word.as_str())).collect();
    words.sort();
    words
}

/// Letters as a person reads them.
fn readable_letters(text: &str) -> String {
    text.to_lowercase().replace("rn", "m").replace('0', "o").replace('1', "l")
}

/// Whether two names read alike: equal letters, or one typo.
fn is_similar(left: &str, right: &str) -> bool {
    let letters = |text: &str| readable_letters(text).replace(|sign: char| !sign.is_alphanumeric(), "");
    let (left, right) = (letters(left), letters(right));
    left == right || (left.len().min(right.len()) >= MIN_SIMILAR_CHARS && edit_distance(&left, &right) <= 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server_reference::ServerReference;

    fn resembled(text: &str) -> Option<&'static str> {
        let catalogue = Catalogue::shipped().unwrap();
        let found = match ServerReference::parse(text).unwrap() {
            ServerReference::Package(package) => catalogue.look_alike_package(&package),
            ServerReference::Url(url) => catalogue.look_alike_url(&url),
            other => panic!("{other:?}"),
        };
        found.map(|found| found.name)
    }

    #[test]
    fn look_alikes() {
        for (text, wanted) in [
            ("npm:github-mcp-server", Some("github")),
            ("pypi:github-mcp-server", Some("github")),
            ("npm:@acme/mcp-server-github", Some("github")),
            ("npm:g1thub-mcp", None),
            ("npm:linear-mcp-server", Some("linear")),
            ("npm:stripe-mcp", Some("stripe")),
            ("npm:mcp-server-filesystem", Some("filesystem")),
            ("npm:@modelcontextprotocol/server-filesystern", Some("filesystem")),
            ("npm:@modelcontextprotocol/server-filesystem", None),
            ("npm:@modelcontextprotocol/servers-filesystem", Some("filesystem")),
            ("pypi:tavily-mcp", Some("tavily")),
            ("pypi:slack-mcp-server", Some("slack")),
            ("pypi:mcp-server-time", None),
            ("pypi:mcp-server-tlme", Some("time")),
            ("npm:left-pad", None),
            ("npm:mcp-server", None),
            ("https://mcp.notion.com/mcp", None),
            ("https://mcp.n0tion.com/mcp", Some("notion")),
            ("https://mcp-notion.com/mcp", Some("notion")),
            ("https://mcp.notion.co/mcp", Some("notion")),
            ("https://tools.example.org/mcp", None),
        ] {
            assert_eq!(resembled(text), wanted, "{text}");
        }
    }
}
