//! The entries that are embedded in the binary: found by name, package or address, and searched.

use crate::catalogue_entry::{CatalogueEntry, PackageRegistry};
use crate::server_reference::is_name;
use octo_search::{idf, stem, term_weight};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::LazyLock;
use url::Url;

/// Names and texts of the embedded files.
static FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/entries.rs"));
static SHIPPED: LazyLock<Result<Catalogue, CatalogueError>> =
    LazyLock::new(|| Catalogue::parse(FILES.iter().copied()));

/// Weights of the fields in a search: the name counts most, a tool least.
const NAME_WEIGHT: f64 = 4.0;
const TITLE_WEIGHT: f64 = 3.0;
const TEXT_WEIGHT: f64 = 1.0;
const TOOL_WEIGHT: f64 = 0.25;

/// Entries by name.
#[derive(Debug)]
pub struct Catalogue {
    entries: BTreeMap<String, CatalogueEntry>,
    /// Aliases and the names that they stand for.
    aliases: BTreeMap<String, String>,
}

/// A file that is not an entry, or a name that two entries claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogueError(String);

impl fmt::Display for CatalogueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for CatalogueError {}

impl Catalogue {
    /// The catalogue of this binary.
    pub fn shipped() -> Result<&'static Self, &'static CatalogueError> {
        SHIPPED.as_ref()
    }

    /// Parses files, given with their names without `.yaml`.
    pub fn parse<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, CatalogueError> {
        let mut catalogue = Self { entries: BTreeMap::new(), aliases: BTreeMap::new() };
        for (name, text) in files {
            let entry: CatalogueEntry =
                serde_saphyr::from_str(text).map_err(|error| CatalogueError(format!("{name}: {error}")))?;
            let problem = |problem: &str| Err(CatalogueError(format!("{name}: {problem}")));
            if !is_name(name) {
                return problem("a name has lowercase letters, digits and hyphens");
            }
            if entry.remote.is_none() && entry.package.is_none() {
                return problem("neither `remote` nor `package`");
            }
            for alias in &entry.aliases {
                if catalogue.aliases.insert(alias.clone(), name.to_owned()).is_some() {
                    return problem("an alias of two entries");
                }
            }
            if catalogue.entries.insert(name.to_owned(), entry).is_some() {
                return problem("a name of two entries");
            }
        }
        match catalogue.aliases.keys().find(|alias| catalogue.entries.contains_key(*alias)) {
            Some(alias) => Err(CatalogueError(format!("{alias}: a name and an alias"))),
            None => Ok(catalogue),
        }
    }

    /// All entries, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &CatalogueEntry)> {
        self.entries.iter().map(|(name, entry)| (name.as_str(), entry))
    }

    /// All names and aliases.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().chain(self.aliases.keys()).map(String::as_str)
    }

    /// Finds an entry by its name or an alias.
    pub fn find(&self, name: &str) -> Option<(&str, &CatalogueEntry)> {
        let name = self.aliases.get(name).map_or(name, String::as_str);
        self.entries.get_key_value(name).map(|(name, entry)| (name.as_str(), entry))
    }

    /// Finds the entry of a package.
    pub fn find_package(&self, registry: PackageRegistry, name: &str) -> Option<(&str, &CatalogueEntry)> {
        self.iter().find(|(_, entry)| {
            entry.package.as_ref().is_some_and(|package| package.registry == registry && package.name == name)
        })
    }

    /// Finds the entry of a URL.
    pub fn find_url(&self, url: &Url) -> Option<(&str, &CatalogueEntry)> {
        let same = |text: &str| Url::parse(text).is_ok_and(|known| known == *url);
        self.iter().find(|(_, entry)| entry.remote.as_ref().is_some_and(|remote| same(&remote.url)))
    }

    /// Entries that contain words of the query, best first.
    pub fn search(&self, query: &str, limit: usize) -> Vec<(&str, &CatalogueEntry)> {
        let wanted: Vec<String> = words(query).collect();
        let documents: Vec<(&str, &CatalogueEntry, HashMap<String, f64>)> =
            self.iter().map(|(name, entry)| (name, entry, weighted_words(name, entry))).collect();
        let count = documents.len() as f64;
        let length = |document: &HashMap<String, f64>| document.values().sum::<f64>();
        let typical = documents.iter().map(|(.., document)| length(document)).sum::<f64>() / count.max(1.0);
        let rarity = |word: &String| {
            let having = documents.iter().filter(|(.., document)| document.contains_key(word)).count();
            idf(count, having as f64)
        };
        let rarities: Vec<f64> = wanted.iter().map(rarity).collect();
        let score = |document: &HashMap<String, f64>| -> f64 {
            let parts = wanted.iter().zip(&rarities).filter_map(|(word, rarity)| {
                let weight = document.get(word)?;
                Some(rarity * term_weight(*weight, length(document), typical))
            });
            parts.sum()
        };
        let mut found: Vec<_> =
            documents.iter().map(|(name, entry, document)| (score(document), *name, *entry)).collect();
        found.retain(|(score, ..)| *score > 0.0);
        found.sort_by(|left, right| right.0.total_cmp(&left.0));
        found.into_iter().take(limit).map(|(_, name, entry)| (name, entry)).collect()
    }
}

