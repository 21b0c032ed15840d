//! Tools that run a command line. Values are whole arguments or parts of one; no shell is involved.

use super::parameters::{Parameters, Values, Variables, to_plain_text};
use super::template_text::{Placeholder, TemplateText};
use super::tool_manifest::{self, ArgPart, Type};
use octo_grants::exec::{Captured, ExecResult, Exit, Job, Program};
use octo_grants::fs::Read;
use octo_grants::{Capabilities, Exec, Fs, WorkPath};
use octo_model::{Kind, TemplatePart, ToolError};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Component, Path};
use std::time::Duration;

/// Maximum captured bytes per stream.
const MAX_STREAM_BYTES: usize = 1 << 20;

/// Ends a program's options; what follows is never parsed as an option.
const END_OF_OPTIONS: &str = "--";

pub struct Command {
    argv: Vec<ArgGroup>,
    env: Vec<(String, TemplateText)>,
    stdin: Option<TemplateText>,
    folder: String,
    pub network: bool,
    ok_exit: Vec<i32>,
    /// Parameters that are workspace paths.
    paths: Vec<String>,
}

/// Arguments that are present together or not at all.
struct ArgGroup {
    when: Option<String>,
    texts: Vec<TemplateText>,
}

impl Command {
    pub fn new(written: tool_manifest::Command, parameters: &Parameters) -> Result<Self, String> {
        let argv: Vec<ArgGroup> = written.argv.into_iter().map(arg_group).collect::<Result<_, _>>()?;
        let program = argv.first().filter(|first| first.when.is_none()).and_then(|first| first.texts.first());
        if program.and_then(TemplateText::literal).is_none_or(str::is_empty) {
            return Err("`argv` must start with the program, which cannot be a parameter".to_owned());
        }
        if let Some(when) =
            argv.iter().filter_map(|words| words.when.as_ref()).find(|name| parameters.get(name).is_none())
        {
            return Err(format!("`when: {when}` is not a parameter"));
        }
        if argv.iter().flat_map(|words| &words.texts).any(|text| text.variables().next().is_some()) {
            return Err("variables go into `env`, because arguments are visible to all users of the machine"
                .to_owned());
        }
        let env = written.env.0.into_iter().map(|(name, value)| Ok((name, TemplateText::parse(&value.0)?)));
        let paths = parameters
            .names()
            .filter(|name| parameters.get(name).is_some_and(|one| one.kind == Type::Path))
            .map(str::to_owned);
        Ok(Self {
            argv,
            env: env.collect::<Result<_, String>>()?,
            stdin: written.stdin.as_deref().map(TemplateText::parse).transpose()?,
            folder: written.folder.unwrap_or_else(|| ".".to_owned()),
            network: written.network,
            ok_exit: written.ok_exit,
            paths: paths.collect(),
        })
    }

    /// All template texts.
    pub fn texts(&self) -> impl Iterator<Item = &TemplateText> {
        let words = self.argv.iter().flat_map(|words| &words.texts);
        words.chain(self.env.iter().map(|(_, text)| text)).chain(&self.stdin)
    }

    pub fn conditions(&self) -> impl Iterator<Item = &str> {
        self.argv.iter().filter_map(|words| words.when.as_deref())
    }

    /// The arguments of one call.
    fn argv(&self, values: &Values<'_>) -> Result<Vec<OsString>, ToolError> {
        let (mut argv, mut guarded) = (Vec::new(), false);
        for words in &self.argv {
            let off = words.when.as_ref().is_some_and(|name| !values.is_set(name));
            let absent =
                words.texts.iter().flat_map(TemplateText::parameters).any(|name| values.get(name).is_none());
            if off || absent {
                continue;
            }
            for text in &words.texts {
                guarded |= text.literal() == Some(END_OF_OPTIONS);
                for argument in expand_argument(text, values)? {
                    if !guarded {
                        refuse_option(text, &argument, values)?;
                    }
                    argv.push(OsString::from(argument));
                }
            }
        }
        Ok(argv)
    }

