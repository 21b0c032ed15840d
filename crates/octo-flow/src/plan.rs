//! A workflow that can be run: expressions read, every step with its place in the text.

use crate::expr::{Expr, Template, whole};
use crate::problem::Problem;
use crate::shape;
use crate::source::Source;
use crate::written::{self, OnError, Param, Repeat, Retry, Word};
use serde_json::Value;
use std::collections::HashMap;

/// How deeply steps may lie in steps.
const DEEPEST: usize = 8;

pub struct Plan {
    pub name: String,
    pub params: Vec<(String, Param)>,
    pub steps: Vec<Step>,
    pub outputs: Vec<(String, Template)>,
    /// Of every step, in how many loops it lies, its own not counted.
    pub loops: HashMap<String, usize>,
    pub source: Source,
}

pub struct Step {
    pub id: String,
    /// JSON pointer of the step in the text.
    pub pointer: String,
    pub act: Act,
    pub condition: Option<Expr>,
    pub each: Option<Each>,
    pub retry: Option<Retry>,
    pub timeout_seconds: Option<f64>,
    pub on_error: Caught,
    pub repeat: Repeat,
}

pub enum Act {
    Tool { name: String, with: Vec<(String, Template)> },
    Llm { prompt: Template, system: Template, schema: Option<Value>, max_tokens: u64 },
    Group(Vec<Step>),
    Parallel(Vec<Vec<Step>>),
    Fail(Template),
}

pub struct Each {
    pub items: Items,
    pub name: String,
    pub concurrency: usize,
}

pub enum Items {
    Expr(Expr),
    List(Template),
}

/// What a failure means.
pub enum Caught {
    Fail,
    Continue,
    Steps(Vec<Step>),
}

impl Act {
    /// Whether it is one thing that is done, and not steps that are.
    pub const fn is_call(&self) -> bool {
        matches!(self, Self::Tool { .. } | Self::Llm { .. })
    }

    /// The steps in it, branch after branch.
    pub fn inner(&self) -> Vec<&[Step]> {
        match self {
            Self::Group(steps) => vec![steps],
            Self::Parallel(branches) => branches.iter().map(Vec::as_slice).collect(),
            _ => Vec::new(),
        }
    }
}

impl Plan {
    /// Reads a text. Every problem that can be seen without tools is told at once.
    pub fn read(text: &str) -> Result<Self, Vec<Problem>> {
        let source = Source::read(text).map_err(|problem| vec![problem])?;
        let problems = shape::check(&source);
        if !problems.is_empty() {
            return Err(problems);
        }
        let written: written::Workflow = serde_json::from_value(source.value.clone())
            .map_err(|error| vec![Problem::at_root(error.to_string())])?;
        let mut reader = Reader { source: &source, problems: Vec::new(), loops: HashMap::new() };
        let params = reader.params(&written.params);
        let steps = reader.steps(written.steps, "/steps", 0, 0);
        let outputs = written.outputs.iter().map(|(name, value)| {
            let pointer = format!("/outputs/{}", crate::source::escaped(name));
            (name.clone(), reader.template(value, &pointer))
        });
        let outputs = outputs.collect();
        let Reader { mut problems, loops, .. } = reader;
        if problems.is_empty() {
            return Ok(Self { name: written.name, params, steps, outputs, loops, source });
        }
        problems.sort_by_key(|problem| problem.mark);
        Err(problems)
    }

    pub fn step(&self, id: &str) -> Option<&Step> {
        find(&self.steps, id)
    }

    /// Whether a key of the trace names one call, and not what is made of several.
    pub fn is_call(&self, key: &str) -> bool {
        let mut parts = key.split('[');
        let step = parts.next().and_then(|id| self.step(id));
        let loops = parts.count();
        step.is_some_and(|step| {
            let own = usize::from(step.each.is_some());
            step.act.inner().is_empty()
                && self.loops.get(&step.id).is_some_and(|around| around + own == loops)
        })
    }

