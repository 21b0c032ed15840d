//! `shell_exec`, `shell_which`, `check_process`.

use super::shell_fixture::{ProgressRecorder, ShellFixture};
use crate::ShellSettings;
use octo_toolkit::{CallContext, Caller, Kind};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

#[tokio::test]
async fn commands_give_what_they_write_and_how_they_end() {
    let bench = ShellFixture::new();
    bench.write_file("spaced name.txt", "x");
    let rows = [
        (json!({"command": "echo hi"}), 0, "hi\n", ""),
        (json!({"command": "echo no >&2; exit 3"}), 3, "", "no\n"),
        (json!({"command": "wc -l < notes.txt"}), 0, "3\n", ""),
        (json!({"command": "pwd | sed 's,.*/,,'", "cwd": "src"}), 0, "src\n", ""),
        (json!({"command": "echo $A-$B", "env": {"A": "1", "B": "x y"}}), 0, "1-x y\n", ""),
        (json!({"command": "echo a\necho b"}), 0, "a\nb\n", ""),
        (json!({"command": "cat 'spaced name.txt'"}), 0, "x", ""),
        (json!({"command": "printf '> a\\n+ b\\n\\033[31mred\\n'"}), 0, "> a\n+ b\n\u{1b}[31mred\n", ""),
        (json!({"command": "printf '\\377x'"}), 0, "\u{fffd}x", ""),
        (json!({"command": "cat"}), 0, "", ""),
        (json!({"command": "echo $HOME$TERM$NO_COLOR | grep -c dumb1"}), 0, "1\n", ""),
    ];
    for (input, code, stdout, stderr) in rows {
        let answer = bench.fine("shell_exec", input.clone()).await;
        let found = (&answer["exit_code"], &answer["stdout"], &answer["stderr"]);
        assert_eq!(found, (&json!(code), &json!(stdout), &json!(stderr)), "{input}");
        let plain = (&answer["truncated"], &answer["timed_out"], &answer["network"]);
        assert_eq!(plain, (&json!(false), &json!(false), &json!(false)), "{input}");
        assert!(answer["duration_ms"].is_u64() && answer["sandbox"] != "none", "{answer}");
        assert!(answer.get("handle").is_none() && answer.get("signal").is_none(), "{answer}");
    }
}

#[tokio::test]
async fn the_shell_is_bash_where_there_is_one() {
    let bench = ShellFixture::new();
    let shell = octo_toolkit::exec::shell();
    assert_eq!(shell == "/bin/bash", std::path::Path::new("/bin/bash").exists());
    if shell != "/bin/bash" {
        return;
    }
    for (command, wanted) in [
        ("[[ abc =~ ^(a|x)b ]] && echo yes", "yes\n"),
        ("[[ -f notes.txt && ( 1 < 2 ) ]] && echo $(echo yes)", "yes\n"),
        ("echo 'A=7' > v.sh; source ./v.sh; echo $A", "7\n"),
        ("a=(x y z); echo ${#a[@]}; cat <<< here", "3\nhere\n"),
        ("diff <(echo a) <(echo a) && echo same", "same\n"),
        ("for ((i = 0; i < 3; i++)); do printf $i; done", "012"),
    ] {
        let answer = bench.fine("shell_exec", json!({"command": command})).await;
        assert_eq!(answer["stdout"], wanted, "{command}: {answer}");
    }
}

#[tokio::test]
async fn a_command_gets_its_input_and_a_plain_folder() {
    let bench = ShellFixture::new();
    let answer = bench.fine("shell_exec", json!({"command": "sort -n", "stdin": "10\n9\n"})).await;
    assert_eq!((&answer["stdout"], answer.get("note")), (&json!("9\n10\n"), None), "{answer}");
    let large = "x".repeat(1 << 20);
    let answer = bench.fine("shell_exec", json!({"command": "wc -c", "stdin": large})).await;
    assert_eq!(answer["stdout"].as_str().unwrap().trim(), "1048576");
    // A program that does not read its input is not waited for.
    let answer = bench.fine("shell_exec", json!({"command": "true", "stdin": large})).await;
    assert_eq!(answer["exit_code"], 0);
    let answer = bench.fine("shell_exec", json!({"command": "pwd"})).await;
    let folder = answer["stdout"].as_str().unwrap().trim_end();
    assert!(folder.starts_with('/') && !folder.ends_with('.') && !folder.ends_with('/'), "{folder}");
}

#[tokio::test]
async fn what_ends_with_the_command_and_what_cannot_be_reached_is_said() {
    let bench = ShellFixture::new();
    for (command, word) in [
        ("sleep 30 & echo started", Some("shell_start")),
        ("sleep 0.1 & wait; echo done", None),
        ("echo a && echo b", None),
        ("exec 3<>/dev/tcp/127.0.0.1/9", Some("shell.local_servers")),
        ("echo http://localhost:8000", None),
    ] {
        let answer = bench.fine("shell_exec", json!({"command": command})).await;
        let note = answer["note"].as_str().unwrap_or_default();
        assert_eq!(!note.is_empty(), word.is_some(), "{command}: {answer}");
        assert!(note.contains(word.unwrap_or_default()), "{command}: {answer}");
    }
}