    pub async fn run(
        &self,
        mut values: Values<'_>,
        variables: &Variables,
        writes: bool,
        timeout: Duration,
        doors: &Capabilities,
    ) -> Result<String, ToolError> {
        let exec: Exec = doors.open()?;
        let fs: Fs<Read> = octo_grants::Grant::open(doors)?;
        for name in &self.paths {
            if let Some(path) = values.get(name).and_then(Value::as_str) {
                let path = workspace_path(&fs, name, path)?;
                values.set(name, Value::String(path));
            }
        }
        let mut env = BTreeMap::new();
        for (name, text) in &self.env {
            if let Some(value) = values.fill(text, variables)? {
                env.insert(name.clone(), value);
            }
        }
        let stdin = self.stdin.as_ref().map(|text| values.fill(text, variables)).transpose()?.flatten();
        let job = Job {
            program: Program::Argv(self.argv(&values)?),
            cwd: fs.place(&WorkPath::from(self.folder.as_str()))?,
            env,
            stdin: stdin.map(|text| text.into_bytes().into()),
            timeout,
            max_output_bytes: MAX_STREAM_BYTES,
            network: self.network,
            writes,
            readable: Vec::new(),
            writable: Vec::new(),
            on_output: None,
        };
        self.tool_output(exec.run(job).await?, timeout)
    }

    fn tool_output(&self, done: ExecResult, timeout: Duration) -> Result<String, ToolError> {
        let (out, err) = (captured_text(&done.stdout), captured_text(&done.stderr));
        let failed = |what: String| {
            let words = if err.trim().is_empty() { out.trim() } else { err.trim() };
            let words: String = words.chars().take(2_000).collect();
            if words.is_empty() { what } else { format!("{what} Output: {words}") }
        };
        match done.exit {
            Exit::Code(code) if self.ok_exit.contains(&code) => Ok(out),
            Exit::Code(code) => {
                Err(ToolError::new(Kind::Conflict, failed(format!("The program exited with code {code}.")))
                    .hint("Change the parameters according to the output."))
            }
            Exit::Signal(signal) => {
                Err(ToolError::unavailable(failed(format!("The program was killed by signal {signal}.")))
                    .hint("Ask for less at once."))
            }
            Exit::TimedOut => Err(ToolError::new(
                Kind::Timeout,
                failed(format!("The program timed out after {} s.", timeout.as_secs())),
            )
            .hint("Ask for less at once, or ask the operator to raise the tool's `timeout_seconds`.")),
        }
    }
}

fn arg_group(part: ArgPart) -> Result<ArgGroup, String> {
    let texts =
        |all: Vec<String>| all.iter().map(|text| TemplateText::parse(text)).collect::<Result<Vec<_>, _>>();
    Ok(match part {
        ArgPart::One(text) => ArgGroup { when: None, texts: texts(vec![text])? },
        ArgPart::Group(all) => ArgGroup { when: None, texts: texts(all)? },
        ArgPart::When { when, args } => ArgGroup { when: Some(when), texts: texts(args)? },
    })
}

/// One argument, or one per item if the text is a single list parameter.
fn expand_argument(text: &TemplateText, values: &Values<'_>) -> Result<Vec<String>, ToolError> {
    if let Some((name, Value::Array(items))) =
        text.single_parameter().and_then(|name| Some((name, values.get(name)?)))
    {
        return items.iter().map(|item| to_plain_text(name, item)).collect();
    }
    Ok(values.fill(text, &Variables::new())?.into_iter().collect())
}

/// Rejects a value that the program could parse as an option, unless the operator allows it.
fn refuse_option(text: &TemplateText, argument: &str, values: &Values<'_>) -> Result<(), ToolError> {
    let (Some(TemplatePart::Placeholder(Placeholder::Parameter(name))), true) =
        (text.0.first(), argument.starts_with('-'))
    else {
        return Ok(());
    };
    if values.parameter(name).is_some_and(|parameter| parameter.dash) {
        return Ok(());
    }
    Err(ToolError::invalid(format!("The parameter `{name}` may not start with `-`."))
        .hint("The program could parse it as an option; write a path as ./-name."))
}

/// The real path of a file in the workspace.
fn workspace_path(fs: &Fs<Read>, name: &str, path: &str) -> Result<String, ToolError> {
    if Path::new(path).components().any(|part| part == Component::ParentDir) {
        return Err(ToolError::invalid(format!("The parameter `{name}` contains `..`."))
            .hint("Give a path relative to the workspace."));
    }
    let place = fs.place(&WorkPath::from(path))?;
    let real = place.root().path.join(place.relative());
    real.into_os_string().into_string().map_err(|_| ToolError::invalid("The path is not UTF-8."))
}

