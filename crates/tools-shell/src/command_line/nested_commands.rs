//! Programs started by other programs: `env rm`, `sh -c '...'`, `find -exec`, `eval`.

use super::{CommandLine, ParseError, SimpleCommand, Word, builtin, shell_parser, wrapper};

/// Limit of nested words in total; `env env env ...` would grow quadratically.
const MAX_NESTED_WORDS: usize = 100_000;

/// Adds the programs nested in the line's commands. It terminates, because nested commands are always shorter.
pub fn open(mut line: CommandLine) -> Result<CommandLine, ParseError> {
    let (mut at, mut words) = (0, 0);
    while let Some(simple) = line.commands.get(at).cloned() {
        at += 1;
        let inside = nested_commands(&simple);
        let (mut more, blind) = (inside.commands, inside.opaque);
        words += more.iter().map(|inner| inner.words.len()).sum::<usize>();
        if words > MAX_NESTED_WORDS {
            return Err(ParseError::TooDeep);
        }
        more.iter_mut().for_each(|inner| inner.background |= simple.background);
        line.commands.extend(more);
        line.opaque.extend(blind);
    }
    Ok(line)
}

fn nested_commands(simple: &SimpleCommand) -> CommandLine {
    let arguments = simple.arguments();
    let Some(name) = simple.name() else {
        return match simple.program() {
            Some(_) => opaque("a program whose name is known only at run time"),
            None => CommandLine::default(),
        };
    };
    match name {
        "sh" | "bash" | "dash" | "ash" | "zsh" | "ksh" | "mksh" | "rbash" | "fish" | "csh" | "tcsh" => {
            shell(arguments)
        }
        "eval" => text(arguments),
        "." | "source" => opaque("commands of a file read with `.`"),
        "alias" => opaque("an alias"),
        "trap" => match arguments.first().map(Word::as_literal) {
            Some(Some("-" | "" | "-l" | "-p")) | None => CommandLine::default(),
            Some(_) => text(arguments.get(..1).unwrap_or_default()),
        },
        "su" | "runuser" | "script" => match after(arguments, &["-c", "--command"]) {
            Some(rest) => text(rest.get(..1).unwrap_or_default()),
            None => opaque("a shell that reads its commands from elsewhere"),
        },
        "watch" | "parallel" => opaque("commands that are put together by another program"),
        "find" => parse_find(arguments),
        "command" if arguments.first().is_some_and(|first| matches!(first.text.as_str(), "-v" | "-V")) => {
            CommandLine::default()
        }
        _ if builtin::can_run_commands(name, arguments) => opaque("a variable's name that can hold commands"),
        _ => parse_wrapper(name, simple),
    }
}

fn opaque(what: &'static str) -> CommandLine {
    CommandLine { opaque: vec![what], ..CommandLine::default() }
}

fn parse_wrapper(name: &str, simple: &SimpleCommand) -> CommandLine {
    let Some(wrapper) = wrapper::wrapper_options(name) else { return CommandLine::default() };
    let Some(started) = wrapper.split(simple.arguments()) else {
        return opaque("a program that starts another one, with an option that is not known");
    };
    let commands = if started.words.is_empty() && started.assignments.is_empty() {
        Vec::new()
    } else {
        vec![SimpleCommand {
            assignments: started.assignments,
            words: started.words.to_vec(),
            has_input_arguments: name == "xargs",
            ..SimpleCommand::default()
        }]
    };
    CommandLine { commands, opaque: Vec::new() }
}

/// A shell: its `-c` text is parsed; a script is a program itself; without either it reads its input.
fn shell(arguments: &[Word]) -> CommandLine {
    let mut rest = arguments;
    let mut reads_text = false;
    while let [first, more @ ..] = rest {
        let Some(option) = first.as_literal() else {
            return opaque("a shell's options known only at run time");
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
            return opaque("a shell that reads its commands from its input");
        }
    }
    match (reads_text, rest.first()) {
        (true, Some(_)) => text(rest.get(..1).unwrap_or_default()),
        (false, Some(word)) if word.text != "-" && !word.text.starts_with("/dev/") => CommandLine::default(),
        _ => opaque("a shell that reads its commands from its input"),
    }
}

/// Words that are joined and parsed as a command line.
fn text(words: &[Word]) -> CommandLine {
    let known: Option<Vec<&str>> = words.iter().map(Word::as_literal).collect();
    match known {
        Some(known) => shell_parser::parse_lossy(&known.join(" ")),
        None => opaque("commands in a text that is known only at run time"),
    }
}

/// Words after an option.
fn after<'a>(words: &'a [Word], options: &[&str]) -> Option<&'a [Word]> {
    let at = words.iter().position(|word| options.contains(&word.text.as_str()))?;
    words.get(at + 1..)
}

/// Commands that `find` runs for each file, up to `;` or `+`.
fn parse_find(arguments: &[Word]) -> CommandLine {
    let mut line = CommandLine::default();
    let mut rest = arguments;
    while let Some(behind) = after(rest, &["-exec", "-execdir", "-ok", "-okdir"]) {
        let end =
            behind.iter().position(|word| matches!(word.text.as_str(), ";" | "+")).unwrap_or(behind.len());
        let words = behind.get(..end).unwrap_or_default().to_vec();
        line.commands.push(SimpleCommand { words, has_input_arguments: true, ..SimpleCommand::default() });
        rest = behind.get(end..).unwrap_or_default();
    }
    line
}
