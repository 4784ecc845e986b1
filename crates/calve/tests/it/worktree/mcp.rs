//! `calve mcp`: by the client of the protocol's SDK, and by hand where that would not send such a thing.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use calve_testkit::{SplitMix64, rounds};
use rmcp::ServiceExt as _;
use rmcp::model::{CallToolRequestParams, ClientCapabilities, ClientConfig, Implementation};
use rmcp::service::{RoleClient, RunningService};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::repo::{Repo, git_at as git, with_environment};
use super::services::{POSTGRES, Shop};
use crate::process::send;
use crate::program::calve;
use crate::spot::{eventually, eventually_nothing_left};

const TOOLS: [&str; 7] = [
    "list_worktrees",
    "create_worktree",
    "worktree_status",
    "remove_worktree",
    "database_url",
    "reset_database",
    "disk_usage",
];

fn server(home: &Path, repositories: &[&Path]) -> std::process::Command {
    let mut command = with_environment(calve(["mcp"])).within("/").env("CALVE_HOME", home);
    for repository in repositories {
        command = command.arg("--repository").arg(repository);
    }
    command.command()
}

/// A session of the SDK's client.
pub(super) struct Session {
    runtime: tokio::runtime::Runtime,
    client: RunningService<RoleClient, ClientConfig>,
    _server: tokio::process::Child,
}

impl Session {
    pub(super) fn with(home: &Path, repositories: &[&Path]) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (client, server) = runtime.block_on(async {
            let mut command = tokio::process::Command::from(server(home, repositories));
            let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
            let mut server = piped.spawn().unwrap();
            let transport = (server.stdout.take().unwrap(), server.stdin.take().unwrap());
            let who = Implementation::new("codex-mcp-client", "1.0");
            let client = ClientConfig::new(ClientCapabilities::default(), who).serve(transport).await.unwrap();
            (client, server)
        });
        Self { runtime, client, _server: server }
    }

    /// The result of a tool, or what it says is wrong. Small in any case.
    pub(super) fn call(&self, tool: &'static str, arguments: Value) -> Result<Value, Value> {
        let Value::Object(arguments) = arguments else { panic!("{arguments}") };
        let request = CallToolRequestParams::new(tool).with_arguments(arguments);
        let result = self.runtime.block_on(self.client.call_tool(request)).unwrap();
        let whole = serde_json::to_value(&result).unwrap();
        let text = whole["content"][0]["text"].as_str().unwrap();
        assert!(text.len() <= 4000, "{tool}: {} bytes", text.len());
        let value: Value = serde_json::from_str(text).unwrap();
        if whole["isError"] == true { Err(value) } else { Ok(value) }
    }
}

fn home(repo: &Repo) -> std::path::PathBuf {
    repo.spot.join("home")
}

#[test]
fn seven_tools_are_listed_and_none_runs_a_command() {
    let repo = Repo::anywhere();
    let session = Session::with(&home(&repo), &[&repo.path]);
    let tools = session.runtime.block_on(session.client.list_all_tools()).unwrap();
    assert_eq!(tools.iter().map(|tool| &*tool.name).collect::<Vec<_>>(), TOOLS);
    let text = serde_json::to_string(&tools).unwrap();
    assert!(text.len() < 8000 && !text.contains("\"command\""), "{}: {text}", text.len());
    for tool in &tools {
        assert_eq!(tool.input_schema["additionalProperties"], false, "{}", tool.name);
        let is_destructive = ["remove_worktree", "reset_database"].contains(&&*tool.name);
        assert_eq!(tool.annotations.as_ref().unwrap().destructive_hint, Some(is_destructive), "{}", tool.name);
    }
}

#[test]
fn a_server_goes_on_when_the_worktree_it_was_started_in_was_removed() {
    let repo = Repo::anywhere();
    git(&repo.path, ["worktree", "add", "-q", "../linked"]);
    let linked = repo.spot.join("linked");
    let session = Session::with(&home(&repo), &[&linked]);
    let token = session.call("remove_worktree", json!({"worktree": "linked"})).unwrap()["token"].clone();
    session.call("remove_worktree", json!({"worktree": "linked", "token": token})).unwrap();
    assert!(!linked.exists());
    assert_eq!(session.call("list_worktrees", json!({})).unwrap()["worktrees"].as_array().unwrap().len(), 1);
    session.call("create_worktree", json!({"branch": "next"})).unwrap();
}