/// Head and tail of the output, with a note of what was omitted.
fn captured_text(stream: &Captured) -> String {
    let head = String::from_utf8_lossy(&stream.head);
    if stream.tail.is_empty() {
        return head.into_owned();
    }
    let kept = (stream.head.len() + stream.tail.len()) as u64;
    let left_out = stream.total.saturating_sub(kept);
    format!("{head}\n[{left_out} bytes omitted]\n{}", String::from_utf8_lossy(&stream.tail))
}

#[cfg(test)]
mod tests {
    use super::*;
    use octo_model::Json;
    use serde_json::json;

    fn argv(yaml: &str, arguments: &Value) -> Result<Vec<String>, String> {
        #[derive(serde::Deserialize)]
        struct Both {
            parameters: crate::yaml_files::OrderedMap<tool_manifest::Parameter>,
            command: tool_manifest::Command,
        }
        let both: Both = serde_saphyr::from_str(yaml).unwrap();
        let parameters = Parameters::new(both.parameters)?;
        let command = Command::new(both.command, &parameters)?;
        let json = Json::from(arguments.clone());
        let values = parameters.values(Some(&json)).map_err(|error| error.text())?;
        let argv = command.argv(&values).map_err(|error| error.text())?;
        Ok(argv.into_iter().map(|word| word.into_string().unwrap()).collect())
    }

    const TOOL: &str = r#"
parameters:
  name: {description: x}
  free: {description: x, dash: true}
  many: {type: array, description: x}
  loud: {type: boolean, description: x}
  count: {type: integer, description: x, default: 5}
command:
  argv: [prog, -n, 7, "--count={{count}}", [--name, "{{name}}"], {when: loud, args: [-v, loud]}, "{{free}}", --, "{{many}}", "x{{name}}"]
"#;

    #[test]
    fn arguments_are_put_together_whole() {
        for (arguments, wanted) in [
            (json!({}), vec!["prog", "-n", "7", "--count=5", "--"]),
            (
                json!({"name": "a b; $(c)", "loud": true, "count": -2}),
                vec![
                    "prog",
                    "-n",
                    "7",
                    "--count=-2",
                    "--name",
                    "a b; $(c)",
                    "-v",
                    "loud",
                    "--",
                    "xa b; $(c)",
                ],
            ),
            (json!({"loud": false, "free": "-x"}), vec!["prog", "-n", "7", "--count=5", "-x", "--"]),
            (json!({"many": ["-a", "b c", ""]}), vec!["prog", "-n", "7", "--count=5", "--", "-a", "b c", ""]),
        ] {
            assert_eq!(argv(TOOL, &arguments).unwrap(), wanted, "{arguments}");
        }
    }

    #[test]
    fn what_looks_like_an_option_or_breaks_lines_is_refused() {
        for (arguments, why) in [
            (json!({"name": "-rf"}), "may not start with `-`"),
            (json!({"name": "--exec=x"}), "may not start with `-`"),
            (json!({"name": "a\nb"}), "control character"),
            (json!({"name": "a\u{1b}[2J"}), "control character"),
            (json!({"name": "a\u{0}b"}), "control character"),
            (json!({"many": ["a", "b\rc"]}), "control character"),
        ] {
            let error = argv(TOOL, &arguments).unwrap_err();
            assert!(error.contains(why), "{arguments}: {error}");
        }
    }

    #[test]
    fn commands_that_cannot_be_meant_are_refused_when_read() {
        for (command, why) in [
            (r#"argv: []"#, "must start with the program"),
            (r#"argv: ["{{name}}"]"#, "must start with the program"),
            (r#"argv: [{when: name, args: [x]}]"#, "must start with the program"),
            (r#"argv: [x, {when: nobody, args: [y]}]"#, "is not a parameter"),
            (r#"argv: [x, "{{env.TOKEN}}"]"#, "variables go into `env`"),
            (r#"argv: [x, "{{name"]"#, "without a matching"),
        ] {
            let yaml = format!("parameters: {{name: {{description: x}}}}\ncommand: {{{command}}}");
            let error = argv(&yaml, &json!({})).unwrap_err();
            assert!(error.contains(why), "{command}: {error}");
        }
    }
}
