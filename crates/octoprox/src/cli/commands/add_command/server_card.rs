//! What a person sees before a server is added.

use super::server_candidate::ServerCandidate;
use crate::clients::required_variables;
use crate::terminal::text_table::{sanitize_line, sanitize_text};
use octo_catalogue::{CatalogueEntry, LoginKind, PublisherEvidence, ToolsSource, Variable, own_variable};
use octo_model::{EffectClass, abbreviate};
use serde_json::{Value, json};
use url::Url;

/// Width of a card.
const WIDTH: usize = 80;
/// Tools that only read, by name.
const MAX_SHOWN_READERS: usize = 12;
/// Characters of the title.
const MAX_TITLE_CHARS: usize = 60;
/// Characters of a row: names of tools.
const MAX_ROW_CHARS: usize = 8_000;
/// Characters of any other text.
const MAX_TEXT_CHARS: usize = 600;
/// Width of the labels.
const LABEL_WIDTH: usize = 11;

pub fn card_text(candidate: &ServerCandidate) -> String {
    let mut card = Card::default();
    let known = candidate.known.as_ref();
    let title = known.map_or(candidate.name.clone(), |entry| {
        format!("{} ({})", abbreviate(&entry.title, MAX_TITLE_CHARS), candidate.name)
    });
    // A registry or bundle could write lines that look like those of the card.
    card.line(&sanitize_line(&title));
    if let Some(entry) = known {
        card.text.push_str(&wrap(&abbreviate(&entry.description, MAX_TEXT_CHARS), 2, 2));
    }
    card.text.push('\n');
    card.row(if candidate.entry.contains_key("url") { "Connects to" } else { "Runs" }, &candidate.runs);
    for (at, sent) in sent_values(candidate).iter().enumerate() {
        card.row(if at == 0 { "Sends" } else { "" }, sent);
    }
    if let Some((_, locked)) = &candidate.package {
        let first = locked.integrity.split(' ').next().unwrap_or_default();
        card.row("Integrity", first);
        card.row("Packages", &format!("{} with all dependencies, {}", locked.package_count(), locked.digest));
    }
    if let Some(args) =
        candidate.entry.get("args").and_then(Value::as_array).filter(|_| !candidate.is_container)
    {
        let args: Vec<&str> = args.iter().filter_map(Value::as_str).collect();
        card.row("Arguments", &args.join(" "));
    }
    card.row("Publisher", &publisher_text(known, candidate.package.is_some()));
    if let Some(entry) = known {
        card.row("", &entry.publisher.url);
    }
    card.row("Network", &network_text(candidate));
    card.row("Files", &files_text(candidate));
    for (at, need) in needs_text(candidate).iter().enumerate() {
        card.row(if at == 0 { "Needs" } else { "" }, need);
    }
    card.row("Accepts", &optional_variables(candidate));
    for (at, tools) in tools_text(known).iter().enumerate() {
        card.row(if at == 0 { "Tools" } else { "" }, tools);
    }
    if let Some(entry) = known {
        card.row("Checked", &entry.checked);
    }
    for warning in &candidate.warnings {
        card.row("Warning", warning);
    }
    sanitize_text(card.text.trim_end())
}

#[derive(Default)]
struct Card {
    text: String,
}

impl Card {
    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn row(&mut self, label: &str, value: &str) {
        if value.is_empty() {
            return;
        }
        let wrapped = wrap(&abbreviate(value, MAX_ROW_CHARS), 2 + LABEL_WIDTH + 1, 2 + LABEL_WIDTH + 1);
        let label = format!("  {label:LABEL_WIDTH$} ");
        self.text.push_str(&format!("{label}{}", wrapped.trim_start()));
    }
}

/// Wraps a text at spaces; longer words stay whole.
fn wrap(text: &str, indent: usize, hanging: usize) -> String {
    let mut wrapped = " ".repeat(indent);
    let mut width = indent;
    for (at, word) in text.split_whitespace().enumerate() {
        let length = word.chars().count();
        if at > 0 && width + 1 + length > WIDTH {
            wrapped.push('\n');
            wrapped.push_str(&" ".repeat(hanging));
            width = hanging;
        } else if at > 0 {
            wrapped.push(' ');
            width += 1;
        }
        wrapped.push_str(word);
        width += length;
    }
    wrapped.push('\n');
    wrapped
}

