use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use calve_core::Strategy;
use calve_db::EngineKind;
use clap::{Args, Subcommand};
use clap_complete::engine::ArgValueCandidates;

use super::registry::{PullOptions, PushOptions};
use crate::branch_names;
use crate::name_parser::NameParser;

#[derive(Debug, Subcommand)]
pub(crate) enum DbCommand {
    /// Prepare, list and remove templates
    Template {
        #[command(subcommand)]
        command: TemplateCommand,
    },
    Pool(PoolArguments),
    Start(StartArguments),
    Run(RunArguments),
    /// Save a server's current state, to return to it
    ///
    /// `calve db reset SERVER --to NAME` returns to it. Calve shuts the server down cleanly, clones its data directory, and starts it again:
    /// sessions are disconnected, and uncommitted changes are not in the mark. The URL stays the same. Marks are deleted with their server.
    Mark {
        /// The name of the server
        server: String,
        /// The name of the mark
        name: String,
        /// Print the mark as JSON on stdout (schema calve.db.mark/1)
        #[arg(long)]
        json: bool,
    },
    /// List the marks of a server, the oldest first
    Marks {
        /// The name of the server
        server: String,
        /// Print the marks as JSON on stdout (schema calve.db.marks/1)
        #[arg(long)]
        json: bool,
    },
    /// Remove marks of a server
    Unmark {
        /// The name of the server
        server: String,
        /// The names of the marks
        #[arg(value_name = "NAME", required = true)]
        names: Vec<String>,
    },
    /// Reset servers to their template, or to a mark
    ///
    /// Names and URLs stay the same; open sessions are disconnected. A server stays as it is, and the command fails, if its template is gone,
    /// damaged, or now of another version. If the template has a pool, Calve prepares the server for the next reset ahead of time.
    Reset {
        /// The names of the servers
        #[arg(value_name = "NAME", required = true)]
        names: Vec<String>,
        /// Go back to this mark [default: the template]
        #[arg(long, value_name = "MARK")]
        to: Option<String>,
        /// Print the servers as JSON on stdout (schema calve.db.servers/1)
        #[arg(long)]
        json: bool,
    },
    Stop(StopArguments),
    List(ServerListArguments),
    /// Print the last lines of a server's log
    ///
    /// The server may run, or may have ended by itself or by its --ttl. Calve keeps the last 64 KiB of the logs of the last 32 ended
    /// servers for three days, where only you can read them.
    Logs {
        /// The name of the server
        name: String,
    },
    Promote(PromoteArguments),
    /// Print how to connect to a server
    #[command(after_help = "\
Formats:
  url    by the private socket
  tcp    by TCP, with the password, for JDBC and others; the server needs `--tcp`
  env    lines for eval \"$(calve db url NAME --format env)\"; also unsets other client variables
  json   everything (schema calve.db.server/1)
  dsn    libpq's keywords (PostgreSQL), the Go driver's form (MariaDB, MySQL), or the socket's path")]
    Url {
        /// The name of the server
        name: String,
        /// Print in this format: url, tcp, env, json, dsn
        #[arg(long, value_name = "FORMAT", value_parser = NameParser(&["url", "tcp", "env", "json", "dsn"], format), default_value = "url", hide_possible_values = true)]
        format: String,
    },
    Gc(GcArguments),
}

#[derive(Debug, Subcommand)]
pub(crate) enum TemplateCommand {
    Create(Box<TemplateCreateArguments>),
    /// List templates
    List {
        /// Print the list as JSON on stdout (schema calve.db.templates/1)
        #[arg(long)]
        json: bool,
    },
    /// Remove templates
    ///
    /// Names are free immediately; files in use are deleted when their server stops.
    Remove {
        /// The names of the templates
        #[arg(value_name = "NAME", required = true)]
        names: Vec<String>,
    },
    /// Send a template to an OCI registry
    ///
    /// It becomes an ordinary image: layers of tar, compressed by zstd. Large files are split by content, so later pulls fetch only what
    /// changed. Layers already in the registry are not sent again. Ownership and times are not stored. Uses docker's and podman's credentials,
    /// after `docker login` or `podman login`. A template whose servers run in containers is refused.
    #[command(after_help = "\
Examples:
  calve db template push shop ghcr.io/team/shop-data:main
  calve db template push --plain-http shop 127.0.0.1:5000/shop-data")]
    Push {
        #[command(flatten)]
        push: PushOptions,
        /// Print the report as JSON on stdout (schema calve.db.template.push/1)
        #[arg(long)]
        json: bool,
    },
    Pull(TemplatePullArguments),
}

