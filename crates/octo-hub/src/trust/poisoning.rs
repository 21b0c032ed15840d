//! Findings in a definition itself: hidden text, another server's name, instructions to the model. Text
//! matching is heuristic; the hub relies on pins, prefixes and policy.

use super::added_texts::{joined_new_texts, joined_words};
use super::definition_diff::is_plain_word;
use super::shadowing;
use super::{Difference, Severity};
use octo_ports::{PinKind, ServerIdentity};
use octo_toolkit::hidden_text::strip_hidden;
use regex::Regex;
use serde_json::Value;
use std::collections::HashSet;
use std::sync::LazyLock;

/// Findings in all texts of `new` that were not in `old`, which a person has accepted or seen.
pub fn find_poisoning(
    whose: &ServerIdentity,
    what: PinKind,
    key: &str,
    old: Option<&Value>,
    new: &Value,
) -> Vec<Difference> {
    let mut out = Vec::new();
    if old.is_none() {
        if let PinKind::Item(kind) = what
            && let Some(why) = shadowing::shadowing_reason(whose, kind, key)
        {
            out.push(finding("name", &why, key, true));
        }
        check_text("name", key, whose, &mut out);
    }
    let mut known = Vec::new();
    if let Some(old) = old {
        collect_texts(what.as_str(), old, &mut known);
    }
    let known: HashSet<&str> = known.iter().map(|text| text.text).collect();
    let mut texts = Vec::new();
    collect_texts(what.as_str(), new, &mut texts);
    for DefinitionText { at, text: words, is_name } in texts.iter().filter(|text| !known.contains(text.text))
    {
        let at = at.strip_prefix(what.as_str()).unwrap_or(at).trim_start_matches('.');
        let at = if at.is_empty() { what.as_str() } else { at };
        if at == "name" && *words == key {
            continue;
        }
        if !is_name && at.starts_with("icons.") && at.ends_with(".src") {
            check_icon(at, words, &mut out);
        } else {
            check_text(at, words, whose, &mut out);
        }
    }
    if matches!(what, PinKind::Item(_)) {
        check_joined(what, old, new, &mut out);
    }
    out
}

/// What is spread over names and values reads as one text. Of a definition that was not seen before, only single words
/// are joined: its sentences were checked, and honest ones are not about each other.
fn check_joined(what: PinKind, old: Option<&Value>, new: &Value, out: &mut Vec<Difference>) {
    let joined = match old {
        Some(old) => joined_new_texts(old, new),
        None => joined_words(new),
    };
    let spaced: String = joined.chars().map(|c| if "-.,:/".contains(c) { ' ' } else { c }).collect();
    let mut readings = vec![split_identifiers(&strip_hidden(&spaced).text)];
    if old.is_some() {
        readings.push(normalize(&strip_hidden(&joined).text));
    }
    for rule in POISON_RULES.iter().filter(|rule| old.is_some() || !rule.unless_forbidden) {
        let is_known = out.iter().any(|finding| finding.message == rule.what);
        if !is_known && readings.iter().any(|reading| rule.matches(reading)) {
            let message = format!("{}, spread over several names or values", rule.what);
            out.push(finding(what.as_str(), &message, &joined, false));
        }
    }
}

/// A string of a definition.
struct DefinitionText<'a> {
    at: String,
    text: &'a str,
    /// Whether it is the name of a member.
    is_name: bool,
}

fn finding(at: &str, what: &str, after: &str, firm: bool) -> Difference {
    let after = Some(after.to_owned());
    let (path, message) = (at.to_owned(), what.to_owned());
    Difference { severity: Severity::Dangerous, path, message, before: None, after, always_held: firm }
}

/// Collects all strings with their paths, including member names; `_meta` is not shown to models.
fn collect_texts<'a>(at: &str, value: &'a Value, out: &mut Vec<DefinitionText<'a>>) {
    match value {
        Value::String(words) => out.push(DefinitionText { at: at.to_owned(), text: words, is_name: false }),
        Value::Array(parts) => {
            parts
                .iter()
                .enumerate()
                .for_each(|(place, part)| collect_texts(&format!("{at}.{place}"), part, out));
        }
        Value::Object(members) => {
            for (key, value) in members.iter().filter(|(key, _)| *key != "_meta") {
                let path = format!("{at}.{key}");
                out.push(DefinitionText { at: path.clone(), text: key, is_name: true });
                collect_texts(&path, value, out);
            }
        }
        _ => {}
    }
}

/// Icons must be loaded over HTTPS or embedded.
fn check_icon(at: &str, source: &str, out: &mut Vec<Difference>) {
    let lower = source.trim().to_ascii_lowercase();
    let picture = ["data:image/png", "data:image/jpeg", "data:image/webp", "data:image/gif"];
    let good = lower.starts_with("https://") || picture.iter().any(|kind| lower.starts_with(kind));
    if !good || strip_hidden(source).removed > 0 {
        out.push(finding(at, "is an unsafe icon", source, true));
    }
}