#[test]
fn a_worktree_is_made_shown_and_removed_in_two_steps() {
    let repo = Repo::anywhere();
    let session = Session::with(&home(&repo), &[&repo.path]);
    let made = session.call("create_worktree", json!({"branch": "topic"})).unwrap();
    let path = made["path"].as_str().unwrap().to_owned();
    assert!(Path::new(&path).join("node_modules/dep/index.js").exists());
    assert_eq!((&made["maker"], &made["branch"]), (&json!("codex"), &json!("topic")), "{made}");
    assert_eq!(session.call("create_worktree", json!({"branch": "topic"})).unwrap()["path"], path);
    // A branch of another agent is not handed over.
    let taken = session.call("create_worktree", json!({"branch": "main"})).unwrap_err();
    assert!(taken["error"].as_str().unwrap().contains("checked out"), "{taken}");
    git(&path, ["commit", "--allow-empty", "-q", "-m", "more"]);
    let after = session.call("create_worktree", json!({"branch": "next", "from": "topic"})).unwrap();
    assert_eq!(after["head"].as_str(), Some(git(&path, ["rev-parse", "HEAD"]).trim_end()));
    assert_eq!(session.call("list_worktrees", json!({})).unwrap()["worktrees"].as_array().unwrap().len(), 3);
    assert_eq!(session.call("list_worktrees", json!({"skip": 2})).unwrap()["worktrees"][0]["branch"], "topic");
    let usage = session.call("disk_usage", json!({"worktree": "topic"})).unwrap();
    assert!(usage["apparent"].as_u64().unwrap() > 0, "{usage}");

    // What would lose work is not even planned.
    let remove = |rest: Value| {
        let mut arguments = json!({"worktree": "next"});
        rest.as_object().unwrap().iter().for_each(|(name, value)| arguments[name] = value.clone());
        session.call("remove_worktree", arguments)
    };
    let next = Path::new(after["path"].as_str().unwrap());
    fs_err::write(next.join("work"), "").unwrap();
    assert_eq!(session.call("worktree_status", json!({"worktree": "next"})).unwrap()["dirty"], true);
    let refused = remove(json!({})).unwrap_err();
    assert!(refused["error"].as_str().unwrap().contains("uncommitted changes"), "{refused}");
    // Nothing tells an agent how to lose it.
    assert_eq!(refused["hint"], "commit or stash them", "{refused}");
    fs_err::remove_file(next.join("work")).unwrap();
    let token = remove(json!({})).unwrap()["token"].as_str().unwrap().to_owned();
    assert!(next.exists());
    assert!(remove(json!({"token": "0123456789abcdef0123456789abcdef"})).is_err());
    // A commit after the plan: it is another worktree than the one that was shown.
    git(next, ["commit", "--allow-empty", "-q", "-m", "more"]);
    assert!(remove(json!({"token": token})).is_err());
    assert!(next.exists());
    let token = remove(json!({})).unwrap()["token"].as_str().unwrap().to_owned();
    // Work after the plan, which the program itself refuses to lose.
    fs_err::write(next.join("work"), "").unwrap();
    assert!(remove(json!({"token": token})).is_err());
    fs_err::remove_file(next.join("work")).unwrap();
    assert!(remove(json!({"token": token})).is_err(), "a token is good once");
    // What git ignores and only it has is named first, and moved aside then.
    fs_err::write(next.join(".env"), "edited\n").unwrap();
    let planned = remove(json!({})).unwrap();
    assert_eq!(
        (&planned["moves_aside"][0]["kind"], &planned["moves_aside"][0]["paths"]),
        (&json!("ignored"), &json!([".env"]))
    );
    let removed = remove(json!({"token": planned["token"]})).unwrap();
    assert_eq!((&removed["branch"], &removed["kept"]["files"]), (&json!("next"), &json!([".env"])));
    let kept = Path::new(removed["kept"]["directory"].as_str().unwrap()).join(".env");
    assert_eq!(fs_err::read_to_string(kept).unwrap(), "edited\n");
    assert!(!next.exists());
    assert!(repo.git(["branch", "--list", "next"]).contains("next"));
}