/// Prepare a template: a data directory that servers are cloned from
///
/// Makes a new data directory (or clones one, or another template), starts a server on it, runs COMMAND, and stops the server. COMMAND
/// connects through DATABASE_URL and PGHOST, PGPORT, PGUSER and PGDATABASE, or MYSQL_UNIX_PORT, MYSQL_HOST and MYSQL_TCP_PORT; Redis and
/// Valkey through REDIS_URL and REDIS_SOCKET. It connects as the superuser, without a password. Calve unsets all other variables that these
/// clients read. COMMAND's output goes to stderr. If COMMAND fails, Calve makes no template and exits with its exit code. If COMMAND never
/// connects to the server, Calve makes no template either. Without COMMAND the template is empty.
///
/// Does nothing if the template exists and was made from the same server program, data directory, base, files that match
/// --input, and COMMAND's words.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  calve db template create shop --engine postgres --input 'migrations/*.sql' -- ./migrate
  calve db template create full --base shop --input seed.sql -- psql -v ON_ERROR_STOP=1 -f seed.sql
  calve db template create legacy --engine mariadb --from /backup/mysql")]
pub(crate) struct TemplateCreateArguments {
    /// The name of the template
    pub(crate) name: String,
    /// Use this engine [default: that of --base]
    #[arg(long, value_name = "ENGINE", value_parser = ENGINES)]
    pub(crate) engine: Option<String>,
    /// Start from a copy of this data directory, of a stopped server [default: none]
    #[arg(long, value_name = "DATADIR")]
    pub(crate) from: Option<PathBuf>,
    /// Start from this template [default: none]
    #[arg(long, value_name = "TEMPLATE")]
    pub(crate) base: Option<String>,
    /// Start from this mark of a server [default: none]
    #[arg(long, value_name = "SERVER:MARK", value_parser = mark, conflicts_with_all = ["from", "base"])]
    pub(crate) from_mark: Option<(String, String)>,
    /// Rebuild the template when these files change (repeatable) [default: none]
    #[arg(long, value_name = "GLOB")]
    pub(crate) input: Vec<String>,
    /// Rebuild even if nothing changed, or to replace one of another engine
    #[arg(long)]
    pub(crate) rebuild: bool,
    /// Find the server's programs in DIR [default: PATH and the usual places]
    #[arg(long, value_name = "DIR")]
    pub(crate) server_bin: Option<PathBuf>,
    /// Run its servers in containers of this local image [default: that of --base]
    #[arg(long, value_name = "IMAGE", conflicts_with = "server_bin")]
    pub(crate) image: Option<String>,
    /// Use this podman or docker [default: the first in PATH with the image; docker first if DOCKER_HOST is set]
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) runtime: Option<PathBuf>,
    /// Print the template as JSON on stdout (schema calve.db.template/1)
    #[arg(long)]
    pub(crate) json: bool,
    /// The command that fills it [default: none]
    #[arg(value_name = "COMMAND", last = true)]
    pub(crate) command: Vec<OsString>,
}

/// Receive a template from an OCI registry
///
/// A server of the template's engine and version must be on this machine. Every byte is checked. The template appears under its name only
/// when it is complete and on the disk. Pulling again from the same repository replaces the template atomically and reuses unchanged files.
/// An interrupted pull resumes where it stopped.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  calve db template pull ghcr.io/team/shop-data:main --name shop
  calve db template pull --if-key schema.sql ghcr.io/team/shop-data
  calve db start shop")]
