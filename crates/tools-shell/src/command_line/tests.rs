//! Parsing of command lines.

use super::*;

/// Every program of a line with its arguments; expansions are shown as `?`.
fn parsed_commands(text: &str) -> Vec<String> {
    let line = CommandLine::read(text).unwrap_or_else(|why| panic!("{text}: {why:?}"));
    let shown = |simple: &SimpleCommand| {
        let words: Vec<String> = simple.words.iter().map(|word| word.text.replace(EXPANSION, "?")).collect();
        words.join(" ")
    };
    line.commands.iter().map(shown).filter(|shown| !shown.is_empty()).collect()
}

#[test]
fn every_program_of_a_line_is_seen() {
    let rows: &[(&str, &[&str])] = &[
        ("ls -la", &["ls -la"]),
        ("ls;pwd", &["ls", "pwd"]),
        ("a && b || c | d & e", &["a", "b", "c", "d", "e"]),
        ("a\nb\n\n c", &["a", "b", "c"]),
        ("a |& b", &["a", "b"]),
        ("r''m -rf /", &["rm -rf /"]),
        ("\\rm x", &["rm x"]),
        ("'rm' \"-rf\" /", &["rm -rf /"]),
        ("r\\\nm x", &["rm x"]),
        ("echo 'a;b' \"c && d\" e\\;f", &["echo a;b c && d e;f"]),
        ("echo hi # ; rm -rf /", &["echo hi"]),
        ("echo a#b", &["echo a#b"]),
        ("# only a comment", &[]),
        ("X=1 Y='a b' cmd z", &["cmd z"]),
        ("X=$(id -u)", &["id -u"]),
        ("$(echo rm) -rf /", &["echo rm", "? -rf /"]),
        ("`echo rm` -rf /", &["echo rm", "? -rf /"]),
        ("echo \"$(inner \"$(deep)\")\"", &["deep", "inner ?", "echo ?"]),
        ("echo '$(not run)'", &["echo $(not run)"]),
        ("echo `a \\`b\\``", &["b", "a ?", "echo ?"]),
        ("echo $((1 + $(n)))", &["n", "echo ?"]),
        ("echo ${x:-$(n)}", &["n", "echo ?"]),
        ("echo \"${x:-`n`}\"", &["n", "echo ?"]),
        ("echo \"${x:-it's}\" && a", &["echo ?", "a"]),
        ("echo \"${x:-'$(n)'}\"", &["n", "echo ?"]),
        ("echo ${x:-'}'} && a", &["echo ?", "a"]),
        ("(cd x; ls)", &["cd x", "ls"]),
        ("{ a; b; } > out", &["a", "b"]),
        ("if a; then b; elif c; then d; else e; fi", &["a", "b", "c", "d", "e"]),
        ("while read x; do echo $x; done < f", &["read x", "echo ?"]),
        ("for x in a b; do rm $x; done", &["rm ?"]),
        ("for x in $(ls); do :; done", &["ls", ":"]),
        ("for x do rm $x; done", &["rm ?"]),
        ("for x\ndo rm $x; done", &["rm ?"]),
        ("for in in do; do x; done", &["x"]),
        ("case $x in a) b ;; c|d) e ;; *) f; esac; g", &["b", "e", "f", "g"]),
        ("case $x in\n (a) b\n ;;\nesac\nc", &["b", "c"]),
        ("case $x in esac; c", &["c"]),
        ("f() { rm x; }; f", &["rm x", "f"]),
        ("f () ( rm x ); f", &["rm x", "f"]),
        ("function f { rm x; }; f", &["rm x", "f"]),
        ("! grep x y", &["grep x y"]),
        ("time cargo test", &["cargo test"]),
        ("'if' x", &["if x"]),
        ("cat <<EOF\nrm -rf /\n$(inner)\nEOF\nafter", &["cat", "inner", "after"]),
        ("cat <<'EOF'\n$(not run)\nEOF\nafter", &["cat", "after"]),
        ("cat <<-EOF\n\tx\n\tEOF\nafter", &["cat", "after"]),
        ("cat <<< \"$(inner)\"", &["inner", "cat"]),
        ("a 2>&1 >out <in b", &["a b"]),
        ("a &>/dev/null rm x", &["a", "rm x"]),
        ("diff <(a) <(b)", &["a", "b", "diff ? ?"]),
        ("2>x rm y", &["rm y"]),
        ("echo $", &["echo $"]),
        ("[ -f x ] && y", &["[ -f x ]", "y"]),
        ("x=(a $(b)\n c) d", &["b", "d"]),
    ];
    for (line, programs) in rows {
        assert_eq!(parsed_commands(line), *programs, "{line}");
    }
}

