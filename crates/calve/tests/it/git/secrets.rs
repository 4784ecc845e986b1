//! Secrets in a URL or in git's configuration are printed nowhere.

use calve_testkit::{git, matrix};

use super::host::HostFault;
use super::{Hosted, alone};
use crate::program::{Calve, RunResult, calve};

/// Stands for a token, wherever one can be.
const TOKEN: &str = "t0p-s3cr3t";

#[track_caller]
fn tells_nothing(ran: &RunResult) {
    let said = format!("{}{}", ran.stdout, ran.stderr);
    assert!(!said.contains(TOKEN) && !said.contains("s3cr3t"), "{said}");
}

/// Settings for git, as a user gives them: one that would print every header, one that has a token in each, and one that puts a
/// token into a URL.
fn configured(command: Calve, hosted: &Hosted) -> Calve {
    let instead = format!("url.http://me:{TOKEN}@{}.insteadOf", &hosted.host.url("")["http://".len()..]);
    let settings = [("http.extraHeader", format!("PRIVATE-TOKEN: {TOKEN}")), (&instead, "short:".to_owned())];
    let mut command = command
        .env("GIT_CURL_VERBOSE", "1")
        .env("GIT_TRACE_CURL", "2")
        .env("GIT_CONFIG_COUNT", settings.len().to_string());
    for (at, (name, value)) in settings.iter().enumerate() {
        command = command.env(&format!("GIT_CONFIG_KEY_{at}"), name).env(&format!("GIT_CONFIG_VALUE_{at}"), value);
    }
    command
}

#[test]
fn a_token_in_a_url_is_in_no_plan_and_no_error() {
    let hosted = Hosted::new();
    let url = format!("{}?private_token={TOKEN}", hosted.url());
    let planned = hosted.calve(&["clone", "-n", "--json", "--for", "dev", &url]).succeeds().json();
    assert_eq!((&planned["dst"], &planned["url"]), (&"project".into(), &format!("{}?REDACTED", hosted.url()).into()));
    let there = hosted.host.url("missing.git");
    let with_login = there.replace("http://", &format!("http://me:{TOKEN}@"));
    let urls = [
        format!("{there}?private_token={TOKEN}"),
        format!("{there}?private_token={TOKEN}&ref=it's+{TOKEN}"),
        format!("{there}#{TOKEN}"),
        format!("{with_login}?private_token={TOKEN}#{TOKEN}"),
        there.replace("http://", &format!("http://{TOKEN}@")),
        with_login.replace(TOKEN, "t0p%2Ds3cr3t"),
        "short:missing.git".to_owned(),
        format!("http://me:{TOKEN}/x@127.0.0.1/missing.git"),
        format!("https:/me:{TOKEN}@127.0.0.1/missing.git"),
        format!("gopher://me:{TOKEN}@127.0.0.1/missing.git?{TOKEN}"),
        format!("http://127.0.0.1?{TOKEN}"),
    ];
    for url in &urls {
        for purpose in matrix(["dev", "ci", "history"]) {
            let base = ["clone", "--for", purpose];
            tells_nothing(&hosted.calve(&[&base[..], &["-n", url]].concat()).run());
            tells_nothing(&hosted.calve(&[&base[..], &["-n", "--json", url]].concat()).run());
            let failed = configured(hosted.calve(&[&base[..], &[url]].concat()), &hosted).run();
            assert!(!failed.stderr.is_empty() && failed.stdout.is_empty(), "{url}: {}", failed.stderr);
            tells_nothing(&failed);
        }
        let failed = alone(calve(["bench", "git", "--runs", "1", "--repo", url]).within(&hosted.spot)).run();
        tells_nothing(&failed);
    }
}

#[test]
fn a_token_is_in_no_receipt_of_a_clone_or_a_fetch() {
    let hosted = Hosted::with(HostFault::Demands("me".into(), TOKEN.into()));
    let url = hosted.url().replace("http://", &format!("http://me:{TOKEN}@"));
    for (at, url) in [url.as_str(), "short:project.git"].into_iter().enumerate() {
        for more in [&["--json"][..], &[]] {
            let dst = format!("clone-{at}-{}", more.len());
            let cloned = configured(hosted.calve(&[&["clone", "--for", "dev", url, &dst], more].concat()), &hosted);
            tells_nothing(&cloned.succeeds());
            let directory = hosted.spot.join(&dst);
            // As `git clone` itself would have left it.
            let stored = format!("{url}?private_token={TOKEN}");
            for stored in [hosted.host.url("missing.git").replace("http://", &format!("http://me:{TOKEN}@")), stored] {
                git(&directory, ["config", "remote.origin.url", &stored]);
                for arguments in
                    [&["fetch", "-C", &dst][..], &["fetch", "-n", "-C", &dst], &["fetch", "--json", "-C", &dst]]
                {
                    tells_nothing(&configured(hosted.calve(arguments), &hosted).run());
                }
                let add = alone(calve(["worktree", "add", "pr/1"]).within(&directory));
                let failed = configured(add, &hosted).fails(1).says(&[
                    "check the spelling of the URL; many servers also answer so if you may not see the repository",
                ]);
                tells_nothing(&failed);
            }
            git(&directory, ["config", "remote.origin.url", url]);
            tells_nothing(&configured(hosted.calve(&["fetch", "--json", "-C", &dst]), &hosted).run());
        }
    }
}
