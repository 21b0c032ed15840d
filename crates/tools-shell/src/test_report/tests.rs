//! Parsing of real test runner output.

use super::*;

macro_rules! sample {
    ($name:literal) => {
        include_str!(concat!("samples/", $name))
    };
}

/// Framework, passed, failed, skipped, and each failure as `name @ file:line: first line of its message`.
type ExpectedReport<F> = (&'static str, Option<u64>, u64, u64, F);

/// Both streams and the expected report.
type Row = (&'static str, &'static str, ExpectedReport<&'static [&'static str]>);

fn check(rows: &[Row]) {
    for (stdout, stderr, (framework, passed, failed, skipped, failures)) in rows {
        let report = read(stdout, stderr).unwrap_or_else(|| panic!("{framework} is not recognised"));
        let failures: Vec<String> = failures.iter().map(|failure| (*failure).to_owned()).collect();
        assert_eq!(
            summarize(&report),
            (*framework, *passed, *failed, *skipped, failures),
            "{stdout}{stderr}"
        );
        assert_eq!(report.total(), passed.map(|passed| passed + failed + skipped), "{framework}");
    }
}

fn summarize(report: &TestReport) -> ExpectedReport<Vec<String>> {
    let shown = report.failures.iter().map(|failure| {
        let first = failure.message.lines().next().unwrap_or_default();
        let file = failure.file.as_deref().unwrap_or("?");
        format!("{} @ {file}:{}: {first}", failure.name, failure.line.unwrap_or(0))
    });
    (report.framework, report.passed, report.failed, report.skipped, shown.collect())
}

#[test]
fn output_of_real_tools_is_read() {
    let pytest = &[
        "test_sample.py::test_error @ test_sample.py:23: RuntimeError: no database",
        "test_sample.py::test_wrong @ test_sample.py:11: AssertionError: sum",
        "test_sample.py::test_param[2] @ test_sample.py:19: assert 2 != 2",
        "test_sample.py::TestBox::test_in_class @ test_sample.py:33: ValueError: bad",
    ];
    let jest = &[
        "sum › is wrong @ jest/sum.test.js:4: expect(received).toBe(expected) // Object.is equality",
        "throws @ jest/sum.test.js:8: boom",
    ];
    let cargo = &[
        "tests::gives_an_error @ ?:0: Error: \"no such thing\"",
        "tests::is_wrong @ src/lib.rs:11: assertion `left == right` failed: sum of 1 and 2",
    ];
    let nextest = &[
        "sample tests::gives_an_error @ ?:0: Error: \"no such thing\"",
        "sample tests::is_wrong @ src/lib.rs:11: assertion `left == right` failed: sum of 1 and 2",
    ];
    let vitest = &[
        "vitest/sum.test.mjs > sum > is wrong @ vitest/sum.test.mjs:5: AssertionError: expected 3 to be 4 // Object.is equality",
        "vitest/sum.test.mjs > throws @ vitest/sum.test.mjs:9: Error: boom",
    ];
    let mocha = &[
        "sum > is wrong @ mocha/sum.js:4: AssertionError [ERR_ASSERTION]: 3 == 4",
        "sum > deep > throws @ mocha/sum.js:6: Error: boom",
    ];
    let mocha_tap = &["sum is wrong @ mocha/sum.js:4: 3 == 4", "sum deep throws @ mocha/sum.js:6: boom"];
    let node_tap = &["is wrong @ /home/dev/js/node.test.js:3: 3 == 4"];
    let node = &["is wrong @ /home/dev/js/node.test.js:3: AssertionError [ERR_ASSERTION]: 3 == 4"];
    check(&[
        (sample!("cargo.txt"), "", ("cargo test", Some(1), 2, 1, cargo)),
        ("", sample!("nextest.txt"), ("cargo nextest", Some(1), 2, 1, nextest)),
        (sample!("pytest.txt"), "", ("pytest", Some(2), 4, 2, pytest)),
        (sample!("pytest-quiet.txt"), "", ("pytest", Some(2), 4, 2, pytest)),
        (sample!("pytest-short.txt"), "", ("pytest", Some(2), 4, 2, pytest)),
        ("", sample!("jest.txt"), ("jest", Some(1), 2, 2, jest)),
        ("", sample!("jest-coloured.txt"), ("jest", Some(1), 2, 2, jest)),
        (sample!("vitest.txt"), sample!("vitest-stderr.txt"), ("vitest", Some(1), 2, 2, vitest)),
        (sample!("vitest-coloured.txt"), sample!("vitest-stderr.txt"), ("vitest", Some(1), 2, 2, vitest)),
        (sample!("mocha.txt"), "", ("mocha", Some(1), 2, 1, mocha)),
        (sample!("mocha.tap"), "", ("tap", Some(1), 2, 1, mocha_tap)),
        (sample!("node.tap"), "", ("tap", Some(1), 1, 1, node_tap)),
        (sample!("node-spec.txt"), "", ("node --test", Some(1), 1, 1, node)),
    ]);
}

