//! MCP client that is configured only by its own settings file.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

pub struct Agent {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    next: u64,
}

impl Agent {
    /// Starts the server in the file, with the environment and working directory of a client.
    pub fn start(settings: &str, prepare: impl Fn(&str) -> Command) -> Self {
        let settings: Value = serde_json::from_str(settings).unwrap();
        let entry = settings.pointer("/mcpServers/octoprox").unwrap();
        let mut command = prepare(entry.get("command").unwrap().as_str().unwrap());
        let args = entry.get("args").and_then(Value::as_array).unwrap();
        command.args(args.iter().map(|word| word.as_str().unwrap()));
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self { child, input, output: BufReader::new(output), next: 1 }
    }

    /// Sends a request and returns the line of the reply that is recorded.
    pub fn request_line(&mut self, request: &str) -> String {
        let (method, params) = request.split_once(' ').unwrap();
        let params: Value = serde_json::from_str(params).unwrap();
        match method {
            "initialize" => {
                let hello = self.request(method, &params);
                self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
                hello.pointer("/serverInfo/name").unwrap().to_string()
            }
            "tools/list" => self.tool_names(),
            _ => {
                let result = self.request(method, &params);
                result.get("structuredContent").unwrap_or(&result).to_string()
            }
        }
    }

    /// Tools of the imported servers and one of the hub. A server that starts for the first time adds its tools
    /// later, with a list change notification.
    fn tool_names(&mut self) -> String {
        loop {
            let listed = self.request("tools/list", &json!({}));
            let tools = listed.get("tools").and_then(Value::as_array).unwrap().iter();
            let names = tools.map(|tool| tool.get("name").unwrap().as_str().unwrap().to_owned());
            let told: Vec<String> =
                names.filter(|name| name.contains("__") || name == "tools_find").collect();
            if told.len() > 1 {
                return told.join(" ");
            }
            while self.read_message().get("method") != Some(&json!("notifications/tools/list_changed")) {}
        }
    }

    fn request(&mut self, method: &str, params: &Value) -> Value {
        let id = json!(self.next);
        self.next += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let message = self.read_message();
            if message.get("id") == Some(&id) {
                return message.get("result").unwrap_or_else(|| panic!("{message}")).clone();
            }
        }
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.input, "{message}").unwrap();
    }

    fn read_message(&mut self) -> Value {
        let mut line = String::new();
        assert!(self.output.read_line(&mut line).unwrap() > 0, "octoprox has ended");
        serde_json::from_str(&line).unwrap()
    }

    /// Closes standard input and waits for the process to exit.
    pub fn shutdown(self) {
        let Self { mut child, input, .. } = self;
        drop(input);
        child.wait().unwrap();
    }
}
