//! The repository's own configuration is untrusted. The hub reads it once and writes for git only settings that are
//! known to be safe; nothing else is in effect.

use octo_toolkit::ToolError;

mod file_format;

pub use file_format::{parse, print};

/// One setting; section and variable in lower case, as git lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigEntry {
    pub key: String,
    pub value: String,
}

/// Output of `git config --list -z`.
pub fn parse_listing(listing: &[u8]) -> Vec<ConfigEntry> {
    listing
        .split(|byte| *byte == 0)
        .filter(|entry| !entry.is_empty())
        .map(|entry| {
            let text = String::from_utf8_lossy(entry);
            let (key, value) = text.split_once('\n').unwrap_or((&text, ""));
            ConfigEntry { key: key.to_owned(), value: value.to_owned() }
        })
        .collect()
}

/// Result of evaluating a configuration.
#[derive(Debug, Clone, Default)]
pub struct SafeConfig {
    /// Settings that stay in effect.
    pub entries: Vec<ConfigEntry>,
    /// Settings that do not, and matter for access to another repository: reported to the caller.
    pub unsafe_remote_keys: Vec<String>,
    /// URLs are rewritten, so a checked path may become another one.
    pub rewrites_urls: bool,
}

enum KeySafety {
    Safe,
    /// Not in effect. In a nested repository, whose configuration git reads itself, it is replaced by this value.
    Override(&'static str),
    /// Not in effect, and starts nothing in a nested repository either.
    Ignored,
    UnsafeForRemotes,
    UrlRewrite,
}

/// More would not fit on a command line and are not realistic.
const MAX_OVERRIDES: usize = 400;

pub fn safe_config(entries: &[ConfigEntry]) -> SafeConfig {
    let mut guard = SafeConfig::default();
    for entry in entries {
        match verdict(&entry.key) {
            KeySafety::Override(_) | KeySafety::Ignored => continue,
            KeySafety::UnsafeForRemotes => {
                guard.unsafe_remote_keys.push(entry.key.clone());
                continue;
            }
            KeySafety::UrlRewrite => guard.rewrites_urls = true,
            KeySafety::Safe => {}
        }
        guard.entries.push(entry.clone());
    }
    guard
}

/// `-c key=value` for each setting of a nested repository that must not take effect.
pub fn overrides(entries: &[ConfigEntry]) -> Result<Vec<(String, String)>, ToolError> {
    let mut all: Vec<(String, String)> = Vec::new();
    for ConfigEntry { key, .. } in entries {
        let KeySafety::Override(value) = verdict(key) else { continue };
        if key.contains('=') || key.chars().any(char::is_control) || all.len() >= MAX_OVERRIDES {
            return Err(ToolError::denied("The configuration of a nested repository cannot be made safe.")
                .hint("Check its .git/config for settings that start programs.")
                .detail(key));
        }
        let fresh = (key.clone(), value.to_owned());
        if !all.contains(&fresh) {
            all.push(fresh);
        }
    }
    Ok(all)
}

/// Sections of plain values.
const SAFE_SECTIONS: &[&str] = &[
    "advice",
    "add",
    "apply",
    "author",
    "branch",
    "checkout",
    "clean",
    "color",
    "column",
    "commitgraph",
    "committer",
    "completion",
    "feature",
    "grep",
    "i18n",
    "index",
    "log",
    "merge",
    "notes",
    "pack",
    "pretty",
    "pull",
    "push",
    "reftable",
    "repack",
    "rerere",
    "reset",
    "revert",
    "showbranch",
    "sparse",
    "splitindex",
    "stash",
    "status",
    "tag",
    "user",
    "versionsort",
];

/// Sections that a repository must not control: access, includes, and what runs automatically.
const IGNORED_SECTIONS: &[&str] = &[
    "fetch",
    "fsck",
    "include",
    "includeif",
    "lfs",
    "lsrefs",
    "maintenance",
    "protocol",
    "rebase",
    "receive",
    "safe",
    "ssh",
    "submodule",
    "transfer",
    "uploadpack",
    "worktree",
];

const SAFE_CORE_KEYS: &[&str] = &[
    "abbrev",
    "autocrlf",
    "bare",
    "bigfilethreshold",
    "checkroundtripencoding",
    "checkstat",
    "commentchar",
    "commentstring",
    "commitgraph",
    "compression",
    "createobject",
    "deltabasecachelimit",
    "eol",
    "filemode",
    "filesreflocktimeout",
    "fscache",
    "fsync",
    "fsyncmethod",
    "fsyncobjectfiles",
    "ignorecase",
    "logallrefupdates",
    "longpaths",
    "loosecompression",
    "maxtreedepth",
    "multipackindex",
    "notesref",
    "packedgitlimit",
    "packedgitwindowsize",
    "packedrefstimeout",
    "precomposeunicode",
    "preloadindex",
    "protecthfs",
    "protectntfs",
    "quotepath",
    "repositoryformatversion",
    "safecrlf",
    "sharedrepository",
    "sparsecheckout",
    "sparsecheckoutcone",
    "splitindex",
    "symlinks",
    "trustctime",
    "untrackedcache",
    "usereplacerefs",
    "warnambiguousrefs",
    "whitespace",
];

const SAFE_DIFF_KEYS: &[&str] = &[
    "algorithm",
    "autorefreshindex",
    "binary",
    "cachetextconv",
    "colormoved",
    "colormovedws",
    "context",
    "dirstat",
    "dstprefix",
    "funcname",
    "ignoresubmodules",
    "indentheuristic",
    "interhunkcontext",
    "mnemonicprefix",
    "noprefix",
    "relative",
    "renamelimit",
    "renames",
    "srcprefix",
    "statgraphwidth",
    "statnamewidth",
    "submodule",
    "suppressblankempty",
    "trustexitcode",
    "wordregex",
    "wserrorhighlight",
    "xfuncname",
];

const SAFE_REMOTE_KEYS: &[&str] = &[
    "fetch",
    "followremotehead",
    "gh-resolved",
    "mirror",
    "partialclonefilter",
    "promisor",
    "prune",
    "prunetags",
    "push",
    "pushurl",
    "serveroption",
    "skipdefaultupdate",
    "skipfetchall",
    "tagopt",
    "url",
];

const SAFE_FETCH_KEYS: &[&str] =
    &["fsckobjects", "output", "prune", "prunetags", "showforcedupdates", "writecommitgraph"];

const SAFE_REBASE_KEYS: &[&str] =
    &["abbreviatecommands", "autosquash", "autostash", "forkpoint", "rebasemerges", "stat"];

const SAFE_HTTP_KEYS: &[&str] = &[
    "emptyauth",
    "extraheader",
    "keepalivecount",
    "keepaliveidle",
    "keepaliveinterval",
    "lowspeedlimit",
    "lowspeedtime",
    "maxrequests",
    "maxretries",
    "minsessions",
    "postbuffer",
    "useragent",
    "version",
];

fn verdict(key: &str) -> KeySafety {
    let (section, rest) = key.split_once('.').unwrap_or((key, ""));
    let (sub, name) = rest.rsplit_once('.').unwrap_or(("", rest));
    match (section, name) {
        // It would add a file that is not read here.
        ("extensions", "worktreeconfig") | ("core", "worktree") => KeySafety::Ignored,
        // git itself refuses unknown ones.
        ("extensions", _) => KeySafety::Safe,
        ("fetch", name) if SAFE_FETCH_KEYS.contains(&name) => KeySafety::Safe,
        ("rebase", name) if SAFE_REBASE_KEYS.contains(&name) => KeySafety::Safe,
        ("submodule", "url" | "active" | "branch") => KeySafety::Safe,
        ("core", name) if SAFE_CORE_KEYS.contains(&name) => KeySafety::Safe,
        ("diff", "orderfile") => KeySafety::Override("/dev/null"),
        ("diff", name) if SAFE_DIFF_KEYS.contains(&name) => KeySafety::Safe,
        ("filter", "required") => KeySafety::Override("false"),
        // An empty driver would silently prefer one side; one that fails leaves a visible conflict.
        ("merge", "driver") => KeySafety::Override("false"),
        ("merge", "tool" | "guitool") => KeySafety::Override(""),
        ("log", "showsignature") | ("pager", _) => KeySafety::Override("false"),
        ("branch", "mergeoptions") | ("mailmap", "file") => KeySafety::Override(""),
        ("submodule", "update") => KeySafety::Override("none"),
        ("submodule", "ignore") => KeySafety::Override("dirty"),
        ("remote", name) if SAFE_REMOTE_KEYS.contains(&name) || (sub.is_empty() && name == "pushdefault") => {
            KeySafety::Safe
        }
        // A group of remotes takes precedence over the remote of that name.
        ("remote" | "remotes", _) => KeySafety::UnsafeForRemotes,
        ("http", "sslverify") => KeySafety::Override("true"),
        ("http", "followredirects") => KeySafety::Override("initial"),
        ("http", name) if SAFE_HTTP_KEYS.contains(&name) => KeySafety::Safe,
        ("http", _) => KeySafety::UnsafeForRemotes,
        ("url", _) if is_plain_base(sub) => KeySafety::UrlRewrite,
        ("url", _) => KeySafety::UnsafeForRemotes,
        ("init", "defaultbranch") | ("commit", "cleanup" | "status" | "verbose") => KeySafety::Safe,
        // git fails on an empty value of these, and what they select is overridden itself.
        ("gpg", "format" | "mintrustlevel") | ("format", "pretty") => KeySafety::Safe,
        ("gc", name) if name != "recentobjectshook" => KeySafety::Safe,
        ("blame", name) if name != "ignorerevsfile" => KeySafety::Safe,
        ("mailmap", "blob") => KeySafety::Safe,
        (section, _) if SAFE_SECTIONS.contains(&section) => KeySafety::Safe,
        (section, _) if IGNORED_SECTIONS.contains(&section) => KeySafety::Ignored,
        _ => KeySafety::Override(""),
    }
}

/// Rewritten URLs that still have an ordinary scheme.
fn is_plain_base(base: &str) -> bool {
    ["https://", "http://", "ssh://", "git@"].iter().any(|kind| base.starts_with(kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(list: &[&str]) -> Vec<ConfigEntry> {
        list.iter().map(|key| ConfigEntry { key: (*key).to_owned(), value: String::new() }).collect()
    }

    #[test]
    fn listings_keep_values_with_lines() {
        let entries = parse_listing(b"user.name\nA\nB\0core.bare\0remote.origin.url\nx\0");
        let told: Vec<_> = entries.iter().map(|e| (e.key.as_str(), e.value.as_str())).collect();
        assert_eq!(told, [("user.name", "A\nB"), ("core.bare", ""), ("remote.origin.url", "x")]);
    }

    #[test]
    fn programs_are_not_in_force() {
        let rows = [
            ("filter.lfs.clean", ""),
            ("filter.lfs.smudge", ""),
            ("filter.lfs.process", ""),
            ("filter.lfs.required", "false"),
            ("diff.pdf.textconv", ""),
            ("diff.pdf.command", ""),
            ("diff.external", ""),
            ("merge.ours.driver", "false"),
            ("alias.x", ""),
            ("core.alternaterefscommand", ""),
            ("core.sshcommand", ""),
            ("core.somethingnew", ""),
            ("gpg.ssh.defaultkeycommand", ""),
            ("credential.https://x/.helper", ""),
            ("trailer.sign.cmd", ""),
            ("hook.evil.command", ""),
            ("gc.recentobjectshook", ""),
            ("interactive.difffilter", ""),
            ("sequence.editor", ""),
            ("pager.log", "false"),
            ("http.https://x/.sslverify", "true"),
            ("http.https://x/.followredirects", "initial"),
            ("submodule.a.update", "none"),
            ("submodule.a.ignore", "dirty"),
            ("brandnew.thing", ""),
        ];
        for (key, value) in rows {
            assert_eq!(overrides(&keys(&[key])).unwrap(), [(key.to_owned(), value.to_owned())], "{key}");
            assert!(safe_config(&keys(&[key])).entries.is_empty(), "{key}");
        }
    }

    #[test]
    fn what_a_repository_does_not_decide_is_left_out() {
        let list = [
            "include.path",
            "includeif.onbranch:x.path",
            "extensions.worktreeconfig",
            "fetch.bundleuri",
            "transfer.bundleuri",
            "rebase.updaterefs",
            "protocol.ext.allow",
            "core.worktree",
            "uploadpack.packobjectshook",
            "safe.directory",
        ];
        assert!(safe_config(&keys(&list)).entries.is_empty());
        assert!(overrides(&keys(&list)).unwrap().is_empty());
    }

    #[test]
    fn ordinary_settings_stay() {
        let plain = [
            "core.repositoryformatversion",
            "core.bare",
            "core.autocrlf",
            "user.name",
            "user.email",
            "remote.origin.url",
            "remote.origin.fetch",
            "branch.main.merge",
            "branch.main.remote",
            "pull.rebase",
            "diff.renames",
            "diff.pdf.xfuncname",
            "merge.conflictstyle",
            "merge.ours.name",
            "submodule.a.url",
            "http.postbuffer",
            "extensions.objectformat",
            "init.defaultbranch",
            "gc.auto",
        ];
        let entries = keys(&plain);
        assert_eq!(safe_config(&entries).entries, entries);
        assert!(
            safe_config(&entries).unsafe_remote_keys.is_empty() && overrides(&entries).unwrap().is_empty()
        );
    }

    #[test]
    fn what_only_matters_for_remotes_is_kept_apart() {
        let list = [
            "remote.o.uploadpack",
            "remote.o.vcs",
            "http.proxy",
            "http.https://x/.proxy",
            "remote.o.proxy",
            "http.curloptresolve",
            "http.sslcainfo",
            "url.ext::sh.insteadof",
        ];
        assert_eq!(safe_config(&keys(&list)).unsafe_remote_keys, list);
        assert!(safe_config(&keys(&["url.git@x:.insteadof"])).rewrites_urls);
    }

    #[test]
    fn names_that_cannot_be_overridden_are_refused() {
        assert!(overrides(&keys(&["filter.a=b.clean"])).is_err());
        assert!(overrides(&keys(&["filter.a\tb.clean"])).is_err());
        let many: Vec<String> = (0..500).map(|at| format!("filter.f{at}.clean")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(overrides(&keys(&many)).is_err());
    }
}