#[test]
fn junit_files_are_read() {
    let report = junit::read(sample!("pytest.xml")).unwrap();
    let failures = [
        "test_sample.test_wrong @ test_sample.py:11: AssertionError: sum",
        "test_sample.test_param[2] @ test_sample.py:19: assert 2 != 2",
        "test_sample.test_error @ test_sample.py:23: failed on setup with \"RuntimeError: no database\"",
        "test_sample.TestBox.test_in_class @ test_sample.py:33: ValueError: bad",
    ];
    assert_eq!(summarize(&report), ("junit", Some(2), 4, 2, failures.map(str::to_owned).to_vec()));
    assert!(report.failures[0].message.ends_with("where 3 = add(1, 2)"));
}

#[test]
fn junit_files_that_are_odd_do_no_harm() {
    type Counts = (u64, u64, u64);
    let rows: &[(&str, Option<Counts>)] = &[
        ("", None),
        ("<html></html>", None),
        ("<testsuite></testsuite>", Some((0, 0, 0))),
        ("<testsuite><testcase name='a'/><testcase name='b'", Some((1, 0, 0))),
        ("<testsuite><testcase name=\"a > b\"><failure/></testcase></testsuite>", Some((0, 1, 0))),
        ("<testsuite><!-- <testcase/> --><testcase name='a'/></testsuite>", Some((1, 0, 0))),
        (
            "<!DOCTYPE x [<!ENTITY a 'b'>]><testsuite><testcase name='&a;'><skipped/></testcase>",
            Some((0, 0, 1)),
        ),
        ("<testsuite><testcase name='a'><failure><![CDATA[<x> & y]]></failure></testcase>", Some((0, 1, 0))),
        ("<testsuite><testcase name='a'><system-out>x</system-out></testcase></testsuite>", Some((1, 0, 0))),
    ];
    for (text, counts) in rows {
        let found = junit::read(text).map(|report| (report.passed.unwrap(), report.failed, report.skipped));
        assert_eq!(found, *counts, "{text}");
    }
    let report =
        junit::read("<testsuite><testcase name='a'><failure><![CDATA[<x> & y]]></failure></testcase>")
            .unwrap();
    assert_eq!(report.failures[0].message, "<x> & y");
}

const GO_PLAIN: &str = "--- FAIL: TestSum (0.00s)
    --- FAIL: TestSum/negative (0.00s)
        sum_test.go:14: got 3, want 4
--- FAIL: TestOther (0.01s)
    other_test.go:7: boom
        second line
FAIL
FAIL\texample.com/sum\t0.012s
ok  \texample.com/ok\t0.003s
?   \texample.com/none\t[no test files]
FAIL
";

const GO_VERBOSE: &str = "=== RUN   TestSum
=== RUN   TestSum/positive
=== RUN   TestSum/negative
    sum_test.go:14: got 3, want 4
--- FAIL: TestSum (0.00s)
    --- PASS: TestSum/positive (0.00s)
    --- FAIL: TestSum/negative (0.00s)
=== RUN   TestSlow
    slow_test.go:5: too slow
--- SKIP: TestSlow (0.00s)
=== RUN   TestFine
--- PASS: TestFine (0.00s)
FAIL
FAIL\texample.com/sum\t0.012s
";

const GO_JSON: &str = r#"{"Action":"start","Package":"example.com/sum"}
{"Action":"run","Package":"example.com/sum","Test":"TestSum"}
{"Action":"output","Package":"example.com/sum","Test":"TestSum","Output":"=== RUN   TestSum\n"}
{"Action":"run","Package":"example.com/sum","Test":"TestSum/negative"}
{"Action":"output","Package":"example.com/sum","Test":"TestSum/negative","Output":"    sum_test.go:14: got 3, want 4\n"}
{"Action":"fail","Package":"example.com/sum","Test":"TestSum/negative","Elapsed":0}
{"Action":"fail","Package":"example.com/sum","Test":"TestSum","Elapsed":0}
{"Action":"pass","Package":"example.com/sum","Test":"TestFine","Elapsed":0.01}
{"Action":"skip","Package":"example.com/sum","Test":"TestSlow","Elapsed":0}
{"Action":"fail","Package":"example.com/sum","Elapsed":0.5}
"#;

const UNITTEST: &str = "F.s
======================================================================
FAIL: test_wrong (test_a.TestA.test_wrong)
----------------------------------------------------------------------
Traceback (most recent call last):
  File \"/home/dev/test_a.py\", line 8, in test_wrong
    self.assertEqual(1, 2)
