//! A real registry behind a relay that can be told to misbehave, and images put together by hand.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use calve_testkit::require_program;
use serde_json::{Value, json};

use crate::spot::eventually;

/// One request: the first line and the headers.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) line: String,
    pub(super) head: String,
    body: Vec<u8>,
}

impl Asked {
    pub(super) fn is_manifest(&self) -> bool {
        self.line.contains("/manifests/")
    }

    /// Returns true for a blob of `shop`.
    pub(super) fn is_blob(&self) -> bool {
        self.line.starts_with("GET /v2/shop/blobs/")
    }
}

/// The answer to a request.
pub(super) enum Answer {
    /// The registry's answer.
    Pass,
    /// The registry's answer, changed: the head, and the body.
    Change(fn(&mut String, &mut Vec<u8>)),
    /// These bytes.
    Bytes(Vec<u8>),
    /// The registry's answer up to the last of so many bytes of bodies, then nothing until the client goes away.
    UpTo(Arc<AtomicU64>),
    /// The registry's answer in this many pieces, with a second between them.
    Slowly(usize),
}

type Rule = dyn Fn(&Asked) -> Answer + Send + Sync;

/// A registry on an address of its own.
pub(crate) struct Server {
    pub(crate) host: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    rule: Arc<Mutex<Arc<Rule>>>,
    blob_bytes: Arc<AtomicU64>,
    _registry: Option<Registry>,
}

struct Registry {
    child: Child,
    _folder: tempfile::TempDir,
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// bcrypt of `secret`.
const PASSWORD_FILE: &str = "user:$2b$04$dtkrUO8Z.SFarLjD9dqbFep8G2uF1MPzLbCOAQPF.GGrJmQpTOkhG\n";

impl Server {
    /// An empty registry. `None` is a skip.
    #[track_caller]
    pub(crate) fn new() -> Option<Self> {
        Self::start("")
    }

    /// One that only lets `user` in, by the password `secret`.
    #[track_caller]
    pub(super) fn with_password() -> Option<Self> {
        Self::start("auth: {htpasswd: {realm: test, path: DIR/passwords}}\n")
    }

