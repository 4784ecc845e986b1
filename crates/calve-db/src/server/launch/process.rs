//! Starting the processes of a server: programs of this machine, and of images by a runtime.

use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use fs_err as fs;

use super::request::{DATA, LaunchRequest};
use crate::engine::Instance;
use crate::engine::container::{self, Container, Mount, Run, ServerProcess};
use crate::error::operation::Operation;
use crate::error::{Error, Result};
use crate::files::directory::Directory;
use crate::files::runtime;
use crate::sys::{self, Launch};

/// Starts the server's process. `notices` is the notify socket, if the server may have one.
pub(crate) fn start_server(
    wanted: &LaunchRequest<'_>,
    instance: &Instance,
    notices: Option<&Path>,
    output: &File,
) -> Result<ServerProcess> {
    let arguments = wanted.engine.arguments(instance)?;
    let notify = notices.map(|path| ("NOTIFY_SOCKET", path.as_os_str()));
    match &wanted.spec.container {
        Some(container) => start_in_container(wanted, container, &arguments, &instance.settings, true, output),
        None => start(wanted, &arguments, &instance.data, notify.as_slice(), output),
    }
}

pub(super) fn start(
    wanted: &LaunchRequest<'_>,
    command: &[OsString],
    directory: &Path,
    more: &[(&str, &OsStr)],
    output: &File,
) -> Result<ServerProcess> {
    let program = Path::new(&command[0]);
    let temporary = directory.with_file_name("tmp");
    let path = OsStr::new("/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    let variables = [("PATH", path), ("LC_ALL", OsStr::new("C")), ("TMPDIR", temporary.as_os_str())];
    let environment = variables.iter().chain(more).map(|(name, value)| variable(program, name.as_ref(), value));
    let null = null()?;
    let launch = Launch {
        command: command.iter().map(|word| c_text(program, word)).collect::<Result<_>>()?,
        environment: environment.collect::<Result<_>>()?,
        directory: c_text(program, directory.as_os_str())?,
        log: output.as_fd(),
        input: null.as_fd(),
        account: wanted.spec.account.to_become(),
        own_processes: wanted.spec.record.isolated,
    };
    let process = sys::spawn(&launch).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Error::NoProgram {
            program: program.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            places: vec![program.to_path_buf()],
        },
        _ => Error::io(Operation::Start, program, error),
    })?;
    Ok(ServerProcess::new(process, None))
}

/// Starts a program of the image: the runtime in the foreground, as this user, with [`container::environment`].
pub(super) fn start_in_container(
    wanted: &LaunchRequest<'_>,
    container: &Container,
    command: &[OsString],
    settings: &Directory,
    by_entry_point: bool,
    output: &File,
) -> Result<ServerProcess> {
    let (data, temporary, sockets) =
        (wanted.files.join(DATA), wanted.files.join("tmp"), runtime::sockets(wanted.directory));
    let users = settings.path().join(container::USERS);
    let mut mounts = vec![
        Mount::writable(&temporary),
        Mount::writable(&sockets),
        Mount::readable(settings.path(), settings.path()),
        Mount::readable(&users, Path::new("/etc/passwd")),
    ];
    mounts.push(Mount::writable(&data));
    let line = container.command(&Run {
        command,
        account: wanted.spec.account,
        directory: &data,
        mounts: &mounts,
        tcp_port: wanted.address.tcp_port,
        by_entry_point,
    })?;
    spawn_runtime(container, &line, output)
}

fn spawn_runtime(container: &Container, line: &[OsString], output: &File) -> Result<ServerProcess> {
    let program = &container.image.runtime;
    let null = null()?;
    let launch = Launch {
        command: line.iter().map(|word| c_text(program, word)).collect::<Result<_>>()?,
        environment: container::environment()
            .map(|(name, value)| variable(program, &name, &value))
            .collect::<Result<_>>()?,
        directory: c_text(program, "/".as_ref())?,
        log: output.as_fd(),
        input: null.as_fd(),
        account: None,
        own_processes: false,
    };
    let process = sys::spawn(&launch).map_err(|error| Error::io(Operation::Start, program, error))?;
    Ok(ServerProcess::new(process, Some(container.clone())))
}

fn variable(program: &Path, name: &OsStr, value: &OsStr) -> Result<CString> {
    let mut both = name.to_owned();
    both.push("=");
    both.push(value);
    c_text(program, &both)
}

fn c_text(program: &Path, text: &OsStr) -> Result<CString> {
    CString::new(text.as_bytes()).map_err(|error| Error::io(Operation::Start, program, error))
}

fn null() -> Result<fs::File> {
    fs::File::open("/dev/null").map_err(|error| Error::io(Operation::Open, "/dev/null", error))
}
