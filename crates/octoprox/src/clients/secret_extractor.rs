//! Extraction of secrets from other products' files. A reference replaces them: to a stored secret, or to a variable
//! that the user sets.

use super::shell_command::move_assignments;
use super::variable_references::{env_name, replace_references};
use crate::settings::is_secret_name;
use crate::telemetry::Redactor;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Shorter strings are treated as words.
const MIN_SECRET_LEN: usize = 20;
/// Arguments contain package names, which are long, too.
const MIN_ARGUMENT_SECRET_LEN: usize = 32;

/// What replaces a secret.
#[derive(Clone, Copy, Default)]
enum SecretForm {
    /// `${NAME}`: a variable that the user sets.
    #[default]
    Variable,
    /// `${secret:NAME}`: a stored secret.
    Stored,
}

/// Extracted values, by name. Never shown.
#[derive(Default)]
pub struct SecretExtractor {
    form: SecretForm,
    values: BTreeMap<String, String>,
    /// Values of variables that are to be stored as well.
    variables: BTreeMap<String, String>,
}

impl SecretExtractor {
    /// Replaces secrets by stored ones. `stored` are the existing ones: none of them gets another value. Variables in
    /// `variables` are replaced by stored secrets, too.
    pub fn storing(stored: BTreeMap<String, String>, variables: BTreeMap<String, String>) -> Self {
        Self { form: SecretForm::Stored, values: stored, variables }
    }

    /// Names and values of all secrets, including those that were stored before.
    pub fn values(&self) -> &BTreeMap<String, String> {
        &self.values
    }

    /// Replaces a server's secrets by references. Returns their names.
    pub fn extract(&mut self, server: &str, entry: &mut Map<String, Value>) -> Vec<String> {
        let mut named = Vec::new();
        let form = self.form;
        move_assignments(entry, |name, value| secret_value(name, value).is_some());
        self.replace_variables(server, entry);
        let mut hide = |wanted: String, value: &str| {
            let name = self.assign_name(wanted, server, value);
            named.push(name.clone());
            match form {
                SecretForm::Variable => format!("${{{name}}}"),
                SecretForm::Stored => format!("${{secret:{name}}}"),
            }
        };
        for (section, prefixed) in [("env", false), ("headers", true)] {
            for (name, value) in entry.get_mut(section).and_then(Value::as_object_mut).into_iter().flatten() {
                let Value::String(text) = value else { continue };
                let original = text.clone();
                let wanted = if prefixed { header_variable(server, name) } else { env_name(name) };
                if let Some((scheme, secret)) = secret_value(name, text) {
                    *text = format!("{scheme}{}", hide(wanted, &secret));
                } else if let Some(hidden) = hide_in_url(server, text, &mut hide) {
                    *text = hidden;
                }
                hide_remaining(server, &original, text, &mut hide);
            }
        }
        for key in ["url", "document"] {
            if let Some(Value::String(text)) = entry.get_mut(key) {
                let original = text.clone();
                if let Some(hidden) = hide_in_url(server, text, &mut hide) {
                    *text = hidden;
                }
                hide_remaining(server, &original, text, &mut hide);
            }
        }
        if let Some(Value::String(command)) =
            entry.get_mut("command").filter(|command| command.to_string().contains(' '))
        {
            *command = hide_in_command_line(server, command, &mut hide);
        }
        if let Some(Value::Array(args)) = entry.get_mut("args") {
            hide_in_args(server, args, &mut hide);
        }
        if let Some(Value::String(secret)) =
            entry.get_mut("auth").and_then(|auth| auth.get_mut("client_secret"))
            && !secret.contains("${")
        {
            let hidden = hide(env_name(&format!("{server}_client_secret")), secret);
            *secret = hidden;
        }
        named.sort();
        named.dedup();
        named
    }

    /// Replaces the variables whose values are to be stored.
    fn replace_variables(&mut self, server: &str, entry: &mut Map<String, Value>) {
        let variables = self.variables.clone();
        for value in entry.values_mut() {
            replace_references(value, &mut |name| {
                let name = self.assign_name(name.to_owned(), server, variables.get(name)?);
                Some(format!("secret:{name}"))
            });
        }
    }