fn weighted_words(name: &str, entry: &CatalogueEntry) -> HashMap<String, f64> {
    let mut all = HashMap::new();
    let mut add = |text: &str, weight: f64| {
        for word in words(text) {
            *all.entry(word).or_insert(0.0) += weight;
        }
    };
    add(name, NAME_WEIGHT);
    entry.aliases.iter().for_each(|alias| add(alias, NAME_WEIGHT));
    add(&entry.title, TITLE_WEIGHT);
    add(&entry.description, TEXT_WEIGHT);
    add(&entry.publisher.name, TEXT_WEIGHT);
    entry.categories.iter().for_each(|category| add(category, TEXT_WEIGHT));
    entry.tools.keys().for_each(|tool| add(tool, TOOL_WEIGHT));
    all
}

fn words(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|sign: char| !sign.is_alphanumeric()).filter(|word| word.len() > 1);
    words.map(|word| stem(&word.to_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &str = "
title: Plain
description: Nothing much.
publisher: {name: Nobody, url: https://plain.example/, verified_by: none}
categories: [utilities]
remote: {url: https://plain.example/mcp, login: none}
hosts: []
checked: 2026-11-16
";

    #[test]
    fn every_shipped_entry_is_valid() {
        let schema: serde_json::Value =
            serde_json::from_str(include_str!("../../../catalogue/schema.json")).unwrap();
        let schema = jsonschema::validator_for(&schema).unwrap();
        for (name, text) in FILES {
            let entry: serde_json::Value = serde_saphyr::from_str(text).unwrap();
            let problems: Vec<String> = schema.iter_errors(&entry).map(|error| error.to_string()).collect();
            assert!(problems.is_empty(), "{name}: {problems:?}");
        }
        let catalogue = Catalogue::shipped().unwrap();
        assert!(catalogue.iter().count() >= 100);
        for (name, entry) in catalogue.iter() {
            let names = |text: &str| text.matches("${").count();
            let package = entry.package.iter().flat_map(|package| &package.args);
            for placeholder in package.filter(|arg| names(arg) > 0) {
                let known = entry.variables.iter().map(|variable| format!("${{{}}}", variable.name));
                let left = known
                    .chain(["${workspace}".to_owned(), "${home}".to_owned()])
                    .fold(placeholder.clone(), |left, known| left.replace(&known, ""));
                assert_eq!(names(&left), 0, "{name}: {placeholder} names no variable of the entry");
            }
        }
    }

    #[test]
    fn names_are_unique() {
        let twin = PLAIN.replace("checked", "aliases: [plain]\nchecked");
        for files in
            [vec![("plain", PLAIN), ("other", &twin)], vec![("Plain", PLAIN)], vec![("x", "title: X")]]
        {
            assert!(Catalogue::parse(files.clone()).is_err(), "{files:?}");
        }
        let catalogue = Catalogue::parse([("other", twin.as_str())]).unwrap();
        assert_eq!(catalogue.find("plain").map(|(name, _)| name), Some("other"));
    }

    #[test]
    fn searches() {
        let catalogue = Catalogue::shipped().unwrap();
        for (query, wanted) in [
            ("github", "github"),
            ("issues and pull requests", "github"),
            ("current time in a timezone", "time"),
            ("browser automation", "playwright"),
            ("notion", "notion"),
            ("query a postgres database", "postgres"),
            ("error tracking", "sentry"),
        ] {
            let found: Vec<&str> = catalogue.search(query, 5).into_iter().map(|(name, _)| name).collect();
            assert!(found.contains(&wanted), "{query}: {found:?}");
        }
        assert!(catalogue.search("", 5).is_empty() && catalogue.search("zzzz", 5).is_empty());
    }
}