fn check_text(at: &str, words: &str, whose: &ServerIdentity, out: &mut Vec<Difference>) {
    let cleaned = strip_hidden(words);
    if cleaned.removed > 0 {
        let what = format!("has {} hidden characters", cleaned.removed);
        out.push(finding(at, &what, words, true));
    }
    if PADDING_PATTERN.as_ref().is_none_or(|padding| padding.is_match(words)) {
        out.push(finding(at, "pads text out of view", words, false));
    }
    if words.len() <= MAX_HARMLESS_WORD_LEN && is_plain_word(words) {
        return;
    }
    let read = normalize(&cleaned.text);
    let apart = split_identifiers(&cleaned.text);
    for rule in POISON_RULES.iter().filter(|rule| rule.matches(&read) || rule.matches(&apart)) {
        out.push(finding(at, rule.what, words, false));
    }
    if let Some(other) = mentioned_server(&read, whose) {
        out.push(finding(at, &format!("mentions tools of `{other}`"), words, false));
    }
}

/// The text as a model reads it, regardless of look-alike letters: lower case, single spaces.
fn normalize(text: &str) -> String {
    let plain: String = text.chars().map(shadowing::latin_lookalike).flat_map(char::to_lowercase).collect();
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Splits `readSshKey` and `read_ssh_key` into words.
fn split_identifiers(text: &str) -> String {
    let mut apart = String::with_capacity(text.len());
    let mut before = ' ';
    for c in text.chars() {
        if before.is_ascii_lowercase() && c.is_ascii_uppercase() {
            apart.push(' ');
        }
        apart.push(if c == '_' { ' ' } else { c });
        before = c;
    }
    normalize(&apart)
}

/// Another server's tool, by the name that models know.
fn mentioned_server<'a>(read: &str, whose: &'a ServerIdentity) -> Option<&'a String> {
    let own = whose.server.to_ascii_lowercase();
    let begins = |at: usize| {
        let before = read.get(..at).and_then(|head| head.chars().next_back());
        !before.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
    };
    whose.others.iter().find(|other| {
        let name = other.to_ascii_lowercase();
        let prefix = format!("{name}__");
        name != own && read.match_indices(&prefix).any(|(at, _)| begins(at))
    })
}

/// A pattern over lower-case text that no description needs.
struct PoisonRule {
    what: &'static str,
    pattern: Option<Regex>,
    /// Whether a sentence that forbids it is harmless.
    unless_forbidden: bool,
}

impl PoisonRule {
    /// A pattern that failed to compile matches everything: a refusal is safer than a miss.
    fn matches(&self, read: &str) -> bool {
        let Some(pattern) = &self.pattern else { return true };
        if !self.unless_forbidden {
            return pattern.is_match(read);
        }
        let well_meant =
            |sentence: &str| PROHIBITION_PATTERN.as_ref().is_some_and(|forbids| forbids.is_match(sentence));
        let mut sentences = read.split(['!', '?', ';']).flat_map(|part| part.split(". "));
        sentences.any(|sentence| pattern.is_match(sentence) && !well_meant(sentence))
    }
}

/// A single word of at most this length cannot match a rule.
const MAX_HARMLESS_WORD_LEN: usize = 12;

/// This many empty lines or spaces hide the text that follows from a reader.
static PADDING_PATTERN: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?:\r?\n[ \t]*){25,}|[ \t\u{a0}\u{2000}-\u{200a}\u{3000}]{150,}").ok());

static PROHIBITION_PATTERN: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"\b(?:do not|don't|must not|should not|cannot|never|avoid|without|refuses?|not be)\b (?:[^ ]+ ){0,3}?(?:include|including|send|sending|pass|passing|put|share|sharing|provide|upload|contain|copy|paste|read|reveal|store|expose|access)").ok()
});

const SECRET_FILES: &str = r"(?:\.ssh\b|\bid (?:rsa|ed25519|ecdsa)\b|\bid_(?:rsa|ed25519|ecdsa)\b|\bssh private keys?\b|\bprivate ssh keys?\b|\.aws/|/etc/(?:passwd|shadow)|\.netrc\b|\.git-credentials|\.cursor/|claude_desktop_config|\bmcp\.json|\.gnupg|\.kube/|\.env\b|\.npmrc\b|keychain|\bwallet\.dat|cookies\.sqlite|login data\b)";
const SECRETS: &str = r"(?:environment variables?|env vars?|api[ _-]?keys?|access tokens?|passwords?|credentials?|private keys?|secrets?|session cookies?|bearer tokens?)";
const CONVERSATION: &str = r"(?:(?:conversation|chat|message|dialog(?:ue)?)s? (?:history|log|transcript)|(?:whole|entire|full|complete) (?:conversation|chat|prompt|context)|(?:system|developer) (?:prompt|message)|(?:previous|prior|other|earlier|all) (?:messages|tool (?:calls|results|outputs|responses))|your (?:instructions|context window|chain of thought|reasoning)|everything the user (?:said|wrote|typed|has))";
const EXFILTRATION_VERBS: &str = r"(?:read|reads|reading|cat|send|sends|sending|include|including|pass|passing|copy|contents?|attach|upload|paste|append|exfiltrate|provide|put|forward|embed|encode|insert|dump|transmit|post|add|repeat|echo|supply|fill)";

