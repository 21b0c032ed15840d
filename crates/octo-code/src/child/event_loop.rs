//! Runs a script until nothing of it is left to do.

use super::exact_integers::exact_integers;
use super::thrown_value::{FILE_NAME, caught_error, is_memory_short, thrown_error};
use super::tool_bridge::ToolBridge;
use crate::CallError;
use crate::frame::read_frame;
use crate::message::{ParentMessage, ReportedError, Start};
use octo_model::Json;
use rquickjs::context::{EvalOptions, intrinsic};
use rquickjs::promise::PromiseState;
use rquickjs::{Array, Context, Ctx, Exception, Function, Object, Persistent, Promise, Runtime, Value};
use std::cell::RefCell;
use std::io::Read;
use std::rc::Rc;

/// Stack of scripts; that of the process is larger.
const MAX_STACK_BYTES: usize = 1 << 20;

/// Everything of the language, except what measures time.
type Language = (
    intrinsic::Date,
    intrinsic::Eval,
    intrinsic::RegExpCompiler,
    intrinsic::RegExp,
    intrinsic::Json,
    intrinsic::Proxy,
    intrinsic::MapSet,
    intrinsic::TypedArrays,
    intrinsic::Promise,
    intrinsic::WeakRef,
);

type Bridge = Rc<RefCell<ToolBridge>>;
/// Promises that were rejected while nobody awaited them, with their reasons.
type Rejections = Rc<RefCell<Vec<(Persistent<Value<'static>>, Persistent<Value<'static>>)>>>;

/// QuickJS, prepared for one script.
pub struct ScriptEngine {
    runtime: Runtime,
    context: Context,
}

impl ScriptEngine {
    pub fn new(memory_bytes: usize) -> rquickjs::Result<Self> {
        let runtime = Runtime::new()?;
        runtime.set_max_stack_size(MAX_STACK_BYTES);
        let context = Context::custom::<Language>(&runtime)?;
        // The C library reads the time zone from files, once.
        context.with(|ctx| ctx.eval::<(), _>("new Date(0).getTimezoneOffset(); undefined"))?;
        runtime.set_memory_limit(memory_bytes);
        Ok(Self { runtime, context })
    }
}

/// Runs a script and returns the JSON that it returned.
pub fn run_source(
    engine: &ScriptEngine,
    source: &str,
    start: &Start,
    input: &mut impl Read,
    bridge: &Bridge,
) -> Result<Option<Json>, ReportedError> {
    let stopped = bridge.clone();
    engine.runtime.set_interrupt_handler(Some(Box::new(move || {
        stopped.try_borrow().is_ok_and(|bridge| bridge.is_ended())
    })));
    let rejections = track_rejections(&engine.runtime);
    engine.context.with(|ctx| {
        let prelude = prepare_globals(&ctx, start, bridge).map_err(|error| caught_error(&ctx, &error))?;
        // An async function throws nothing; an exception means that it could not be compiled.
        let program = ctx.eval_with_options::<Promise<'_>, _>(source, file_options(FILE_NAME));
        let program = program.map_err(|error| syntax_error(caught_error(&ctx, &error)))?;
        let program: Promise<'_> =
            prelude.finish.call((program,)).map_err(|error| caught_error(&ctx, &error))?;
        loop {
            while ctx.execute_pending_job() {}
            if bridge.borrow().is_ended()
                || program.state() == PromiseState::Rejected
                || !bridge.borrow().is_waiting()
            {
                break;
            }
            settle_next(&ctx, &prelude.settle, input, bridge)?;
        }
        returned(&ctx, &program, &prelude.encode, bridge, &rejections)
    })
}

/// Waits for the answer of a call and settles its promise.
fn settle_next<'js>(
    ctx: &Ctx<'js>,
    settle: &Function<'js>,
    input: &mut impl Read,
    bridge: &Bridge,
) -> Result<(), ReportedError> {
    // Without its parent a program has nobody to report to.
    let Ok(ParentMessage::Result { id, result }) = read_frame(input) else {
        return Err(ReportedError::Deadlock);
    };
    bridge.borrow_mut().answered().map_err(|_| ReportedError::Deadlock)?;
    let value = match &result {
        Ok(value) => parse_exactly(ctx, value.get()).map(|value| (true, value)),
        Err(error) => error_value(ctx, error).map(|value| (false, value)),
    };
    let settled = value.and_then(|(is_ok, value)| settle.call::<_, ()>((id, is_ok, value)));
    settled.map_err(|error| caught_error(ctx, &error))
}

fn error_value<'js>(ctx: &Ctx<'js>, error: &CallError) -> rquickjs::Result<Value<'js>> {
    let value = Object::new(ctx.clone())?;
    value.set("code", error.code.as_str())?;
    value.set("message", error.message.as_str())?;
    if let Some(data) = &error.data {
        value.set("data", parse_exactly(ctx, data.as_str())?)?;
    }
    Ok(value.into_value())
}