    /// How many calls there are, each loop counted once.
    pub fn calls(&self) -> usize {
        calls(&self.steps)
    }

    pub fn params_schema(&self) -> Value {
        let properties = self.params.iter().map(|(name, param)| (name.clone(), param.schema()));
        let required: Vec<&str> = self
            .params
            .iter()
            .filter(|(_, param)| param.required && param.default.is_none())
            .map(|(name, _)| name.as_str())
            .collect();
        serde_json::json!({
            "type": "object",
            "properties": properties.collect::<serde_json::Map<_, _>>(),
            "required": required,
            "additionalProperties": false,
        })
    }
}

impl Param {
    pub fn schema(&self) -> Value {
        let mut schema = serde_json::json!({"type": self.kind.as_str()});
        if let Value::Object(members) = &mut schema {
            if !self.description.is_empty() {
                members.insert("description".to_owned(), self.description.as_str().into());
            }
            if !self.choices.is_empty() {
                members.insert("enum".to_owned(), self.choices.clone().into());
            }
        }
        schema
    }
}

fn find<'a>(steps: &'a [Step], id: &str) -> Option<&'a Step> {
    steps.iter().find_map(|step| {
        if step.id == id {
            return Some(step);
        }
        let mut inner = step.act.inner();
        if let Caught::Steps(handler) = &step.on_error {
            inner.push(handler);
        }
        inner.into_iter().find_map(|steps| find(steps, id))
    })
}

fn calls(steps: &[Step]) -> usize {
    steps
        .iter()
        .map(|step| usize::from(step.act.is_call()) + step.act.inner().into_iter().map(calls).sum::<usize>())
        .sum()
}

struct Reader<'a> {
    source: &'a Source,
    problems: Vec<Problem>,
    loops: HashMap<String, usize>,
}

