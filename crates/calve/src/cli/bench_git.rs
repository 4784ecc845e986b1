//! `calve bench git`: its options.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args, ValueEnum};

use super::report::ReportArguments;
use super::size;
use crate::name_parser::NameParser;
use calve_bench::git::{CaseSelection, Link, SyntheticShape};

/// Measure what each way to clone a repository costs client and server
///
/// Serves a private copy of each repository on 127.0.0.1, by git's own http-backend, to clients that clone and fetch while one
/// user pushes. Tells the time for the client, the CPU time and memory of the server, requests and bytes; what git fetches later
/// because a clone was partial is charged to the command that needed it.
///
/// T1 to T4 are clones: full, --depth=1, --filter=tree:0, --filter=blob:none; with git checkout and git blame of the past. T5 to
/// T10 clone and then fetch, each time after at least one push, and reset to what was fetched: T5 full clone and full fetch, T6
/// full and --depth=1, T7 shallow and full, T8 shallow and --depth=1, T9 treeless and full, T10 blobless and full.
///
/// The repositories are only read. Everything is made in one hidden directory in the place given by --into, which is removed at
/// the end, also after an error or Ctrl-C. Automatic gc is off on both sides, and nothing of your git configuration is used.
#[derive(Debug, Args)]
#[command(mut_arg("json", |json| json.help("Print the report as JSON on stdout (schema calve.bench.git/1)")))]
#[command(group = ArgGroup::new("what").required(true).multiple(true).args(["repo", "synthetic", "server"]))]
#[command(after_help = "\
Examples:
  calve bench git --repo . --export-html report.html
  calve bench git --repo ~/src/a --repo https://example.org/b.git --tests T1-T4 --net 100mbit,20ms
  calve bench git --synthetic small --iterations 5
  calve bench git --server https://example.org/b.git    what your own server does, from the client's side

Exit codes: 0 measured, 1 failed, or a command of git did, 2 usage, 130 interrupted.")]
pub(crate) struct BenchGitArguments {
    /// A repository to copy and serve: a directory or a URL (may be given several times)
    #[arg(long, value_name = "PATH|URL")]
    pub(crate) repo: Vec<String>,
    /// A repository made up for this: small (long history), middle, or blobs (few commits, large files) (may be given several times)
    #[arg(long, value_name = "SHAPE", value_parser = NameParser(&["small", "middle", "blobs"], shape), hide_possible_values = true)]
    pub(crate) synthetic: Vec<SyntheticShape>,
    /// The number of commits of what is made up [default: small 6000, middle 5000, blobs 40]
    #[arg(long, value_name = "N", requires = "synthetic")]
    pub(crate) commits: Option<NonZeroU32>,
    /// The number of files of what is made up [default: small 300, middle 6000, blobs 20]
    #[arg(long, value_name = "N", requires = "synthetic")]
    pub(crate) files: Option<NonZeroU32>,
    /// The size of a file of what is made up; bytes, or with K or M (1,024 each) [default: small 6000, middle 8000, blobs 1000000]
    #[arg(long, value_name = "SIZE", value_parser = size, requires = "synthetic")]
    pub(crate) file_size: Option<u64>,
    /// A server of your own, to be cloned from and not changed: T1 to T4, from the client's side only
    #[arg(long, value_name = "URL", conflicts_with_all = ["repo", "synthetic", "concurrency", "net", "bitmaps", "against_daemon"])]
    pub(crate) server: Option<String>,
    /// Which tests, as in T1,T5-T10 [default: all]
    #[arg(long, value_name = "LIST")]
    pub(crate) tests: Option<CaseSelection>,
    /// The branch that all use [default: the one that is checked out there]
    #[arg(long, value_name = "NAME")]
    pub(crate) branch: Option<String>,
    /// The number of clients that work at once
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) concurrency: u32,
    /// The time for which the clients of each test go on in one round, such as 30s or 10m
    #[arg(long, value_name = "TIME", value_parser = time, conflicts_with = "iterations")]
    pub(crate) duration: Option<Duration>,
    /// The number of rounds, with each test once in each [default: as many as eight minutes allow, 3 to 10; short ones up to 30]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) iterations: Option<u32>,
    /// The number of fetches that follow each clone in T5 to T10
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) fetches: u32,
    /// The number of commits that git checkout and git blame go back in T1, T3 and T4
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) back: u32,
    /// How often the user pushes, beside the pushes that fetches wait for
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "2s")]
    pub(crate) push_every: Duration,
    /// A slower link: its rate each way, and the time there and back, as in 100mbit,20ms
    #[arg(long, value_name = "LINK")]
    pub(crate) net: Option<Link>,
    /// Whether the server's packs have bitmaps, as git gc makes them in a bare repository
    #[arg(long, value_name = "WHETHER", default_value = "on")]
    pub(crate) bitmaps: Switch,
    /// The version of git's protocol
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(0..=2))]
    pub(crate) protocol: u8,
    /// Also clone from git daemon, to see what the bench's own host adds
    ///
    /// While that runs, everybody on this machine can read the copies of the repositories.
    #[arg(long)]
    pub(crate) against_daemon: bool,
    /// The directory in which everything is made, for as long as it takes [default: the directory for temporary files]
    #[arg(long, value_name = "DIR")]
    pub(crate) into: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) report: ReportArguments,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Switch {
    On,
    Off,
}

fn shape(name: &str) -> Result<SyntheticShape, String> {
    let found = SyntheticShape::ALL.into_iter().find(|shape| shape.name() == name);
    found.ok_or_else(|| "the shapes are small, middle and blobs".into())
}

/// Parses a duration with its unit, such as "30s", "10m", "500ms" or "1h".
fn time(text: &str) -> Result<Duration, String> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let factor = match unit {
        "ms" => Some(0.001),
        "s" => Some(1.0),
        "m" => Some(60.0),
        "h" => Some(3600.0),
        _ => None,
    };
    let seconds = digits.parse::<f64>().ok().zip(factor).map(|(number, factor)| number * factor);
    let seconds = seconds.filter(|seconds| (0.001..=864_000.0).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "a time is a number with ms, s, m or h, as in 30s".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_unit() {
        assert_eq!(time("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(time("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(time("250ms"), Ok(Duration::from_millis(250)));
        for wrong in ["", "30", "s", "0s", "-1s", "30 s", "9999h"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }
}
