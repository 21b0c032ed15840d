//! Subcommands that change something.

use super::{
    Does, Opt, ROW, Rest, Row, branch, choice, flag, loses, maybe_number, message, number, rev, text,
};

const WORK: &str = "Uncommitted changes of these files are lost.";
const ALL_WORK: &str = "All uncommitted changes of tracked files are lost.";
const REMOTE_HISTORY: &str = "Commits that only the remote had may be lost there.";

/// Otherwise git looks into repositories within the branch that it has just checked out.
const QUIET: &[&str] = &["--quiet"];

/// What goes on with, or gives up, something begun earlier.
const SEQUENCE: &[Opt] = &[
    flag("--continue"),
    flag("--skip"),
    flag("--quit"),
    loses(flag("--abort"), "Conflict resolutions made so far are lost."),
];
const GIVE_UP: &[&str] = &["--abort", "--quit"];

const MERGE: &[Opt] = &[
    flag("--ff"),
    flag("--no-ff"),
    flag("--ff-only"),
    flag("--squash"),
    flag("--no-squash"),
    flag("--no-edit"),
    flag("--stat"),
    flag("--no-stat"),
    flag("-q"),
    flag("--quiet"),
    flag("--allow-unrelated-histories"),
    choice("-X", &["ours", "theirs", "patience", "ignore-all-space", "ignore-space-change", "renormalize"]),
];

