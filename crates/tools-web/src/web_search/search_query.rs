//! Search query, independent of the engine.

use super::Input;
use super::result_pager::Engine;
use octo_toolkit::ToolError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const MAX_QUERY_CHARS: usize = 1000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TimeRange {
    Day,
    Week,
    Month,
    Year,
}

impl TimeRange {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
            Self::Year => "year",
        }
    }

    /// Letter used by Brave and DuckDuckGo.
    pub fn letter(self) -> &'static str {
        self.as_str().get(..1).unwrap_or_default()
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SafeSearch {
    Off,
    #[default]
    Moderate,
    Strict,
}

/// A validated query.
#[derive(Debug)]
pub struct SearchQuery {
    pub text: String,
    /// Lower case, such as `en`; None for all languages.
    pub language: Option<String>,
    /// Upper case, such as `BR` of `pt-BR`.
    pub region: Option<String>,
    pub time_range: Option<TimeRange>,
    /// Never empty.
    pub categories: Vec<String>,
    /// Empty for all engines.
    pub engines: Vec<String>,
    pub safesearch: SafeSearch,
}

impl SearchQuery {
    pub fn new(input: &Input) -> Result<Self, ToolError> {
        let query = input.query.split_whitespace().collect::<Vec<_>>().join(" ");
        if query.is_empty() {
            return Err(
                ToolError::invalid("The query is empty.").hint("Set query to the words to search for.")
            );
        }
        if query.chars().count() > MAX_QUERY_CHARS {
            return Err(ToolError::invalid(format!(
                "The query is longer than {MAX_QUERY_CHARS} characters."
            ))
            .hint("Use fewer words; Brave takes 400 characters and 50 words at most."));
        }
        let (language, region) = parse_language(&input.language)?;
        let mut categories = parse_names(&input.categories, "categories")?;
        if categories.is_empty() {
            categories.push("general".to_owned());
        }
        let engines = parse_names(input.engines.as_deref().unwrap_or_default(), "engines")?;
        Ok(Self {
            text: query,
            language,
            region,
            time_range: input.time_range,
            categories,
            engines,
            safesearch: input.safesearch,
        })
    }

    /// Equal for queries with the same results.
    pub fn cache_key(&self, engine: Engine) -> String {
        format!("{} {self:?}", engine.name())
    }

    /// Whether all categories are among these.
    pub fn has_only_categories(&self, known: &[&str]) -> bool {
        self.categories.iter().all(|category| known.contains(&category.as_str()))
    }

    /// The language as engines spell it: `en`, `pt-BR` or `all`.
    pub fn locale(&self) -> String {
        match (&self.language, &self.region) {
            (Some(language), Some(region)) => format!("{language}-{region}"),
            (Some(language), None) => language.clone(),
            (None, _) => "all".to_owned(),
        }
    }
}

fn parse_language(text: &str) -> Result<(Option<String>, Option<String>), ToolError> {
    let text = text.trim().to_ascii_lowercase();
    if matches!(text.as_str(), "" | "all" | "any" | "auto") {
        return Ok((None, None));
    }
    let mut parts = text.split(['-', '_']);
    let language = parts.next().unwrap_or_default();
    let fits = (2..=3).contains(&language.len()) && language.bytes().all(|byte| byte.is_ascii_lowercase());
    if !fits {
        return Err(ToolError::invalid("language is not a language code.").hint("Use en, de, pt-BR, or all."));
    }
    let region = parts.find(|part| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_lowercase()));
    Ok((Some(language.to_owned()), region.map(str::to_ascii_uppercase)))
}

/// Parses a list of names; a comma or line break in a name would split it.
fn parse_names(values: &[String], field: &str) -> Result<Vec<String>, ToolError> {
    let names = values.iter().map(|name| name.trim().to_lowercase()).filter(|name| !name.is_empty());
    let names: Vec<String> = names.collect();
    let odd = |name: &String| name.len() > 60 || name.contains(',') || name.chars().any(char::is_control);
    if names.len() > 20 || names.iter().any(odd) {
        return Err(ToolError::invalid(format!("{field} is not a list of names."))
            .hint("Use one entry per name, or omit it."));
    }
    Ok(names)
}
