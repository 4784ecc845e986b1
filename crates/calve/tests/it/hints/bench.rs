//! The hints of `calve bench`: how each comes about, and that it helps.

use super::case::{Case, case};

/// Without the right of root to read and write everything.
macro_rules! as_anybody {
    ($line:literal) => {
        concat!("unshare -r setpriv --bounding-set -dac_override,-dac_read_search ", $line)
    };
}

/// On a small file system in memory, mounted at `../m` with these options.
macro_rules! on_tmpfs {
    ($options:literal, $line:literal) => {
        concat!("unshare -rm sh -c 'mount -t tmpfs -o ", $options, " none ../m; ", $line, "'")
    };
}

/// One test of `calve bench git`, as small as it can be.
macro_rules! git_bench {
    ($arguments:literal) => {
        concat!("calve bench git -q --into .. --runs 1 --tests T2 ", $arguments)
    };
}

/// A git in `../fake` that fails at `command`.
macro_rules! failing_git {
    ($command:literal) => {
        concat!(
            r#"mkdir ../fake; printf '#!/bin/sh\ncase " $* " in *" "#,
            $command,
            r#" "*) echo disk on fire >&2; exit 23;; esac\nexec %s "$@"\n' $(command -v git) >../fake/git; chmod +x ../fake/git"#
        )
    };
}

const COPY: &str = "calve bench copy -q --tree d --into .. --only 'calve cp' --runs 1";

pub(super) const CASES: &[Case] = &[
    case(
        "ChooseReachableDirectory",
        "mkdir d",
        "calve bench copy --tree d --into file/x",
        "name a directory that you can reach",
        COPY,
    ),
    case(
        "ChooseWritablePlace",
        "mkdir d; mkdir -m 555 closed",
        as_anybody!("calve bench copy --tree d --into closed"),
        "name a place with `--into` that you may write to",
        COPY,
    ),
    case(
        "ChoosePlaceOutsideTree",
        "mkdir -p d/in",
        "calve bench copy --tree d --into d/in",
        "copies cannot be made inside the tree: name a place beside it with `--into`",
        COPY,
    ),
    case(
        "NameTree",
        "mkdir d",
        "calve bench copy --tree file --into ..",
        "name the directory to copy with `--tree`",
        COPY,
    ),
    case(
        "MakeTreeReadable",
        "mkdir -p d/closed; chmod 0 d/closed",
        as_anybody!("calve bench copy --tree d --into .."),
        "the whole tree must be readable: fix the mode, or run as its owner",
        "chmod 755 d/closed; calve bench copy -q --tree d --into .. --only 'calve cp' --runs 1",
    ),
    case(
        "ChooseOtherCommandsOrPlace",
        "mkdir d ../m",
        on_tmpfs!("size=128m", r#"calve bench copy --tree d --into ../m --only "calve cp --strategy copy""#),
        "name other commands with `--only`, or another place with `--into`",
        COPY,
    ),
    case(
        "AsReported",
        "mkdir d",
        "PATH=${PATH%%:*} calve bench copy --tree d --into .. --only cpz",
        "cargo install cpz",
        r#"printf '#!/bin/sh\nexec cp -r "$@"\n' >cpz; chmod +x cpz; PATH=$PWD:$PATH calve bench copy -q --tree d --into .. --only cpz --runs 1"#,
    ),
    case(
        "RunByHand",
        failing_git!("reset"),
        "PATH=$PWD/../fake:$PATH calve bench git --into .. --runs 1 --tests T5 --repo .",
        "the report has the other results; run the command by hand to see more",
        "! PATH=$PWD/../fake:$PATH git reset --hard",
    ),
    case(
        "ReadGitOutput",
        failing_git!("repack"),
        concat!("PATH=$PWD/../fake:$PATH ", git_bench!("--repo .")),
        "git's message above has the reason",
        git_bench!("--repo ."),
    ),
    case(
        "NameRepository",
        "mkdir ../d",
        git_bench!("--repo ../d"),
        "name the directory of a repository, or a URL, with `--repo`",
        git_bench!("--repo ."),
    ),
    case(
        "NameRepository",
        "mkdir d",
        git_bench!("--repo d"),
        "name the directory of a repository, or a URL, with `--repo`",
        git_bench!("--repo ."),
    ),
    case(
        "NameFullClone",
        "git config uploadpack.allowFilter true; git clone -q --filter=blob:none file://$PWD ../partial",
        git_bench!("--repo ../partial"),
        "name the repository that it was cloned from, or a full clone",
        git_bench!("--repo ."),
    ),
    case(
        "Unshallow",
        "git commit -q --allow-empty -m x; git clone -q --depth 1 file://$PWD ../shallow",
        git_bench!("--repo ../shallow"),
        "run `git fetch --unshallow` in it, or name a full clone",
        concat!("git -C ../shallow fetch -q --unshallow; ", git_bench!("--repo ../shallow")),
    ),
    case(
        "NameRepositoryWithHistory",
        "git init -q ../empty",
        git_bench!("--repo ../empty"),
        "name a repository with a history",
        git_bench!("--repo ."),
    ),
    case(
        "TryCloningUrl",
        "",
        git_bench!("--repo file:///none"),
        "try `git clone` with that URL yourself: the bench asks for no password",
        "git clone file:///none ../x 2>&1 | grep /none",
    ),
    case(
        "TryCloningDirectory",
        "rm -r .git/objects/??",
        git_bench!("--repo ."),
        "try `git clone --bare --no-local` with it yourself",
        "! git clone --bare --no-local . ../x",
    ),
    case(
        "EndStandbys",
        "calve db template create -q p --engine postgres; calve db pool -q p --size 1",
        "calve bench db --template p",
        "end it first: calve db pool p --size 0",
        r#"eval "${HINT#*: }"; calve bench db --template p 2>&1 | grep 'no table with rows'"#,
    ),
    case(
        "ChangeWrite",
        "calve db template create -q p --engine postgres",
        "calve bench db --template p",
        "give a statement that writes with `--write`",
        "calve bench db -q --template p --write 'CREATE TABLE IF NOT EXISTS t()' --runs 1",
    ),
];