impl Reader<'_> {
    fn wrong(&mut self, pointer: &str, message: impl Into<String>, hint: Option<&str>) {
        self.problems.push(Problem {
            mark: self.source.mark(pointer),
            pointer: pointer.to_owned(),
            message: message.into(),
            hint: hint.map(str::to_owned),
        });
    }

    fn template(&mut self, value: &Value, pointer: &str) -> Template {
        let mut wrong = Vec::new();
        let template = Template::read(value, pointer, &mut |at, why| wrong.push((at.to_owned(), why)));
        for (at, why) in wrong {
            self.unreadable(&at, &why);
        }
        template
    }

    fn text(&mut self, text: &str, pointer: &str) -> Template {
        self.template(&Value::String(text.to_owned()), pointer)
    }

    fn expr(&mut self, text: &str, pointer: &str) -> Expr {
        whole(text).unwrap_or_else(|why| {
            self.unreadable(pointer, &why);
            Expr::Literal(Value::Null)
        })
    }

    fn unreadable(&mut self, pointer: &str, why: &str) {
        let hint = "Braces that are meant as such are written \\{{.";
        self.wrong(pointer, format!("The expression cannot be read: {why}."), Some(hint));
    }

    fn params(&mut self, written: &serde_json::Map<String, Value>) -> Vec<(String, Param)> {
        let mut params = Vec::new();
        for (name, value) in written {
            let pointer = format!("/params/{name}");
            let param: Param = match serde_json::from_value(value.clone()) {
                Ok(param) => param,
                Err(error) => {
                    self.wrong(&pointer, error.to_string(), None);
                    continue;
                }
            };
            let schema = param.schema();
            if let Some(default) = &param.default
                && !jsonschema::is_valid(&schema, default)
            {
                let at = format!("{pointer}/default");
                self.wrong(&at, format!("The default {default} is not what the parameter takes."), None);
            }
            for choice in param.choices.iter().filter(|choice| !jsonschema::is_valid(&schema, choice)) {
                self.wrong(
                    &format!("{pointer}/enum"),
                    format!("{choice} is no {}.", param.kind.as_str()),
                    None,
                );
            }
            params.push((name.clone(), param));
        }
        params
    }

    fn steps(&mut self, written: Vec<written::Step>, pointer: &str, depth: usize, loops: usize) -> Vec<Step> {
        if depth > DEEPEST {
            self.wrong(pointer, format!("Steps lie in steps more than {DEEPEST} times."), None);
            return Vec::new();
        }
        let read = |(at, step)| self.step(step, &format!("{pointer}/{at}"), depth, loops);
        written.into_iter().enumerate().map(read).collect()
    }

    fn step(&mut self, written: written::Step, pointer: &str, depth: usize, loops: usize) -> Step {
        let at = |name: &str| format!("{pointer}/{name}");
        if self.loops.insert(written.id.clone(), loops).is_some() {
            self.wrong(&at("id"), format!("Another step is called `{}` already.", written.id), None);
        }
        let condition = written.condition.map(|condition| match condition {
            Value::String(text) => self.expr(&text, &at("if")),
            other => Expr::Literal(other),
        });
        let each = written.for_each.map(|items| Each {
            items: match &items {
                Value::String(text) => Items::Expr(self.expr(text, &at("for_each"))),
                list => Items::List(self.template(list, &at("for_each"))),
            },
            name: written.name.clone(),
            concurrency: written.concurrency,
        });
        if each.is_some() && matches!(written.name.as_str(), "params" | "steps" | "index") {
            self.wrong(&at("as"), format!("`{}` has a meaning already.", written.name), None);
        }
        let inside = loops + usize::from(each.is_some());
        let act = if let Some(name) = written.tool {
            let with = written.with.iter().map(|(name, value)| {
                let pointer = format!("{pointer}/with/{}", crate::source::escaped(name));
                (name.clone(), self.template(value, &pointer))
            });
            Act::Tool { name, with: with.collect() }
        } else if let Some(llm) = written.llm {
            Act::Llm {
                prompt: self.text(&llm.prompt, &at("llm/prompt")),
                system: self.text(&llm.system, &at("llm/system")),
                schema: llm.schema,
                max_tokens: llm.max_tokens,
            }
        } else if let Some(steps) = written.steps {
            Act::Group(self.steps(steps, &at("steps"), depth + 1, inside))
        } else if let Some(branches) = written.parallel {
            let read =
                |(at, steps)| self.steps(steps, &format!("{pointer}/parallel/{at}"), depth + 1, inside);
            Act::Parallel(branches.into_iter().enumerate().map(read).collect())
        } else {
            Act::Fail(self.text(&written.fail.unwrap_or_default(), &at("fail")))
        };
        if !act.is_call() {
            self.only_of_calls(&written.retry, written.timeout_seconds, written.repeat, pointer);
        }
        let on_error = match written.on_error {
            OnError::Word(Word::Continue) => Caught::Continue,
            OnError::Steps { steps } => {
                Caught::Steps(self.steps(steps, &at("on_error/steps"), depth + 1, inside))
            }
            OnError::Word(Word::Fail) | OnError::Nothing => Caught::Fail,
        };
        Step {
            id: written.id,
            pointer: pointer.to_owned(),
            act,
            condition,
            each,
            retry: written.retry,
            timeout_seconds: written.timeout_seconds,
            on_error,
            repeat: written.repeat,
        }
    }

    fn only_of_calls(&mut self, retry: &Option<Retry>, timeout: Option<f64>, repeat: Repeat, pointer: &str) {
        for (name, given) in [
            ("retry", retry.is_some()),
            ("timeout_seconds", timeout.is_some()),
            ("repeat", repeat == Repeat::Allowed),
        ] {
            if given {
                let hint = "Write it at the steps inside.";
                self.wrong(
                    &format!("{pointer}/{name}"),
                    format!("`{name}` belongs to a step with `tool` or `llm`."),
                    Some(hint),
                );
            }
        }
    }
}