fn publisher_text(known: Option<&CatalogueEntry>, is_package: bool) -> String {
    let Some(entry) = known else { return "not known: this server is not in the catalogue".to_owned() };
    let name = abbreviate(&entry.publisher.name, MAX_TITLE_CHARS);
    match entry.publisher.verified_by {
        PublisherEvidence::Endpoint if is_package => {
            format!("{name}; its URL proves it, the package does not")
        }
        PublisherEvidence::Endpoint => format!("{name}; the URL is on its domain"),
        PublisherEvidence::PackageScope => format!("{name}; the scope of the package belongs to it"),
        PublisherEvidence::Repository => {
            format!("{name}; the package links to its repository, as anyone could")
        }
        PublisherEvidence::Namespace => format!("{name}, as the registry says"),
        PublisherEvidence::None => format!("{name}; nothing in the package proves it"),
    }
}

fn network_text(candidate: &ServerCandidate) -> String {
    if candidate.entry.contains_key("url") || candidate.entry.contains_key("document") {
        return "the hub connects; nothing runs on this machine".to_owned();
    }
    if candidate.is_container {
        return "all hosts that the container engine allows".to_owned();
    }
    let Some(sandbox) = candidate.entry.get("sandbox") else {
        return "everything that you can reach".to_owned();
    };
    if sandbox.get("network") == Some(&Value::Bool(true)) {
        return "all hosts".to_owned();
    }
    let lists = ["hosts", "network"].into_iter().filter_map(|name| sandbox.get(name)?.as_array());
    let hosts: Vec<&str> = lists.flatten().filter_map(Value::as_str).collect();
    if hosts.is_empty() { "none".to_owned() } else { format!("only {}", hosts.join(", ")) }
}

fn files_text(candidate: &ServerCandidate) -> String {
    if candidate.entry.contains_key("url") || candidate.entry.contains_key("document") {
        return "none".to_owned();
    }
    if candidate.is_container {
        return "those of the container".to_owned();
    }
    let Some(sandbox) = candidate.entry.get("sandbox") else {
        return "everything that you can read and write".to_owned();
    };
    let folders = |key: &str| -> Vec<&str> {
        sandbox.get(key).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
    };
    let mut parts = vec!["its own directory".to_owned()];
    for (key, what) in [("write", "reads and writes"), ("read", "reads")] {
        let folders = folders(key);
        if !folders.is_empty() {
            parts.push(format!("{what} {}", folders.join(", ")));
        }
    }
    parts.join("; ")
}

fn needs_text(candidate: &ServerCandidate) -> Vec<String> {
    let mut needs = Vec::new();
    let auth = candidate.entry.get("auth");
    match auth.and_then(|auth| auth.get("type")).and_then(Value::as_str) {
        Some("oauth2-pkce") => needs.push("a login in the browser".to_owned()),
        Some("api-key") => {
            let name = auth.and_then(|auth| auth.get("env")).and_then(Value::as_str).unwrap_or_default();
            needs.push(variable_text(candidate, name));
        }
        _ => {}
    }
    needs.extend(candidate.needs.iter().map(|name| variable_text(candidate, name)));
    needs
}

/// What leaves the machine with each request: variables of the hub, in headers or the URL.
fn sent_values(candidate: &ServerCandidate) -> Vec<String> {
    let address = ["url", "document"].into_iter().find_map(|key| candidate.entry.get(key)?.as_str());
    let Some(url) = address.and_then(|text| Url::parse(text).ok()) else { return Vec::new() };
    let host = url.host_str().unwrap_or_default();
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    let names = required_variables(&candidate.entry);
    names.into_iter().map(|name| format!("the value of {name} to {host}{port}")).collect()
}

