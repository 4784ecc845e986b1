//! Starts a server's processes: local programs, or an image's by a runtime.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;

use super::request::LaunchRequest;
use crate::engine::Instance;
use crate::engine::container::process::ServerProcess;
use crate::engine::container::{self, Container, volume};
use crate::error::{AtPath as _, Error, Result};
use crate::files::directory::Directory;
use crate::files::runtime;
use crate::registry::DATA;
use crate::sys::{self, Launch};

pub(crate) fn start_server(
    wanted: &LaunchRequest<'_>,
    instance: &Instance,
    notices: Option<&Path>,
    output: &File,
) -> Result<ServerProcess> {
    let arguments = wanted.engine.arguments(instance)?;
    match &wanted.spec.container {
        Some(container) => start_in_container(wanted, container, &arguments, &instance.settings, true, output),
        None => start(wanted, &arguments, &instance.data, notices, output),
    }
}

pub(super) fn start(
    wanted: &LaunchRequest<'_>,
    command: &[OsString],
    directory: &Path,
    notices: Option<&Path>,
    output: &File,
) -> Result<ServerProcess> {
    let program = Path::new(&command[0]);
    let temporary = directory.with_file_name("tmp");
    let path = OsStr::new("/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    let variables = [("PATH", path), ("LC_ALL", OsStr::new("C")), ("TMPDIR", temporary.as_os_str())].into_iter();
    let variables = variables.chain(notices.map(|path| ("NOTIFY_SOCKET", path.as_os_str())));
    let launch = Launch {
        command,
        environment: variables.map(|(name, value)| (name.into(), value.to_owned())).collect(),
        directory,
        log: output.as_fd(),
        account: wanted.spec.program.account.to_become(),
        own_processes: wanted.spec.record.isolated,
    };
    let process = sys::spawn(&launch).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Error::NoProgram {
            program: program.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            places: vec![program.to_path_buf()],
        },
        _ => Error::io("start", program, error),
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
    let volumes = vec![
        volume(&temporary, &temporary, false)?,
        volume(&sockets, &sockets, false)?,
        volume(&settings.path, &settings.path, true)?,
        volume(&settings.path.join(container::USERS), Path::new("/etc/passwd"), true)?,
        volume(&data, &data, false)?,
    ];
    let (account, port) = (wanted.spec.program.account, wanted.address.tcp_port);
    let launch = Launch {
        command: &container.command(command, account, &data, volumes, port, by_entry_point),
        environment: container::environment().collect(),
        directory: Path::new("/"),
        log: output.as_fd(),
        account: None,
        own_processes: false,
    };
    let process = sys::spawn(&launch).at("start", &container.image.runtime)?;
    Ok(ServerProcess::new(process, Some(container.clone())))
}