    #[track_caller]
    fn start(more: &str) -> Option<Self> {
        if !require_program("docker-registry") || !require_program("setpriv") {
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().to_str().unwrap().to_owned();
        let config = format!(
            "version: 0.1\nlog: {{level: error}}\nstorage: {{filesystem: {{rootdirectory: DIR/data}}}}\n\
             http: {{net: unix, addr: DIR/socket, secret: x}}\n{more}"
        );
        fs_err::write(folder.path().join("config.yml"), config.replace("DIR", &dir)).unwrap();
        fs_err::write(folder.path().join("passwords"), PASSWORD_FILE).unwrap();
        // It ends with the test, however that ends.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "docker-registry", "serve"]).arg(folder.path().join("config.yml"));
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let registry = Registry { child, _folder: folder };
        let socket = PathBuf::from(dir).join("socket");
        eventually("the registry listens", || UnixStream::connect(&socket).is_ok());
        Some(Self::listen(Some(registry), move |asked| relay(asked, &socket)))
    }

    /// Answers what `paths` has, and 404 for all else.
    pub(super) fn of(paths: HashMap<String, Vec<u8>>) -> Self {
        Self::listen(None, move |asked| {
            let path = asked.line.split(' ').nth(1).unwrap_or_default();
            Ok(paths.get(path).map_or_else(|| answer("404 Not Found", "", b""), |body| answer("200 OK", "", body)))
        })
    }

    fn listen(
        registry: Option<Registry>,
        pass: impl Fn(&Asked) -> io::Result<Vec<u8>> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let host = listener.local_addr().unwrap().to_string();
        let asked = Arc::<Mutex<Vec<Asked>>>::default();
        let rule: Arc<Mutex<Arc<Rule>>> = Arc::new(Mutex::new(Arc::new(|_: &Asked| Answer::Pass)));
        let blob_bytes = Arc::<AtomicU64>::default();
        let (all, rules, pass) = (Arc::clone(&asked), Arc::clone(&rule), Arc::new(pass));
        let count = Arc::clone(&blob_bytes);
        // It ends with the process of the tests.
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (all, rules, pass) = (Arc::clone(&all), Arc::clone(&rules), Arc::clone(&pass));
                let count = Arc::clone(&count);
                thread::spawn(move || serve(stream, &all, &rules, &*pass, &count));
            }
        });
        Self { host, asked, rule, blob_bytes, _registry: registry }
    }

    /// From now on answers by this rule.
    pub(super) fn rule(&self, rule: impl Fn(&Asked) -> Answer + Send + Sync + 'static) {
        *self.rule.lock().unwrap() = Arc::new(rule);
    }

    /// Returns the manifest of an image, `REPOSITORY:TAG`.
    pub(super) fn manifest(&self, image: &str) -> Vec<u8> {
        let (repository, tag) = image.split_once(':').unwrap_or((image, "latest"));
        let accept = "Accept: application/vnd.oci.image.manifest.v1+json\r\n";
        self.ask(&format!("GET /v2/{repository}/manifests/{tag} HTTP/1.1\r\n{accept}"), b"")
    }

    /// Names the manifest of an image.
    pub(super) fn put_manifest(&self, repository: &str, tag: &str, bytes: &[u8]) {
        let head = format!(
            "PUT /v2/{repository}/manifests/{tag} HTTP/1.1\r\nContent-Length: {}\r\n\
             Content-Type: application/vnd.oci.image.manifest.v1+json\r\n",
            bytes.len()
        );
        assert_eq!(self.ask(&head, bytes), b"");
    }

    /// Returns the body of the answer.
    fn ask(&self, head: &str, body: &[u8]) -> Vec<u8> {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        stream.write_all(format!("{head}Host: {}\r\n\r\n", self.host).as_bytes()).unwrap();
        stream.write_all(body).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let end = end_of_head(&answer).unwrap();
        answer.split_off(end)
    }

    /// The requests since the last time.
    pub(super) fn asked(&self) -> Vec<Asked> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }

    /// Returns how many bytes of blobs were answered since the last time.
    pub(super) fn blob_bytes(&self) -> u64 {
        self.blob_bytes.swap(0, Ordering::SeqCst)
    }

    /// Returns how many of the requests since the last time begin with this.
    pub(super) fn count(&self, start: &str) -> usize {
        self.asked().iter().filter(|asked| asked.line.starts_with(start)).count()
    }
}

fn serve(
    mut stream: TcpStream,
    all: &Mutex<Vec<Asked>>,
    rule: &Mutex<Arc<Rule>>,
    pass: &dyn Fn(&Asked) -> io::Result<Vec<u8>>,
    blob_bytes: &AtomicU64,
) {
    let Ok(asked) = read_request(&mut stream) else { return };
    all.lock().unwrap().push(asked.clone());
    let rule = Arc::clone(&rule.lock().unwrap());
    let (mut stalls, mut pieces) = (false, 1);
    let bytes = match rule(&asked) {
        Answer::Bytes(bytes) => bytes,
        Answer::Pass => pass(&asked).unwrap_or_default(),
        Answer::Slowly(number) => {
            pieces = number;
            pass(&asked).unwrap_or_default()
        }
        Answer::Change(change) => {
            let bytes = pass(&asked).unwrap_or_default();
            let end = end_of_head(&bytes).unwrap_or(bytes.len());
            let (mut head, mut body) = (String::from_utf8_lossy(&bytes[..end]).into_owned(), bytes[end..].to_vec());
            change(&mut head, &mut body);
            [head.into_bytes(), body].concat()
        }
        Answer::UpTo(left) => {
            let mut bytes = pass(&asked).unwrap_or_default();
            let end = end_of_head(&bytes).unwrap_or(bytes.len());
            let body = (bytes.len() - end) as u64;
            let before = left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| Some(left.saturating_sub(body)));
            let sent = before.unwrap_or_default().min(body);
            stalls = sent < body;
            bytes.truncate(end + sent as usize);
            bytes
        }
    };
    if asked.line.starts_with("GET ") && asked.line.contains("/blobs/") {
        let end = end_of_head(&bytes).unwrap_or(bytes.len());
        blob_bytes.fetch_add((bytes.len() - end) as u64, Ordering::SeqCst);
    }
    for (number, piece) in bytes.chunks(bytes.len().div_ceil(pieces).max(1)).enumerate() {
        if number > 0 {
            thread::sleep(Duration::from_secs(1));
        }
        let _ = stream.write_all(piece);
    }
    if stalls {
        let _ = stream.read(&mut [0]);
    }
}

