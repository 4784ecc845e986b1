//! Decides whether a command of git's configuration runs a program of the user's, whatever is in the directory where it runs.
//!
//! Not every command can be judged. Only clear cases pass: a program by an absolute path or from PATH, with plain words, none of which
//! leads into the tree. Interpreters and the like run what they find around them, unless the next word is a file elsewhere.

use std::path::Path;

use super::is_untrusted;

/// Programs that run code which their arguments, the current directory, or a configuration in it name. A version may follow
/// (`python3.12`).
const RUNNERS: &[&str] = &[
    ".",
    "R",
    "Rscript",
    "ash",
    "asdf",
    "awk",
    "babel",
    "bash",
    "bb",
    "bun",
    "bunx",
    "bundle",
    "busybox",
    "cabal",
    "cargo",
    "clojure",
    "command",
    "composer",
    "crystal",
    "csh",
    "csi",
    "dart",
    "dash",
    "deno",
    "direnv",
    "docker",
    "dotnet",
    "ed",
    "elixir",
    "elvish",
    "emacs",
    "env",
    "erb",
    "escript",
    "eslint",
    "eval",
    "ex",
    "exec",
    "expect",
    "find",
    "fish",
    "gawk",
    "ghci",
    "go",
    "gradle",
    "groovy",
    "guile",
    "hatch",
    "iex",
    "ipython",
    "irb",
    "java",
    "jruby",
    "julia",
    "just",
    "kotlin",
    "ksh",
    "lein",
    "lua",
    "luajit",
    "make",
    "mawk",
    "mise",
    "mix",
    "mvn",
    "nice",
    "nim",
    "nix",
    "nix-shell",
    "node",
    "nodejs",
    "nohup",
    "npm",
    "npx",
    "nu",
    "nvim",
    "octave",
    "osascript",
    "parallel",
    "pdm",
    "perl",
    "php",
    "php-cs-fixer",
    "phpcs",
    "pipenv",
    "pixi",
    "pnpm",
    "podman",
    "poetry",
    "pre-commit",
    "prettier",
    "psql",
    "pwsh",
    "pypy",
    "python",
    "racket",
    "rake",
    "raku",
    "rubocop",
    "ruby",
    "runghc",
    "runhaskell",
    "rye",
    "sbt",
    "scala",
    "sed",
    "setsid",
    "sh",
    "source",
    "stack",
    "standardrb",
    "stylelint",
    "sudo",
    "swift",
    "task",
    "tclsh",
    "timeout",
    "ts-node",
    "tsx",
    "uv",
    "uvx",
    "vim",
    "wish",
    "wsl",
    "xargs",
    "xonsh",
    "yarn",
    "zsh",
];

/// The endings of files that are run. A word that has one names a file of the tree, whatever the program is.
const SCRIPTS: &[&str] = &[
    "R", "awk", "bash", "bat", "cjs", "clj", "cmd", "cr", "cs", "el", "erl", "exe", "exs", "fish", "go", "groovy",
    "hs", "jar", "java", "jl", "js", "kts", "ksh", "lua", "mjs", "ml", "mts", "nim", "nix", "php", "pl", "pm", "ps1",
    "py", "pyz", "r", "rb", "rkt", "rs", "scala", "scm", "sed", "sh", "swift", "tcl", "ts", "tsx", "vim", "zsh",
];

/// Returns whether `command`, run in an untrusted worktree, is a program of the user's that runs no code of the tree.
pub(crate) fn is_the_users(command: &str) -> bool {
    // A credential helper that is a command rather than a name.
    let command = command.strip_prefix('!').unwrap_or(command);
    let Some(words) = words(command) else { return false };
    let Some((program, rest)) = words.split_first() else { return false };
    let is_elsewhere = |word: &str| word.starts_with('/') && !is_untrusted(Path::new(word));
    if program.contains('/') && !is_elsewhere(program) {
        return false;
    }
    if is_runner(program) && !rest.first().is_some_and(|file| is_elsewhere(file)) {
        return false;
    }
    // `stdbuf -oL sh filter`: a program that starts another one.
    if !is_runner(program) && rest.iter().any(|word| is_runner(word)) {
        return false;
    }
    rest.iter().all(|word| {
        let value = word.split_once('=').map_or(word.as_str(), |(_, value)| value);
        // A host may end like one: `ssh -J bastion.example.rs`, `--account=me@example.pl`.
        let is_host = word.contains('@') || program.rsplit('/').next() == Some("ssh");
        let is_script = !is_host && value.rsplit_once('.').is_some_and(|(_, ending)| SCRIPTS.contains(&ending));
        !word.contains('/') && !is_script || is_elsewhere(word) || is_elsewhere(value)
    })
}

