use calve_git::remote::{Listener, Prompts};

use crate::{consent, output};

/// Allows git's prompts if the user can answer: on a terminal, unless `GIT_TERMINAL_PROMPT` is 0.
pub(super) fn prompts() -> Prompts {
    let forbidden = std::env::var_os("GIT_TERMINAL_PROMPT").is_some_and(|value| value == "0");
    if !forbidden && consent::can_ask() { Prompts::OnTerminal } else { Prompts::Never }
}

pub(super) fn with_progress<T>(work: impl FnOnce(Listener<'_>) -> T) -> T {
    let done = work(&|text| output::progress(&text.chars().take(100).collect::<String>()));
    output::progress("");
    done
}