    /// Assigns one name per value. If the name is taken by another value, it is prefixed with the server name.
    fn assign_name(&mut self, wanted: String, server: &str, value: &str) -> String {
        let own = env_name(&format!("{server}_{wanted}"));
        let free = |name: &String| self.values.get(name).is_none_or(|known| known == value);
        let mut names = [wanted, own.clone()].into_iter().chain((2..).map(|count| format!("{own}_{count}")));
        let name = names.find(free).unwrap_or(own);
        self.values.insert(name.clone(), value.to_owned());
        name
    }
}

/// `Authorization` of `notion` becomes `NOTION_TOKEN`; other headers keep their names.
fn header_variable(server: &str, header: &str) -> String {
    let header = if header.eq_ignore_ascii_case("authorization") { "token" } else { header };
    env_name(&format!("{server}_{header}"))
}

/// Splits a named value into its scheme and its secret.
fn secret_value(name: &str, text: &str) -> Option<(String, String)> {
    if text.is_empty() || has_reference(text) || text.contains("://") {
        return None;
    }
    let (scheme, rest) = match text.split_once(' ') {
        Some((word, rest)) if is_scheme(word) => (format!("{word} "), rest),
        _ => (String::new(), text),
    };
    let plain = matches!(rest.to_ascii_lowercase().as_str(), "true" | "false" | "none" | "auto")
        || (names_a_file(name) && rest.starts_with(['/', '~', '.']));
    let secret = (is_secret_name(name) && !plain) || looks_secret(rest);
    secret.then(|| (scheme, rest.to_owned()))
}

/// Returns whether a string contains a reference, `${…}`.
fn has_reference(text: &str) -> bool {
    text.split("${").skip(1).any(|rest| rest.contains('}'))
}

/// Authentication scheme before a secret in a header.
fn is_scheme(word: &str) -> bool {
    ["bearer", "basic", "token"].contains(&word.to_ascii_lowercase().as_str())
}

/// Returns whether a variable of this name contains a path.
fn names_a_file(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    ["_CREDENTIALS", "_SOCK", "_FILE", "_PATH", "_DIR"].iter().any(|end| name.ends_with(end))
}

/// Returns whether a string looks like a key: a known format, or long and random.
pub fn looks_secret(text: &str) -> bool {
    has_known_format(text) || looks_random(text, MIN_SECRET_LEN)
}

/// Returns whether a string has the key format of a known service.
fn has_known_format(text: &str) -> bool {
    !text.contains("${") && Redactor::default().redact(text) != text
}

fn looks_random(text: &str, shortest: usize) -> bool {
    let key = |c: char| c.is_ascii_alphanumeric() || "_-+=".contains(c);
    let has = |what: fn(&char) -> bool| text.chars().any(|c| what(&c));
    text.len() >= shortest
        && text.chars().all(key)
        && has(char::is_ascii_digit)
        && has(char::is_ascii_alphabetic)
        && text.chars().filter(char::is_ascii_digit).count() * 20 >= text.len()
}

/// Hides the password, secret parameters and key-like path segments of a URL.
fn hide_in_url(server: &str, text: &str, hide: &mut impl FnMut(String, &str) -> String) -> Option<String> {
    let (scheme, rest) = text.split_once("://")?;
    let (front, query) = rest.split_once('?').map_or((rest, None), |(front, query)| (front, Some(query)));
    let (authority, path) = front.split_once('/').map_or((front, None), |(host, path)| (host, Some(path)));
    let mut whole = format!("{scheme}://");
    let hidden = authority.rsplit_once('@').and_then(|(login, host)| {
        let (user, password) = login.split_once(':').unwrap_or((login, ""));
        // An HTTP URL with a user but no password has its token there; `git@` in SSH is a user name.
        let (front, secret) = match password {
            "" if scheme.starts_with("http") => ("", user),
            _ => (user, password),
        };
        let is_secret = !secret.is_empty() && !secret.contains("${");
        let gap = if password.is_empty() { "" } else { ":" };
        is_secret
            .then(|| format!("{front}{gap}{}@{host}", hide(env_name(&format!("{server}_password")), secret)))
    });
    whole.push_str(hidden.as_deref().unwrap_or(authority));
    for segment in path.into_iter().flat_map(|path| path.split('/')) {
        let hidden = looks_secret(segment).then(|| hide(env_name(&format!("{server}_key")), segment));
        whole.push('/');
        whole.push_str(hidden.as_deref().unwrap_or(segment));
    }
    for (at, pair) in query.into_iter().flat_map(|query| query.split('&')).enumerate() {
        whole.push(if at == 0 { '?' } else { '&' });
        match pair.split_once('=').and_then(|(name, value)| Some((name, secret_value(name, value)?))) {
            Some((name, (scheme, secret))) => {
                let hidden = hide(env_name(&format!("{server}_{name}")), &secret);
                whole.push_str(&format!("{name}={scheme}{hidden}"));
            }
            None => whole.push_str(pair),
        }
    }
    (whole != text).then_some(whole)
}

