//! Worker process: limits its own resources, evaluates expressions one after the other and replies.
//!
//! It reads the expression as a JSON string on one line, the length of the input on the next, and the input; process
//! arguments are visible to all users of the machine, standard input is not. The reply is `ok` or `error` and the
//! length of a text on one line, then the text.

use super::{ERROR, LAST_ANSWER, OK, RUN_TIMEOUT};
use octo_hub::jq_eval::{MAX_OUTPUT_BYTES, evaluate};
use rustix::process::{Resource, Rlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};
use std::io::{self, BufRead, BufReader, Read, Write};

/// Memory limit of an expression. A result needs about fifteen times its size in memory.
const MAX_MEMORY_BYTES: u64 = 256 << 20;
/// Address space limit of the process, including this program and its libraries.
const MAX_ADDRESS_SPACE_BYTES: u64 = 2 << 30;
/// Input size after which the process exits, since not all of its memory is released.
const MAX_REUSE_INPUT_BYTES: usize = 1 << 20;
/// Number of expressions, and CPU time of one, after which the process exits.
const MAX_RUNS: usize = 1_000;
const MAX_REUSE_CPU_SECONDS: u64 = 1;
/// How much lower its priority is than that of the hub.
const NICE_INCREMENT: i32 = 10;

pub fn run_worker(input: impl Read, mut output: impl Write) -> io::Result<()> {
    for (resource, most) in [(Resource::Data, MAX_MEMORY_BYTES), (Resource::As, MAX_ADDRESS_SPACE_BYTES)] {
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?;
    }
    // Other calls have priority.
    let _ = rustix::process::nice(NICE_INCREMENT);
    let mut input = BufReader::new(input);
    for run in 1.. {
        let Some((head, text)) = read_request(&mut input)? else { break };
        let begun = cpu_seconds();
        limit_cpu_time(begun)?;
        let (outcome, answer) = match evaluate_request(&head, &text) {
            Ok(answer) => (OK, answer),
            Err(why) => (ERROR, why),
        };
        let is_last = run == MAX_RUNS
            || text.len() > MAX_REUSE_INPUT_BYTES
            || cpu_seconds() > begun + MAX_REUSE_CPU_SECONDS;
        let end = if is_last { LAST_ANSWER } else { "" };
        writeln!(output, "{outcome} {} {end}", answer.len())?;
        output.write_all(answer.as_bytes())?;
        output.flush()?;
        if is_last {
            break;
        }
    }
    Ok(())
}

/// Reads the expression and the input. `None` at the end of the input stream.
fn read_request(input: &mut impl BufRead) -> io::Result<Option<(String, Vec<u8>)>> {
    let (mut head, mut length) = (String::new(), String::new());
    if input.read_line(&mut head)? == 0 || input.read_line(&mut length)? == 0 {
        return Ok(None);
    }
    let length: usize = length.trim().parse().map_err(io::Error::other)?;
    let mut text = vec![0; length];
    input.read_exact(&mut text)?;
    Ok(Some((head, text)))
}

/// Sets the CPU time limit of the next expression, regardless of earlier ones.
fn limit_cpu_time(used: u64) -> io::Result<()> {
    let seconds = used + RUN_TIMEOUT.as_secs() + 1;
    Ok(setrlimit(Resource::Cpu, Rlimit { current: Some(seconds), maximum: None })?)
}

fn cpu_seconds() -> u64 {
    clock_gettime(ClockId::ProcessCPUTime).tv_sec.unsigned_abs()
}

fn evaluate_request(head: &str, input: &[u8]) -> Result<String, String> {
    let program: String =
        serde_json::from_str(head).map_err(|error| format!("the expression is not a string: {error}"))?;
    evaluate(&program, input, MAX_OUTPUT_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_answered_in_turn_until_there_are_no_more() {
        let asked = concat!(
            "\".a\"\n8\n{\"a\": 1}",
            "\".a\\n|.b\"\n17\n{\"a\": {\"b\": [2]}}",
            "nothing\n2\n{}",
            "\".a[\"\n2\n{}",
            "\".\"\n",
        );
        let mut answers = Vec::new();
        let mut input = BufReader::new(asked.as_bytes());
        while let Some((head, text)) = read_request(&mut input).unwrap_or_default() {
            answers.push(evaluate_request(&head, &text).map_err(|_| ()));
        }
        assert_eq!(answers, [Ok("1\n".to_owned()), Ok("[2]\n".to_owned()), Err(()), Err(())]);
        assert!(read_request(&mut BufReader::new(&b"\".\"\n5\n{}"[..])).is_err());
    }
}
