//! The bench's HTTP host, with the faults that a host can have.

use std::path::Path;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use calve_bench::git::host::{Head, Host, HostOptions, Treatment};
use calve_testkit::git;

/// What is wrong with the host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum HostFault {
    #[default]
    None,
    /// It closes the connection after so many bytes of one answer.
    DiesAfter(u64),
    /// It closes the connection in the answer to the POST request of this number, counted from 1. (Clients repeat what has no answer.)
    DiesAtPost(usize),
    /// It takes a POST request and never answers.
    Stalls,
    /// It serves only who sends this name and password.
    Demands(String, String),
}

/// A host that serves every repository below a directory, until it is dropped.
pub(crate) struct GitHost {
    host: Host,
    requests: Arc<Mutex<Vec<String>>>,
    _reports: tempfile::TempDir,
}

impl GitHost {
    pub(crate) fn with(root: impl AsRef<Path>, fault: HostFault) -> Self {
        let requests = Arc::<Mutex<Vec<String>>>::default();
        let reports = tempfile::tempdir().unwrap();
        let theirs = Arc::clone(&requests);
        let own = |(name, _): &(std::ffi::OsString, _)| !name.to_string_lossy().starts_with("GIT_");
        let host = Host::start(HostOptions {
            program: Path::new(&git("/", ["--exec-path"])).join("git-http-backend"),
            root: root.as_ref().to_path_buf(),
            environment: std::env::vars_os().filter(own).collect(),
            reports: reports.path().to_path_buf(),
            decide: Box::new(move |head| {
                let mut requests = theirs.lock().unwrap();
                requests.push(format!("{} {}", head.method, head.path));
                fault.treat(head, requests.iter().filter(|request| request.starts_with("POST ")).count())
            }),
        });
        Self { host: host.unwrap(), requests, _reports: reports }
    }

    /// `http://127.0.0.1:PORT/NAME`.
    pub(crate) fn url(&self, name: &str) -> String {
        self.host.url(name)
    }

    /// `http://USER@127.0.0.1:PORT/NAME`.
    pub(crate) fn url_as(&self, user: &str, name: &str) -> String {
        self.url(name).replacen("http://", &format!("http://{user}@"), 1)
    }

    /// The requests so far, as "METHOD PATH".
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

impl HostFault {
    fn treat(&self, head: &Head, posts: usize) -> Treatment {
        let is_post = head.method == "POST";
        match self {
            Self::DiesAfter(bytes) => Treatment::Cut(*bytes),
            Self::DiesAtPost(number) if is_post && posts == *number => Treatment::Cut(0),
            Self::Stalls if is_post => Treatment::Stall,
            Self::Demands(user, password) => {
                let expected = format!("Basic {}", STANDARD.encode(format!("{user}:{password}")));
                match head.header("authorization") {
                    Some(given) if given == expected => Treatment::Serve,
                    _ => Treatment::Refuse("401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"test\"\r\n"),
                }
            }
            _ => Treatment::Serve,
        }
    }
}