AssertionError: 1 != 2

----------------------------------------------------------------------
Ran 3 tests in 0.001s

FAILED (failures=1, skipped=1)
";

#[test]
fn formats_written_down_from_their_documents_are_read() {
    check(&[
        (
            GO_PLAIN,
            "",
            (
                "go test",
                None,
                2,
                0,
                &[
                    "TestSum/negative @ sum_test.go:14: sum_test.go:14: got 3, want 4",
                    "TestOther @ other_test.go:7: other_test.go:7: boom",
                ],
            ),
        ),
        (
            GO_VERBOSE,
            "",
            ("go test", Some(2), 1, 1, &["TestSum/negative @ sum_test.go:14: sum_test.go:14: got 3, want 4"]),
        ),
        (
            GO_JSON,
            "",
            (
                "go test",
                Some(1),
                1,
                1,
                &["example.com/sum.TestSum/negative @ sum_test.go:14: sum_test.go:14: got 3, want 4"],
            ),
        ),
        (
            "FAIL\texample.com/sum [build failed]\nFAIL\n",
            "# example.com/sum\n./a_test.go:3:5: undefined: x\n",
            (
                "go test",
                None,
                1,
                0,
                &["example.com/sum [build failed] @ ./a_test.go:3: ./a_test.go:3:5: undefined: x"],
            ),
        ),
        (
            "",
            UNITTEST,
            (
                "unittest",
                Some(1),
                1,
                1,
                &["test_wrong (test_a.TestA.test_wrong) @ /home/dev/test_a.py:8: AssertionError: 1 != 2"],
            ),
        ),
        ("", "...\n-----\nRan 3 tests in 0.001s\n\nOK\n", ("unittest", Some(3), 0, 0, &[])),
        (
            "",
            "x.s\n-----\nRan 3 tests in 0.001s\n\nOK (skipped=1, expected failures=1)\n",
            ("unittest", Some(1), 0, 2, &[]),
        ),
        (
            "",
            "-----\nRan 6 tests in 0.1s\n\nFAILED (failures=1, errors=2, expected failures=1, unexpected successes=1)\n",
            ("unittest", Some(1), 4, 1, &[]),
        ),
        ("1..3\nok 1\nnot ok 2 - b # TODO later\nok 3 - c # skip no\n", "", ("tap", Some(1), 0, 2, &[])),
        ("=== no tests ran in 0.01s ===\n", "", ("pytest", Some(0), 0, 0, &[])),
        ("=== 2 passed, 1 warning in 61.50s (0:01:01) ===\n", "", ("pytest", Some(2), 0, 0, &[])),
        (
            "FAILED a.py::test_b - boom\n=== short test summary info ===\nFAILED a.py::test_c - bang\n1 failed in 0.1s\n",
            "",
            ("pytest", Some(0), 1, 0, &["a.py::test_c @ a.py:0: bang"]),
        ),
        (
            "test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.25s\n\
             test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.50s\n",
            "",
            ("cargo test", Some(5), 0, 1, &[]),
        ),
    ]);
}

#[test]
fn other_output_is_not_taken_for_a_report() {
    let rows = [
        "hello",
        "3 files changed in 2 folders",
        "ok then",
        "Tests are fun",
        "Summary [draft] of what was run: nothing",
        "it took 5 passing cars",
        "1..2 is a range\n",
        "{\"Action\": 1}",
        "error: could not compile `x`",
        "",
    ];
    for text in rows {
        assert_eq!(read(text, ""), None, "{text}");
        assert_eq!(read("", text), None, "{text}");
    }
}

#[test]
fn times_are_added_up() {
    let two = "test result: ok. 2 passed; 0 failed; 0 ignored; finished in 0.25s\n".repeat(2);
    assert_eq!(read(&two, "").unwrap().seconds, Some(0.5));
    assert_eq!(read(sample!("vitest.txt"), "").unwrap().seconds, Some(0.327));
    assert_eq!(read("", sample!("jest.txt")).unwrap().seconds, Some(0.397));
}

#[test]
fn many_failures_and_long_messages_are_bounded() {
    let mut text = String::new();
    for number in 0..80 {
        text.push_str(&format!("---- t{number} stdout ----\n{}\n\n", "ä".repeat(3_000)));
    }
    text.push_str("test result: FAILED. 0 passed; 80 failed; 0 ignored; finished in 0.25s\n");
    let report = read(&text, "").unwrap();
    assert_eq!((report.failures.len(), report.omitted, report.failed), (50, 30, 80));
    assert!(report.failures.iter().all(|failure| failure.message.len() <= 2_000));
}
