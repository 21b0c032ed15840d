//! Proposals for the effects of a server's tools, from their names and annotations. A person reviews them.

use octo_model::{EffectClass, JsonObject};

/// Words in the names of tools that read.
const READING: &[&str] = &[
    "analyze",
    "browse",
    "check",
    "compare",
    "count",
    "describe",
    "diff",
    "explain",
    "fetch",
    "find",
    "get",
    "inspect",
    "list",
    "lookup",
    "preview",
    "query",
    "read",
    "search",
    "show",
    "status",
    "summarize",
    "validate",
    "view",
];
/// Words in the names of tools that add without losing data.
const ADDING: &[&str] = &[
    "add", "append", "comment", "copy", "create", "fork", "insert", "invite", "new", "reply", "save",
    "upload",
];
/// Words in the names of tools that change something, with or without losing data.
const CHANGING: &[&str] = &[
    "apply",
    "approve",
    "assign",
    "call",
    "change",
    "click",
    "close",
    "commit",
    "deploy",
    "disable",
    "edit",
    "enable",
    "eval",
    "evaluate",
    "exec",
    "execute",
    "fill",
    "import",
    "install",
    "invoke",
    "lock",
    "mark",
    "merge",
    "modify",
    "move",
    "open",
    "patch",
    "post",
    "press",
    "publish",
    "push",
    "put",
    "rename",
    "reopen",
    "replace",
    "resolve",
    "restart",
    "restore",
    "run",
    "send",
    "set",
    "share",
    "shell",
    "start",
    "stop",
    "submit",
    "subscribe",
    "sync",
    "transfer",
    "trigger",
    "type",
    "unlock",
    "unsubscribe",
    "update",
    "upsert",
    "write",
];
/// Words in the names of tools that lose data.
const DESTROYING: &[&str] = &[
    "archive",
    "cancel",
    "clear",
    "delete",
    "destroy",
    "discard",
    "drop",
    "erase",
    "expire",
    "force",
    "kill",
    "overwrite",
    "prune",
    "purge",
    "remove",
    "reset",
    "revert",
    "revoke",
    "rollback",
    "terminate",
    "trash",
    "truncate",
    "uninstall",
    "unshare",
    "wipe",
];

/// A proposed effect, and what it rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EffectProposal {
    pub class: EffectClass,
    pub basis: &'static str,
}

/// What a name suggests.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NameSuggestion {
    Class(EffectClass),
    /// It changes something.
    Changes,
    Nothing,
}

impl EffectProposal {
    /// Proposes the effect of a tool. Where the name and the annotations disagree, it is the more dangerous one.
    pub fn new(name: &str, annotations: &JsonObject) -> Self {
        use EffectClass::{Destroys, Reads, Writes};
        let hint = |name: &str| annotations.get(name).and_then(|value| value.to::<bool>().ok());
        let read_only = hint("readOnlyHint");
        let claimed = match (read_only, hint("destructiveHint")) {
            (Some(true), _) => Some(Reads),
            (_, Some(destructive)) => Some(if destructive { Destroys } else { Writes }),
            (_, None) => None,
        };
        let (class, basis) = match (suggestion(name), claimed) {
            (NameSuggestion::Class(Reads), None) if read_only == Some(false) => {
                (Destroys, "name and annotations disagree")
            }
            (NameSuggestion::Class(named), Some(claimed)) if named == claimed => {
                (named, "name and annotations")
            }
            (NameSuggestion::Class(named), Some(claimed)) => {
                (named.max(claimed), "name and annotations disagree")
            }
            (NameSuggestion::Class(named), None) => (named, "name"),
            (NameSuggestion::Changes, Some(Reads)) => (Destroys, "name and annotations disagree"),
            (NameSuggestion::Changes | NameSuggestion::Nothing, Some(claimed)) => (claimed, "annotations"),
            (NameSuggestion::Changes | NameSuggestion::Nothing, None) => (Destroys, "unknown"),
        };
        Self { class, basis }
    }
}

fn suggestion(name: &str) -> NameSuggestion {
    let mut words = words(name);
    words.retain(|word| !word.is_empty());
    let any = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    match () {
        () if any(DESTROYING) => NameSuggestion::Class(EffectClass::Destroys),
        () if any(CHANGING) => NameSuggestion::Changes,
        () if any(ADDING) => NameSuggestion::Class(EffectClass::Writes),
        // `list_pages` or `pages_list`, but not `pages_for_the_list`.
        () if words.iter().take(2).any(|word| READING.contains(&word.as_str())) => {
            NameSuggestion::Class(EffectClass::Reads)
        }
        () => NameSuggestion::Nothing,
    }
}

/// The words of `list_pages`, `list-pages`, `listPages` and `HTTPGet`, in lower case.
fn words(name: &str) -> Vec<String> {
    let letters: Vec<char> = name.chars().collect();
    let mut words = vec![String::new()];
    for (at, letter) in letters.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|at| letters.get(at));
        let starts_word = letter.is_uppercase()
            && (before.is_some_and(|before| before.is_lowercase())
                || letters.get(at + 1).is_some_and(|next| next.is_lowercase()));
        if !letter.is_alphanumeric() || starts_word {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| letter.is_alphanumeric()) {
            word.extend(letter.to_lowercase());
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use octo_model::Json;
    use serde_json::json;

    #[test]
    fn names_are_taken_apart() {
        for (name, expected) in [
            ("list_pages", "list pages"),
            ("API-post-search", "api post search"),
            ("listPages", "list pages"),
            ("HTTPGet", "http get"),
            ("a.b/c", "a b c"),
            ("élan_Übung", "élan übung"),
            ("", ""),
        ] {
            let words: Vec<String> = words(name).into_iter().filter(|word| !word.is_empty()).collect();
            assert_eq!(words.join(" "), expected, "{name}");
        }
    }

    #[test]
    fn the_more_dangerous_of_name_and_annotations_is_proposed() {
        let none = json!({});
        let reads = json!({"readOnlyHint": true});
        let writes = json!({"readOnlyHint": false, "destructiveHint": false});
        let destroys = json!({"readOnlyHint": false, "destructiveHint": true});
        let not_read_only = json!({"readOnlyHint": false});
        for (name, annotations, expected, basis) in [
            ("list_pages", &none, "reads", "name"),
            ("list_pages", &reads, "reads", "name and annotations"),
            ("list_pages", &writes, "writes", "name and annotations disagree"),
            ("list_pages", &not_read_only, "destroys", "name and annotations disagree"),
            ("get_or_create", &none, "writes", "name"),
            ("create_page", &not_read_only, "writes", "name"),
            ("create_page", &destroys, "destroys", "name and annotations disagree"),
            ("update_page", &none, "destroys", "unknown"),
            ("update_page", &writes, "writes", "annotations"),
            ("update_page", &reads, "destroys", "name and annotations disagree"),
            ("get_and_delete", &reads, "destroys", "name and annotations disagree"),
            ("list_deleted_pages", &none, "reads", "name"),
            ("mark_as_read", &none, "destroys", "unknown"),
            ("issue_read", &none, "reads", "name"),
            ("copier_to_some_list", &none, "destroys", "unknown"),
            ("whiteboard", &none, "destroys", "unknown"),
            ("whiteboard", &reads, "reads", "annotations"),
            ("whiteboard", &json!({"readOnlyHint": "yes"}), "destroys", "unknown"),
        ] {
            let members = Json::from(annotations.clone()).members().unwrap();
            let proposal = EffectProposal::new(name, &members);
            assert_eq!((proposal.class.as_str(), proposal.basis), (expected, basis), "{name} {annotations}");
        }
    }
}
