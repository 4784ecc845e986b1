use std::path::PathBuf;

use calve_agent::mcp::{ServeError, serve};
use calve_core::CancelToken;

use crate::failure::{FAILED, Failure};

pub(crate) fn run(repositories: &[PathBuf], cancel: &CancelToken) -> Result<(), Failure> {
    serve(repositories, std::env::current_exe()?, cancel).map_err(|error| {
        let hint = match error {
            ServeError::NoDirectory { .. } => "name a directory in a repository with `--repository`",
            _ => "it is started by an agent, which speaks JSON-RPC on stdin: `calve hook install` sets that up",
        };
        Failure::stated(FAILED, error.to_string(), hint)
    })?;
    Ok(cancel.check()?)
}
