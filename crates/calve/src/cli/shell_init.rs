use clap::{Args, ValueEnum};

/// Print a shell function that changes to worktrees
///
/// A program cannot change the directory of the shell that started it. Prints a function `calve` that can: it goes into the worktree that
/// `calve worktree add` has made, to the one that `calve worktree cd` names, and to the main worktree when `calve worktree remove` has
/// removed the one that you are in. It passes everything else on as it is. Also prints completions that know the branches.
#[derive(Debug, Args)]
#[command(after_help = "\
Where to put it:
  bash  eval \"$(calve shell-init bash)\"       in ~/.bashrc
  zsh   eval \"$(calve shell-init zsh)\"        in ~/.zshrc, after compinit
  fish  calve shell-init fish | source        in ~/.config/fish/config.fish")]
pub(crate) struct ShellInitArguments {
    /// The shell
    pub(crate) shell: WithFunctions,
}

/// Shells with a function.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum WithFunctions {
    Bash,
    Zsh,
    Fish,
}
