//! What our own agent costs: its start, its memory, and its time for each token of a model.
//!
//! The server is a thread of ours that writes into each token when it was sent. One reader hears the
//! raw stream, the other the agent's updates; they take turns, and what counts is the difference.

use super::{
    figures::{memory_mb, ms, percentile, resident_mb, us},
    way::Bench,
};
use anyhow::{Context as _, Result, bail};
use std::{
    io::{BufRead as _, BufReader, Read as _, Write},
    net::{TcpListener, TcpStream},
    process::{ChildStdout, Stdio},
    thread,
    time::{Duration, Instant},
};

const STARTS: usize = 15;
const ROUNDS: usize = 6;
const TOKENS: usize = 300;
/// A fast model: a thousand tokens a second.
const PAUSE: Duration = Duration::from_millis(1);
/// What stands before the time in a token.
const MARK: &[u8] = b"sent:";

pub(crate) fn run(bench: &Bench) -> Result<()> {
    let begin = Instant::now();
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A reader that leaves is the end of its stream and of nothing else.
            thread::spawn(move || serve(stream, begin));
        }
    });
    let base_url = format!("http://{address}/v1");
    let (mut starts, mut idle) = (Vec::new(), 0.0);
    for _ in 0..STARTS {
        let begin = Instant::now();
        let mut line = Bench::child(command(bench, &base_url).stderr(Stdio::null()))?;
        line.talk.initialize()?;
        starts.push(begin.elapsed());
        idle = resident_mb(line.pid().context("it has a process")?)?;
    }
    let mut agent = Agent::start(bench, &base_url)?;
    let (mut raw, mut heard) = (Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let (plain, through) = (listen(&base_url, address, begin)?, agent.listen(begin)?);
        // The first round opens connections and fills caches.
        if 0 < round {
            raw.extend(plain);
            heard.extend(through);
        }
    }
    let pid = agent.child.id();
    let (busy, own) = (resident_mb(pid)?, memory_mb(pid, "RssAnon:")?);
    agent.child.kill()?;
    agent.child.wait()?;
    let (plain, through) = (percentile(&mut raw, 50), percentile(&mut heard, 50));
    let tail = us(percentile(&mut heard, 99)) - us(percentile(&mut raw, 99));
    println!("{:<34} {:>9}", "OUR OWN AGENT", "");
    let start = ms(percentile(&mut starts, 50));
    println!("{:<34} {start:>9.1} ms  (target 20)", "exec to first initialize, p50");
    println!("{:<34} {idle:>9.1} MB  (target 15)", "resident, idle");
    println!("{:<34} {busy:>9.1} MB  ({own:.1} its own)", "resident, after some turns");
    let added = us(through) - us(plain);
    println!("{:<34} {added:>+9.1} µs  (target 100)", "added p50 per token");
    println!("{:<34} {tail:>+9.1} µs\n", "added p99 per token");
    Ok(())
}

fn command(bench: &Bench, base_url: &str) -> std::process::Command {
    let mut command = bench.command();
    command.arg("agent").env("OPENAI_BASE_URL", base_url).env("OPENAI_MODEL", "m");
    command
}

/// Answers every request with tokens that say when they were sent.
fn serve(stream: TcpStream, begin: Instant) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut writer = stream;
    loop {
        let (mut length, mut is_list) = (0, false);
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            is_list |= line.starts_with("GET ");
            let line = line.trim().to_ascii_lowercase();
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse()?;
            }
            if line.is_empty() {
                break;
            }
        }
        reader.read_exact(&mut vec![0; length])?;
        if is_list {
            writer.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")?;
            continue;
        }
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
        writer.write_all(head.as_bytes())?;
        for _ in 0..TOKENS {
            thread::sleep(PAUSE);
            let text = format!("sent:{} ", begin.elapsed().as_nanos());
            let delta =
                serde_json::json!({ "choices": [{ "index": 0, "delta": { "content": text } }] });
            chunk(&mut writer, &format!("data: {delta}\n\n"))?;
        }
        chunk(&mut writer, "data: [DONE]\n\n")?;
        writer.write_all(b"0\r\n\r\n")?;
    }
}

fn chunk(writer: &mut impl Write, text: &str) -> Result<()> {
    Ok(writer.write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes())?)
}

/// One raw stream.
fn listen(base_url: &str, address: std::net::SocketAddr, begin: Instant) -> Result<Vec<Duration>> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let request = format!(
        "POST {base_url}/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{{}}"
    );
    stream.write_all(request.as_bytes())?;
    let mut reader = BufReader::new(stream);
    let mut times = Vec::new();
    hear(&mut reader, begin, &mut times, b"[DONE]")?;
    Ok(times)
}

struct Agent {
    child: std::process::Child,
    writer: std::process::ChildStdin,
    reader: BufReader<ChildStdout>,
    session: String,
    next: usize,
}

impl Agent {
    fn start(bench: &Bench, base_url: &str) -> Result<Agent> {
        let mut command = command(bench, base_url);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let writer = child.stdin.take().context("piped")?;
        let reader = BufReader::new(child.stdout.take().context("piped")?);
        let mut agent = Agent { child, writer, reader, session: String::new(), next: 0 };
        let hello = serde_json::json!({ "protocolVersion": 1, "clientCapabilities": {} });
        agent.ask("initialize", &hello, Instant::now())?;
        let cwd = bench.dir.path().to_string_lossy();
        let new = serde_json::json!({ "cwd": cwd, "mcpServers": [] });
        let (answer, _) = agent.ask("session/new", &new, Instant::now())?;
        let answer: serde_json::Value = serde_json::from_slice(&answer)?;
        let id = answer.pointer("/result/sessionId").and_then(|it| it.as_str());
        id.context("a session")?.clone_into(&mut agent.session);
        Ok(agent)
    }

    /// One turn.
    fn listen(&mut self, begin: Instant) -> Result<Vec<Duration>> {
        let prompt = serde_json::json!([{ "type": "text", "text": "go" }]);
        let params = serde_json::json!({ "sessionId": self.session, "prompt": prompt });
        Ok(self.ask("session/prompt", &params, begin)?.1)
    }

    fn ask(
        &mut self,
        method: &str,
        params: &serde_json::Value,
        begin: Instant,
    ) -> Result<(Vec<u8>, Vec<Duration>)> {
        self.next += 1;
        let id = self.next;
        let frame =
            serde_json::json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        writeln!(self.writer, "{frame}")?;
        let mut times = Vec::new();
        let end = format!("\"id\":{id},\"result\"");
        let answer = hear(&mut self.reader, begin, &mut times, end.as_bytes())?;
        Ok((answer, times))
    }
}

/// Reads lines up to the one with `end` in it; notes how old each token was.
fn hear(
    reader: &mut impl std::io::BufRead,
    begin: Instant,
    times: &mut Vec<Duration>,
    end: &[u8],
) -> Result<Vec<u8>> {
    let mut line = Vec::new();
    loop {
        line.clear();
        if reader.read_until(b'\n', &mut line)? == 0 {
            bail!("the other side closed");
        }
        let now = begin.elapsed();
        if let Some(at) = memchr::memmem::find(&line, MARK) {
            let digits = line[at + MARK.len()..].iter().take_while(|it| it.is_ascii_digit());
            let text: String = digits.map(|it| char::from(*it)).collect();
            times.push(now.saturating_sub(Duration::from_nanos(text.parse()?)));
        }
        if memchr::memmem::find(&line, end).is_some() {
            return Ok(line);
        }
    }
}