fn end_of_head(bytes: &[u8]) -> Option<usize> {
    bytes.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4)
}

fn read_request(stream: &mut TcpStream) -> io::Result<Asked> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 65_536];
    let end = loop {
        if let Some(end) = end_of_head(&bytes) {
            break end;
        }
        match stream.read(&mut buffer)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            // skopeo tries TLS first.
            _ if !buffer[0].is_ascii_alphabetic() && bytes.is_empty() => return Err(io::ErrorKind::InvalidData.into()),
            length => bytes.extend_from_slice(&buffer[..length]),
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut body = bytes.split_off(end);
    let length =
        head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse().ok());
    let missing = length.unwrap_or(0).max(body.len()) - body.len();
    stream.take(missing as u64).read_to_end(&mut body)?;
    let (line, head) = head.split_once("\r\n").unwrap_or_default();
    Ok(Asked { line: line.into(), head: head.into(), body })
}

/// Asks the registry the same, once.
fn relay(asked: &Asked, socket: &PathBuf) -> io::Result<Vec<u8>> {
    let mut upstream = UnixStream::connect(socket)?;
    let head = format!("{}\r\nConnection: close\r\n{}", asked.line, asked.head);
    upstream.write_all(head.as_bytes())?;
    upstream.write_all(&asked.body)?;
    let mut bytes = Vec::new();
    upstream.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// An answer of HTTP. `headers` end each with a line's end.
pub(super) fn answer(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n");
    [head.as_bytes(), body].concat()
}

/// A frame of zstd, in which only pieces of one byte are compressed.
pub(super) fn zstd(bytes: &[u8]) -> Vec<u8> {
    let size = u32::try_from(bytes.len()).unwrap().to_le_bytes();
    let mut frame = [&[0x28, 0xb5, 0x2f, 0xfd, 0xa0], &size[..]].concat();
    let number = bytes.chunks(512).len();
    for (index, piece) in bytes.chunks(512).enumerate() {
        let is_run = piece.iter().all(|byte| *byte == piece[0]);
        let header = (piece.len() as u32) << 3 | u32::from(is_run) << 1 | u32::from(index + 1 == number);
        frame.extend_from_slice(&header.to_le_bytes()[..3]);
        frame.extend_from_slice(if is_run { &piece[..1] } else { piece });
    }
    frame
}

/// The beginning of a tar with an entry that is no file, of 1 GiB of zeros: 32 KiB, compressed.
pub(super) fn bomb() -> Vec<u8> {
    const BLOCK_BYTES: u32 = 128 << 10;
    // A window of one block, and no size of the whole.
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 7 << 3];
    let header = tar_header("a", b'L', (1 << 30) - 1);
    frame.extend_from_slice(&((header.len() as u32) << 3).to_le_bytes()[..3]);
    frame.extend_from_slice(&header);
    for number in 1..=8_192 {
        // Blocks that repeat one byte.
        frame.extend_from_slice(&(BLOCK_BYTES << 3 | 1 << 1 | u32::from(number == 8_192)).to_le_bytes()[..3]);
        frame.push(0);
    }
    frame
}

/// A header of a tar.
pub(super) fn tar_header(name: &str, kind: u8, size: u64) -> [u8; 512] {
    let mut header = [0; 512];
    header[..name.len()].copy_from_slice(name.as_bytes());
    header[100..108].copy_from_slice(b"0000644\0");
    header[124..136].copy_from_slice(format!("{size:011o}\0").as_bytes());
    header[148..156].fill(b' ');
    header[156] = kind;
    header[257..265].copy_from_slice(b"ustar\x0000");
    let sum: u32 = header.iter().copied().map(u32::from).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    header
}

