//! Possible data loss of a command line, described for the reply and the log. It warns; it never refuses.

use crate::command_line::{CommandLine, EXPANSION, SimpleCommand, Word};

/// Findings of a line.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct DataLoss {
    /// Certain losses, each as a clause.
    pub clauses: Vec<String>,
    /// Files that are lost if they exist; the caller checks.
    pub overwrites: Vec<String>,
}

/// More clauses add no information.
const MAX_CLAUSES: usize = 6;

pub fn detect(line: &CommandLine) -> DataLoss {
    let mut danger = DataLoss::default();
    // After a change of directory it is unknown which file a name refers to.
    let moves = line.commands.iter().any(|simple| matches!(simple.name(), Some("cd" | "pushd" | "popd")));
    for simple in &line.commands {
        if let Some(clause) = clause(simple)
            && !danger.clauses.contains(&clause)
            && danger.clauses.len() < MAX_CLAUSES
        {
            danger.clauses.push(clause);
        }
        if !moves {
            let replaced =
                simple.truncated_files.iter().chain(overwritten_files(simple)).filter_map(Word::as_literal);
            let replaced = replaced.filter(|path| !path.starts_with("/dev/") && !path.is_empty());
            danger.overwrites.extend(replaced.map(str::to_owned));
        }
    }
    danger.overwrites.sort();
    danger.overwrites.dedup();
    danger.overwrites.truncate(MAX_CLAUSES);
    danger
}

/// Files that a program overwrites.
fn overwritten_files(simple: &SimpleCommand) -> &[Word] {
    let operands = simple.arguments();
    match simple.name() {
        Some("mv" | "cp" | "install")
            if operands.len() > 1 && !has(simple, &["-t", "-n", "--no-clobber"]) =>
        {
            operands.get(operands.len() - 1..).unwrap_or_default()
        }
        Some("tee") if !has(simple, &["-a", "--append"]) => operands,
        _ => &[],
    }
}

fn clause(simple: &SimpleCommand) -> Option<String> {
    let name = simple.name()?;
    let said = |text: &str| Some(text.to_owned());
    match name {
        "rm" | "unlink" | "rmdir" => Some(removal(simple)),
        "shred" => said("overwrites files permanently (shred)"),
        "truncate" => said("truncates files (truncate)"),
        "dd" => said("writes raw data (dd)"),
        "kill" | "pkill" | "killall" => Some(format!("ends processes ({name})")),
        "chmod" | "chown" | "chgrp" if has_short_flag(simple, 'R') || has(simple, &["--recursive"]) => {
            Some(format!("changes a whole tree ({name} -R)"))
        }
        "find" if has(simple, &["-delete"]) => said("removes what it finds (find -delete)"),
        "sed" | "perl" if has_short_flag(simple, 'i') || has(simple, &["--in-place"]) => {
            Some(format!("rewrites files in place ({name} -i)"))
        }
        "rsync" if simple.arguments().iter().any(|word| word.text.starts_with("--delete")) => {
            said("removes what the source does not have (rsync --delete)")
        }
        "git" => git(simple).map(str::to_owned),
        "shutdown" | "reboot" | "halt" | "poweroff" => Some(format!("stops the machine ({name})")),
        "wipefs" | "fdisk" | "parted" => Some(format!("changes disks ({name})")),
        _ if name.starts_with("mkfs") => said("makes a file system (mkfs)"),
        _ => None,
    }
}

/// The classic accident: an empty variable in front of a slash.
fn removal(simple: &SimpleCommand) -> String {
    let name = simple.name().unwrap_or_default();
    let risky = simple.arguments().iter().any(|word| {
        let rest = word.text.trim_start_matches(EXPANSION);
        rest.len() < word.text.len() && matches!(rest, "/" | "/*" | "/.")
    });
    if risky {
        return format!("removes files ({name}), from the root itself if the variable is empty");
    }
    if simple.has_input_arguments {
        return format!("removes the files that it is given ({name})");
    }
    format!("removes files ({name})")
}

