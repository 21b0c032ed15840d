//! jq in separate processes, which can be killed at any time. Idle processes are reused: starting one costs more than
//! evaluating most expressions.

mod jq_worker;

pub use jq_worker::run_worker;

use crate::process::this_program::this_program;
use octo_grants::{ChildHandle, Command};
use octo_hub::jq_eval::{Jq, MAX_OUTPUT_BYTES};
use octo_model::{Json, Kind, ToolError};
use octo_toolkit::BoxFuture;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::pipe::{Receiver, Sender};

/// Hidden command of the worker process.
pub const COMMAND: &str = "jq-worker";
const RUN_TIMEOUT: Duration = Duration::from_secs(10);
/// How long an idle process is kept.
const IDLE_TIMEOUT: Duration = Duration::from_secs(20);
/// How long a process killed from outside may still appear to run.
const EXIT_GRACE: Duration = Duration::from_millis(100);
/// Maximum length of the first line of a reply.
const MAX_HEADER_BYTES: u64 = 64;
/// jq expressions can read the environment, and must not learn about this machine.
const EMPTY_VARIABLES: [&str; 6] = ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR"];
const OK: &str = "ok";
const ERROR: &str = "error";
/// Marks a reply after which the process exits.
const LAST_ANSWER: &str = "last";

/// Pool of worker processes: this program with another command.
pub struct JqWorkers {
    program: String,
    timeout: Duration,
    idle: Arc<Mutex<IdlePool>>,
}

/// Idle processes.
#[derive(Default)]
struct IdlePool {
    workers: Vec<IdleWorker>,
    is_sweeping: bool,
}

/// An idle process.
struct Worker {
    stdin: Sender,
    stdout: BufReader<Receiver>,
    _stderr: Receiver,
    _group: ChildHandle,
}

struct IdleWorker {
    worker: Worker,
    since: Instant,
}

/// Reply of a process, and whether it accepts another expression.
struct WorkerAnswer {
    is_ok: bool,
    is_last: bool,
    text: String,
}

impl JqWorkers {
    pub fn new() -> io::Result<Self> {
        Ok(Self::with_timeout(&this_program()?, RUN_TIMEOUT))
    }

    /// Creates a pool with the program to run and the timeout of an expression.
    pub fn with_timeout(program: &Path, timeout: Duration) -> Self {
        Self { program: program.to_string_lossy().into_owned(), timeout, idle: Arc::default() }
    }

    fn start(&self) -> io::Result<Worker> {
        let command = Command {
            program: self.program.clone(),
            args: vec![COMMAND.to_owned()],
            env: EMPTY_VARIABLES.map(|name| (name.to_owned(), String::new())).into(),
            cwd: Some("/".into()),
        };
        let (stdin, stdout, _stderr, _group) = command.spawn()?.split();
        Ok(Worker { stdin, stdout: BufReader::new(stdout), _stderr, _group })
    }

    /// Evaluates an expression in an idle process or a new one. `None` if the process exited without a reply.
    async fn answer(&self, program: &str, input: &Json) -> io::Result<Option<WorkerAnswer>> {
        let waiting = lock_pool(&self.idle).workers.pop();
        let mut is_fresh = waiting.is_none();
        let mut worker = match waiting {
            // The most recently used one, so that the others can expire.
            Some(idle) => idle.worker,
            None => self.start()?,
        };
        let begun = Instant::now();
        loop {
            let (was_sent, answer) = worker.answer(program, input).await;
            match answer? {
                Some(answer) => {
                    self.return_worker(worker, &answer);
                    return Ok(Some(answer));
                }
                // It was exiting when it received the request. If it exits after some work, the expression exceeded its
                // limits.
                None if !is_fresh && (!was_sent || begun.elapsed() < EXIT_GRACE) => {
                    (worker, is_fresh) = (self.start()?, true);
                }
                None => return Ok(None),
            }
        }
    }

    /// Returns a process to the pool.
    fn return_worker(&self, worker: Worker, answer: &WorkerAnswer) {
        if answer.is_last {
            return;
        }
        let mut idle = lock_pool(&self.idle);
        idle.workers.push(IdleWorker { worker, since: Instant::now() });
        if !std::mem::replace(&mut idle.is_sweeping, true) {
            tokio::spawn(end_idle(Arc::downgrade(&self.idle)));
        }
    }

    fn timed_out(&self) -> ToolError {
        let seconds = self.timeout.as_secs_f64();
        ToolError::new(Kind::Timeout, format!("The jq expression timed out after {seconds} s."))
            .hint("Select before you combine; avoid infinite loops.")
    }
}

fn lock_pool(idle: &Mutex<IdlePool>) -> MutexGuard<'_, IdlePool> {
    idle.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Stops processes that have been idle for too long, until none is left.
async fn end_idle(idle: Weak<Mutex<IdlePool>>) {
    loop {
        tokio::time::sleep(IDLE_TIMEOUT / 4).await;
        let Some(idle) = idle.upgrade() else { return };
        let mut idle = lock_pool(&idle);
        idle.workers.retain(|idle| idle.since.elapsed() < IDLE_TIMEOUT);
        if idle.workers.is_empty() {
            idle.is_sweeping = false;
            return;
        }
    }
}

impl Worker {
    /// Returns whether the request was sent, and the reply; `None` if the process exited without one.
    async fn answer(&mut self, program: &str, input: &Json) -> (bool, io::Result<Option<WorkerAnswer>>) {
        let Self { stdin, stdout, .. } = self;
        let head = format!("{}\n{}\n", Json::text(program).as_str(), input.bytes().len());
        let sent = async {
            stdin.write_all(head.as_bytes()).await?;
            stdin.write_all(input.bytes()).await
        };
        // A process that exits early closes its end; only the reply matters.
        let (sent, answer) = tokio::join!(sent, read_answer(stdout));
        (sent.is_ok(), answer)
    }
}

async fn read_answer(stdout: &mut BufReader<Receiver>) -> io::Result<Option<WorkerAnswer>> {
    let mut head = String::new();
    stdout.take(MAX_HEADER_BYTES).read_line(&mut head).await?;
    let mut words = head.split_whitespace();
    let (Some(outcome), Some(Ok(length))) = (words.next(), words.next().map(str::parse::<usize>)) else {
        return Ok(None);
    };
    if length > 2 * MAX_OUTPUT_BYTES {
        return Err(io::Error::other("the reply is too long"));
    }
    let mut text = vec![0; length];
    stdout.read_exact(&mut text).await?;
    let text = String::from_utf8_lossy(&text).into_owned();
    Ok(Some(WorkerAnswer { is_ok: outcome == OK, is_last: words.next() == Some(LAST_ANSWER), text }))
}

impl Jq for JqWorkers {
    fn run<'a>(&'a self, program: &'a str, input: Json) -> BoxFuture<'a, Result<String, ToolError>> {
        Box::pin(async move {
            let answer = tokio::time::timeout(self.timeout, self.answer(program, &input)).await;
            match answer.map_err(|_| self.timed_out())?.map_err(ToolError::internal)? {
                Some(WorkerAnswer { is_ok: true, text, .. }) => Ok(text),
                Some(WorkerAnswer { text, .. }) => {
                    Err(ToolError::invalid(format!("jq: {}.", text.trim_end_matches('.')))
                        .hint("Try a simpler expression first, such as `keys` or `.[0]`."))
                }
                None => Err(worker_died()),
            }
        })
    }
}

fn worker_died() -> ToolError {
    ToolError::new(Kind::TooLarge, "The jq expression needed too much memory or time.")
        .hint("Select a part first, such as `.rows[:100]`.")
}