#[test]
fn the_url_of_a_database_and_its_reset() {
    let Some(shop) = Shop::new(POSTGRES) else { return };
    let repo = &shop.repo;
    let session = Session::with(&home(repo), &[&repo.path]);
    let made = session.call("create_worktree", json!({"branch": "topic"})).unwrap();
    let path = made["path"].as_str().unwrap().to_owned();
    assert_eq!(made["services"]["db"], "stopped", "{made}");
    let found = session.call("database_url", json!({"worktree": "topic"})).unwrap();
    let db = &found["services"][0];
    assert_eq!((&db["state"], &db["variable"]), (&json!("running"), &json!("DATABASE_URL")));
    shop.sql(&path, "DELETE FROM t; INSERT INTO t VALUES (9)");
    assert_eq!(shop.rows(&path), [9]);
    let usage = session.call("disk_usage", json!({"worktree": "topic"})).unwrap()["apparent"].as_u64().unwrap();
    let data = PathBuf::from(shop.status(&path)[0]["data_directory"].as_str().unwrap());
    let alone = |path: &Path| {
        let usage = shop.within("/", &["du", "--json"]).arg(path).succeeds().json();
        usage["total"]["apparent"].as_u64().unwrap()
    };
    let (files, data) = (alone(Path::new(&path)), alone(&data));
    assert!(data > 1 << 20 && usage >= files + data / 2, "{usage} for {files} + {data}");
    // The template is that which the configuration names now, and no other is taken in its place.
    shop.template("other", "CREATE TABLE t (a int)");
    let config = Path::new(&path).join(".calve.toml");
    let before = fs_err::read_to_string(&config).unwrap();
    fs_err::write(&config, before.replace("shop", "other")).unwrap();
    let plan = session.call("reset_database", json!({"worktree": "topic"})).unwrap();
    assert_eq!(plan["template"], "other", "{plan}");
    fs_err::write(&config, before).unwrap();
    assert!(session.call("reset_database", json!({"worktree": "topic", "token": plan["token"]})).is_err());
    assert_eq!(shop.rows(&path), [9]);
    let plan = session.call("reset_database", json!({"worktree": "topic"})).unwrap();
    assert_eq!(plan["template"], "shop", "{plan}");
    let confirmed = json!({"worktree": "topic", "token": plan["token"]});
    let reset = session.call("reset_database", confirmed.clone()).unwrap();
    assert_eq!((&reset["reset"]["state"], &reset["reset"]["url"]), (&json!("running"), &db["url"]), "{reset}");
    assert_eq!(shop.rows(&path), [1, 2, 3]);
    assert!(session.call("reset_database", confirmed).is_err());
    // By hand it asks, or wants to be told.
    shop.sql(&path, "DELETE FROM t");
    shop.within(&path, &["reset"]).fails(3).hints();
    assert!(shop.rows(&path).is_empty());
    shop.within(&path, &["down", "-q"]).succeeds();
    shop.within(&path, &["reset", "db", "--yes"]).succeeds().says(&["reset `db`"]);
    assert_eq!(shop.state(&path), "stopped");
    // Nothing was written since, so there is nothing to ask about.
    shop.within(&path, &["reset"]).succeeds();
    assert_eq!(shop.rows(&path), [1, 2, 3]);
    assert_eq!(shop.data().len(), 1, "{:?}", shop.data());
    shop.within(&path, &["reset", "nosuch"]).fails(1).hints();
    assert!(session.call("database_url", json!({"worktree": "topic", "service": "nosuch"})).is_err());
    shop.within(&path, &["down", "-q"]).succeeds();
}

/// A session by hand: lines in, lines out.
pub(super) struct Lines {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Lines {
    pub(super) fn with(home: &Path, repositories: &[&Path]) -> Self {
        Self::of(server(home, repositories))
    }

    pub(super) fn of(mut server: std::process::Command) -> Self {
        let mut child = server.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        let mut lines = Self { child, stdin, stdout };
        let who = json!({"name": "test", "version": "1"});
        let begin = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": who});
        let answer = lines.ask(json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": begin}));
        assert_eq!(answer["result"]["serverInfo"]["name"], "calve", "{answer}");
        lines.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string());
        lines
    }

    fn send(&mut self, line: &str) {
        self.send_bytes(line.as_bytes());
    }

    fn send_bytes(&mut self, line: &[u8]) {
        self.stdin.as_mut().unwrap().write_all(&[line, b"\n"].concat()).unwrap();
    }

    fn answer(&mut self) -> Value {
        let mut line = String::new();
        assert!(self.stdout.read_line(&mut line).unwrap() > 0, "the server ended");
        serde_json::from_str(&line).unwrap()
    }