fn git(simple: &SimpleCommand) -> Option<&'static str> {
    let words: Vec<&str> = simple.arguments().iter().map(|word| word.text.as_str()).collect();
    let verb = words.iter().position(|word| {
        matches!(
            *word,
            "reset" | "clean" | "push" | "checkout" | "restore" | "stash" | "branch" | "filter-branch"
        )
    })?;
    let rest = words.get(verb + 1..).unwrap_or_default();
    let any = |options: &[&str]| rest.iter().any(|word| options.contains(word));
    match *words.get(verb)? {
        "reset" if any(&["--hard"]) => Some("drops uncommitted changes (git reset --hard)"),
        "clean" if !any(&["-n", "--dry-run"]) => Some("removes untracked files (git clean)"),
        "push"
            if rest
                .iter()
                .any(|word| word.starts_with("--force") || *word == "-f" || word.starts_with('+')) =>
        {
            Some("replaces the history of a remote (git push --force)")
        }
        "push" if any(&["--delete", "-d", "--mirror"]) => Some("removes branches of a remote (git push)"),
        "checkout" if any(&["--", ".", "-f", "--force"]) => Some("drops uncommitted changes (git checkout)"),
        "restore" if !any(&["--staged", "-S"]) => Some("drops uncommitted changes (git restore)"),
        "stash" if any(&["drop", "clear"]) => Some("drops stashed changes (git stash)"),
        "branch" if any(&["-D"]) => Some("removes a branch that may not be merged (git branch -D)"),
        "filter-branch" => Some("rewrites history (git filter-branch)"),
        _ => None,
    }
}

fn has(simple: &SimpleCommand, options: &[&str]) -> bool {
    simple.arguments().iter().any(|word| options.contains(&word.text.as_str()))
}

/// Whether a letter is among the short options.
fn has_short_flag(simple: &SimpleCommand, letter: char) -> bool {
    simple.arguments().iter().any(|word| {
        word.text.strip_prefix('-').is_some_and(|rest| {
            !rest.starts_with('-') && rest.split(['.', '=']).next().unwrap_or_default().contains(letter)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detect_in(line: &str) -> DataLoss {
        detect(&CommandLine::read(line).unwrap())
    }

    #[test]
    fn losses_are_named() {
        let rows: &[(&str, &[&str])] = &[
            ("ls -la", &[]),
            ("rm a.txt", &["removes files (rm)"]),
            ("cd x && sudo rm -r y", &["removes files (rm)"]),
            ("rm -rf \"$DIR/\"*", &["removes files (rm), from the root itself if the variable is empty"]),
            ("find . -name '*.o' | xargs rm", &["removes the files that it is given (rm)"]),
            ("find . -name '*.o' -delete", &["removes what it finds (find -delete)"]),
            ("git -C x reset --hard HEAD~1", &["drops uncommitted changes (git reset --hard)"]),
            ("git reset HEAD~1", &[]),
            ("git clean -fdx", &["removes untracked files (git clean)"]),
            ("git clean -n", &[]),
            ("git push origin +main", &["replaces the history of a remote (git push --force)"]),
            ("git push origin main", &[]),
            ("git checkout -- .", &["drops uncommitted changes (git checkout)"]),
            ("git checkout -b x", &[]),
            ("git stash drop", &["drops stashed changes (git stash)"]),
            ("git branch -D x", &["removes a branch that may not be merged (git branch -D)"]),
            ("chmod -R 777 .", &["changes a whole tree (chmod -R)"]),
            ("chmod 644 a", &[]),
            ("sed -i.bak s/a/b/ x", &["rewrites files in place (sed -i)"]),
            ("sed -n p x", &[]),
            ("kill -9 12", &["ends processes (kill)"]),
            ("mkfs.ext4 /dev/sda", &["makes a file system (mkfs)"]),
            ("rsync -a --delete a b", &["removes what the source does not have (rsync --delete)"]),
            ("echo $(rm x)", &["removes files (rm)"]),
            ("rm a; rm b", &["removes files (rm)"]),
        ];
        for (line, clauses) in rows {
            assert_eq!(detect_in(line).clauses, *clauses, "{line}");
        }
    }

    #[test]
    fn files_that_may_be_replaced_are_named() {
        let rows: &[(&str, &[&str])] = &[
            ("echo x > a.txt", &["a.txt"]),
            ("echo x >> a.txt", &[]),
            ("make 2>/dev/null >log 2>&1", &["log"]),
            ("mv a b", &["b"]),
            ("mv -n a b", &[]),
            ("cp a b c", &["c"]),
            ("ls | tee x y", &["x", "y"]),
            ("ls | tee -a x", &[]),
            ("echo x > $F", &[]),
            ("cd sub && echo x > a.txt", &[]),
        ];
        for (line, files) in rows {
            assert_eq!(detect_in(line).overwrites, *files, "{line}");
        }
    }
}
