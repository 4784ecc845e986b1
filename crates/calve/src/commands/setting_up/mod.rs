pub(crate) mod completions;
pub(crate) mod hook;
pub(crate) mod init;
pub(crate) mod man;
pub(crate) mod mcp;
pub(crate) mod prompt;
pub(crate) mod shell_init;
