#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Prompts {
    /// Git fails instead, and runs in its own process group.
    #[default]
    Never,
    /// Git asks on the terminal of this process, whose Ctrl-C then reaches it too.
    OnTerminal,
}