pub const ROWS: &[Row] = &[
    Row {
        name: "init",
        does: Does::Inits,
        rest: Rest::Folder,
        options: &[&[
            flag("--bare"),
            flag("-q"),
            flag("--quiet"),
            branch("-b"),
            branch("--initial-branch"),
            choice("--object-format", &["sha1", "sha256"]),
        ]],
        always: &["--template="],
        ..ROW
    },
    Row {
        name: "clone",
        does: Does::Clones,
        rest: Rest::Clone,
        options: &[&[
            flag("--bare"),
            flag("--mirror"),
            flag("--single-branch"),
            flag("--no-single-branch"),
            flag("--no-tags"),
            flag("--no-checkout"),
            flag("-n"),
            flag("-q"),
            flag("--quiet"),
            branch("-b"),
            branch("--branch"),
            number("--depth"),
        ]],
        always: &["--template=", "--no-local", "--no-recurse-submodules"],
        ..ROW
    },
    Row {
        name: "add",
        does: Does::Writes,
        rest: Rest::Paths,
        options: &[&[
            flag("-A"),
            flag("--all"),
            flag("-u"),
            flag("--update"),
            flag("-n"),
            flag("--dry-run"),
            flag("-v"),
            flag("-f"),
            flag("--force"),
            flag("-N"),
            flag("--intent-to-add"),
            flag("--renormalize"),
            choice("--chmod", &["+x", "-x"]),
        ]],
        ..ROW
    },
    Row {
        name: "mv",
        does: Does::Writes,
        rest: Rest::Paths,
        options: &[&[
            flag("-n"),
            flag("--dry-run"),
            flag("-v"),
            flag("-k"),
            loses(flag("-f"), WORK),
            loses(flag("--force"), WORK),
        ]],
        ..ROW
    },
    Row {
        name: "rm",
        does: Does::Writes,
        rest: Rest::Paths,
        options: &[&[
            flag("-r"),
            flag("-n"),
            flag("--dry-run"),
            flag("-q"),
            flag("--cached"),
            flag("--ignore-unmatch"),
            loses(flag("-f"), WORK),
            loses(flag("--force"), WORK),
        ]],
        ..ROW
    },
    Row {
        name: "restore",
        does: Does::Writes,
        rest: Rest::Paths,
        options: &[&[
            rev("--source"),
            flag("--staged"),
            flag("-W"),
            flag("--worktree"),
            flag("--ours"),
            flag("--theirs"),
            flag("-q"),
        ]],
        loses_paths: Some(WORK),
        ..ROW
    },
    Row {
        name: "checkout",
        does: Does::Writes,
        rest: Rest::RevsAndPaths,
        options: &[&[
            branch("-b"),
            flag("--detach"),
            flag("--track"),
            flag("-t"),
            flag("--no-track"),
            flag("--ours"),
            flag("--theirs"),
            flag("-m"),
            flag("--merge"),
            flag("-q"),
            flag("--quiet"),
            branch("--orphan"),
            loses(branch("-B"), "The branch's old commits may be lost."),
            loses(flag("-f"), ALL_WORK),
            loses(flag("--force"), ALL_WORK),
        ]],
        loses_paths: Some(WORK),
        always: QUIET,
        ..ROW
    },
    Row {
        name: "switch",
        does: Does::Writes,
        rest: Rest::Names,
        options: &[&[
            branch("-c"),
            branch("--create"),
            flag("-d"),
            flag("--detach"),
            flag("-t"),
            flag("--track"),
            flag("--no-track"),
            flag("-m"),
            flag("--merge"),
            flag("-q"),
            flag("--quiet"),
            branch("--orphan"),
            loses(branch("-C"), "The branch's old commits may be lost."),
            loses(flag("-f"), ALL_WORK),
            loses(flag("--discard-changes"), ALL_WORK),
        ]],
        always: QUIET,
        ..ROW
    },
    Row {
        name: "branch",
        does: Does::Writes,
        rest: Rest::Names,
        options: &[&[
            flag("-a"),
            flag("--all"),
            flag("-r"),
            flag("--remotes"),
            flag("-l"),
            flag("--list"),
            flag("-v"),
            flag("-vv"),
            flag("--verbose"),
            flag("--show-current"),
            flag("-d"),
            flag("--delete"),
            flag("-m"),
            flag("--move"),
            flag("-t"),
            flag("--track"),
            flag("--no-track"),
            flag("--unset-upstream"),
            text("--sort"),
            text("--format"),
            rev("--contains"),
            rev("--no-contains"),
            rev("--merged"),
            rev("--no-merged"),
            rev("--points-at"),
            rev("--set-upstream-to"),
            loses(flag("-D"), "Commits that are only on this branch may be lost."),
            loses(flag("-f"), "The branch's old commits may be lost."),
            loses(flag("-M"), "A branch of that name is lost."),
        ]],
        lists_unless: Some(&["--unset-upstream", "--set-upstream-to", "-d", "-D", "-m", "-M", "-f"]),
        ..ROW
    },
    Row {
        name: "tag",
        does: Does::Writes,
        rest: Rest::Names,
        options: &[&[
            flag("-l"),
            flag("--list"),
            flag("-a"),
            flag("--annotate"),
            message("-m"),
            message("--message"),
            maybe_number("-n"),
            text("--sort"),
            text("--format"),
            rev("--contains"),
            rev("--merged"),
            rev("--points-at"),
            loses(flag("-d"), "The tag is lost."),
            loses(flag("--delete"), "The tag is lost."),
            loses(flag("-f"), "The tag's old place is lost."),
        ]],
        lists_unless: Some(&["-d", "--delete", "-f", "-a", "-m"]),
        ..ROW
    },
    Row {
        name: "reset",
        does: Does::Writes,
        rest: Rest::RevsAndPaths,
        options: &[&[
            flag("--soft"),
            flag("--mixed"),
            flag("--merge"),
            flag("--keep"),
            flag("-q"),
            flag("-N"),
            loses(flag("--hard"), ALL_WORK),
        ]],
        ..ROW
    },
    Row {
        name: "clean",
        does: Does::Writes,
        rest: Rest::Paths,
        options: &[&[
            flag("-n"),
            flag("--dry-run"),
            flag("-d"),
            flag("-q"),
            flag("-X"),
            loses(flag("-f"), "Untracked files are deleted."),
            loses(flag("--force"), "Untracked files are deleted."),
            text("--exclude"),
        ]],
        ..ROW
    },
    Row {
        name: "stash push",
        does: Does::Writes,
        rest: Rest::Paths,
        options: &[&[
            flag("-u"),
            flag("--include-untracked"),
            flag("-k"),
            flag("--keep-index"),
            flag("--no-keep-index"),
            flag("--staged"),
            flag("-q"),
            text("-m"),
            text("--message"),
        ]],
        ..ROW
    },
    Row {
        name: "stash pop",
        does: Does::Writes,
        rest: Rest::Revs,
        options: &[&[flag("--index"), flag("-q")]],
        ..ROW
    },
    Row {
        name: "stash apply",
        does: Does::Writes,
        rest: Rest::Revs,
        options: &[&[flag("--index"), flag("-q")]],
        ..ROW
    },
    Row {
        name: "stash drop",
        does: Does::Writes,
        rest: Rest::Revs,
        options: &[&[flag("-q")]],
        loses: Some("The stash is lost."),
        ..ROW
    },
    Row { name: "stash clear", does: Does::Writes, loses: Some("All stashes are lost."), ..ROW },
    Row {
        name: "remote add",
        does: Does::Writes,
        rest: Rest::NewRemote,
        options: &[&[branch("-t"), branch("-m")]],
        ..ROW
    },
    Row {
        name: "remote set-url",
        does: Does::Writes,
        rest: Rest::NewRemote,
        options: &[&[flag("--push")]],
        ..ROW
    },
    Row { name: "remote remove", does: Does::Writes, rest: Rest::RemoteName, ..ROW },
    Row {
        name: "commit",
        does: Does::Commits,
        rest: Rest::Paths,
        options: &[&[
            message("-m"),
            message("--message"),
            flag("-a"),
            flag("--all"),
            flag("--only"),
            flag("--include"),
            flag("--allow-empty"),
            flag("--no-edit"),
            flag("-q"),
            flag("--quiet"),
            flag("--dry-run"),
            text("--date"),
            rev("--fixup"),
            loses(flag("--amend"), "The commit before is replaced."),
        ]],
        always: &["--no-verify", "--no-gpg-sign"],
        harmless_with: &["--dry-run"],
        ..ROW
    },
    Row {
        name: "merge",
        does: Does::Commits,
        rest: Rest::Revs,
        options: &[MERGE, SEQUENCE, &[flag("--no-commit"), message("-m"), message("--message")]],
        always: &["--no-verify", "--no-gpg-sign"],
        harmless_with: &["--abort", "--quit", "--ff-only", "--squash"],
        ..ROW
    },
    Row {
        name: "rebase",
        does: Does::Commits,
        rest: Rest::Revs,
        options: &[
            SEQUENCE,
            &[
                rev("--onto"),
                flag("--autostash"),
                flag("--no-autostash"),
                flag("--keep-empty"),
                flag("--rebase-merges"),
                flag("--root"),
                flag("-q"),
            ],
        ],
        always: &["--no-verify", "--no-gpg-sign"],
        harmless_with: GIVE_UP,
        ..ROW
    },
    Row {
        name: "cherry-pick",
        does: Does::Commits,
        rest: Rest::Revs,
        options: &[
            SEQUENCE,
            &[
                flag("-n"),
                flag("-x"),
                flag("--no-commit"),
                flag("--allow-empty"),
                number("-m"),
                number("--mainline"),
            ],
        ],
        always: &["--no-gpg-sign"],
        harmless_with: &["--abort", "--quit", "-n", "--no-commit"],
        ..ROW
    },
    Row {
        name: "revert",
        does: Does::Commits,
        rest: Rest::Revs,
        options: &[
            SEQUENCE,
            &[flag("-n"), flag("--no-commit"), flag("--no-edit"), number("-m"), number("--mainline")],
        ],
        always: &["--no-gpg-sign"],
        harmless_with: &["--abort", "--quit", "-n", "--no-commit"],
        ..ROW
    },
    Row {
        name: "pull",
        does: Does::Pulls,
        rest: Rest::Remote,
        options: &[
            MERGE,
            &[
                flag("--rebase"),
                flag("-r"),
                flag("--no-rebase"),
                flag("--autostash"),
                flag("--tags"),
                flag("--prune"),
                flag("-v"),
                number("--depth"),
            ],
        ],
        always: &["--no-recurse-submodules", "--no-verify", "--no-gpg-sign"],
        harmless_with: &["--ff-only"],
        ..ROW
    },
    Row {
        name: "push",
        does: Does::Pushes,
        rest: Rest::Remote,
        options: &[&[
            flag("-u"),
            flag("--set-upstream"),
            flag("--tags"),
            flag("--follow-tags"),
            flag("-q"),
            flag("-v"),
            flag("--porcelain"),
            flag("--atomic"),
            flag("--dry-run"),
            flag("-n"),
            loses(flag("-f"), REMOTE_HISTORY),
            loses(flag("--force"), REMOTE_HISTORY),
            loses(flag("--force-with-lease"), REMOTE_HISTORY),
            loses(flag("-d"), "The remote's branch is deleted."),
            loses(flag("--delete"), "The remote's branch is deleted."),
        ]],
        always: &["--no-verify", "--no-recurse-submodules", "--no-signed"],
        ..ROW
    },
];
