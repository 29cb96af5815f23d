//! A client of the server over standard input and output, line by line.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::support::TestVault;

pub(crate) struct Client {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    next_id: u64,
    /// Notifications that came while an answer was waited for.
    pub(crate) heard: Vec<Value>,
}

impl Client {
    /// Starts `sidenote mcp` on a vault with further arguments, and says hello.
    pub(crate) fn start(vault: &TestVault, args: &[&str]) -> Self {
        Self::of(vault.command(&["mcp"]).args(args))
    }

    /// Starts a server that is described whole.
    pub(crate) fn of(command: &mut Command) -> Self {
        Self::logged(command, Stdio::null())
    }

    /// Starts a server that is described whole, and sends everything that it logs to `log`.
    pub(crate) fn logged(command: &mut Command, log: impl Into<Stdio>) -> Self {
        let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
        Self::saying(command.env("SIDENOTE_LOG", "trace"), log, hello)
    }

    /// Starts a server that is described whole, and says hello with these parameters.
    pub(crate) fn greeting(command: &mut Command, hello: Value) -> Self {
        Self::saying(command, Stdio::null(), hello)
    }

    fn saying(command: &mut Command, log: impl Into<Stdio>, params: Value) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut client = Self { child, input, output, next_id: 0, heard: Vec::new() };
        let hello = client.request("initialize", params);
        assert_eq!(hello["serverInfo"]["name"], "sidenote");
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        client
    }

    pub(crate) fn send(&mut self, message: &Value) {
        writeln!(self.input.as_mut().unwrap(), "{message}").unwrap();
    }

    /// Sends a line as it is.
    pub(crate) fn send_line(&mut self, line: &str) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    /// Reads the next message; standard output carries nothing else.
    pub(crate) fn receive(&mut self) -> Value {
        let mut line = String::new();
        assert!(self.output.read_line(&mut line).unwrap() > 0, "the server closed its output");
        serde_json::from_str(&line).expect("standard output carries JSON-RPC alone")
    }

    /// Asks for something and gives the whole answer, be it an error.
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Value {
        self.next_id += 1;
        let id = self.next_id;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        loop {
            let message = self.receive();
            if message["id"] == id {
                return message;
            }
            self.heard.push(message);
        }
    }

    /// Asks for something that must succeed, and gives the result.
    pub(crate) fn request(&mut self, method: &str, params: Value) -> Value {
        let message = self.ask(method, params);
        assert!(message.get("error").is_none(), "{message}");
        message["result"].clone()
    }

    /// Calls a tool and gives its result, be it an error of the tool.
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.request("tools/call", json!({ "name": tool, "arguments": arguments }))
    }

    /// Calls a tool that must succeed, and gives its text.
    pub(crate) fn text(&mut self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments);
        assert_ne!(result["isError"], true, "{tool}: {result}");
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// Calls a tool that must succeed, and gives its text, which is JSON.
    pub(crate) fn json(&mut self, tool: &str, arguments: Value) -> Value {
        serde_json::from_str(&self.text(tool, arguments)).unwrap()
    }

    /// Calls a tool that must fail, and gives what it says.
    pub(crate) fn refusal(&mut self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], true, "{tool}: {result}");
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// Waits until the server, which has our own tools, has indexed what other processes wrote. On a busy machine a search
    /// answers from the stale index, and says so.
    pub(crate) fn catch_up(&mut self) {
        let search = json!({ "query": "x", "mode": "bm25" });
        while self.call("search_notes", search.clone())["structuredContent"]["stale"] != false {}
    }

    /// Gives the process, for signals.
    #[cfg(unix)]
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Closes the connection; the server ends in order.
    pub(crate) fn finish(mut self) {
        drop(self.input.take());
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // A failed test leaves no server running.
        drop(self.input.take());
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
