//! The user's policy, and signatures as cosign makes them.
//!
//! Debian's skopeo reads the same policies, but has the check of these signatures taken out.

use std::path::{Path, PathBuf};
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use calve_testkit::require_program;
use serde_json::{Value, json};

use super::server::{Server, sha256};
use super::{has_nothing, pull, push, template};
use crate::spot::Spot;

fn run(program: &str, args: &[&str], dir: &Path) -> Vec<u8> {
    let output = Command::new(program).args(args).current_dir(dir).output().unwrap();
    assert!(output.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// A template in a registry, and the keys of some people.
struct Signed {
    spot: Spot,
    server: Server,
    digest: String,
}

impl Signed {
    #[track_caller]
    fn new() -> Option<Self> {
        if !require_program("openssl") || !require_program("curl") || !require_program("skopeo") {
            return None;
        }
        let (server, spot) = (Server::new()?, Spot::anywhere());
        spot.tree("src").file("a", b"1");
        template(&spot, "home", &["create", "-q", "shop", "src"]).succeeds();
        let pushed = push(&spot, &server, "shop:v1").succeeds().json();
        for (name, options) in [
            ("ours", &["EC", "-pkeyopt", "ec_paramgen_curve:P-256"][..]),
            ("theirs", &["EC", "-pkeyopt", "ec_paramgen_curve:P-256"]),
            ("large", &["EC", "-pkeyopt", "ec_paramgen_curve:P-384"]),
            ("edwards", &["ED25519"]),
            ("rsa", &["RSA"]),
        ] {
            let private = format!("{name}.pem");
            let args = [&["genpkey", "-out", &private, "-algorithm"], options].concat();
            run("openssl", &args, &spot);
            let public = format!("{name}.pub");
            run("openssl", &["pkey", "-in", &private, "-pubout", "-out", &public], &spot);
        }
        Some(Self { digest: pushed["digest"].as_str().unwrap().to_owned(), spot, server })
    }

    fn key(&self, name: &str) -> PathBuf {
        self.spot.join(format!("{name}.pub"))
    }

    /// Sets the requirements for images of the registry.
    fn policy(&self, requirements: &Value) {
        let policy =
            json!({"default": [{"type": "reject"}], "transports": {"docker": {&self.server.host: requirements}}});
        self.policy_text(&policy.to_string());
    }

    fn policy_text(&self, text: &str) {
        self.spot.tree("nobody").file(".config/containers/policy.json", text);
    }

    fn url(&self, rest: &str) -> String {
        format!("http://{}/v2/shop/{rest}", self.server.host)
    }

    fn put_blob(&self, bytes: &[u8]) -> Value {
        fs_err::write(self.spot.join("blob"), bytes).unwrap();
        let begin = ["-fsS", "-X", "POST", "-o", "out", "-w", "%header{location}", &self.url("blobs/uploads/")];
        let location = String::from_utf8(run("curl", &begin, &self.spot)).unwrap();
        let digest = sha256(bytes);
        let end = format!("{location}&digest={digest}");
        run(
            "curl",
            &["-fsS", "-H", "Expect:", "-T", "blob", "-H", "Content-Type: application/octet-stream", &end],
            &self.spot,
        );
        json!({"digest": digest, "size": bytes.len()})
    }

    /// Puts signatures into the registry: by whom, what they say, and whether they say so still.
    fn sign(&self, signatures: &[(&str, &Value)]) {
        let mut layers = Vec::new();
        for (by, payload) in signatures {
            let text = payload.to_string();
            fs_err::write(self.spot.join("payload"), &text).unwrap();
            let key = format!("{by}.pem");
            let args = match *by {
                "edwards" => vec!["pkeyutl", "-sign", "-rawin", "-inkey", &key, "-in", "payload"],
                _ => vec!["dgst", "-sha256", "-sign", &key, "payload"],
            };
            let signature = run("openssl", &args, &self.spot);
            let mut layer = self.put_blob(text.as_bytes());
            layer["mediaType"] = "application/vnd.dev.cosign.simplesigning.v1+json".into();
            layer["annotations"] = json!({"dev.cosignproject.cosign/signature": STANDARD.encode(signature)});
            layers.push(layer);
        }
        self.put_signatures(layers);
    }

    fn put_signatures(&self, layers: Vec<Value>) {
        let diff_ids: Vec<_> = layers.iter().map(|layer| layer["digest"].clone()).collect();
        let config =
            json!({"architecture": "", "os": "", "config": {}, "rootfs": {"type": "layers", "diff_ids": diff_ids}});
        let mut config = self.put_blob(config.to_string().as_bytes());
        config["mediaType"] = "application/vnd.oci.image.config.v1+json".into();
        let kind = "application/vnd.oci.image.manifest.v1+json";
        let manifest = json!({"schemaVersion": 2, "mediaType": kind, "config": config, "layers": layers});
        fs_err::write(self.spot.join("manifest"), manifest.to_string()).unwrap();
        let url = self.url(&format!("manifests/{}.sig", self.digest.replace(':', "-")));
        run(
            "curl",
            &["-fsS", "-H", "Expect:", "-T", "manifest", "-H", &format!("Content-Type: {kind}"), &url],
            &self.spot,
        );
    }

    /// Returns the text that is signed for the image under this name.
    fn payload(&self, name: &str) -> Value {
        payload(name, &self.digest)
    }

    fn name(&self) -> String {
        format!("{}/shop:v1", self.server.host)
    }

    /// Checks that the image is let in.
    #[track_caller]
    fn is_let_in(&self) {
        pull(&self.spot, "other", &self.server, "shop:v1").succeeds();
        template(&self.spot, "other", &["remove", "-q", "shop"]).succeeds();
    }

    /// Checks that it is not, and why.
    #[track_caller]
    fn is_kept_out(&self, why: &str) {
        let said = format!("nobody/.config/containers/policy.json` does not let `{}` in: {why}\n", self.name());
        pull(&self.spot, "other", &self.server, "shop:v1").fails(1).says(&[&said, "hint: sign it with a key"]);
        has_nothing(&self.spot, "other");
    }

    /// Returns whether skopeo lets it in.
    fn skopeo(&self) -> bool {
        let policy = self.spot.join("nobody/.config/containers/policy.json");
        let mut command = Command::new("skopeo");
        command.arg("--policy").arg(policy).args(["copy", "-q", "--src-tls-verify=false"]);
        command.args([&format!("docker://{}", self.name()), "dir:copied"]).current_dir(&*self.spot);
        command.output().unwrap().status.success()
    }
}

fn payload(name: &str, digest: &str) -> Value {
    let image = json!({"docker-manifest-digest": digest});
    let critical =
        json!({"identity": {"docker-reference": name}, "image": image, "type": "cosign container image signature"});
    json!({"critical": critical, "optional": {"creator": "somebody", "timestamp": 1}})
}

#[test]
fn only_what_the_policy_lets_in_is_pulled() {
    let Some(signed) = Signed::new() else { return };
    signed.policy(&json!([{"type": "insecureAcceptAnything"}]));
    signed.is_let_in();
    assert!(signed.skopeo());
    signed.policy(&json!([{"type": "reject"}]));
    signed.is_kept_out("it lets in no image from there");
    assert!(!signed.skopeo());
    let by = |name: &str| json!({"type": "sigstoreSigned", "keyPath": signed.key(name)});
    signed.policy(&json!([by("ours")]));
    signed.is_kept_out("it demands a signature, and the image has none");
    signed.sign(&[("theirs", &signed.payload(&signed.name()))]);
    signed.is_kept_out("no signature of the image is by a key that it names");
    let of_another = payload(&signed.name(), &sha256(b"another"));
    signed.sign(&[("ours", &of_another)]);
    signed.is_kept_out("the signature is that of another image");
    let elsewhere = "elsewhere.example/shop:v1";
    signed.sign(&[("ours", &signed.payload(elsewhere))]);
    signed.is_kept_out(&format!("the image is signed as `{elsewhere}`"));
    // One good signature is enough, wherever it is.
    let all =
        [("theirs", &signed.payload(&signed.name())), ("ours", &of_another), ("ours", &signed.payload(&signed.name()))];
    signed.sign(&all);
    signed.is_let_in();
    // All requirements count.
    signed.policy(&json!([by("ours"), by("large")]));
    signed.is_kept_out("no signature of the image is by a key that it names");
    // A template that is here already is no way round.
    signed.policy(&json!([by("ours")]));
    pull(&signed.spot, "other", &signed.server, "shop:v1").succeeds();
    signed.policy(&json!([{"type": "reject"}]));
    pull(&signed.spot, "other", &signed.server, "shop:v1").fails(1).says(&[
        "it lets in no image from there",
        "hint: sign it with a key that the policy names (`cosign sign --key`), or change the policy: see containers-policy.json(5)\n",
    ]);
}

#[test]
fn a_signature_counts_for_the_name_that_the_policy_says() {
    let Some(signed) = Signed::new() else { return };
    let by = |identity: Value| {
        signed.policy(&json!([{"type": "sigstoreSigned", "keyPath": signed.key("ours"), "signedIdentity": identity}]));
    };
    // As cosign names it: without the tag.
    let repository = format!("{}/shop", signed.server.host);
    signed.sign(&[("ours", &signed.payload(&repository))]);
    by(json!({"type": "matchRepoDigestOrExact"}));
    signed.is_kept_out(&format!("the image is signed as `{repository}`"));
    by(json!({"type": "matchRepository"}));
    signed.is_let_in();
    by(json!({"type": "exactRepository", "dockerRepository": repository}));
    signed.is_let_in();
    by(json!({"type": "exactReference", "dockerReference": "mirror.example/shop:v1"}));
    signed.is_kept_out(&format!("the image is signed as `{repository}`"));
    signed.sign(&[("ours", &signed.payload("mirror.example/shop:v1"))]);
    signed.is_let_in();
    by(json!({"type": "remapIdentity", "prefix": &signed.server.host, "signedPrefix": "mirror.example"}));
    signed.is_let_in();
    by(json!({"type": "remapIdentity", "prefix": "127.0", "signedPrefix": "mirror.example"}));
    signed.is_kept_out("the image is signed as `mirror.example/shop:v1`");
}

#[test]
fn a_digest_needs_a_signature_of_an_image_in_its_repository() {
    let Some(signed) = Signed::new() else { return };
    let by = |identity: &str| {
        let identity = json!({"type": identity});
        signed.policy(&json!([{"type": "sigstoreSigned", "keyPath": signed.key("ours"), "signedIdentity": identity}]));
    };
    let image = format!("shop@{}", signed.digest);
    let kept_out = |why: &str| {
        pull(&signed.spot, "other", &signed.server, &image).fails(1).says(&[why, "hint: sign it with a key"]);
    };
    let repository = format!("{}/shop", signed.server.host);
    signed.sign(&[("ours", &signed.payload(&repository))]);
    by("matchRepoDigestOrExact");
    kept_out(&format!("the image is signed as `{repository}`"));
    // The tag may be another one.
    let tagged = format!("{repository}:other");
    signed.sign(&[("ours", &signed.payload(&tagged))]);
    by("matchExact");
    kept_out(&format!("the image is signed as `{tagged}`"));
    by("matchRepoDigestOrExact");
    pull(&signed.spot, "other", &signed.server, &image).succeeds();
}

#[test]
fn a_policy_for_all_subdomains_has_registries_with_a_port() {
    let Some(signed) = Signed::new() else { return };
    let (everything, nothing) = (json!([{"type": "insecureAcceptAnything"}]), json!([{"type": "reject"}]));
    signed.policy_text(&json!({"default": everything, "transports": {"docker": {"*.0.0.1": nothing}}}).to_string());
    signed.is_kept_out("it lets in no image from there");
    assert!(!signed.skopeo());
    signed.policy_text(&json!({"default": nothing, "transports": {"docker": {"*.0.1": everything}}}).to_string());
    signed.is_let_in();
    assert!(signed.skopeo());
}

#[test]
fn a_policy_that_cannot_be_followed_lets_nothing_in() {
    let Some(signed) = Signed::new() else { return };
    signed.sign(&[("ours", &signed.payload(&signed.name()))]);
    let fails = |text: &str, says: &[&str]| {
        signed.policy_text(text);
        pull(&signed.spot, "other", &signed.server, "shop:v1").fails(1).says(says);
        has_nothing(&signed.spot, "other");
    };
    let hint = "hint: repair it, or move it away: see containers-policy.json(5)\n";
    for text in [
        "",
        "{}",
        "[]",
        "{\"default\": [], \"transports\": {}}",
        "{\"default\": [{\"type\": \"reject\"}], \"more\": 1}",
    ] {
        fails(text, &["policy.json` is not valid: ", hint]);
        assert!(!signed.skopeo(), "{text}");
    }
    let all = |requirement: Value| json!({"default": [requirement]}).to_string();
    fails(&all(json!({"type": "sigstoreSigned"})), &["is not valid: it names no key", hint]);
    fails(&all(json!({"type": "sigstoreSigned", "keyPath": "/nowhere/key.pub"})), &["No such file", hint]);
    fails(&all(json!({"type": "sigstoreSigned", "keyData": "!"})), &["not valid base64", hint]);
    fails(&all(json!({"type": "sigstoreSigned", "keyData": "AAAA"})), &["a key in it is no public key in PEM", hint]);
    let here = |name: &str| json!({"type": "sigstoreSigned", "keyPath": signed.key(name)});
    let with = |more: &str, value: Value| {
        let mut requirement = here("ours");
        requirement[more] = value;
        all(requirement)
    };
    fails(&with("signedIdentity", json!({"type": "matchSomehow"})), &["is not valid: ", hint]);
    fails(&with("pki", json!({})), &["it demands a check that is not known here: `pki`"]);
    fails(&all(json!({"type": "somebodySaysSo"})), &["it demands a check that is not known here"]);
    // These others can check.
    signed.policy_text(&all(json!({"type": "signedBy", "keyType": "GPGKeys", "keyPath": signed.key("ours")})));
    let says = ["it demands a check that is not known here"];
    pull(&signed.spot, "other", &signed.server, "shop:v1").fails(1).says(&says);
    signed.policy_text(&all(here("rsa")));
    let says = ["rsa.pub` is neither an ECDSA key (P-256, P-384) nor one of Ed25519", hint];
    pull(&signed.spot, "other", &signed.server, "shop:v1").fails(1).says(&says);
    has_nothing(&signed.spot, "other");
}

#[test]
fn signatures_that_are_none_are_passed_over() {
    let Some(signed) = Signed::new() else { return };
    let data = STANDARD.encode(fs_err::read(signed.key("ours")).unwrap());
    signed.policy(&json!([{"type": "sigstoreSigned", "keyData": data}]));
    let kind = "application/vnd.dev.cosign.simplesigning.v1+json";
    let mut blob = signed.put_blob(signed.payload(&signed.name()).to_string().as_bytes());
    blob["mediaType"] = kind.into();
    // Without a signature, and with something else in its place.
    signed.put_signatures(vec![blob.clone()]);
    signed.is_kept_out("no signature of the image is by a key that it names");
    for text in ["", "!", "AAAA"] {
        blob["annotations"] = json!({"dev.cosignproject.cosign/signature": text});
        signed.put_signatures(vec![blob.clone()]);
        pull(&signed.spot, "other", &signed.server, "shop:v1")
            .fails(1)
            .says(&["no signature of the image is by a key"]);
    }
    // Signed, but by somebody who means something else by it.
    let mut other = signed.payload(&signed.name());
    other["critical"]["type"] = "a receipt".into();
    signed.sign(&[("ours", &other)]);
    signed.is_kept_out("a signature is of another kind");
    signed.sign(&[("ours", &json!({"critical": {}}))]);
    signed.is_kept_out("a signature cannot be read");
}

#[test]
fn keys_of_other_kinds_count_too() {
    let Some(signed) = Signed::new() else { return };
    for by in ["large", "edwards"] {
        signed.policy(&json!([{"type": "sigstoreSigned", "keyPath": signed.key(by)}]));
        signed.sign(&[("ours", &signed.payload(&signed.name()))]);
        signed.is_kept_out("no signature of the image is by a key that it names");
        signed.sign(&[(by, &signed.payload(&signed.name()))]);
        signed.is_let_in();
    }
}