    fn ask(&mut self, request: Value) -> Value {
        self.send(&request.to_string());
        loop {
            let answer = self.answer();
            if answer["id"] == request["id"] {
                return answer;
            }
        }
    }

    pub(super) fn call(&mut self, id: u32, tool: &str, arguments: Value) -> Value {
        self.ask(request(id, tool, arguments))
    }
}

fn request(id: u32, tool: &str, arguments: Value) -> Value {
    let params = json!({"name": tool, "arguments": arguments});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
}

impl Drop for Lines {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn what_is_malformed_huge_or_outside_is_refused_and_the_server_goes_on() {
    let (repo, other) = (Repo::anywhere(), Repo::anywhere());
    let mut lines = Lines::with(&home(&repo), &[&repo.path]);
    let listed = lines.ask(json!({"jsonrpc": "2.0", "id": 9, "method": "tools/list"}));
    assert_eq!(listed["result"]["tools"].as_array().unwrap().len(), 7);
    let unknown = lines.ask(json!({"jsonrpc": "2.0", "id": 10, "method": "tools/run"}));
    assert_eq!(unknown["error"]["code"], -32601, "{unknown}");

    let outside = other.path.to_str().unwrap();
    let invalid = [
        ("run", json!({"command": "id"})),
        ("list_worktrees", json!({"command": "id"})),
        ("list_worktrees", json!({"skip": -1})),
        ("list_worktrees", json!({"skip": "all"})),
        ("worktree_status", json!({})),
        ("worktree_status", json!({"worktree": ""})),
        ("worktree_status", json!({"worktree": 7})),
        ("worktree_status", json!({"worktree": "a\0b"})),
        ("worktree_status", json!({"worktree": "x".repeat(5000)})),
        ("create_worktree", json!({"branch": "--path=/tmp/x"})),
        ("create_worktree", json!({"branch": "x", "base": "--help"})),
        ("create_worktree", json!({"branch": "x", "path": "/tmp/x"})),
        ("remove_worktree", json!({"worktree": "main", "force": true})),
    ];
    for (id, (tool, arguments)) in (20..).zip(invalid) {
        let answer = lines.call(id, tool, arguments.clone());
        assert_eq!(answer["error"]["code"], -32602, "{tool} {arguments}: {answer}");
        assert!(answer.to_string().len() < 400, "{answer}");
    }
    let refused = [
        ("list_worktrees", json!({"repository": outside})),
        ("list_worktrees", json!({"repository": "/"})),
        ("worktree_status", json!({"worktree": outside})),
        ("worktree_status", json!({"worktree": "../../.."})),
        ("disk_usage", json!({"worktree": "/etc"})),
        ("create_worktree", json!({"branch": "x", "from": outside})),
        ("create_worktree", json!({"branch": "x", "base": "nosuch"})),
        ("remove_worktree", json!({"worktree": outside})),
        ("remove_worktree", json!({"worktree": "main"})),
        ("database_url", json!({"worktree": "main"})),
        ("reset_database", json!({"worktree": "main"})),
    ];
    for (id, (tool, arguments)) in (50..).zip(refused) {
        let answer = lines.call(id, tool, arguments.clone());
        assert_eq!(answer["result"]["isError"], true, "{tool} {arguments}: {answer}");
        assert!(answer.to_string().len() < 4000, "{answer}");
    }
    assert_eq!(repo.git(["branch", "--format=%(refname:short)"]), "main\n");
    // It ends with its client.
    lines.stdin = None;
    assert!(lines.child.wait().unwrap().success());
}

#[test]
fn calls_at_once_for_one_branch_get_one_worktree() {
    let repo = Repo::anywhere();
    let mut lines = Lines::with(&home(&repo), &[&repo.path]);
    for id in 1..4 {
        lines.send(&request(id, "create_worktree", json!({"branch": "new"})).to_string());
    }
    let answers = [1, 2, 3].map(|_| lines.answer());
    for answer in &answers {
        let text = answer["result"]["content"][0]["text"].as_str().unwrap();
        let made: Value = serde_json::from_str(text).unwrap();
        assert_eq!(made["path"].as_str(), repo.spot.join("proj.new").to_str(), "{answers:?}");
    }
    assert_eq!(repo.worktrees().len(), 2);
}

#[test]
fn a_signal_ends_it_and_takes_back_what_was_being_made() {
    for signal in [Signal::TERM, Signal::INT] {
        let repo = Repo::anywhere();
        let mut idle =
            server(&home(&repo), &[&repo.path]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let _input = idle.stdin.take();
        let mut waiting = Lines::with(&home(&repo), &[&repo.path]);
        repo.write(".calve.toml", "hooks.post-add = 'echo >begun.log; exec sleep 600'\n");
        repo.commit("hook");
        let within = with_environment(calve(["hook", "approve", "--yes"])).within(&repo.path);
        within.env("CALVE_HOME", home(&repo)).succeeds();
        let mut busy = Lines::with(&home(&repo), &[&repo.path]);
        busy.send(&request(1, "create_worktree", json!({"branch": "new"})).to_string());
        let begun = || repo.worktrees().iter().any(|path| path.join("begun.log").exists());
        eventually("the hook runs", begun);
        for child in [&mut idle, &mut waiting.child, &mut busy.child] {
            send(child.id(), signal);
            assert_eq!(child.wait().unwrap().code(), Some(130), "{signal:?}");
        }
        assert_eq!(repo.worktrees().len(), 1);
        assert_eq!(repo.git(["branch", "--format=%(refname:short)"]), "main\n");
        eventually_nothing_left(&repo.spot);
    }
}

fn random_lines_have_as_many_answers_as_requests(lines: &mut Lines) {
    let params = json!({"name": "nosuch", "arguments": {}});
    let whole = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": params}).to_string();
    let mut random = SplitMix64::new(7);
    let mut below = |bound: usize| random.below(bound as u64) as usize;
    for _ in 0..rounds(500) {
        let mut line = whole.clone().into_bytes();
        for _ in 0..below(4) {
            let at = 1 + below(line.len() - 2);
            match below(3) {
                0 => line[at] = below(256) as u8,
                1 => drop(line.remove(at)),
                _ => line.insert(at, below(256) as u8),
            }
        }
        line.retain(|&byte| byte != b'\n');
        let is_notification = serde_json::from_slice::<Value>(&line)
            .is_ok_and(|value| value["jsonrpc"] == "2.0" && value["method"].is_string() && value.get("id").is_none());
        lines.send_bytes(&line);
        lines.send(r#"{"jsonrpc": "2.0", "id": "next", "method": "no/such"}"#);
        let answers: Vec<_> = (0..2 - usize::from(is_notification)).map(|_| lines.answer()).collect();
        let shown = String::from_utf8_lossy(&line);
        assert!(answers.iter().any(|answer| answer["id"] == "next"), "{shown}: {answers:?}");
        assert!(answers.iter().all(|answer| answer["error"]["code"].is_i64()), "{shown}: {answers:?}");
    }
}

#[test]
fn every_line_that_is_no_message_is_answered() {
    let repo = Repo::anywhere();
    let mut lines = Lines::with(&home(&repo), &[&repo.path]);
    random_lines_have_as_many_answers_as_requests(&mut lines);
    let call = |params: &str| format!(r#"{{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{params}}}"#);
    let long = "x".repeat(70_000);
    let cases = [
        (b"no json".to_vec(), json!(null), -32700),
        (br#"{"jsonrpc": "2.0", "id": 7,"#.to_vec(), json!(null), -32700),
        ([call("{}").as_bytes(), b"\xc3("].concat(), json!(null), -32700),
        (b"{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"\xc3(\"}".to_vec(), json!(null), -32700),
        ("[".repeat(60_000).into_bytes(), json!(null), -32700),
        (b"[1, 2]".to_vec(), json!(null), -32600),
        (b"7".to_vec(), json!(null), -32600),
        ("\u{feff}{}".as_bytes().to_vec(), json!(null), -32600),
        (br#"{"jsonrpc": "2.0", "id": {}}"#.to_vec(), json!(null), -32600),
        (br#"{"id": 5, "method": "tools/list"}"#.to_vec(), json!(5), -32600),
        (br#"{"jsonrpc": "1.0", "id": "a", "method": "tools/list"}"#.to_vec(), json!("a"), -32600),
        (br#"{"jsonrpc": "2.0", "id": 5.5, "method": "tools/list"}"#.to_vec(), json!(5.5), -32600),
        (br#"{"jsonrpc": "2.0", "id": null, "method": "tools/list"}"#.to_vec(), json!(null), -32600),
        (br#"{"jsonrpc": "2.0", "id": 5}"#.to_vec(), json!(5), -32600),
        (call("[]").into_bytes(), json!(5), -32602),
        (call("7").into_bytes(), json!(5), -32602),
        (call("{}").into_bytes(), json!(5), -32602),
        (call(r#"{"name": 7}"#).into_bytes(), json!(5), -32602),
        (call(r#"{"name": "list_worktrees", "arguments": 7}"#).into_bytes(), json!(5), -32602),
        (call(r#"{"name": "list_worktrees", "arguments": []}"#).into_bytes(), json!(5), -32602),
        (
            call(&format!(r#"{{"name":"create_worktree","arguments":{{"branch":"{long}"}}}}"#)).into_bytes(),
            json!(5),
            -32602,
        ),
        (br#"{"jsonrpc": "2.0", "id": 5, "method": "no/such"}"#.to_vec(), json!(5), -32601),
        ("x".repeat(5_000_000).into_bytes(), json!(null), -32600),
    ];
    for (line, id, code) in cases {
        let shown = String::from_utf8_lossy(&line[..line.len().min(80)]).into_owned();
        lines.send_bytes(&line);
        let answer = lines.answer();
        assert_eq!(answer["error"]["code"], code, "{shown}: {answer}");
        assert_eq!(answer.get("id"), Some(&id), "{shown}: {answer}");
        assert!(answer.to_string().len() < 400, "{answer}");
    }
    // These want none, and the next one is answered first.
    for line in ["", " ", r#"{"jsonrpc": "2.0", "method": "notifications/nosuch", "params": 7}"#] {
        lines.send(line);
    }
    let listed = json!({"jsonrpc": "2.0", "id": 9, "method": "tools/list"});
    lines.send(&listed.to_string());
    assert_eq!(lines.answer()["id"], 9);
    // The last line of an input may lack its end.
    let mut stdin = lines.stdin.take().unwrap();
    stdin.write_all(listed.to_string().as_bytes()).unwrap();
    drop(stdin);
    assert_eq!(lines.answer()["id"], 9);
    assert!(lines.child.wait().unwrap().success());
}

#[test]
fn a_repository_is_named_where_several_are_served_and_a_long_list_is_cut() {
    let (one, two) = (Repo::anywhere(), Repo::anywhere());
    for number in 0..60 {
        let path = two.spot.join(format!("a-directory-with-a-rather-long-name-{number}"));
        two.git(["worktree", "add", "-q", "--no-checkout", "-b", &format!("branch-{number}"), path.to_str().unwrap()]);
    }
    let session = Session::with(&home(&one), &[&one.path, &two.path]);
    let which = session.call("list_worktrees", json!({})).unwrap_err();
    assert!(which["hint"].as_str().unwrap().contains(two.path.to_str().unwrap()), "{which}");
    let list = |skip: usize| session.call("list_worktrees", json!({"repository": two.path.to_str(), "skip": skip}));
    let mut seen = 0;
    for _ in 0..20 {
        let part = list(seen).unwrap();
        seen += part["worktrees"].as_array().unwrap().len();
        if part["more"].is_null() {
            break;
        }
        assert!(seen > 0);
    }
    assert_eq!(seen, 61);
    // `call` holds every tool to the limit, wherever it looks.
    let repository = two.path.to_str().unwrap();
    let of = |tool, mut arguments: Value| {
        arguments["repository"] = repository.into();
        session.call(tool, arguments)
    };
    let made = of("create_worktree", json!({"branch": "new"})).unwrap();
    let named = json!({"worktree": made["path"]});
    assert_eq!(of("worktree_status", named.clone()).unwrap()["branch"], "new");
    assert!(of("disk_usage", named.clone()).unwrap()["apparent"].as_u64().unwrap() > 0);
    let planned = of("remove_worktree", named.clone()).unwrap();
    of("database_url", named.clone()).unwrap_err();
    of("reset_database", named.clone()).unwrap_err();
    of("remove_worktree", json!({"worktree": made["path"], "token": planned["token"]})).unwrap();
    of("worktree_status", json!({"worktree": "no-such-one"})).unwrap_err();
    // The same name leads to one repository only.
    let path = one.path.to_str().unwrap();
    assert_eq!(
        session.call("list_worktrees", json!({"repository": path})).unwrap()["worktrees"].as_array().unwrap().len(),
        1
    );
    with_environment(calve(["mcp", "--repository", "/nonexistent"])).fails(1).hints();
}