/// Hides `--api-key X`, `--token=X`, `--header "Authorization: Bearer X"`, URLs with passwords, and key-like strings.
fn hide_in_args(server: &str, args: &mut [Value], hide: &mut impl FnMut(String, &str) -> String) {
    let mut flag: Option<String> = None;
    for argument in args {
        let Value::String(text) = argument else { continue };
        let original = text.clone();
        let before = flag.take();
        let named =
            before.filter(|flag| is_secret_name(flag)).map(|flag| (String::new(), flag, text.clone()));
        let pair = || {
            let at = text.find(['=', ':'])?;
            let name = text.get(..at)?.trim_start_matches('-');
            let gap = text.get(at..)?.chars().skip(1).take_while(|c| *c == ' ').count();
            let (front, value) = text.split_at_checked(at + 1 + gap)?;
            is_secret_name(name).then(|| (front.to_owned(), name.to_owned(), value.to_owned()))
        };
        let is_named = named.is_some();
        let found = named.or_else(pair);
        let is_line = |value: &str| value.split_whitespace().count() > 2;
        if !is_named
            && text.contains(' ')
            && found.as_ref().is_none_or(|(_, _, value)| is_line(value) || !is_header(text))
        {
            *text = hide_in_command_line(server, text, hide);
        } else if let Some((front, name, value)) = found
            && let Some((scheme, secret)) = secret_value(&name, &value)
        {
            let name = name.trim_start_matches('-');
            *text = format!("{front}{scheme}{}", hide(header_variable(server, name), &secret));
        } else if let Some(hidden) = hide_in_url(server, text, hide) {
            *text = hidden;
        } else if has_known_format(text) || looks_random(text, MIN_ARGUMENT_SECRET_LEN) {
            *text = hide(env_name(&format!("{server}_key")), text);
        } else if text.starts_with('-') && !text.contains('=') {
            flag = Some(text.clone());
        }
        hide_remaining(server, &original, text, hide);
    }
}

/// Returns whether a string is a header, `Name: value`.
fn is_header(text: &str) -> bool {
    text.split_once(':').is_some_and(|(name, _)| is_header_name(name))
}

fn is_header_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
}

/// Hides what still looks like a secret: the whole string, or, between its references, the part that does.
fn hide_remaining(
    server: &str,
    original: &str,
    text: &mut String,
    hide: &mut impl FnMut(String, &str) -> String,
) {
    let is_secret = |text: &str| Redactor::default().redact(text) != text;
    let mut masked = String::new();
    for (at, part) in text.split("${").enumerate() {
        let rest = if at == 0 { None } else { part.split_once('}') };
        masked.push_str(&rest.map_or(part.to_owned(), |(_, rest)| format!("***{rest}")));
    }
    if !is_secret(&masked) {
        return;
    }
    if !has_reference(original) {
        *text = hide(env_name(&format!("{server}_secret")), original);
        return;
    }
    let mut whole = String::new();
    for (at, part) in original.split("${").enumerate() {
        let (reference, rest) = match part.split_once('}').filter(|_| at > 0) {
            Some((name, rest)) => (format!("${{{name}}}"), rest),
            None => (String::new(), part),
        };
        whole.push_str(&reference);
        match is_secret(rest) {
            true => whole.push_str(&hide(env_name(&format!("{server}_secret")), rest)),
            false => whole.push_str(rest),
        }
    }
    *text = whole;
}