/// Variables that it also knows.
fn optional_variables(candidate: &ServerCandidate) -> String {
    let variables = candidate.known.iter().flat_map(|entry| &entry.variables);
    let is_set = |name: &str| candidate.entry.get("env").is_some_and(|env| env.get(name).is_some());
    let names: Vec<&str> = variables
        .filter(|variable| !variable.required && candidate.package.is_some() && !is_set(&variable.name))
        .map(|variable| variable.name.as_str())
        .collect();
    if names.is_empty() { String::new() } else { format!("{} (set with --env)", names.join(", ")) }
}

fn variable_text(candidate: &ServerCandidate, name: &str) -> String {
    let mut known = candidate.known.iter().flat_map(|entry| &entry.variables);
    let is_it =
        |variable: &&Variable| variable.name == name || own_variable(&candidate.name, &variable.name) == name;
    match known.find(is_it) {
        Some(variable) => {
            let about = variable.description.to_lowercase();
            let is_path = ["path", "file", "director"].iter().any(|word| about.contains(word));
            let needs_read = is_path && candidate.entry.contains_key("sandbox") && !about.contains("--read");
            let more = if needs_read { " Allow its directory with --read or --write." } else { "" };
            format!("{name}: {}{more}", variable.description)
        }
        None => name.to_owned(),
    }
}

fn tools_text(known: Option<&CatalogueEntry>) -> Vec<String> {
    let Some(entry) = known.filter(|entry| !entry.tools.is_empty()) else {
        return vec!["known only after it has started".to_owned()];
    };
    let source = match entry.tools_from {
        Some(ToolsSource::Listed) | None => "",
        Some(ToolsSource::Source) => ", from its source code",
        Some(ToolsSource::Documentation) => ", from its documentation",
    };
    let mut lines = vec![format!("{}{source}", entry.tools.len())];
    for effect in [EffectClass::Destroys, EffectClass::Writes, EffectClass::Reads] {
        let names: Vec<&str> = entry
            .tools
            .iter()
            .filter(|(_, class)| **class == effect)
            .map(|(name, _)| name.as_str())
            .collect();
        // What changes something is always shown.
        let shown = if effect == EffectClass::Reads { MAX_SHOWN_READERS } else { names.len() };
        let (shown, rest) = names.split_at(shown.min(names.len()));
        let more = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
        if !names.is_empty() {
            lines.push(format!("{}: {}{more}", effect.as_str(), shown.join(", ")));
        }
    }
    lines
}

pub fn card_json(candidate: &ServerCandidate) -> Value {
    let known = candidate.known.as_ref();
    let locked = candidate.package.as_ref().map(|(_, locked)| locked);
    json!({
        "name": candidate.name,
        "title": known.map(|entry| &entry.title),
        "description": known.map(|entry| &entry.description),
        "runs": candidate.runs,
        "integrity": locked.map(|locked| &locked.integrity),
        "digest": locked.map(|locked| &locked.digest),
        "packages": locked.map(|locked| locked.package_count()),
        "publisher": known.map(|entry| &entry.publisher),
        "hosts": known.map(|entry| &entry.hosts),
        "needs": needs_text(candidate),
        "tools": known.map(|entry| &entry.tools),
        "warnings": candidate.warnings,
        "settings": candidate.entry,
    })
}

pub fn found_text(found: &[(&str, &CatalogueEntry)]) -> String {
    let width = found.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    let line = |(name, entry): &(&str, &CatalogueEntry)| {
        let indent = width + 2;
        let text = wrap(&abbreviate(&entry.description, MAX_TEXT_CHARS), indent, indent);
        format!("{:width$}  {}\n", sanitize_line(name), sanitize_text(text.trim()))
    };
    found.iter().map(line).collect::<String>().trim_end().to_owned()
}

pub fn found_json(found: &[(&str, &CatalogueEntry)]) -> Value {
    let one = |(name, entry): &(&str, &CatalogueEntry)| {
        json!({
            "name": name,
            "title": entry.title,
            "description": entry.description,
            "publisher": entry.publisher.name,
            "login": entry.remote.as_ref().map_or(LoginKind::None, |remote| remote.login),
            "tools": entry.tools.len(),
        })
    };
    json!({"servers": found.iter().map(one).collect::<Vec<_>>()})
}
