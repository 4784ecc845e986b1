//! The hints of `calve db` that need no server: how each comes about, and that it helps.

use super::case::{Case, case};

pub(super) const CASES: &[Case] = &[
    case(
        "NameEngine",
        "",
        "calve db template create p",
        "name one with `--engine`: postgres, mariadb, mysql, redis, valkey",
        "calve db template create --help | grep -q postgres",
    ),
    case(
        "CreateTemplate",
        "",
        "calve db start none",
        "see `calve db template list`, or create it: calve db template create none --engine …",
        "calve db template list",
    ),
    case("ListServers", "", "calve db stop none", "see `calve db list`", "calve db list"),
    case(
        "InstallServer",
        "",
        "calve db template create p --engine postgres --server-bin /nonexistent",
        "install the server, or name its directory with `--server-bin`, or an image with `--image`",
        "true",
    ),
    case("ReadHelp", "", "calve db start ..", "see `calve db --help`", "calve db --help"),
    case(
        "NameOneSource",
        "",
        "calve db template create p --engine postgres --from d --base b",
        "name either a data directory or a base",
        "true",
    ),
    case(
        "ChooseHome",
        "",
        "CALVE_HOME=$PWD/file/home calve db template create p --engine postgres",
        "set CALVE_HOME to a directory of your own that others may enter",
        "calve db list",
    ),
    case(
        "CheckPath",
        "",
        "CALVE_HOME=$PWD/file/home calve db list",
        "check the path and the disk, then try again",
        "calve db list",
    ),
];
