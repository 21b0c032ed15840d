//! The child: bounds itself, evaluates one expression after the other, answers.
//!
//! It reads the expression as a JSON string on one line, the length of the input on the next, and the input; arguments of a
//! process can be read by everybody on the machine, its standard input cannot. It answers with `ok` or `error` and the
//! length of a text on one line, and the text.

use super::{ERROR, LAST_ANSWER, OK, RUN_TIMEOUT};
use octo_hub::jq_eval::{MAX_OUTPUT_BYTES, evaluate};
use rustix::process::{Resource, Rlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};
use std::io::{self, BufRead, BufReader, Read, Write};

/// What an expression may allocate. A result takes about fifteen times its size as values.
const MAX_MEMORY_BYTES: u64 = 256 << 20;
/// What the process may map, this program and its libraries included.
const MAX_ADDRESS_SPACE_BYTES: u64 = 2 << 30;
/// An input after which the process ends: what its values took is not all given back.
const MAX_REUSE_INPUT_BYTES: usize = 1 << 20;
/// The same for many expressions, and for one that has worked for long.
const MAX_RUNS: usize = 1_000;
const MAX_REUSE_CPU_SECONDS: u64 = 1;
/// How much lower its priority is than the hub's.
const NICE_INCREMENT: i32 = 10;

pub fn run_worker(input: impl Read, mut output: impl Write) -> io::Result<()> {
    for (resource, most) in [(Resource::Data, MAX_MEMORY_BYTES), (Resource::As, MAX_ADDRESS_SPACE_BYTES)] {
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?;
    }
    // Calls of others come first.
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

/// The expression's line and the input. Nothing when there are no more.
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

/// Gives the next expression its time on a processor, whatever others have used before.
fn limit_cpu_time(used: u64) -> io::Result<()> {
    let seconds = used + RUN_TIMEOUT.as_secs() + 1;
    Ok(setrlimit(Resource::Cpu, Rlimit { current: Some(seconds), maximum: None })?)
}

fn cpu_seconds() -> u64 {
    clock_gettime(ClockId::ProcessCPUTime).tv_sec.unsigned_abs()
}

fn evaluate_request(head: &str, input: &[u8]) -> Result<String, String> {
    let program: String =
        serde_json::from_str(head).map_err(|error| format!("the expression is no text: {error}"))?;
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
