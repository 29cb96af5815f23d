//! Owns the measures of the server: what a call costs beyond the search, what many clients get, and the first answer.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::Result;
use crate::bed::Place;
use crate::measure::{RUNS, WARMING, ensure};
use crate::meter::Sample;

/// So many clients ask at once.
const CLIENTS: usize = 64;
/// So often each of them asks.
const EACH: usize = 100;

/// A server process; it ends with this.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn command(place: &Place, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sidenote"));
    command.env_clear().env("SIDENOTE_EMBED_PROVIDER", "none").arg("--vault").arg(&place.root);
    command.arg("--index").arg(place.index()).arg("mcp").args(args).stdin(Stdio::piped());
    command
}

fn search(id: usize, query: &str) -> Value {
    let arguments = json!({ "query": query, "mode": "bm25" });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": "search_notes", "arguments": arguments } })
}

/// A client over standard input and output.
struct Pipe {
    _server: Server,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Pipe {
    fn open(place: &Place) -> Result<Self> {
        let mut child = command(place, &[]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let (Some(input), Some(output)) = (input, output) else { return Err("no pipes".into()) };
        let mut pipe = Self { _server: Server(child), input, output: BufReader::new(output) };
        let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "bench", "version": "1" } });
        pipe.ask(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }))?;
        writeln!(pipe.input, "{}", json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?;
        Ok(pipe)
    }

    fn ask(&mut self, message: &Value) -> Result<String> {
        writeln!(self.input, "{message}")?;
        loop {
            let mut line = String::new();
            ensure(self.output.read_line(&mut line)? > 0, "the server is gone")?;
            if line.contains("\"id\"") {
                return Ok(line);
            }
        }
    }
}

/// Searches by words over standard input and output.
pub(crate) fn stdio(place: &Place, sample: &mut Sample) -> Result<()> {
    let mut pipe = Pipe::open(place)?;
    for (at, query) in place.queries()?.iter().take(WARMING).chain(&place.queries()?).enumerate() {
        let message = search(at + 1, query);
        let mut warming = Sample::default();
        let sample = if at < WARMING { &mut warming } else { &mut *sample };
        let line = sample.time(|| pipe.ask(&message))?;
        ensure(line.contains("structuredContent"), &line)?;
    }
    Ok(())
}

/// Starts a server over HTTP and waits until it says where.
fn listen(place: &Place) -> Result<(Server, SocketAddr, BufReader<ChildStderr>)> {
    let mut child =
        command(place, &["--http", "127.0.0.1:0"]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
    let mut said = BufReader::new(child.stderr.take().ok_or("no standard error")?);
    let server = Server(child);
    loop {
        let mut line = String::new();
        ensure(said.read_line(&mut line)? > 0, "the server is gone")?;
        if let Some(rest) = line.split("http://").nth(1)
            && let Some(address) = rest.split('/').next()
        {
            return Ok((server, address.parse()?, said));
        }
    }
}

/// A client over one kept connection, without a session.
struct Wire {
    stream: BufReader<TcpStream>,
}

impl Wire {
    fn open(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    fn ask(&mut self, message: &Value) -> Result<String> {
        let body = message.to_string();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        self.stream.get_mut().write_all((head + &body).as_bytes())?;
        let mut length = None;
        let mut status = String::new();
        self.stream.read_line(&mut status)?;
        loop {
            let mut line = String::new();
            ensure(self.stream.read_line(&mut line)? > 0, "the connection ended")?;
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = Some(value.trim().parse::<usize>()?);
            }
            if line.trim().is_empty() {
                break;
            }
        }
        let mut body = vec![0; length.ok_or("the answer has no length")?];
        self.stream.read_exact(&mut body)?;
        ensure(status.contains(" 200 "), &status)?;
        Ok(String::from_utf8(body)?)
    }
}

/// Searches by words over HTTP.
pub(crate) fn http(place: &Place, sample: &mut Sample) -> Result<()> {
    let (_server, address, _said) = listen(place)?;
    let mut wire = Wire::open(address)?;
    for (at, query) in place.queries()?.iter().take(WARMING).chain(&place.queries()?).enumerate() {
        let message = search(at + 1, query);
        let mut warming = Sample::default();
        let sample = if at < WARMING { &mut warming } else { &mut *sample };
        let body = sample.time(|| wire.ask(&message))?;
        ensure(body.contains("structuredContent"), &body)?;
    }
    Ok(())
}

/// Sixty-four clients search at once; each time is that of all of them, a hundred searches each.
pub(crate) fn many(place: &Place, sample: &mut Sample) -> Result<()> {
    let (_server, address, _said) = listen(place)?;
    let queries = place.queries()?;
    Wire::open(address)?.ask(&search(1, "water"))?;
    for _ in 0..3 {
        sample.time(|| {
            std::thread::scope(|scope| {
                let asking = |client: usize| {
                    let queries = &queries;
                    move || -> std::result::Result<(), String> {
                        let mut wire = Wire::open(address).map_err(|error| error.to_string())?;
                        for at in 0..EACH {
                            let query =
                                queries.get((client * EACH + at) % queries.len()).ok_or("no query")?;
                            wire.ask(&search(at, query)).map_err(|error| error.to_string())?;
                        }
                        Ok(())
                    }
                };
                let clients: Vec<_> = (0..CLIENTS).map(|client| scope.spawn(asking(client))).collect();
                for client in clients {
                    client.join().map_err(|_| "a client panicked")??;
                }
                Ok(())
            })
        })?;
    }
    Ok(())
}

/// Starts a server and waits for the answer to its first search.
pub(crate) fn first(place: &Place, sample: &mut Sample) -> Result<()> {
    for query in place.queries()?.iter().take(RUNS) {
        let line = sample.time(|| Pipe::open(place)?.ask(&search(1, query)))?;
        ensure(line.contains("structuredContent"), &line)?;
    }
    Ok(())
}