#[test]
fn what_programs_start_is_seen() {
    let rows: &[(&str, &[&str])] = &[
        ("env rm x", &["env rm x", "rm x"]),
        ("env -i A=1 -u", &["env -i A=1 -u", "-u"]),
        ("env -u B A=1 rm x", &["env -u B A=1 rm x", "rm x"]),
        ("sudo -u root -- rm x", &["sudo -u root -- rm x", "rm x"]),
        ("nohup nice -n 5 rm x &", &["nohup nice -n 5 rm x", "nice -n 5 rm x", "rm x"]),
        ("timeout -k 1 5 rm x", &["timeout -k 1 5 rm x", "rm x"]),
        ("xargs -0 -n1 rm", &["xargs -0 -n1 rm", "rm"]),
        ("xargs -I{} rm {}", &["xargs -I{} rm {}", "rm {}"]),
        ("command -p rm x", &["command -p rm x", "rm x"]),
        ("command -v rm", &["command -v rm"]),
        ("exec rm x", &["exec rm x", "rm x"]),
        ("busybox rm x", &["busybox rm x", "rm x"]),
        ("/usr/bin/env rm", &["/usr/bin/env rm", "rm"]),
        ("sh -c 'a; b'", &["sh -c a; b", "a", "b"]),
        ("bash -euo pipefail -c \"a | b\" x", &["bash -euo pipefail -c a | b x", "a", "b"]),
        ("sh -c \"sh -c 'rm x'\"", &["sh -c sh -c 'rm x'", "sh -c rm x", "rm x"]),
        ("sh script.sh", &["sh script.sh"]),
        ("eval rm 'x;' y", &["eval rm x; y", "rm x", "y"]),
        ("trap 'rm x' EXIT", &["trap rm x EXIT", "rm x"]),
        ("find . -exec rm {} \\; -exec wc {} +", &["find . -exec rm {} ; -exec wc {} +", "rm {}", "wc {}"]),
        ("su -c 'rm x' root", &["su -c rm x root", "rm x"]),
        ("bash -c 'rm x; [[ a =~ (b) ]]'", &["bash -c rm x; [[ a =~ (b) ]]", "rm x"]),
    ];
    for (line, programs) in rows {
        assert_eq!(parsed_commands(line), *programs, "{line}");
    }
}

#[test]
fn what_bash_evaluates_by_itself_is_said() {
    let blind = [
        "x='a[$(rm x)]'; echo $((x))",
        "echo $((1 + $X))",
        "echo $((1 + $(cat f)))",
        "echo $[x]",
        "((x = 1))",
        "for ((i = x; i < 3; i++)); do ls; done",
        "P='$(rm x)'; echo ${P@P}",
        "echo ${!x}",
        "echo ${a[x]}",
        "echo ${a[$x]}",
        "echo ${a:x}",
        "echo ${a: -x:1}",
        "a=([x]=1)",
        "[ -v 'a[$(rm x)]' ]",
        "test \"$x\" \"$y\"",
        "[ $x ]",
        "printf -v 'a[$(rm x)]' 1",
        "printf \"$x\" 1",
        "read 'a[$(rm x)]'",
        "unset 'a[$(rm x)]'",
        "f() { local -i n='a[$(rm x)]'; }; f",
        "f() { local -n n=BASH_CMDS; }; f",
        "wait -p 'a[$(rm x)]'",
        "hash -p ./evil ls",
        "set -k; ls PATH=.",
        "command printf -v 'a[$(rm x)]' 1",
    ];
    for line in blind {
        assert!(!CommandLine::read(line).unwrap().opaque.is_empty(), "{line}");
    }
}

