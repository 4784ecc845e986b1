//! The hints of the engine: how each comes about, and that it helps.

use super::case::{Case, case};

/// A clone to which that system call fails.
macro_rules! failing {
    ($call:literal, $fault:literal) => {
        concat!("strace -f -qq -o /dev/null -e trace=", $call, " -e inject=", $call, ":", $fault, " calve cp . ../new")
    };
}

pub(super) const CASES: &[Case] = &[
    case("CheckSpelling", "", "calve cp none new", "check the spelling of the path", "calve cp file new"),
    case(
        "DropSlash",
        "mkdir d; ln -s d link",
        "calve rm link/",
        "leave out the slash to remove the symlink itself",
        "calve rm link; test -d d; ! test -h link",
    ),
    case(
        "CreateDirectory",
        "",
        r#"calve cp file "no such/it's/new""#,
        r#"create it first: mkdir -p 'no such/it'\''s'"#,
        r#"eval "${HINT#*: }"; calve cp file "no such/it's/new""#,
    ),
    case(
        "LeaveDirectory",
        "mkdir d",
        "cd d; calve rm ../d",
        "change to another directory first",
        "cd d; cd ..; calve rm --wait d",
    ),
    case(
        "RaiseOpenFiles",
        "",
        "ulimit -n 8; calve cp . ../new",
        "raise the limit of open files (ulimit -n 4096)",
        "calve cp . ../new",
    ),
    case(
        "NameDirectory",
        "mkdir d",
        "calve template create deps file",
        "name a directory",
        "calve template create deps d",
    ),
    case(
        "KeepTemplateElsewhere",
        "mkdir d",
        "CALVE_HOME=$PWD/d/home calve template create deps d",
        "name a directory outside of the source to keep it in",
        "mkdir ../at; CALVE_HOME=$PWD/d/home calve template create --at ../at deps d",
    ),
    case(
        "RefreshTemplate",
        "mkdir d at; calve template create --at at deps d; calve rm --wait at",
        "calve cp @deps copy",
        "rebuild it: calve template refresh deps",
        r#"mkdir at; eval "${HINT#*: }"; calve cp @deps copy"#,
    ),
    case(
        "RemoveTemplate",
        r#"mkdir d; calve template create deps d; find "$CALVE_HOME" -name 'deps*.template' -exec cp file {} \;"#,
        "calve cp @deps copy",
        "remove it, and create it again: calve template remove deps",
        r#"eval "${HINT#*: }"; calve template create deps d; calve cp @deps copy"#,
    ),
    case(
        "RefreshOrRemoveTemplate",
        "mkdir d; calve template create deps d",
        "calve template create deps d",
        "rebuild it with `calve template refresh deps`, or remove it with `calve template remove deps`",
        "calve template refresh deps; calve template remove deps; calve template create deps d",
    ),
    case(
        "VerifyTemplate",
        r#"mkdir d; echo 1 >d/mark; calve template create deps d; find "$CALVE_HOME" -name mark -exec cp file {} \;"#,
        "calve cp @deps copy",
        "`calve template verify deps` shows what differs; `calve template refresh deps` rebuilds it",
        "! calve template verify deps; calve template refresh deps; calve cp @deps copy",
    ),
    case(
        "ChooseFileSystemForLargeFiles",
        "seq 1000 >large",
        "trap '' XFSZ; ulimit -f 1; calve cp --strategy copy large new",
        "the file is too large for the destination's file system: clone to another one",
        "calve cp large new",
    ),
    // What all of the machine, a device or a server would have to fail for.
    case(
        "RaiseProcesses",
        "",
        failing!("clone3,clone", "error=EAGAIN"),
        "raise the limit of processes (ulimit -u)",
        "calve cp . ../new",
    ),
    case(
        "RaiseSystemOpenFiles",
        "",
        failing!("mkdirat", "error=ENFILE:when=2"),
        "the system has too many open files: end some programs, or raise the limit (sysctl fs.file-max, on macOS kern.maxfiles)",
        "calve cp . ../new",
    ),
    case("FreeMemory", "", failing!("mkdirat", "error=ENOMEM:when=2"), "free some memory", "calve cp . ../new"),
    case(
        "EndUse",
        "",
        failing!("renameat2", "error=EBUSY"),
        "it is in use, or something is mounted on it (see findmnt): end that, then try again",
        "calve cp . ../new",
    ),
    case(
        "MountAgain",
        "",
        failing!("mkdirat", "error=ESTALE:when=2"),
        "the server or program behind this file system does not answer: mount it again, then try again",
        "calve cp . ../new",
    ),
    case(
        "ProbeFileSystem",
        "",
        failing!("mkdirat", "error=EOPNOTSUPP:when=2"),
        "this file system cannot do that; `calve probe SRC DST` shows what it can do",
        "calve probe . ..",
    ),
    case(
        "RenameForFileSystem",
        "",
        failing!("mkdirat", "error=EILSEQ:when=2"),
        "the destination's file system cannot store that name: rename it, or clone to another file system",
        "calve cp . ../new",
    ),
    case(
        "StopRemovals",
        "",
        failing!("mkdirat", "error=ENOENT:when=2"),
        "it disappeared meanwhile: stop the program that removes it, then try again",
        "calve cp . ../new",
    ),
    case(
        "StopWrites",
        "",
        failing!("renameat2", "error=ENOTEMPTY"),
        "stop the program that makes files there, then try again",
        "calve cp . ../new",
    ),
    case("TryAgain", "", failing!("mkdirat", "error=EINTR:when=2"), "try again", "calve cp . ../new"),
    case(
        "CheckLog",
        "",
        failing!("mkdirat", "error=ENOTRECOVERABLE:when=2"),
        "look at the kernel's log (dmesg) and at what is mounted there (findmnt), then try again",
        "calve cp . ../new",
    ),
];