#[tokio::test]
async fn a_signal_is_told_by_name() {
    let answer = ShellFixture::new().fine("shell_exec", json!({"command": "kill -SEGV $$"})).await;
    // A sandbox with its own PID namespace reports the signal as an exit code.
    let told = (answer["exit_code"].clone(), answer["signal"].clone());
    assert!(told == (json!(-1), json!("SIGSEGV")) || told == (json!(139), Value::Null), "{answer}");
}

#[tokio::test]
async fn the_time_limit_ends_a_command_and_keeps_what_it_wrote() {
    let begun = Instant::now();
    let answer = ShellFixture::new()
        .fine("shell_exec", json!({"command": "echo early; sleep 60", "timeout_s": 1}))
        .await;
    assert_eq!((&answer["timed_out"], &answer["exit_code"]), (&json!(true), &json!(-1)), "{answer}");
    assert_eq!(answer["stdout"], "early\n");
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_lowered_time_limit_is_told() {
    let bench = ShellFixture::with(ShellSettings { max_timeout_seconds: 1, ..ShellSettings::default() });
    let answer = bench.fine("shell_exec", json!({"command": "sleep 60", "timeout_s": 100})).await;
    assert_eq!(answer["timed_out"], true);
    assert!(answer["note"].as_str().unwrap().contains("lowered to 1.0 s"), "{answer}");
    let quick = bench.fine("shell_exec", json!({"command": "true", "timeout_s": 1})).await;
    assert!(quick.get("note").is_none(), "{quick}");
    // The call itself ends after thirty seconds, which does not affect quick commands.
    let quick = ShellFixture::new().fine("shell_exec", json!({"command": "true", "timeout_s": 600})).await;
    assert!(quick.get("note").is_none(), "{quick}");
}

#[tokio::test]
async fn a_command_ends_before_its_call_does() {
    let bench = ShellFixture::new();
    let deadline = Instant::now() + Duration::from_secs(2);
    let cx = CallContext::new(Arc::new(Caller::local()), deadline, CancellationToken::new());
    let answer = bench.call_as(&cx, "shell_exec", json!({"command": "echo x; sleep 60"})).await.unwrap();
    assert!(Instant::now() < cx.deadline);
    assert_eq!((&answer["timed_out"], &answer["stdout"]), (&json!(true), &json!("x\n")));
    assert!(answer["note"].as_str().unwrap().contains("the call itself ends"), "{answer}");
}

#[tokio::test]
async fn a_cancelled_call_ends_within_a_second() {
    let bench = ShellFixture::new();
    // The sandbox is probed before the time is measured.
    bench.fine("shell_exec", json!({"command": "true"})).await;
    let cx = bench.cx("local");
    let cancel = cx.cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(300)).await;
        cancel.cancel();
    });
    let begun = Instant::now();
    let error = bench.call_as(&cx, "shell_exec", json!({"command": "sleep 60"})).await.unwrap_err();
    assert_eq!(error.kind, Kind::Cancelled);
    assert!(begun.elapsed() < Duration::from_millis(1_300), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn output_is_told_while_it_comes() {
    let bench = ShellFixture::new();
    let ear = Arc::new(ProgressRecorder::default());
    let cx = bench.cx_with_progress(&ear);
    let command = "for x in 1 2 3; do echo line $x; sleep 0.4; done";
    bench.call_as(&cx, "shell_exec", json!({"command": command})).await.unwrap();
    let heard = ear.0.lock().unwrap();
    let messages: Vec<&str> = heard.iter().filter_map(|notice| notice["message"].as_str()).collect();
    // On a busy machine two lines may arrive as one.
    assert!(
        messages.len() >= 2 && messages.iter().all(|message| message.starts_with("line ")),
        "{messages:?}"
    );
    assert!(heard.iter().map(|notice| notice["progress"].as_u64().unwrap()).is_sorted());
}

#[tokio::test]
async fn a_flood_of_output_makes_few_notices() {
    let bench = ShellFixture::new();
    let ear = Arc::new(ProgressRecorder::default());
    let cx = bench.cx_with_progress(&ear);
    bench.call_as(&cx, "shell_exec", json!({"command": "seq 200000"})).await.unwrap();
    assert!(ear.0.lock().unwrap().len() < 20);
}

#[tokio::test]
async fn losses_are_warned_of() {
    let bench = ShellFixture::new();
    let rows = [
        ("echo x > notes.txt", Some("This command replaces notes.txt.")),
        ("echo x > new.txt", None),
        ("cp README.md src", None),
        ("mv README.md src/main.rs", Some("This command replaces src/main.rs.")),
        ("rm -f new.txt; echo y > notes.txt", Some("This command removes files (rm); replaces notes.txt.")),
        ("cat notes.txt", None),
    ];
    for (command, warning) in rows {
        let answer = bench.fine("shell_exec", json!({"command": command})).await;
        assert_eq!(answer.get("warning").and_then(Value::as_str), warning, "{command}: {answer}");
        assert_eq!(answer["exit_code"], 0, "{command}: {answer}");
    }
}

#[tokio::test]
async fn what_the_operator_refuses_does_not_run() {
    let allowed = vec!["echo".to_owned(), "touch".to_owned()];
    let bench = ShellFixture::with(ShellSettings { allowed_commands: allowed, ..ShellSettings::default() });
    let rows = [
        (json!({"command": "touch a; ls"}), Kind::Denied, "ls is not in the list"),
        (json!({"command": "echo x", "env": {"PATH": "."}}), Kind::Denied, "PATH"),
        (json!({"command": "$(echo ls)"}), Kind::Denied, "known only at run time"),
        (json!({"command": "echo 'x"}), Kind::Invalid, "a quote is not closed"),
        (json!({"command": " "}), Kind::Invalid, "empty"),
        (json!({"command": "echo x", "timeout_s": 0}), Kind::Invalid, "timeout_s"),
        (json!({"command": "echo x", "cwd": "../.."}), Kind::Denied, ""),
        (json!({"command": "echo x", "cwd": "missing"}), Kind::NotFound, ""),
        (json!({"command": "echo x", "env": {"A B": "c"}}), Kind::Invalid, "variable"),
        (json!({"command": "echo x", "shell": "zsh"}), Kind::Invalid, "unknown field"),
    ];
    for tool in ["shell_exec", "shell_start"] {
        for (input, kind, part) in &rows {
            let error = bench.call(tool, input.clone()).await.expect_err(&input.to_string());
            assert_eq!(error.kind, *kind, "{tool} {input}: {}", error.text());
            assert!(error.text().contains(part), "{tool} {input}: {}", error.text());
        }
    }
    assert!(!bench.folder.path().join("work/a").exists());
    for tool in ["run_tests", "run_build"] {
        let error = bench.call(tool, json!({"command": "ls"})).await.expect_err(tool);
        assert_eq!(error.kind, Kind::Denied, "{tool}");
    }
}

#[tokio::test]
async fn nobody_can_turn_the_network_on() {
    let answer = ShellFixture::new().fine("shell_exec", json!({"command": "true", "network": true})).await;
    assert_eq!(answer["network"], false);
    assert!(answer["note"].as_str().unwrap().contains("network"), "{answer}");
    let open = ShellFixture::with(ShellSettings { network: true, ..ShellSettings::default() });
    for (input, network) in
        [(json!({"command": "true"}), true), (json!({"command": "true", "network": false}), false)]
    {
        assert_eq!(open.fine("shell_exec", input).await["network"], network);
    }
}

#[tokio::test]
async fn programs_are_found_by_name_alone() {
    let bench = ShellFixture::new();
    let found = bench.fine("shell_which", json!({"command": "sh"})).await;
    assert!(found["found"] == true && found["path"].as_str().unwrap().ends_with("/sh"), "{found}");
    for name in ["", "/bin/sh", "ls -la", "../sh"] {
        assert_eq!(
            bench.call("shell_which", json!({"command": name})).await.unwrap_err().kind,
            Kind::Invalid
        );
    }
}

#[tokio::test]
async fn processes_show_their_arguments_only_to_their_owner() {
    let bench = ShellFixture::new();
    let started = bench.fine("shell_start", json!({"command": "sleep 54321", "wait_ms": 0})).await;
    let deadline = Instant::now() + Duration::from_secs(5);
    let seen = loop {
        let seen = bench.fine("check_process", json!({"process_name": "sleep"})).await;
        let mine =
            seen["processes"].as_array().unwrap().iter().find(|one| one["command"] == "sleep 54321").cloned();
        match mine {
            Some(mine) => break mine,
            None => assert!(Instant::now() < deadline, "{seen}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    let pid = seen["pid"].clone();
    let by_number = bench.fine("check_process", json!({"pid": pid})).await;
    assert_eq!((&by_number["running"], &by_number["processes"][0]["name"]), (&json!(true), &json!("sleep")));
    let own = bench.fine("check_process", json!({})).await;
    assert!(own["processes"].as_array().unwrap().iter().any(|one| one["pid"] == pid), "{own}");
    let other = bench.call_as(&bench.cx("other"), "check_process", json!({"pid": pid})).await.unwrap();
    assert_eq!(other["running"], true);
    assert!(other["processes"][0].get("command").is_none(), "{other}");
    bench.fine("shell_stop", json!({"session_id": started["session_id"]})).await;
    assert_eq!(bench.fine("check_process", json!({"pid": pid})).await["running"], false);
}