static POISON_RULES: LazyLock<Vec<PoisonRule>> = LazyLock::new(|| {
    let rule =
        |what, pattern: &str| PoisonRule { what, pattern: Regex::new(pattern).ok(), unless_forbidden: false };
    let kind = |what, pattern: &str| PoisonRule { unless_forbidden: true, ..rule(what, pattern) };
    vec![
        rule(
            "poses as an instruction to the model",
            r"<\s*/?\s*(?:important|system|instructions?|secret|hidden|admin|assistant|critical|override|sys)\b[^>]{0,80}>|\[/?(?:inst|system|admin)\]|<\|[a-z_]{2,20}\|>|\b(?:system|developer|admin) (?:prompt|message|override|note|instructions?)\s*:|###\s*(?:system|instruction)",
        ),
        rule(
            "tells the model to ignore its instructions",
            r"\b(?:ignore|disregard|forget|override|bypass)\b[^.]{0,40}\b(?:previous|prior|above|earlier|other|all|system|safety|your|user'?s?)\b[^.]{0,30}\b(?:instructions?|rules?|prompts?|guidelines?|messages?|descriptions?|polic(?:y|ies)|warnings?|restrictions?|requests?)\b",
        ),
        rule(
            "tells the model to hide something from the user",
            r"\b(?:do not|don't|dont|never|without|no need to|must not|avoid)\b[^.]{0,30}\b(?:tell|telling|mention|mentioning|inform|informing|reveal|revealing|notify|notifying|alert|alerting|disclose|disclosing|let|letting|show|showing)\b[^.]{0,40}\b(?:user|users|human|person|people|operator|anyone|anybody|know)\b|\b(?:hide|conceal|keep) (?:this|it|that)\b.{0,20}\b(?:from|secret|hidden|confidential)\b|\bthe user (?:must|should|need) not (?:know|see|be told)",
        ),
        kind(
            "asks for files with secrets",
            // Writing public keys is common; reading keys is not.
            &format!(
                r"\b{EXFILTRATION_VERBS}\b.{{0,90}}{SECRET_FILES}|{SECRET_FILES}.{{0,90}}\b{EXFILTRATION_VERBS}\b|\b(?:read|reads|reading|cat|contents?|copy|attach|paste|dump|exfiltrate)\b(?: [a-z']+){{0,4}}? ssh keys?\b"
            ),
        ),
        kind(
            "asks for secrets in a parameter",
            &format!(
                r"\b{EXFILTRATION_VERBS}\b.{{0,60}}\b{SECRETS}.{{0,60}}\b(?:in|into|as|to|with|here|inside)\b.{{0,40}}\b(?:this|parameter|field|argument|url|query|note|sidenote|context|metadata|header|server|https?)\b|\b(?:all|any|every|user'?s|your)\b.{{0,30}}\b{SECRETS} (?:found|you (?:know|have|see|find)|available|from (?:the )?(?:context|memory|conversation|environment|workspace))"
            ),
        ),
        kind(
            "asks for the conversation",
            &format!(r"\b(?:{EXFILTRATION_VERBS}|summari[sz]e|full|verbatim)\b.{{0,60}}\b{CONVERSATION}"),
        ),
        rule(
            "gives instructions about other tools",
            r"\b(?:before|prior to|whenever|instead of|after|when)\b.{0,30}\b(?:using|calling|invoking|running|use|call|invoke|run|you use|you call)\b.{0,20}\b(?:any|other|another|all|every|each)\b.{0,20}\b(?:tools?|functions?|servers?)\b|\b(?:other|another|built-?in|native|all other|any other|competing) (?:[a-z]+ )?(?:tools?|servers?|functions?)\b.{0,50}\b(?:deprecated|broken|disabled|insecure|unsafe|compromised|replaced|obsolete|malicious|must not|should not|forbidden|no longer)\b|\b(?:do not|don't|never|stop) (?:use|using|call|calling|trust) (?:any |the )?(?:other|built-?in|native|original|official)\b|\b(?:always|must) (?:use|prefer|call|choose|select) this (?:tool|server|function) (?:instead|first|over|rather|for (?:all|every|any))",
        ),
        rule(
            "sends copies elsewhere",
            r"\b(?:bcc|always|also|silently|secretly|quietly|automatically|every (?:mail|message|email))\b.{0,70}\b(?:send|sent|forward|forwarded|cc|bcc|post|upload|copy|copied|include|add|report|mirror)\b.{0,90}(?:[a-z0-9._%+-]+@[a-z0-9-]+\.[a-z]{2,}|https?://|\bwebhook\b)|\b(?:send|forward|post|upload|report|exfiltrate|leak)\b.{0,60}\b(?:results?|outputs?|data|contents?|files?|messages?|responses?)\b.{0,40}\bto https?://",
        ),
        rule(
            "hides text in markup",
            r"<!--|!\[[^\]]{0,200}\]\(\s*https?://|\]\(\s*(?:javascript|data|vbscript):|\bjavascript:[a-z(]|<\s*(?:img|iframe|object|embed)\b[^>]{0,200}\bsrc\b|display\s*:\s*none|font-size\s*:\s*0",
        ),
        rule(
            "contains encoded text",
            r"[a-z0-9+/]{160,}={0,2}|(?:\\u00[0-9a-f]{2}){4,}|(?:\\x[0-9a-f]{2}){4,}|(?:&#x?[0-9a-f]{1,6};){3,}|(?:%[0-9a-f]{2}){12,}|\bbase64\b.{0,40}\b(?:decode|decoded)\b.{0,60}\b(?:follow|execute|run|obey)\b",
        ),
        rule(
            "contains a command to run",
            r"\b(?:curl|wget)\b.{0,120}\|\s*(?:sudo )?(?:ba|z|da)?sh\b|\brm -rf\s+[~/$]|\bpowershell\b.{0,40}-enc|\b(?:eval|exec)\(\s*(?:atob|base64)",
        ),
        rule(
            "claims prior approval",
            r"\b(?:user|operator|administrator|admin) (?:has |have )?(?:already |pre-?)(?:approved|authori[sz]ed|consented|agreed|confirmed)\b|\b(?:skip|bypass|disable|suppress|circumvent)\b.{0,30}\b(?:confirmations?|consent|safety|(?:approval|permission|security|review) (?:prompts?|checks?|dialogs?|steps?|warnings?)|(?:user|human|your) (?:approval|permission|review)s?)\b",
        ),
        rule(
            "claims to speak for others",
            r"\b(?:message|notice|order|request|requested|instructions?|required|mandated|approved) (?:from|by) (?:anthropic|openai|google|microsoft|the (?:system|administrator|developers?|operator|platform|security team))\b|\bthis is (?:anthropic|openai|your (?:developer|administrator|operator|creator))\b|\byou are now\b|\bnew (?:system )?(?:instructions|persona|role)\s*:",
        ),
    ]
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        assert!(PADDING_PATTERN.is_some() && PROHIBITION_PATTERN.is_some());
        for rule in POISON_RULES.iter() {
            assert!(rule.pattern.is_some(), "{}", rule.what);
        }
    }

    #[test]
    fn honest_descriptions_pass() {
        let whose = ServerIdentity {
            server: "own".into(),
            others: vec!["notion".into()],
            ..ServerIdentity::default()
        };
        for honest in [
            "Reads a text file, whole or by lines. Only works within allowed directories.",
            "IMPORTANT: Do not call this tool more than 3 times per question.",
            "You MUST call this function before 'Query Documentation' tool to obtain a valid library ID UNLESS the user explicitly provides one.",
            "Do not include any sensitive or confidential information such as API keys, passwords, credentials or personal data in your query.",
            "Sends an e-mail. Use `bcc` for people that the others must not see.",
            "Deletes the page without asking again. This cannot be undone.",
            "Looks things up in Notion; works with the notion server as well.",
            "Rotates an API key and gives the new one.",
            "A detailed tool for dynamic and reflective problem-solving through thoughts.",
            "Lists environment variables of the running container.",
            "Silently ignores files that are not there.",
            "Path of the private key, for logging in to the host.",
            "Get the message history of a channel, newest first.",
            "System prompt for the model that answers.",
            "Always quotes arguments. Also accepts https:// addresses.",
            "Evaluate JavaScript expression on page or element",
            "Gets a repository secret without revealing its encrypted value. The authenticated user must have access.",
            "Adds a public SSH key to the account. The key must be new.",
            "Lists the teams on the bypass list for a repository's push rules, whose reviews are not required.",
            "Adds users to the cap bypass list for a repository. All users on it can open pull requests.",
            "Disables security alerts and advanced security features for new repositories.",
            "() => { /* code */ } or (element) => { /* code */ } when element is provided",
        ] {
            let mut out = Vec::new();
            check_text("description", honest, &whose, &mut out);
            assert_eq!(out, [], "{honest}");
        }
    }
}