pub(crate) struct TemplatePullArguments {
    #[command(flatten)]
    pub(crate) pull: PullOptions,
    /// Find the server's programs in DIR [default: PATH and the usual places]
    #[arg(long, value_name = "DIR")]
    pub(crate) server_bin: Option<PathBuf>,
    /// Print the report as JSON on stdout (schema calve.db.template.pull/1)
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ServerOptions {
    /// Also listen on 127.0.0.1:PORT, with a password [default: off; without PORT a free port]
    #[arg(long, value_name = "PORT", num_args = 0..=1, require_equals = true, default_missing_value = "0")]
    pub(crate) tcp: Option<u16>,
    /// Use this strategy or fail: snapshot, clonefile, reflink, overlay, copy [default: the best that works]
    #[arg(long, value_name = "NAME", value_parser = NameParser(&["snapshot", "clonefile", "reflink", "overlay", "copy"], strategy), hide_possible_values = true)]
    pub(crate) strategy: Option<Strategy>,
    /// Stop the server after this time: 90s, 30m, 12h, 7d, or none
    #[arg(long, value_name = "DURATION", value_parser = ttl, default_value = "12h")]
    pub(crate) ttl: Ttl,
}

/// Start a server on a clone of a template, and print its URL
///
/// The server runs until `calve db stop`, until --ttl expires, or until its owner ends (--owner-pid). Its files are then deleted. Its
/// writes reach neither the template nor other servers, and do not survive a crash.
#[derive(Debug, Args)]
pub(crate) struct StartArguments {
    /// The template
    pub(crate) template: String,
    /// Give the server this name [default: the template's, and some letters]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    #[command(flatten)]
    pub(crate) server: ServerOptions,
    /// Stop the server when this process ends (of several: the first) [default: none]
    #[arg(long, value_name = "PID")]
    pub(crate) owner_pid: Vec<u32>,
    /// Print the server as JSON on stdout (schema calve.db.server/1)
    #[arg(long)]
    pub(crate) json: bool,
}

/// Run a command with a server of its own
///
/// CMD finds the server by the same environment variables as with `calve db template create`. The server lives exactly as long as
/// CMD, and CMD and its children end if Calve is killed. The exit code is CMD's.
#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// The template
    pub(crate) template: String,
    #[command(flatten)]
    pub(crate) server: ServerOptions,
    /// Leave the server running when CMD fails, and say where it is
    #[arg(long)]
    pub(crate) keep_on_failure: bool,
    /// The command to run
    #[arg(value_name = "CMD", last = true, required = true)]
    pub(crate) command: Vec<OsString>,
}

/// Keep servers waiting for `calve db start` and `calve db run`
///
/// Starts standby servers of TEMPLATE and returns when they are ready. Whenever one is taken, a process in the background starts the next.
/// Without TEMPLATE and --size, lists the pools. Memory and disk limit a pool. Its servers stop after --idle without use, when the
/// template changes, and with the session in which the pool was made (see setsid(2)), such as that of a terminal or a CI job. `--tcp` and
/// `--strategy` always start a new server.
///
/// With `[db.TEMPLATE] standby = N` in a project's `.calve.toml`, `calve db start TEMPLATE` and `calve db run TEMPLATE` make the pool themselves.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  calve db pool shop --size 4
  calve db pool shop --size 0    (ends the pool)")]
pub(crate) struct PoolArguments {
    /// The template [default: list all pools]
    #[arg(value_name = "TEMPLATE", requires = "size")]
    pub(crate) template: Option<String>,
    /// Keep N servers ready; 0 ends the pool [default: list all pools]
    #[arg(long, value_name = "N", requires = "template")]
    pub(crate) size: Option<usize>,
    /// Stop its servers after this time without use: 90s, 30m, 7d, or none
    #[arg(long, value_name = "DURATION", value_parser = ttl, default_value = "10m")]
    pub(crate) idle: Ttl,
    /// Keep the pool when the session ends
    #[arg(long)]
    pub(crate) keep: bool,
    /// Print the pools as JSON on stdout (schema calve.db.pools/1)
    #[arg(long)]
    pub(crate) json: bool,
}

/// Stop servers and delete their files
#[derive(Debug, Args)]
pub(crate) struct StopArguments {
    /// The names of the servers
    #[arg(value_name = "NAME", required_unless_present = "all", conflicts_with = "all")]
    pub(crate) names: Vec<String>,
    /// Stop all servers
    #[arg(long)]
    pub(crate) all: bool,
    /// Print stopped servers as JSON on stdout (schema calve.db.servers/1)
    #[arg(long)]
    pub(crate) json: bool,
}

/// List servers
#[derive(Debug, Args)]
pub(crate) struct ServerListArguments {
    /// Also list the data of all services, with owner, state and size
    #[arg(long)]
    pub(crate) all: bool,
    /// Print the list as JSON on stdout (schema calve.db.servers/1)
    #[arg(long)]
    pub(crate) json: bool,
}

