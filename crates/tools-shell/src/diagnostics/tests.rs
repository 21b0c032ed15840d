//! Parsing of real compiler output.

use super::*;

macro_rules! sample {
    ($name:literal) => {
        include_str!(concat!("samples/", $name))
    };
}

fn format_all(list: &[Diagnostic]) -> Vec<String> {
    let number = |number: Option<u64>| number.map_or_else(|| "-".to_owned(), |number| number.to_string());
    list.iter()
        .map(|one| {
            let file = one.file.as_deref().unwrap_or("-");
            format!("{file}:{}:{} {}", number(one.line), number(one.column), one.message)
        })
        .collect()
}

#[test]
fn output_of_real_compilers_is_read() {
    let rows: &[(&str, &[&str], &[&str])] = &[
        (
            sample!("cargo.txt"),
            &[
                "src/main.rs:3:18 mismatched types [E0308]",
                "src/main.rs:4:5 cannot find function `missing` in this scope [E0425]",
            ],
            &[],
        ),
        (
            sample!("cargo-short.txt"),
            &[
                "src/main.rs:3:18 mismatched types: expected `u32`, found `&str` [E0308]",
                "src/main.rs:4:5 cannot find function `missing` in this scope: not found in this scope [E0425]",
            ],
            &[],
        ),
        (
            sample!("gcc.txt"),
            &["a.c:1:31 ‘y’ undeclared (first use in this function)"],
            &[
                "a.c:1:21 unused variable ‘x’ [-Wunused-variable]",
                "a.c:2:17 returning ‘char *’ from a function with return type ‘int’ makes integer from pointer without a cast [-Wint-conversion]",
            ],
        ),
        (
            sample!("tsc.txt"),
            &[
                "a.ts:1:7 Type 'string' is not assignable to type 'number'. [TS2322]",
                "a.ts:2:9 Cannot find name 'z'. [TS2304]",
            ],
            &[],
        ),
        (
            sample!("tsc-pretty.txt"),
            &[
                "a.ts:1:7 TS2322: Type 'string' is not assignable to type 'number'.",
                "a.ts:2:9 TS2304: Cannot find name 'z'.",
            ],
            &[],
        ),
        (sample!("python.txt"), &["/home/dev/b/t.py:2:- ZeroDivisionError: division by zero"], &[]),
        (sample!("python-syntax.txt"), &["/home/dev/b/s.py:1:- SyntaxError: invalid syntax"], &[]),
    ];
    for (text, errors, warnings) in rows {
        for found in [read("", text), read(text, "")] {
            assert_eq!(
                (format_all(&found.errors), format_all(&found.warnings)),
                (shown_as(errors), shown_as(warnings))
            );
        }
    }
}

fn shown_as(list: &[&str]) -> Vec<String> {
    list.iter().map(|text| (*text).to_owned()).collect()
}

#[test]
fn lines_of_other_tools_are_read() {
    let rows: &[(&str, &[&str])] = &[
        ("./a.go:3:5: undefined: x", &["./a.go:3:5 undefined: x"]),
        ("vet: ./a.go:3:5: x declared and not used", &["./a.go:3:5 x declared and not used"]),
        ("A.java:3: error: ';' expected", &["A.java:3:- ';' expected"]),
        ("make: *** [Makefile:3: all] Error 1", &["Makefile:3:- [Makefile:3: all] Error 1"]),
        ("make: *** No rule to make target 'x'.  Stop.", &["-:-:- No rule to make target 'x'.  Stop."]),
        (
            "/usr/bin/ld: a.o: in function `main':\na.c:(.text+0x5): undefined reference to `f'",
            &["a.c:-:- undefined reference to `f'"],
        ),
        (
            "a.c:1:10: fatal error: x.h: No such file or directory",
            &["a.c:1:10 x.h: No such file or directory"],
        ),
        ("error: failed to parse manifest", &["-:-:- failed to parse manifest"]),
        (
            "Program.cs(3,5): error CS1002: ; expected [/x.csproj]",
            &["Program.cs:3:5 ; expected [/x.csproj] [CS1002]"],
        ),
        ("all is well", &[]),
        ("see http://x: error: y", &[]),
        ("12:30:05 started", &[]),
        ("", &[]),
    ];
    for (text, errors) in rows {
        assert_eq!(format_all(&read(text, "").errors), shown_as(errors), "{text}");
    }
}

#[test]
fn many_are_bounded_and_repeats_are_one() {
    let many: String = (1..=80).map(|line| format!("a.c:{line}:1: error: x\n")).collect();
    let found = read(&many, &many);
    assert_eq!((found.errors.len(), found.omitted >= 30), (50, true));
    assert_eq!(read("a.c:1:1: error: x\na.c:1:1: error: x\n", "").errors.len(), 1);
}