/// Hides secrets in a shell command line, word by word.
fn hide_in_command_line(server: &str, line: &str, hide: &mut impl FnMut(String, &str) -> String) -> String {
    let mut words = Vec::new();
    let mut flag: Option<String> = None;
    for word in line.split(' ') {
        let bare = word.trim_matches(['"', '\'']);
        let pending = flag.take();
        let is_header = |(name, _): &(&str, &str)| is_header_name(name) && is_secret_name(name);
        let header = bare.split_once(':').filter(is_header);
        // In `Authorization: Bearer x` the secret is the word after the scheme.
        if let Some(name) = match (header, &pending) {
            (Some((name, rest)), _) if rest.is_empty() || is_scheme(rest) => Some(name.to_owned()),
            (None, Some(name)) if is_scheme(bare) => Some(name.clone()),
            _ => None,
        } {
            flag = Some(name);
            words.push(word.to_owned());
            continue;
        }
        let assigned = header
            .or_else(|| bare.split_once('='))
            .map(|(name, value)| (name.trim_start_matches('-').to_owned(), value));
        let named = pending.filter(|flag| is_secret_name(flag)).map(|flag| (flag, bare));
        let value = named.or(assigned).and_then(|(name, value)| Some((secret_value(&name, value)?.1, name)));
        let hidden = match value {
            Some((secret, name)) => {
                let hidden = hide(header_variable(server, name.trim_start_matches('-')), &secret);
                Some(replace_last(word, &secret, &hidden))
            }
            None if has_known_format(bare)
                && !bare.contains("://")
                && !bare.contains(['"', '\'', '{', '}', ',']) =>
            {
                Some(replace_last(word, bare, &hide(env_name(&format!("{server}_key")), bare)))
            }
            None => hide_in_url(server, bare, hide).map(|hidden| replace_last(word, bare, &hidden)),
        };
        if hidden.is_none() && bare.starts_with('-') && !bare.contains('=') {
            flag = Some(bare.to_owned());
        }
        words.push(hidden.unwrap_or_else(|| word.to_owned()));
    }
    words.join(" ")
}