fn is_runner(program: &str) -> bool {
    let name = program.rsplit('/').next().unwrap_or(program);
    let name = name.strip_suffix(".exe").unwrap_or(name);
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    RUNNERS.contains(&name) || RUNNERS.contains(&bare)
}

/// Splits a command for which a shell would only remove quotes into its words; returns `None` for any other.
fn words(command: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let (mut word, mut quote, mut is_open) = (String::new(), None, false);
    for c in command.chars() {
        match (quote, c) {
            (_, '$' | '`' | '\\' | '\n' | '\0') => return None,
            (Some(open), c) if c == open => quote = None,
            (Some(_), c) => word.push(c),
            (None, '\'' | '"') => (quote, is_open) = (Some(c), true),
            (None, ' ' | '\t') => {
                if is_open {
                    words.push(std::mem::take(&mut word));
                }
                is_open = false;
            }
            (None, ';' | '&' | '|' | '<' | '>' | '(' | ')' | '{' | '}' | '*' | '?' | '[' | ']' | '!' | '#' | '~') => {
                return None;
            }
            (None, c) => {
                word.push(c);
                is_open = true;
            }
        }
    }
    if is_open {
        words.push(word);
    }
    // `NAME=value program` sets a variable first.
    let sets_one = words.first().is_some_and(|first| first.contains('='));
    (quote.is_none() && !sets_one).then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_the_user_are_told_from_files_of_the_tree() {
        let folder = tempfile::tempdir().unwrap();
        let (entry, tree) = (folder.path().join("entry"), folder.path().join("pr"));
        fs_err::create_dir(&entry).unwrap();
        fs_err::create_dir(&tree).unwrap();
        super::super::mark(&entry, super::super::ForeignPart::Commit).unwrap();
        fs_err::write(tree.join(".git"), format!("gitdir: {}\n", entry.display())).unwrap();
        let inside = [format!("{}/filter", tree.display()), format!("{}/../pr/filter", tree.display())];
        assert!(is_the_users(&format!("{}/filter", folder.path().display())));
        for command in [
            "git-lfs clean -- %f",
            "git-lfs filter-process",
            "\"git-crypt\" smudge",
            "/usr/bin/git-crypt clean",
            "nbstripout",
            "clang-format --style=file",
            "python3 /opt/filter.py",
            "'/opt/my filter/run' --in=/etc/x",
            "store",
            "ssh -i /etc/key",
            "ssh -J bastion.example.rs",
            "helper --account=me@example.pl",
        ] {
            assert!(is_the_users(command), "{command}");
        }
        for command in [
            "",
            "./filter.sh",
            "tools/filter",
            "../pr/filter",
            &inside[0],
            &inside[1],
            "sh ./teardown.sh",
            "sh teardown.sh",
            "sh -c ./x",
            "/bin/bash x",
            "python -m nbstripout",
            "python3.12 f.py",
            "node f.js",
            "nodejs f.js",
            "env ./x",
            "npm run clean",
            "npx prettier",
            "make filter",
            "cat | ./x",
            "true; ./x",
            "$(pwd)/x",
            "`pwd`/x",
            "\"$PWD\"/x",
            "!./helper",
            "!f() { ./x; }; f",
            "A=./x git-lfs",
            "prog --config=./x",
            "prog x/y",
            "'unfinished",
            "stdbuf -oL sh filter",
            "flock /tmp/lock python3 filter",
            "prettier --stdin-filepath %f",
            "Rscript fmt",
            "lua5.4 f",
            "php8.2 f",
            "fmt-it fmt.R",
            "fmt-it --with=fmt.py",
            "pipenv run nbstripout",
            "mix format -",
        ] {
            assert!(!is_the_users(command), "{command}");
        }
    }
}
