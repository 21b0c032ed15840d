//! The process of a program: sandboxed before it looks at the program, and killed by its parent at any time.

mod event_loop;
mod exact_integers;
mod program_source;
mod strip_types;
mod thrown_value;
mod tool_bridge;

use crate::frame::{encode, read_frame};
use crate::message::{ChildMessage, ParentMessage, ReportedError, Start};
use event_loop::{ScriptEngine, run_source};
use octo_grants::exec::compute_jail::ComputeJail;
use program_source::prepare;
use std::cell::RefCell;
use std::io::{self, Read, Write};
use std::rc::Rc;
use tool_bridge::ToolBridge;

/// Address space beside the values of the program: this binary, its stack, the parser, and results on their way.
const OWN_MEMORY_BYTES: u64 = 512 << 20;

/// Entry point of the process: reads a program from `input`, runs it and writes its calls and its end to `output`.
/// These must be standard input and standard output; the sandbox allows no other.
pub fn child_main(mut input: impl Read + 'static, mut output: impl Write + 'static) -> io::Result<()> {
    // What a program makes panic is reported by how the process ends.
    std::panic::set_hook(Box::new(|_| {}));
    let ParentMessage::Start(start) = read_frame(&mut input)? else {
        return Err(io::Error::other("a program must come first"));
    };
    // Its own code only; libraries may read files here for the last time.
    let engine = ScriptEngine::new(start.memory_bytes).map_err(io::Error::other)?;
    if let Err(error) = enter_sandbox(&start) {
        return send(&mut output, &ChildMessage::Failed(ReportedError::Sandbox(error.to_string())));
    }
    let bridge = Rc::new(RefCell::new(ToolBridge::new(&start, Box::new(output))));
    let end = match prepare(&start.source) {
        Ok(source) => run_source(&engine, &source, &start, &mut input, &bridge),
        Err(error) => Err(error),
    };
    let message = match end {
        Ok(Some(value)) => ChildMessage::Returned(value),
        Ok(None) => ChildMessage::Ended,
        Err(error) => ChildMessage::Failed(error),
    };
    // Values of the program may remain, and freeing them proves nothing: the process ends here.
    std::mem::forget(engine);
    bridge.borrow_mut().finish(&message)
}

fn enter_sandbox(start: &Start) -> io::Result<()> {
    let values = u64::try_from(start.memory_bytes).map_err(io::Error::other)?;
    let jail = ComputeJail { memory: values.saturating_add(OWN_MEMORY_BYTES), seconds: start.cpu_seconds };
    jail.enter_strictly()
}

fn send(output: &mut impl Write, message: &ChildMessage) -> io::Result<()> {
    output.write_all(&encode(message)?)?;
    output.flush()
}