/// Replaces the last occurrence: a flag may contain its value, as in `--password=pass`.
fn replace_last(text: &str, from: &str, to: &str) -> String {
    text.rsplit_once(from).map_or_else(|| text.to_owned(), |(before, after)| format!("{before}{to}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn taken(name: &str, server: Value) -> (Value, Vec<String>) {
        let Value::Object(mut server) = server else { return (Value::Null, Vec::new()) };
        let variables = SecretExtractor::default().extract(name, &mut server);
        (Value::Object(server), variables)
    }

    #[test]
    fn secrets_become_names_and_all_else_stays() {
        for (server, expected, variables) in [
            (
                json!({"env": {"GITHUB_PERSONAL_ACCESS_TOKEN": "ghp_0123456789abcdefghij", "NODE_ENV": "production",
                               "TOKEN": "${MINE}", "LOG_KEY": "true", "DIR": "/home/ada/2026/notes-of-the-year"}}),
                json!({"env": {"GITHUB_PERSONAL_ACCESS_TOKEN": "${GITHUB_PERSONAL_ACCESS_TOKEN}",
                               "NODE_ENV": "production", "TOKEN": "${MINE}", "LOG_KEY": "true",
                               "DIR": "/home/ada/2026/notes-of-the-year"}}),
                &["GITHUB_PERSONAL_ACCESS_TOKEN"][..],
            ),
            (
                json!({"headers": {"Authorization": "Bearer abc", "X-Api-Key": "k1", "Accept": "text/html"}}),
                json!({"headers": {"Authorization": "Bearer ${MY_APP_TOKEN}", "X-Api-Key": "${MY_APP_X_API_KEY}",
                                   "Accept": "text/html"}}),
                &["MY_APP_TOKEN", "MY_APP_X_API_KEY"],
            ),
            (
                json!({"url": "https://ada:pw@x.test/s/ZjM0YzQ1NmE3ODkwYWJjZGVm/mcp?api_key=q1&page=2"}),
                json!({"url": "https://ada:${MY_APP_PASSWORD}@x.test/s/${MY_APP_KEY}/mcp?api_key=${MY_APP_API_KEY}&page=2"}),
                &["MY_APP_API_KEY", "MY_APP_KEY", "MY_APP_PASSWORD"],
            ),
            (
                json!({"args": ["-y", "@modelcontextprotocol/server-filesystem", "--api-key", "k2", "--token=t3",
                                "--header", "Authorization: Bearer h4", "postgresql://u:p5@db/x", "--verbose", "yes",
                                "mcp-server-for-2026-and-later"]}),
                json!({"args": ["-y", "@modelcontextprotocol/server-filesystem", "--api-key", "${MY_APP_API_KEY}",
                                "--token=${MY_APP_TOKEN}", "--header", "Authorization: Bearer ${MY_APP_MY_APP_TOKEN}",
                                "postgresql://u:${MY_APP_PASSWORD}@db/x", "--verbose", "yes",
                                "mcp-server-for-2026-and-later"]}),
                &["MY_APP_API_KEY", "MY_APP_MY_APP_TOKEN", "MY_APP_PASSWORD", "MY_APP_TOKEN"],
            ),
            (
                json!({"command": "sh", "args": ["-c", "DB_PASS=hunter2 PORT=1 exec my-server --token 't 1' --token t2 https://u:p@x/ 2>&1"]}),
                json!({"command": "sh", "args": ["-c", "PORT=1 exec my-server --token '${MY_APP_TOKEN} 1' --token ${MY_APP_MY_APP_TOKEN} https://u:${MY_APP_PASSWORD}@x/ 2>&1"], "env": {"DB_PASS": "${DB_PASS}"}}),
                &["DB_PASS", "MY_APP_MY_APP_TOKEN", "MY_APP_PASSWORD", "MY_APP_TOKEN"],
            ),
            (
                json!({"env": {"GOOGLE_APPLICATION_CREDENTIALS": "/home/ada/key.json", "SSH_AUTH_SOCK": "/run/agent.1", "TOKEN_FILE": "~/t"}}),
                json!({"env": {"GOOGLE_APPLICATION_CREDENTIALS": "/home/ada/key.json", "SSH_AUTH_SOCK": "/run/agent.1", "TOKEN_FILE": "~/t"}}),
                &[],
            ),
            (
                json!({"args": ["--header", "Authorization:Bearer h1", "-H", "X-Api-Key:h2", "https://t3@x.test/mcp", "ssh://git@x.test/r"]}),
                json!({"args": ["--header", "Authorization:Bearer ${MY_APP_TOKEN}", "-H", "X-Api-Key:${MY_APP_X_API_KEY}",
                                "https://${MY_APP_PASSWORD}@x.test/mcp", "ssh://git@x.test/r"]}),
                &["MY_APP_PASSWORD", "MY_APP_TOKEN", "MY_APP_X_API_KEY"],
            ),
            (
                json!({"command": "sh", "args": ["-c", "npx mcp-remote https://x.test --header 'Authorization: Bearer h1' -H \"X-Api-Key: h2\" -H Authorization:h3 --port 1"]}),
                json!({"command": "sh", "args": ["-c", "npx mcp-remote https://x.test --header 'Authorization: Bearer ${MY_APP_TOKEN}' -H \"X-Api-Key: ${MY_APP_X_API_KEY}\" -H Authorization:${MY_APP_MY_APP_TOKEN} --port 1"]}),
                &["MY_APP_MY_APP_TOKEN", "MY_APP_TOKEN", "MY_APP_X_API_KEY"],
            ),
            (
                json!({"args": ["--config", "{\"a\": {\"key\": \"ghp_0123456789abcdefghij0123456789abcdef\"}}"]}),
                json!({"args": ["--config", "${MY_APP_SECRET}"]}),
                &["MY_APP_SECRET"],
            ),
        ] {
            assert_eq!(
                taken("my-app", server),
                (expected, variables.iter().map(|it| (*it).to_owned()).collect())
            );
        }
    }

    #[test]
    fn only_the_secret_part_of_a_text_is_replaced() {
        for (server, expected, variables) in [
            (
                json!({"env": {"R": "redis://:hunter2@db:6379/0", "CONN": "host=${DB_HOST} password=hunter4444", "P_PASS": "pa${ss"}}),
                json!({"env": {"R": "redis://:${MY_APP_PASSWORD}@db:6379/0", "CONN": "host=${DB_HOST}${MY_APP_SECRET}",
                               "P_PASS": "${P_PASS}"}}),
                &["MY_APP_PASSWORD", "MY_APP_SECRET", "P_PASS"][..],
            ),
            (
                json!({"command": "sh", "args": ["-c", "exec srv --password=pass x"]}),
                json!({"command": "sh", "args": ["-c", "exec srv --password=${MY_APP_PASSWORD} x"]}),
                &["MY_APP_PASSWORD"],
            ),
            (
                json!({"command": "srv --token ghp_0123456789abcdefghij0123456789abcdef"}),
                json!({"command": "srv --token ${MY_APP_TOKEN}"}),
                &["MY_APP_TOKEN"],
            ),
            (
                json!({"url": "https://x", "auth": {"type": "oauth2", "client_secret": "cs"}}),
                json!({"url": "https://x", "auth": {"type": "oauth2", "client_secret": "${MY_APP_CLIENT_SECRET}"}}),
                &["MY_APP_CLIENT_SECRET"],
            ),
        ] {
            let variables = variables.iter().map(|it| (*it).to_owned()).collect();
            assert_eq!(taken("my-app", server), (expected, variables));
        }
    }

    #[test]
    fn one_name_stands_for_one_value() {
        let mut vault = SecretExtractor::default();
        let mut named = Vec::new();
        for (server, value) in [("a", "one"), ("b", "one"), ("c", "two")] {
            let Value::Object(mut entry) = json!({"env": {"API_KEY": value}}) else { continue };
            named.extend(vault.extract(server, &mut entry));
        }
        assert_eq!(named, ["API_KEY", "API_KEY", "C_API_KEY"]);
        assert_eq!(vault.values.into_values().collect::<Vec<_>>(), ["one", "two"]);
    }

    #[test]
    fn secrets_and_the_variables_that_are_known_are_stored_under_names_of_their_own() {
        let map = |name: &str, value: &str| BTreeMap::from([(name.to_owned(), value.to_owned())]);
        let mut vault = SecretExtractor::storing(map("API_KEY", "before"), map("LINEAR_KEY", "linear"));
        let entry = json!({"env": {"API_KEY": "mine", "A": "${LINEAR_KEY}", "B": "${OTHER}", "C": "${LINEAR_KEY:-x}"}});
        let Value::Object(mut entry) = entry else { return };
        vault.extract("my-app", &mut entry);
        let stored = json!({"API_KEY": "${secret:MY_APP_API_KEY}", "A": "${secret:LINEAR_KEY}", "B": "${OTHER}",
                            "C": "${secret:LINEAR_KEY}"});
        assert_eq!(entry.get("env"), Some(&stored));
        assert_eq!(vault.values().values().collect::<Vec<_>>(), ["before", "linear", "mine"]);
    }

    #[test]
    fn keys_are_known_by_their_looks() {
        for (text, secret) in [
            ("sk-0123456789abcdef", true),
            ("9f86d081884c7d659a2feaa0c55ad015", true),
            ("xoxb-123456789012-abcdefghij", true),
            ("lin_api_abcdefghijklmnop", true),
            ("tvly-dev-abcdefghijkl", true),
            ("SG.abcdefghijklmnop.qrstuvwxyzABCDEF", true),
            ("a-long-name-without-numbers", false),
            ("/usr/lib/node_modules/server-2026/index.js", false),
            ("production", false),
            ("${TOKEN}", false),
            ("2026-11-15", false),
        ] {
            assert_eq!(looks_secret(text), secret, "{text}");
        }
    }
}
