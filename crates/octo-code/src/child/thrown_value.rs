//! What a program threw, in words. Values of the program may have getters that throw again or run forever; the limits of
//! the process bound them.

use crate::message::ReportedError;
use rquickjs::{Ctx, Error, FromJs, Object, Value};

/// Name of the program in stacks.
pub const FILE_NAME: &str = "program";
/// Lines that are put before the program.
pub const LINES_BEFORE: u32 = 1;
/// Longest message that is reported.
const MAX_MESSAGE_BYTES: usize = 4 << 10;
/// Memory without which a program cannot go on.
const MEMORY_RESERVE_BYTES: usize = 1 << 20;
/// What QuickJS says when a program reaches its limit of memory.
const OUT_OF_MEMORY: &str = "InternalError: out of memory";

/// Takes the pending exception and describes it.
pub fn caught_error(ctx: &Ctx<'_>, error: &Error) -> ReportedError {
    if error.is_exception() { thrown_error(ctx, ctx.catch()) } else { uncaught(error.to_string()) }
}

/// Describes a value that was thrown.
pub fn thrown_error<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> ReportedError {
    let Some(error) = value.as_object().filter(|object| object.is_error()) else {
        // The engine throws null if it has no memory for an error.
        let advice = if value.is_null() {
            "unless the program threw it, it ran out of memory"
        } else {
            "throw an Error instead"
        };
        return uncaught(format!("{} ({advice})", describe(ctx, &value)));
    };
    let (name, message) = (text_member(ctx, error, "name"), text_member(ctx, error, "message"));
    let message = match (name.as_deref(), message.as_deref()) {
        (Some(name), Some("") | None) => name.to_owned(),
        (Some(name), Some(message)) => format!("{name}: {message}"),
        (None, message) => message.unwrap_or("an error without a message").to_owned(),
    };
    if message == OUT_OF_MEMORY {
        return ReportedError::Memory;
    }
    let position = text_member(ctx, error, "stack").and_then(|stack| first_position(&stack));
    let (line, column) = position.unzip();
    let message = shortened(message);
    let error_code = text_member(ctx, error, "code").map(shortened);
    ReportedError::Uncaught { message, error_code, line, column: column.flatten() }
}

fn uncaught(message: String) -> ReportedError {
    ReportedError::Uncaught { message: shortened(message), error_code: None, line: None, column: None }
}

fn shortened(mut message: String) -> String {
    message.truncate(message.floor_char_boundary(MAX_MESSAGE_BYTES));
    message
}

/// A member of an error if it is a text.
fn text_member<'js>(ctx: &Ctx<'js>, object: &Object<'js>, key: &str) -> Option<String> {
    let value = quiet(ctx, object.get::<_, Value<'js>>(key))?;
    quiet(ctx, String::from_js(ctx, value.into_string()?.into_value()))
}

/// A value as JSON, or as its type.
fn describe<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> String {
    let json = quiet(ctx, ctx.json_stringify(value.clone())).flatten();
    let text = json.and_then(|text| quiet(ctx, text.to_string()));
    text.unwrap_or_else(|| value.type_of().to_string())
}

/// Drops an exception, which would otherwise stay pending.
fn quiet<T>(ctx: &Ctx<'_>, result: rquickjs::Result<T>) -> Option<T> {
    if result.as_ref().is_err_and(Error::is_exception) {
        ctx.catch();
    }
    result.ok()
}

/// Line and column of the first frame in the program: `at name (program:3:7)` or `at program:3`.
fn first_position(stack: &str) -> Option<(u32, Option<u32>)> {
    let frames = stack.lines().filter_map(|frame| {
        let place = frame.trim().trim_end_matches(')');
        place.rsplit([' ', '(']).next()?.strip_prefix(FILE_NAME)?.strip_prefix(':')
    });
    frames.into_iter().find_map(|place| {
        let (line, column) = place.split_once(':').unwrap_or((place, ""));
        Some((line.parse::<u32>().ok()?.checked_sub(LINES_BEFORE)?, column.parse().ok()))
    })
}

/// Whether a program has hardly any memory left.
pub fn is_memory_short(ctx: &Ctx<'_>) -> bool {
    let text = "x".repeat(MEMORY_RESERVE_BYTES);
    quiet(ctx, rquickjs::String::from_str(ctx.clone(), &text)).is_none()
}