/// An image of a template with this manifest and this one layer, at `/v2/t/manifests/latest`.
pub(super) fn image(lines: &str, tar: &[u8]) -> HashMap<String, Vec<u8>> {
    image_with_layer(lines, &zstd(tar))
}

/// The same with the compressed layer.
pub(super) fn image_with_layer(lines: &str, layer: &[u8]) -> HashMap<String, Vec<u8>> {
    let text = format!("#mtree\n# calve portable template 1\n{lines}");
    let entries = lines.lines().count();
    let range = json!({ "dev.calve.template.range": format!("0-{entries}") });
    let key = json!({ "dev.calve.template.key": blake3::hash(text.as_bytes()).to_hex().to_string() });
    image_of(key, (layer, range), (text.as_bytes(), "dev.calve.template.manifest"))
}

/// An image with this layer, and a last one that has a text where the annotation of that name says.
pub(super) fn image_of(
    annotations: Value,
    (layer, layer_annotations): (&[u8], Value),
    (text, place): (&[u8], &str),
) -> HashMap<String, Vec<u8>> {
    let manifest = zstd(text);
    let length = u32::try_from(manifest.len()).unwrap().to_le_bytes();
    let start = zstd(&[0; 1024]).len() + 8;
    let index = [&zstd(&[0; 1024])[..], &[0x50, 0x2a, 0x4d, 0x18], &length, &manifest].concat();
    let config = b"{}".to_vec();
    let kind = "application/vnd.oci.image.layer.v1.tar+zstd";
    let document = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": { "mediaType": "application/vnd.oci.image.config.v1+json", "digest": sha256(&config), "size": config.len() },
        "layers": [
            { "mediaType": kind, "digest": sha256(layer), "size": layer.len(), "annotations": layer_annotations },
            { "mediaType": kind, "digest": sha256(&index), "size": index.len(),
              "annotations": { place: format!("{start}-{}", index.len()) } },
        ],
        "annotations": annotations,
    });
    let blobs = [layer.to_vec(), index, config].map(|blob| (format!("/v2/t/blobs/{}", sha256(&blob)), blob));
    let mut paths = HashMap::from(blobs);
    paths.insert("/v2/t/manifests/latest".into(), document.to_string().into_bytes());
    paths
}

/// The image that [`image`] makes, with a delta against it: its manifest's text, and the tar of its `entries` files.
pub(super) fn with_delta(
    (lines, tar): (&str, &[u8]),
    (delta, entries, delta_tar): (&str, usize, &[u8]),
    base: Option<&str>,
    composed: &str,
) -> HashMap<String, Vec<u8>> {
    let mut paths = image(lines, tar);
    let place = "/v2/t/manifests/latest";
    let mut document: Value = serde_json::from_slice(&paths[place]).unwrap();
    let full = document["annotations"]["dev.calve.template.key"].as_str().unwrap().to_owned();
    let base = base.unwrap_or(&full);
    let text = format!("#mtree\n# calve portable delta 1\n# base {base}\n{delta}");
    let range = json!({ "dev.calve.template.range": format!("0-{entries}") });
    let more = image_of(json!({}), (&zstd(delta_tar), range), (text.as_bytes(), "dev.calve.template.delta"));
    let more_document: Value = serde_json::from_slice(&more[place]).unwrap();
    let mut layers = more_document["layers"].as_array().unwrap().clone();
    layers[1]["annotations"]["dev.calve.template.base"] = base.into();
    document["layers"].as_array_mut().unwrap().extend(layers);
    let composed = format!("#mtree\n# calve portable template 1\n{composed}");
    document["annotations"]["dev.calve.template.key"] = blake3::hash(composed.as_bytes()).to_hex().to_string().into();
    paths.extend(more);
    paths.insert(place.into(), document.to_string().into_bytes());
    paths
}

pub(super) fn sha256(bytes: &[u8]) -> String {
    let mut child = Command::new("sha256sum").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(bytes).unwrap();
    let output = child.wait_with_output().unwrap();
    format!("sha256:{}", &String::from_utf8(output.stdout).unwrap()[..64])
}