#[test]
fn what_cannot_be_seen_through_is_said() {
    let blind = [
        "$X -rf /",
        "${X} y",
        "$(echo rm) x",
        "/bin/r? x",
        "{rm,-rf,/}",
        "eval \"$X\"",
        "sh -c \"$X\"",
        "echo rm | sh",
        "sh <<EOF\nrm x\nEOF",
        "bash -s < f",
        "sh /dev/stdin",
        ". ./x",
        "source x",
        "alias ls=rm",
        "$'\\x72m' x",
        "env -S 'rm x'",
        "env --weird x rm",
        "sudo -s",
        "watch rm x",
        "echo $((a) )",
        "trap \"$X\" EXIT",
        "bash -c 'rm x; [[ a =~ (b) ]]'",
        "eval \"echo 'x\"",
        "su",
    ];
    for line in blind {
        assert!(!CommandLine::read(line).unwrap().opaque.is_empty(), "{line}");
    }
    let plain = [
        "ls",
        "echo $X",
        "X=$Y",
        "cat <<EOF\n$X\nEOF",
        "trap - EXIT",
        "sh x.sh",
        "ls *.rs",
        "[ a = b ]",
        "[ \"$a\" = \"$b\" ]",
        "[ $? -eq 0 ] && ls",
        "[ -n \"$x\" ]",
        "echo $((1 + 0x1f - $#))",
        "echo ${x:-y} ${#x} ${x%.rs}",
        "echo ${x:2:3} ${a[1]} ${a[@]}",
        "printf '%s\\n' \"$x\"",
        "export A=$B",
        "set -euo pipefail",
        "read x",
        "x=(a b)",
        "for f in *.rs; do ls $f; done",
    ];
    for line in plain {
        assert_eq!(CommandLine::read(line).unwrap().opaque, Vec::<&str>::new(), "{line}");
    }
}

#[test]
fn lines_that_no_shell_reads_are_told() {
    let rows = [
        ("echo 'a", ParseError::UnclosedQuote),
        ("echo \"a", ParseError::UnclosedQuote),
        ("echo `a", ParseError::UnclosedQuote),
        ("echo $(a", ParseError::UnbalancedBracket),
        ("echo ${a", ParseError::UnbalancedBracket),
        ("(a", ParseError::UnbalancedBracket),
        ("a)", ParseError::UnbalancedBracket),
        ("echo \\$(x)", ParseError::UnbalancedBracket),
        ("case x in a", ParseError::UnbalancedBracket),
    ];
    for (line, why) in rows {
        assert_eq!(CommandLine::read(line).map(|_| ()), Err(why), "{line}");
    }
    let deep = format!("{}a{}", "$(".repeat(200), ")".repeat(200));
    assert_eq!(CommandLine::read(&deep).map(|_| ()), Err(ParseError::TooDeep));
    for word in ["env ", "eval "] {
        let wrapped = format!("{}a", word.repeat(20_000));
        assert_eq!(CommandLine::read(&wrapped).map(|_| ()), Err(ParseError::TooDeep), "{word}");
    }
}

proptest::proptest! {
    /// Parsing terminates for any input.
    #[test]
    fn any_text_is_read_or_refused(text in "[ a-c$`'\"\\\\(){};&|<>\n#=*]{0,40}") {
        let _ = CommandLine::read(&text);
    }

    /// Quoting every letter changes nothing.
    #[test]
    fn quotes_do_not_hide_a_program(name in "[a-z]{2,8}", cut in 0_usize..8) {
        let cut = cut.min(name.len());
        let (left, right) = name.split_at(cut);
        for line in [format!("{left}''{right} x"), format!("'{left}'\"{right}\" x"), format!("\\{name} x")] {
            let read = CommandLine::read(&line).unwrap();
            proptest::prop_assert_eq!(read.commands.first().and_then(SimpleCommand::name), Some(name.as_str()));
        }
    }
}
