//! A Model Context Protocol server on standard input and output. It runs the `calve` program in child processes, so a
//! tool does and refuses the same as the command line.

mod arguments;
mod calls;
mod confirmation;
mod connection;
mod documents;
mod error;
mod program;
mod repositories;
mod result;
mod tools;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use calve_core::CancelToken;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, Implementation, ListToolsResult, PaginatedRequestParams,
    ServerCapabilities, ServerConfig,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::transport::stdio_pipes;
use rmcp::{ErrorData, ServerHandler, ServiceExt as _};

use self::calls::{Call, Server};
use self::confirmation::Confirmations;
use self::connection::Connection;
pub use self::error::ServeError;
pub use self::program::HINTS_FOR_AGENT;
use self::program::Program;
use self::repositories::Repositories;

const INSTRUCTIONS: &str = "Git worktrees that are complete: with installed dependencies, ports of their own, and databases filled with \
    data. Create one for each task, work in its path, and remove it when its commits are pushed or merged. Removing a worktree and resetting \
    a database take two calls: the first says what would happen and gives a token, the second confirms it.";

/// The interval at which `cancel` is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// Serves one client on standard input and output, for these `repositories` only, until it closes them or `cancel` is set.
pub fn serve(repositories: &[PathBuf], program: PathBuf, cancel: &CancelToken) -> Result<(), ServeError> {
    let server = Server {
        repositories: Repositories::named(repositories)?,
        program: Program::new(program),
        confirmations: Confirmations::default(),
    };
    let turns = server.program.turns.clone();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let served = runtime.block_on(async move {
        let (input, output) = stdio_pipes();
        let session = async {
            match Arc::new(server).serve(Connection::new(input, output)).await {
                Ok(session) => {
                    session.waiting().await.map(|_| ()).map_err(|error| ServeError::Session(error.to_string()))
                }
                // The client connected and left.
                Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => Ok(()),
                Err(error) => Err(ServeError::Session(error.to_string())),
            }
        };
        let cancelled = async {
            while !cancel.is_cancelled() {
                tokio::time::sleep(LOOK).await;
            }
        };
        // Dropping the session cancels its calls, and so their commands.
        let served = tokio::select! {
            served = session => served,
            () = cancelled => Ok(()),
        };
        Program::ended(turns).await;
        served
    });
    // A thread may still be blocked reading standard input.
    runtime.shutdown_background();
    served
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("calve", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools::all()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = arguments::checked(&request)?;
        let maker = context.client_info().map(|client| client.name).unwrap_or_default();
        let called = async {
            let repository = self.repositories.chosen(&arguments).await?;
            let call = Call { server: self, arguments: &arguments, repository: &repository, maker: &maker };
            call.run(&request.name).await
        };
        // Dropping the call also ends its child, which a cancelling client expects.
        let outcome = tokio::select! {
            outcome = called => outcome,
            () = context.ct.cancelled() => return Err(ErrorData::internal_error("cancelled", None)),
        };
        Ok(result::from_outcome(outcome, result::RESULT_BYTES).into())
    }
}
