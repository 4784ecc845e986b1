//! The connection to the client: one JSON-RPC message per line, each way. Every line except a notification gets an
//! answer, even an invalid one, because a client waits for it as long as it runs.

use std::io;
use std::sync::Arc;

use rmcp::model::ClientRequest;
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::Mutex;
use tokio::task::JoinSet;

/// A longer line is discarded while it is read, so its `id` is unknown.
const MESSAGE_BYTES: usize = 4 << 20;

const METHODS: [&str; 4] = ["initialize", "ping", "tools/list", "tools/call"];

/// JSON-RPC 2.0, section 5.1.
const PARSE_ERROR: i32 = -32700;
const INVALID_REQUEST: i32 = -32600;
const INVALID_PARAMS: i32 = -32602;

/// Dropping a `receive` future loses no part of a line.
pub(super) struct Connection<R, W> {
    input: BufReader<R>,
    line: Vec<u8>,
    is_too_long: bool,
    output: Arc<Mutex<W>>,
    /// Error answers being written in the background.
    refusals: JoinSet<io::Result<()>>,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin + Send + 'static> Connection<R, W> {
    pub(super) fn new(input: R, output: W) -> Self {
        let output = Arc::new(Mutex::new(output));
        let input = BufReader::new(input);
        Self { input, line: Vec::new(), is_too_long: false, output, refusals: JoinSet::new() }
    }

    /// Reads to the end of a line or of the input. Returns false if nothing was left.
    async fn read_line(&mut self) -> io::Result<bool> {
        loop {
            let available = self.input.fill_buf().await?;
            let newline = available.iter().position(|&byte| byte == b'\n');
            let length = newline.map_or(available.len(), |at| at + 1);
            if self.line.len() + length > MESSAGE_BYTES {
                self.is_too_long = true;
                self.line.clear();
            } else if !self.is_too_long {
                self.line.extend_from_slice(&available[..length]);
            }
            self.input.consume(length);
            if length == 0 {
                return Ok(self.is_too_long || !self.line.is_empty());
            } else if newline.is_some() {
                return Ok(true);
            }
        }
    }

    fn take_message(&mut self) -> Result<Option<RxJsonRpcMessage<RoleServer>>, Value> {
        let line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.is_too_long) {
            return Err(refusal(&Value::Null, INVALID_REQUEST, &format!("longer than {MESSAGE_BYTES} bytes")));
        }
        message(&line)
    }

    fn refuse(&mut self, answer: String) {
        let output = Arc::clone(&self.output);
        while self.refusals.try_join_next().is_some() {}
        self.refusals.spawn(async move { write_line(&output, answer).await });
    }
}

impl<R, W> Transport<RoleServer> for Connection<R, W>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let output = Arc::clone(&self.output);
        async move { write_line(&output, serde_json::to_string(&message)?).await }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        while let Ok(true) = self.read_line().await {
            match self.take_message() {
                Ok(Some(message)) => return Some(message),
                Ok(None) => {}
                Err(refusal) => self.refuse(refusal.to_string()),
            }
        }
        while self.refusals.join_next().await.is_some() {}
        None
    }

    async fn close(&mut self) -> io::Result<()> {
        self.output.lock().await.shutdown().await
    }
}

async fn write_line<W: AsyncWrite + Unpin>(output: &Mutex<W>, mut line: String) -> io::Result<()> {
    line.push('\n');
    let mut output = output.lock().await;
    output.write_all(line.as_bytes()).await?;
    output.flush().await
}

/// Parses a line. Returns `None` if it needs no answer, such as an unknown notification.
fn message(line: &[u8]) -> Result<Option<RxJsonRpcMessage<RoleServer>>, Value> {
    let line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
    if line.trim_ascii().is_empty() {
        return Ok(None);
    }
    let value: Value =
        serde_json::from_slice(line).map_err(|error| refusal(&Value::Null, PARSE_ERROR, &error.to_string()))?;
    let invalid = |wrong: &str| refusal(&value["id"], INVALID_REQUEST, wrong);
    if !value.is_object() {
        return Err(invalid("a message is an object"));
    }
    let is_response = value.get("result").is_some() || value.get("error").is_some();
    let method = value["method"].as_str();
    if value["jsonrpc"] != "2.0" {
        return Err(invalid("`jsonrpc` is not \"2.0\""));
    } else if method.is_none() && !is_response {
        return Err(invalid("there is no `method`"));
    }
    let unread = refusal(&value["id"], INVALID_PARAMS, "`params` are not what the method takes");
    let wants_answer = method.is_some() && value.get("id").is_some();
    if wants_answer && value.get("params").is_some_and(|params| !params.is_object()) {
        return Err(unread);
    }
    match serde_json::from_slice(line) {
        Ok(RxJsonRpcMessage::<RoleServer>::Request(request)) => match &request.request {
            // rmcp reports a known method with unreadable parameters as a custom request.
            ClientRequest::CustomRequest(custom) if METHODS.contains(&custom.method.as_str()) => Err(unread),
            _ => Ok(Some(RxJsonRpcMessage::<RoleServer>::Request(request))),
        },
        Ok(message) => Ok(Some(message)),
        Err(_) if wants_answer => Err(invalid("`id` is neither text nor a whole number, or `params` are none")),
        Err(_) => Ok(None),
    }
}

/// Builds the error answer to an invalid line. An invalid id becomes null.
fn refusal(id: &Value, code: i32, message: &str) -> Value {
    let id = if id.is_string() || id.is_number() { id } else { &Value::Null };
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}