/// Make the data of a worktree the new template
///
/// For each service, asks, then makes a clone of its data the template for new worktrees. Existing worktrees keep their data. The worktree's
/// servers keep running. To compare the data, use the engine's own tool, such as `pg_dump`, with the URLs of `calve env` and `calve db url`.
///
/// `calve db template create` replaces a promoted template only with --rebuild.
#[derive(Debug, Args)]
pub(crate) struct PromoteArguments {
    /// The worktree: its branch, its path, or the last component of its path
    #[arg(value_name = "WORKTREE", add = ArgValueCandidates::new(branch_names::of_worktrees))]
    pub(crate) worktree: PathBuf,
    /// Promote the data of this service only [default: all]
    #[arg(long, value_name = "NAME")]
    pub(crate) service: Option<String>,
    /// Name the templates that would be replaced, and do nothing
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
    /// Promote without asking
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Print what was done as JSON on stdout (schema calve.db.promote/1)
    #[arg(long)]
    pub(crate) json: bool,
}

/// Remove what a crash left behind
///
/// Other commands do this too. `gc` also waits for every deletion, and lists service data whose worktree or repository
/// is missing: deleted, moved, or on a disk that is not mounted. It removes such data only if you name it, or
/// agree on a terminal.
#[derive(Debug, Args)]
pub(crate) struct GcArguments {
    /// The data of missing worktrees to remove, unless changed or in use
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// Remove the named data even if modified, and stop its servers
    #[arg(long)]
    pub(crate) lose_data: bool,
    /// Print what was found as JSON on stdout (schema calve.db.gc/1)
    #[arg(long)]
    pub(crate) json: bool,
}

/// Lifetime of a server; `None` is unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ttl(pub(crate) Option<Duration>);

fn ttl(text: &str) -> Result<Ttl, String> {
    if text == "none" {
        return Ok(Ttl(None));
    }
    let wrong = || "a duration is a number and s, m, h or d, as in 90s or 12h; or none".to_owned();
    let at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..at].parse().map_err(|_| wrong())?;
    let unit = match &text[at..] {
        "s" | "" => 1,
        "m" => 60,
        "h" => 60 * 60,
        "d" => 24 * 60 * 60,
        _ => return Err(wrong()),
    };
    match number.checked_mul(unit) {
        Some(seconds) if (1..=3650 * 24 * 60 * 60).contains(&seconds) => Ok(Ttl(Some(Duration::from_secs(seconds)))),
        _ => Err("a server may stay for 1 second to 10 years".into()),
    }
}

fn mark(text: &str) -> Result<(String, String), String> {
    match text.split_once(':') {
        Some((server, mark)) if !server.is_empty() && !mark.is_empty() => Ok((server.to_owned(), mark.to_owned())),
        _ => Err("a mark is named with its server, as in web:seeded".into()),
    }
}

pub(crate) const ENGINES: NameParser<String> = NameParser(EngineKind::NAMES, engine);

pub(crate) fn engine(name: &str) -> Result<String, String> {
    let known = EngineKind::NAMES;
    if known.contains(&name) { Ok(name.into()) } else { Err(format!("the engines are {}", known.join(", "))) }
}

fn format(name: &str) -> Result<String, String> {
    let known = ["url", "tcp", "env", "json", "dsn"];
    if known.contains(&name) { Ok(name.into()) } else { Err(format!("the formats are {}", known.join(", "))) }
}

fn strategy(name: &str) -> Result<Strategy, String> {
    match name.parse::<Strategy>()? {
        Strategy::Hardlink => Err("hard links would let servers write into the template".into()),
        strategy => Ok(strategy),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_may_name_every_engine_and_the_largest_pool() {
        assert_eq!(EngineKind::NAMES, calve_git::ENGINES);
        assert_eq!(calve_db::MOST_STANDBYS, calve_git::MOST_STANDBYS);
    }

    #[test]
    fn durations_are_read() {
        let seconds = |text| ttl(text).unwrap().0.map(|ttl| ttl.as_secs());
        assert_eq!(
            [seconds("90s"), seconds("90"), seconds("2m"), seconds("12h")],
            [Some(90), Some(90), Some(120), Some(43200)]
        );
        assert_eq!(seconds("none"), None);
        for wrong in ["", "h", "1x", "-1s", "0s", "1.5h", "99999999999999999999d"] {
            assert!(ttl(wrong).is_err(), "{wrong}");
        }
    }
}
