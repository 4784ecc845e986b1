//! A registry with TLS, whose certificate is signed by an authority that only the test knows.

use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use calve_testkit::{assert_same, require_program};

use super::{has_nothing, template, tree};
use crate::program::Calve;
use crate::spot::{Spot, eventually};

struct Encrypted {
    child: Child,
    port: u16,
}

impl Drop for Encrypted {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn openssl(spot: &Spot, args: &str) {
    let output = Command::new("openssl").args(args.split(' ')).current_dir(&**spot).output().unwrap();
    assert!(output.status.success(), "openssl {args}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Starts a registry for 127.0.0.1, and leaves `ca.pem` in the spot. `None` is a skip.
#[track_caller]
fn start(spot: &Spot) -> Option<Encrypted> {
    if !require_program("docker-registry") || !require_program("setpriv") || !require_program("openssl") {
        return None;
    }
    let new = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2";
    openssl(spot, &format!("{new} -subj /CN=authority -keyout ca.key -out ca.pem"));
    let signed = "-CA ca.pem -CAkey ca.key -addext subjectAltName=IP:127.0.0.1 -addext basicConstraints=CA:FALSE";
    openssl(spot, &format!("{new} -subj /CN=registry -keyout key.pem -out certificate.pem {signed}"));
    // Another program could take the port before the registry does; then the test fails.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let config = format!(
        "version: 0.1\nlog: {{level: error}}\nstorage: {{filesystem: {{rootdirectory: DIR/data}}}}\n\
         http: {{addr: '127.0.0.1:{port}', secret: x, tls: {{certificate: DIR/certificate.pem, key: DIR/key.pem}}}}\n"
    );
    fs_err::write(spot.join("config.yml"), config.replace("DIR", spot.to_str().unwrap())).unwrap();
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "docker-registry", "serve"]).arg(spot.join("config.yml"));
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let registry = Encrypted { child, port };
    eventually("the registry listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
    Some(registry)
}

#[test]
fn a_registry_is_reached_by_the_certificates_that_the_user_names() {
    let spot = Spot::anywhere();
    let Some(registry) = start(&spot) else { return };
    spot.tree("src").file("a", b"1").file("b", vec![7; 200_000]);
    template(&spot, "home", &["create", "-q", "shop", "src"]).succeeds();
    let reference = |host: &str| format!("{host}:{}/shop", registry.port);
    let trusting = |calve: Calve| {
        let calve = calve.env("SSL_CERT_FILE", spot.join("ca.pem")).env("SSL_CERT_DIR", "/etc/ssl/certs");
        calve.env("no_proxy", "127.0.0.1,localhost").env("NO_PROXY", "127.0.0.1,localhost")
    };
    let push = |host: &str| template(&spot, "home", &["push", "-q", "shop", &reference(host)]);
    let hint = "hint: check the name and the port of the registry, and the network";
    // The certificate is not trusted, or is for another name. Trying again would not help.
    let start = std::time::Instant::now();
    let only = spot.join("only");
    fs_err::create_dir(&only).unwrap();
    fs_err::copy(spot.join("ca.pem"), only.join("ca.pem")).unwrap();
    openssl(&spot, "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=other -keyout other.key -out other.pem");
    let other = |calve: Calve| trusting(calve).env("SSL_CERT_FILE", spot.join("other.pem")).env("SSL_CERT_DIR", "");
    other(push("127.0.0.1")).fails(1).says(&["cannot read the image at 127.0.0.1", hint]);
    trusting(push("localhost")).fails(1).says(&["cannot read the image at localhost", hint]);
    // Four more attempts would take 3.75 s each time.
    assert!(start.elapsed().as_secs_f64() < 6.0, "{:?}", start.elapsed());
    trusting(push("127.0.0.1")).succeeds();
    let pull = || template(&spot, "other", &["pull", "-q", &reference("127.0.0.1")]);
    other(pull()).fails(1).says(&[hint]);
    let nothing = |variable: &str, at: &str| {
        let calve = trusting(pull()).env("SSL_CERT_FILE", "").env("SSL_CERT_DIR", "").env(variable, spot.join(at));
        calve.fails(1).says(&[
            &format!("{at}`, which {variable} names"),
            &format!("hint: correct {variable}, or unset it to trust the system's certificates"),
        ]);
    };
    nothing("SSL_CERT_FILE", "nothing.pem");
    nothing("SSL_CERT_FILE", "config.yml");
    nothing("SSL_CERT_DIR", "nothing");
    has_nothing(&spot, "other");
    for beside in ["other.pem", "nothing.pem", ""] {
        let file = Some(beside).filter(|name| !name.is_empty()).map(|name| spot.join(name)).unwrap_or_default();
        trusting(pull()).env("SSL_CERT_FILE", file).env("SSL_CERT_DIR", &only).succeeds();
    }
    assert_same(spot.join("src"), tree(&spot, "other", "shop"));
}
