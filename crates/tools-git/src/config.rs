//! The repository's own configuration is data of strangers. Whatever in it could start a program is taken back by an
//! override; only settings that are known to be harmless stay as they are.

use octo_toolkit::ToolError;

/// One setting, its name with section and variable in lower case, as git lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub key: String,
    pub value: String,
}

/// The answer of `git config --list -z`.
pub fn parse(listing: &[u8]) -> Vec<Entry> {
    listing
        .split(|byte| *byte == 0)
        .filter(|entry| !entry.is_empty())
        .map(|entry| {
            let text = String::from_utf8_lossy(entry);
            let (key, value) = text.split_once('\n').unwrap_or((&text, ""));
            Entry { key: key.to_owned(), value: value.to_owned() }
        })
        .collect()
}

/// What follows from a configuration.
#[derive(Debug, Clone, Default)]
pub struct Guard {
    /// `-c key=value` for each setting that must not have its say.
    pub overrides: Vec<(String, String)>,
    /// Settings that cannot be overridden and matter only when another repository is reached.
    pub remote_faults: Vec<String>,
    /// Addresses are rewritten, so a checked path may become another one.
    pub rewrites: bool,
    /// Other settings may hold as soon as another branch is checked out.
    pub by_branch: bool,
}

enum Verdict {
    Harmless,
    Override(&'static str),
    RemoteFault,
    Rewrite,
}

/// More would not fit on a command line, and nobody has that many.
const MOST: usize = 400;

pub fn guard(entries: &[Entry]) -> Result<Guard, ToolError> {
    let mut guard = Guard::default();
    for entry in entries {
        let key = &entry.key;
        guard.by_branch |= key.starts_with("includeif.onbranch:");
        match verdict(key) {
            Verdict::Harmless => {}
            Verdict::RemoteFault => guard.remote_faults.push(key.clone()),
            Verdict::Rewrite => guard.rewrites = true,
            Verdict::Override(value) => {
                if key.contains('=') || key.chars().any(char::is_control) || guard.overrides.len() >= MOST {
                    return Err(ToolError::denied("The repository's configuration cannot be made harmless.")
                        .hint("Ask the operator to look at .git/config for settings that start programs.")
                        .detail(key));
                }
                let fresh = (key.clone(), value.to_owned());
                if !guard.overrides.contains(&fresh) {
                    guard.overrides.push(fresh);
                }
            }
        }
    }
    Ok(guard)
}

/// Sections of plain values, and sections that nothing which we run ever reads.
const PLAIN: &[&str] = &[
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
    "extensions",
    "feature",
    "fetch",
    "fsck",
    "grep",
    "i18n",
    "include",
    "includeif",
    "index",
    "lfs",
    "log",
    "lsrefs",
    "maintenance",
    "merge",
    "notes",
    "pack",
    "pretty",
    "protocol",
    "pull",
    "push",
    "rebase",
    "receive",
    "reftable",
    "repack",
    "rerere",
    "reset",
    "revert",
    "safe",
    "showbranch",
    "sparse",
    "splitindex",
    "ssh",
    "stash",
    "status",
    "submodule",
    "tag",
    "transfer",
    // Its hook counts only outside the repository's own settings.
    "uploadpack",
    "user",
    "versionsort",
    "worktree",
];

const CORE: &[&str] = &[
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
    // The work tree is given by the environment, which goes first.
    "worktree",
];

const DIFF: &[&str] = &[
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

const REMOTE: &[&str] = &[
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

const HTTP: &[&str] = &[
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

fn verdict(key: &str) -> Verdict {
    let (section, rest) = key.split_once('.').unwrap_or((key, ""));
    let (sub, name) = rest.rsplit_once('.').unwrap_or(("", rest));
    match (section, name) {
        ("core", name) if CORE.contains(&name) => Verdict::Harmless,
        ("diff", "orderfile") => Verdict::Override("/dev/null"),
        ("diff", name) if DIFF.contains(&name) => Verdict::Harmless,
        ("filter", "required") => Verdict::Override("false"),
        // An empty driver would quietly prefer one side; one that fails leaves a conflict to look at.
        ("merge", "driver") => Verdict::Override("false"),
        ("merge", "tool" | "guitool") => Verdict::Override(""),
        ("log", "showsignature") | ("pager", _) => Verdict::Override("false"),
        ("branch", "mergeoptions") | ("mailmap", "file") => Verdict::Override(""),
        ("submodule", "update") => Verdict::Override("none"),
        ("submodule", "ignore") => Verdict::Override("dirty"),
        ("remote", name) if REMOTE.contains(&name) || (sub.is_empty() && name == "pushdefault") => {
            Verdict::Harmless
        }
        // A group of remotes goes before the remote of that name.
        ("remote" | "remotes", _) => Verdict::RemoteFault,
        ("http", "sslverify") => Verdict::Override("true"),
        ("http", "followredirects") => Verdict::Override("initial"),
        ("http", name) if HTTP.contains(&name) => Verdict::Harmless,
        ("http", _) => Verdict::RemoteFault,
        ("url", _) if is_plain_base(sub) => Verdict::Rewrite,
        ("url", _) => Verdict::RemoteFault,
        ("init", "defaultbranch") | ("commit", "cleanup" | "status" | "verbose") => Verdict::Harmless,
        // git stops at an empty value of these, and what they choose among is overridden itself.
        ("gpg", "format" | "mintrustlevel") | ("format", "pretty") => Verdict::Harmless,
        ("gc", name) if name != "recentobjectshook" => Verdict::Harmless,
        ("blame", name) if name != "ignorerevsfile" => Verdict::Harmless,
        ("mailmap", "blob") => Verdict::Harmless,
        (section, _) if PLAIN.contains(&section) => Verdict::Harmless,
        _ => Verdict::Override(""),
    }
}

/// Rewritten addresses that still are of an ordinary kind.
fn is_plain_base(base: &str) -> bool {
    ["https://", "http://", "ssh://", "git@"].iter().any(|kind| base.starts_with(kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(list: &[&str]) -> Vec<Entry> {
        list.iter().map(|key| Entry { key: (*key).to_owned(), value: String::new() }).collect()
    }

    #[test]
    fn listings_keep_values_with_lines() {
        let entries = parse(b"user.name\nA\nB\0core.bare\0remote.origin.url\nx\0");
        let told: Vec<_> = entries.iter().map(|e| (e.key.as_str(), e.value.as_str())).collect();
        assert_eq!(told, [("user.name", "A\nB"), ("core.bare", ""), ("remote.origin.url", "x")]);
    }

    #[test]
    fn programs_are_overridden() {
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
            let guard = guard(&keys(&[key])).unwrap();
            assert_eq!(guard.overrides, [(key.to_owned(), value.to_owned())], "{key}");
        }
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
            "extensions.worktreeconfig",
            "init.defaultbranch",
            "lfs.x.access",
            "gc.auto",
        ];
        let guard = guard(&keys(&plain)).unwrap();
        assert!(guard.overrides.is_empty() && guard.remote_faults.is_empty(), "{guard:?}");
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
        assert_eq!(guard(&keys(&list)).unwrap().remote_faults, list);
        assert!(guard(&keys(&["url.git@x:.insteadof"])).unwrap().rewrites);
        assert!(guard(&keys(&["includeif.onbranch:x.path"])).unwrap().by_branch);
    }

    #[test]
    fn names_that_cannot_be_overridden_are_refused() {
        assert!(guard(&keys(&["filter.a=b.clean"])).is_err());
        assert!(guard(&keys(&["filter.a\tb.clean"])).is_err());
        let many: Vec<String> = (0..500).map(|at| format!("filter.f{at}.clean")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(guard(&keys(&many)).is_err());
    }
}
