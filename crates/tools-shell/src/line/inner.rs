//! What programs start besides themselves: `env rm`, `sh -c '...'`, `find -exec`, `eval`.

use super::{Line, Simple, Unreadable, Word, builtin, read, wrapper};

/// Words inside of others, all together; `env env env ...` would grow with the square of its length.
const MOST: usize = 100_000;

/// Adds what is started inside of the line's commands. It ends, since what is inside is always shorter.
pub fn open(mut line: Line) -> Result<Line, Unreadable> {
    let (mut at, mut words) = (0, 0);
    while let Some(simple) = line.commands.get(at).cloned() {
        at += 1;
        let inside = inside(&simple);
        let (mut more, blind) = (inside.commands, inside.blind);
        words += more.iter().map(|inner| inner.words.len()).sum::<usize>();
        if words > MOST {
            return Err(Unreadable::TooDeep);
        }
        more.iter_mut().for_each(|inner| inner.background |= simple.background);
        line.commands.extend(more);
        line.blind.extend(blind);
    }
    Ok(line)
}

fn inside(simple: &Simple) -> Line {
    let arguments = simple.arguments();
    let Some(name) = simple.name() else {
        return match simple.program() {
            Some(_) => blind("a program whose name is known only at run time"),
            None => Line::default(),
        };
    };
    match name {
        "sh" | "bash" | "dash" | "ash" | "zsh" | "ksh" | "mksh" | "rbash" | "fish" | "csh" | "tcsh" => {
            shell(arguments)
        }
        "eval" => text(arguments),
        "." | "source" => blind("commands of a file read with `.`"),
        "alias" => blind("an alias"),
        "trap" => match arguments.first().map(Word::known) {
            Some(Some("-" | "" | "-l" | "-p")) | None => Line::default(),
            Some(_) => text(arguments.get(..1).unwrap_or_default()),
        },
        "su" | "runuser" | "script" => match after(arguments, &["-c", "--command"]) {
            Some(rest) => text(rest.get(..1).unwrap_or_default()),
            None => blind("a shell that reads its commands from elsewhere"),
        },
        "watch" | "parallel" => blind("commands that are put together by another program"),
        "find" => found(arguments),
        "command" if arguments.first().is_some_and(|first| matches!(first.text.as_str(), "-v" | "-V")) => {
            Line::default()
        }
        _ if builtin::can_run_commands(name, arguments) => blind("a variable's name that can hold commands"),
        _ => wrapped(name, simple),
    }
}

fn blind(what: &'static str) -> Line {
    Line { blind: vec![what], ..Line::default() }
}

fn wrapped(name: &str, simple: &Simple) -> Line {
    let Some(wrapper) = wrapper::of(name) else { return Line::default() };
    let Some(started) = wrapper.split(simple.arguments()) else {
        return blind("a program that starts another one, with an option that is not known");
    };
    let commands = if started.words.is_empty() && started.assigned.is_empty() {
        Vec::new()
    } else {
        vec![Simple {
            assigned: started.assigned,
            words: started.words.to_vec(),
            more: name == "xargs",
            ..Simple::default()
        }]
    };
    Line { commands, blind: Vec::new() }
}

/// A shell: its `-c` text is read; a script is its own program; without either it reads its input.
fn shell(arguments: &[Word]) -> Line {
    let mut rest = arguments;
    let mut reads_text = false;
    while let [first, more @ ..] = rest {
        let Some(option) = first.known() else {
            return blind("a shell's options known only at run time");
        };
        if !option.starts_with(['-', '+']) || option == "-" {
            break;
        }
        rest = more;
        if option == "--" {
            break;
        }
        let short = !option.starts_with("--");
        reads_text |= short && option.starts_with('-') && option.contains('c');
        if short && option.ends_with(['o', 'O']) || matches!(option, "--rcfile" | "--init-file") {
            rest = rest.get(1..).unwrap_or_default();
        }
        if short && option.contains('s') {
            return blind("a shell that reads its commands from its input");
        }
    }
    match (reads_text, rest.first()) {
        (true, Some(_)) => text(rest.get(..1).unwrap_or_default()),
        (false, Some(word)) if word.text != "-" && !word.text.starts_with("/dev/") => Line::default(),
        _ => blind("a shell that reads its commands from its input"),
    }
}

/// Words that are joined and read as a command line.
fn text(words: &[Word]) -> Line {
    let known: Option<Vec<&str>> = words.iter().map(Word::known).collect();
    match known {
        Some(known) => read::read_some(&known.join(" ")),
        None => blind("commands in a text that is known only at run time"),
    }
}

/// The words behind an option.
fn after<'a>(words: &'a [Word], options: &[&str]) -> Option<&'a [Word]> {
    let at = words.iter().position(|word| options.contains(&word.text.as_str()))?;
    words.get(at + 1..)
}

/// What `find` runs for each file, up to `;` or `+`.
fn found(arguments: &[Word]) -> Line {
    let mut line = Line::default();
    let mut rest = arguments;
    while let Some(behind) = after(rest, &["-exec", "-execdir", "-ok", "-okdir"]) {
        let end =
            behind.iter().position(|word| matches!(word.text.as_str(), ";" | "+")).unwrap_or(behind.len());
        let words = behind.get(..end).unwrap_or_default().to_vec();
        line.commands.push(Simple { words, more: true, ..Simple::default() });
        rest = behind.get(end..).unwrap_or_default();
    }
    line
}
