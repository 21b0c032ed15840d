//! Simulated user at a terminal: waits for each question and types the answer.

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};

/// End of every question.
pub const QUESTION_END: &str = "] ";
/// Mark of Enter in a recording.
pub const ENTER_MARK: char = '⏎';

/// Runs a command on a new terminal. Returns its output, with the typed input marked by [`ENTER_MARK`].
pub fn run_on_terminal(mut command: Command, answers: &[String]) -> String {
    let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&controller).unwrap();
    unlockpt(&controller).unwrap();
    let name = ptsname(&controller, Vec::new()).unwrap();
    let terminal = OpenOptions::new().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    let end = || Stdio::from(OwnedFd::from(terminal.try_clone().unwrap()));
    let mut child = command.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
    // Only the child holds the terminal now, so that it closes with the child.
    drop(command);
    drop(terminal);
    let shown = answer_questions(File::from(controller), answers);
    assert!(child.wait().unwrap().success(), "{shown}");
    shown
}

fn answer_questions(mut controller: File, answers: &[String]) -> String {
    let mut answers = answers.iter();
    let (mut shown, mut part) = (Vec::new(), [0; 4096]);
    // Length up to the question that was answered last, and the typed answer.
    let mut typed: Vec<(usize, &str)> = Vec::new();
    // The end of a terminal is reported as an error.
    while let Ok(read @ 1..) = controller.read(&mut part) {
        shown.extend_from_slice(part.get(..read).unwrap());
        let is_new = typed.last().is_none_or(|(at, _)| *at < shown.len());
        if is_new && shown.ends_with(QUESTION_END.as_bytes()) {
            let answer = answers.next().unwrap_or_else(|| {
                panic!("a question that the recording has no answer to: {}", String::from_utf8_lossy(&shown))
            });
            typed.push((shown.len(), answer));
            controller.write_all(format!("{answer}\n").as_bytes()).unwrap();
        }
    }
    assert_eq!(answers.next(), None, "the recording has more answers than there were questions");
    mark_answers(&shown, &typed)
}

/// Inserts a mark after each answer in the output, where the terminal echoed it.
fn mark_answers(shown: &[u8], typed: &[(usize, &str)]) -> String {
    let (mut text, mut from) = (String::new(), 0);
    for (at, answer) in typed {
        let end = at + answer.len();
        text += &String::from_utf8_lossy(shown.get(from..end).unwrap());
        text.push(ENTER_MARK);
        from = end;
    }
    text += &String::from_utf8_lossy(shown.get(from..).unwrap());
    text.replace("\r\n", "\n")
}