fn parse_exactly<'js>(ctx: &Ctx<'js>, json: &str) -> rquickjs::Result<Value<'js>> {
    ctx.json_parse(exact_integers(json).as_ref())
}

/// What the program returned, once nothing is left to do.
fn returned<'js>(
    ctx: &Ctx<'js>,
    program: &Promise<'js>,
    encode: &Function<'js>,
    bridge: &Bridge,
    rejections: &Rejections,
) -> Result<Option<Json>, ReportedError> {
    let value = match program.result::<Value<'js>>() {
        // Jobs that lack memory end without a word.
        None if is_memory_short(ctx) => return Err(ReportedError::Memory),
        None => return Err(ReportedError::Deadlock),
        Some(result) => result.map_err(|error| caught_error(ctx, &error))?,
    };
    if let Some((_, reason)) = rejections.borrow_mut().pop() {
        let reason = reason.restore(ctx).map_err(|error| caught_error(ctx, &error))?;
        return Err(unawaited(thrown_error(ctx, reason)));
    }
    let text = encode.call::<_, Option<String>>((value,));
    let Some(text) = text.map_err(|error| unserializable(caught_error(ctx, &error)))? else {
        return Ok(None);
    };
    if !bridge.borrow_mut().take_output(text.len()) {
        return Err(ReportedError::Output);
    }
    Json::parse(text).map(Some).map_err(|error| {
        unserializable(ReportedError::Uncaught {
            message: error.to_string(),
            error_code: None,
            line: None,
            column: None,
        })
    })
}

fn file_options(name: &str) -> EvalOptions {
    let mut options = EvalOptions::default();
    options.filename = Some(name.to_owned());
    options
}

/// An error of the compiler; running out of stack or memory are no errors of syntax.
fn syntax_error(error: ReportedError) -> ReportedError {
    match error {
        ReportedError::Uncaught { message, line, column, error_code } => {
            match message.strip_prefix("SyntaxError: ") {
                Some(message) => ReportedError::Syntax { message: message.to_owned(), line, column },
                None => ReportedError::Uncaught { message, line, column, error_code },
            }
        }
        other => other,
    }
}

fn unawaited(error: ReportedError) -> ReportedError {
    explained(error, |message| format!("{message} (in a promise that nothing awaited)"))
}

fn unserializable(error: ReportedError) -> ReportedError {
    explained(error, |message| format!("the returned value is not JSON: {message}"))
}

fn explained(error: ReportedError, explain: impl Fn(String) -> String) -> ReportedError {
    match error {
        ReportedError::Uncaught { message, error_code, line, column } => {
            ReportedError::Uncaught { message: explain(message), error_code, line, column }
        }
        other => other,
    }
}

/// Collects promises that are rejected and have no handler; a later handler removes them again.
fn track_rejections(runtime: &Runtime) -> Rejections {
    let rejections = Rejections::default();
    let tracked = rejections.clone();
    runtime.set_host_promise_rejection_tracker(Some(Box::new(move |ctx, promise, reason, is_handled| {
        let promise = Persistent::save(&ctx, promise);
        let mut tracked = tracked.borrow_mut();
        if is_handled {
            tracked.retain(|(other, _)| *other != promise);
        } else {
            tracked.push((promise, Persistent::save(&ctx, reason)));
        }
    })));
    rejections
}

/// Functions of the prelude.
struct Prelude<'js> {
    /// Settles the promise of a call.
    settle: Function<'js>,
    /// Writes a value as JSON.
    encode: Function<'js>,
    /// The promise of the program, with a list of calls awaited.
    finish: Function<'js>,
}

/// Gives the program its globals.
fn prepare_globals<'js>(ctx: &Ctx<'js>, start: &Start, bridge: &Bridge) -> rquickjs::Result<Prelude<'js>> {
    let begin = {
        let bridge = bridge.clone();
        Function::new(ctx.clone(), move |ctx: Ctx<'js>, name: String, arguments: String| {
            let begun = bridge.borrow_mut().call(&name, arguments);
            begun.map_err(|message| Exception::throw_type(&ctx, &message))
        })?
    };
    let emit = {
        let bridge = bridge.clone();
        Function::new(ctx.clone(), move |line: String| bridge.borrow_mut().print(line))?
    };
    let unknown = {
        let bridge = bridge.clone();
        Function::new(ctx.clone(), move |name: String| bridge.borrow().unknown_name(&name))?
    };
    let bindings = Array::new(ctx.clone())?;
    for (index, tool) in start.tools.iter().enumerate() {
        let binding = Object::new(ctx.clone())?;
        binding.set("name", tool.name.as_str())?;
        binding.set("path", tool.path.clone())?;
        bindings.set(index, binding)?;
    }
    let prelude: Function<'js> =
        ctx.eval_with_options(include_str!("prelude.js"), file_options("octoprox"))?;
    let now = start.time_ms as f64;
    let functions: Object<'js> = prelude.call((begin, emit, unknown, now, bindings))?;
    Ok(Prelude {
        settle: functions.get("settle")?,
        encode: functions.get("encode")?,
        finish: functions.get("finish")?,
    })
}
