use clap::Args;

/// Print the worktree that you are in, for a shell's prompt
///
/// Prints the branch of a linked worktree, its ports, and which of its services run, such as `feature web:3001 db:running`. Prints nothing in
/// a main worktree or outside of a repository. It starts no other program, and never fails.
#[derive(Debug, Args)]
#[command(after_help = "\
Where to put it:
  bash  PS1='$(calve prompt) '\"$PS1\"                      in ~/.bashrc
  zsh   setopt prompt_subst; RPROMPT='$(calve prompt)'      in ~/.zshrc
  fish  function fish_right_prompt; calve prompt; end       in ~/.config/fish/config.fish")]
pub(crate) struct PromptArguments {}
