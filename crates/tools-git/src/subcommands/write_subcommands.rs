//! Subcommands that change something.

use super::{
    CommandKind, EMPTY_SUBCOMMAND, OptionSpec, Positionals, Subcommand, branch, choice, flag, maybe_number,
    message, number, rev, text, with_data_loss,
};

const LOSES_FILE_CHANGES: &str = "Uncommitted changes of these files are lost.";
const LOSES_ALL_CHANGES: &str = "All uncommitted changes of tracked files are lost.";
const LOSES_REMOTE_COMMITS: &str = "Commits that only the remote had may be lost there.";

/// Otherwise git enters nested repositories of the branch that it has just checked out.
const QUIET_OPTION: &[&str] = &["--quiet"];

/// Options to continue or abort an earlier operation.
const SEQUENCER_OPTIONS: &[OptionSpec] = &[
    flag("--continue"),
    flag("--skip"),
    flag("--quit"),
    with_data_loss(flag("--abort"), "Conflict resolutions made so far are lost."),
];
const ABORT_OPTIONS: &[&str] = &["--abort", "--quit"];

const MERGE_OPTIONS: &[OptionSpec] = &[
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

pub const WRITE_SUBCOMMANDS: &[Subcommand] = &[
    Subcommand {
        name: "init",
        kind: CommandKind::Init,
        positionals: Positionals::Folder,
        options: &[&[
            flag("--bare"),
            flag("-q"),
            flag("--quiet"),
            branch("-b"),
            branch("--initial-branch"),
            choice("--object-format", &["sha1", "sha256"]),
        ]],
        fixed_options: &["--template="],
        ..EMPTY_SUBCOMMAND
    },
    Subcommand {
        name: "clone",
        kind: CommandKind::Clone,
        positionals: Positionals::Clone,
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
        fixed_options: &["--template=", "--no-local", "--no-recurse-submodules"],
        ..EMPTY_SUBCOMMAND
    },
    Subcommand {
        name: "add",
        kind: CommandKind::Write,
        positionals: Positionals::Paths,
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
        ..EMPTY_SUBCOMMAND
    },
    Subcommand {
        name: "mv",
        kind: CommandKind::Write,
        positionals: Positionals::Paths,
        options: &[&[
            flag("-n"),
            flag("--dry-run"),
            flag("-v"),
            flag("-k"),
            with_data_loss(flag("-f"), LOSES_FILE_CHANGES),
            with_data_loss(flag("--force"), LOSES_FILE_CHANGES),
        ]],
        ..EMPTY_SUBCOMMAND
    },
    Subcommand {
        name: "rm",
        kind: CommandKind::Write,
        positionals: Positionals::Paths,
        options: &[&[
            flag("-r"),
            flag("-n"),
            flag("--dry-run"),
            flag("-q"),
            flag("--cached"),
            flag("--ignore-unmatch"),
            with_data_loss(flag("-f"), LOSES_FILE_CHANGES),
            with_data_loss(flag("--force"), LOSES_FILE_CHANGES),
        ]],
        ..EMPTY_SUBCOMMAND
    },
    Subcommand {
        name: "restore",
        kind: CommandKind::Write,
        positionals: Positionals::Paths,
        options: &[&[
            rev("--source"),
            flag("--staged"),
            flag("-W"),
            flag("--worktree"),
            flag("--ours"),
            flag("--theirs"),
            flag("-q"),
        ]],
        data_loss_with_paths: Some(LOSES_FILE_CHANGES),
        ..EMPTY_SUBCOMMAND
    },
    Subcommand {
        name: "checkout",
        kind: CommandKind::Write,
        positionals: Positionals::RevsAndPaths,
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
            with_data_loss(branch("-B"), "The branch's old commits may be lost."),
            with_data_loss(flag("-f"), LOSES_ALL_CHANGES),
            with_data_loss(flag("--force"), LOSES_ALL_CHANGES),
        ]],
        data_loss_with_paths: Some(LOSES_FILE_CHANGES),
        fixed_options: QUIET_OPTION,
        ..EMPTY_SUBCOMMAND
    },
    Subcommand {
        name: "switch",
        kind: CommandKind::Write,
        positionals: Positionals::Names,
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
            with_data_loss(branch("-C"), "The branch's old commits may be lost."),
            with_data_loss(flag("-f"), LOSES_ALL_CHANGES),
            with_data_loss(flag("--discard-changes"), LOSES_ALL_CHANGES),
        ]],
        fixed_options: QUIET_OPTION,
        ..EMPTY_SUBCOMMAND
    },
    Subcommand {
        name: "branch",
        kind: CommandKind::Write,
        positionals: Positionals::Names,
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
            with_data_loss(flag("-D"), "Commits that are only on this branch may be lost."),
            with_data_loss(flag("-f"), "The branch's old commits may be lost."),
            with_data_loss(flag("-M"), "A branch of that name is lost."),
        ]],
        lists_unless: Some(&["--unset-upstream", "--set-upstream-to", "-d", "-D", "-m", "-M", "-f"]),
        ..EMPTY_SUBCOMMAND
    },
    Subcommand {
        name: "tag",
        kind: CommandKind::Write,
        positionals: Positionals::Names,
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
            with_data_loss(flag("-d"), "The tag is lost."),
            with_data_loss(flag("--delete"), "The tag is lost."),
            with_data_loss(flag("-f"), "The tag's old target is lost."),
        ]],
        lists_unless: Some(&["-d", "--delete", "-f", "-a", "-m"]),
        ..EMPTY_SUBCOMMAND
    },
    Subcommand {
        name: "reset",
        kind: CommandKind::Write,
        positionals: Positionals::RevsAndPaths,
        options: &[&[
            flag("--soft"),
            flag("--mixed"),
            flag("--merge"),
            flag("--keep"),
            flag("-q"),
            flag("-N"),
            with_data_loss(flag("--hard"), LOSES_ALL_CHANGES),
        ]],
        ..EMPTY_SUBCOMMAND
    },
    Subcommand {
        name: "clean",
        kind: CommandKind::Write,
        positionals: Positionals::Paths,
        options: &[&[
            flag("-n"),
            flag("--dry-run"),
            flag("-d"),
            flag("-q"),
            flag("-X"),
            with_data_loss(flag("-f"), "Untracked files are deleted."),
            with_data_loss(flag("--force"), "Untracked files are deleted."),
            text("--exclude"),
        ]],
        ..EMPTY_SUBCOMMAND
    },
    Subcommand {
        name: "stash push",
        kind: CommandKind::Write,
        positionals: Positionals::Paths,
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
        ..EMPTY_SUBCOMMAND
    },
    Subcommand {
        name: "stash pop",
        kind: CommandKind::Write,
        positionals: Positionals::Revs,
        options: &[&[flag("--index"), flag("-q")]],
        ..EMPTY_SUBCOMMAND
    },
    Subcommand {
        name: "stash apply",
        kind: CommandKind::Write,
        positionals: Positionals::Revs,
        options: &[&[flag("--index"), flag("-q")]],
        ..EMPTY_SUBCOMMAND
    },
    Subcommand {
        name: "stash drop",
        kind: CommandKind::Write,
        positionals: Positionals::Revs,
        options: &[&[flag("-q")]],
        data_loss: Some("The stash is lost."),
        ..EMPTY_SUBCOMMAND
    },
    Subcommand {
        name: "stash clear",
        kind: CommandKind::Write,
        data_loss: Some("All stashes are lost."),
        ..EMPTY_SUBCOMMAND
    },
    Subcommand {
        name: "remote add",
        kind: CommandKind::Write,
        positionals: Positionals::NewRemote,
        options: &[&[branch("-t"), branch("-m")]],
        ..EMPTY_SUBCOMMAND
    },
    Subcommand {
        name: "remote set-url",
        kind: CommandKind::Write,
        positionals: Positionals::NewRemote,
        options: &[&[flag("--push")]],
        ..EMPTY_SUBCOMMAND
    },
    Subcommand {
        name: "remote remove",
        kind: CommandKind::Write,
        positionals: Positionals::RemoteName,
        ..EMPTY_SUBCOMMAND
    },
    Subcommand {
        name: "commit",
        kind: CommandKind::Commit,
        positionals: Positionals::Paths,
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
            with_data_loss(flag("--amend"), "The previous commit is replaced."),
        ]],
        fixed_options: &["--no-verify", "--no-gpg-sign"],
        no_commit_options: &["--dry-run"],
        ..EMPTY_SUBCOMMAND
    },
    Subcommand {
        name: "merge",
        kind: CommandKind::Commit,
        positionals: Positionals::Revs,
        options: &[
            MERGE_OPTIONS,
            SEQUENCER_OPTIONS,
            &[flag("--no-commit"), message("-m"), message("--message")],
        ],
        fixed_options: &["--no-verify", "--no-gpg-sign"],
        no_commit_options: &["--abort", "--quit", "--ff-only", "--squash"],
        ..EMPTY_SUBCOMMAND
    },
    Subcommand {
        name: "rebase",
        kind: CommandKind::Commit,
        positionals: Positionals::Revs,
        options: &[
            SEQUENCER_OPTIONS,
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
        fixed_options: &["--no-verify", "--no-gpg-sign"],
        no_commit_options: ABORT_OPTIONS,
        ..EMPTY_SUBCOMMAND
    },
    Subcommand {
        name: "cherry-pick",
        kind: CommandKind::Commit,
        positionals: Positionals::Revs,
        options: &[
            SEQUENCER_OPTIONS,
            &[
                flag("-n"),
                flag("-x"),
                flag("--no-commit"),
                flag("--allow-empty"),
                number("-m"),
                number("--mainline"),
            ],
        ],
        fixed_options: &["--no-gpg-sign"],
        no_commit_options: &["--abort", "--quit", "-n", "--no-commit"],
        ..EMPTY_SUBCOMMAND
    },
    Subcommand {
        name: "revert",
        kind: CommandKind::Commit,
        positionals: Positionals::Revs,
        options: &[
            SEQUENCER_OPTIONS,
            &[flag("-n"), flag("--no-commit"), flag("--no-edit"), number("-m"), number("--mainline")],
        ],
        fixed_options: &["--no-gpg-sign"],
        no_commit_options: &["--abort", "--quit", "-n", "--no-commit"],
        ..EMPTY_SUBCOMMAND
    },
    Subcommand {
        name: "pull",
        kind: CommandKind::Pull,
        positionals: Positionals::Remote,
        options: &[
            MERGE_OPTIONS,
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
        fixed_options: &["--no-recurse-submodules", "--no-verify", "--no-gpg-sign"],
        no_commit_options: &["--ff-only"],
        ..EMPTY_SUBCOMMAND
    },
    Subcommand {
        name: "push",
        kind: CommandKind::Push,
        positionals: Positionals::Remote,
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
            with_data_loss(flag("-f"), LOSES_REMOTE_COMMITS),
            with_data_loss(flag("--force"), LOSES_REMOTE_COMMITS),
            with_data_loss(flag("--force-with-lease"), LOSES_REMOTE_COMMITS),
            with_data_loss(flag("-d"), "The remote's branch is deleted."),
            with_data_loss(flag("--delete"), "The remote's branch is deleted."),
        ]],
        fixed_options: &["--no-verify", "--no-recurse-submodules", "--no-signed"],
        ..EMPTY_SUBCOMMAND
    },
];
