//! git's settings that name programs, and their replacements in an untrusted worktree.

use super::command::may_run;

/// A setting as git documents it, where `*` is any name in between; its replacement, which does nothing or fails; and
/// the programs that it may name.
type ProgramSetting = (&'static str, &'static str, &'static [&'static str]);

const FAILS: &str = "false";

const FILTERS: &[&str] = &["git-lfs", "git-crypt"];
const SSH: &[&str] = &["ssh", "plink", "tortoiseplink"];
/// git finds the program of a plain name as `git credential-NAME`.
const HELPERS: &[&str] = &[
    "cache",
    "store",
    "manager",
    "manager-core",
    "libsecret",
    "gnome-keyring",
    "osxkeychain",
    "wincred",
    "netrc",
    "oauth",
    "gh",
    "glab",
];

/// Settings by which git 2.39 to 2.55 (git-config, gitattributes, githooks) and git-lfs run programs. A test asks git.
const PROGRAMS: &[ProgramSetting] = &[
    ("alias.*", FAILS, &[]),
    ("browser.*.cmd", FAILS, &[]),
    ("browser.*.path", FAILS, &[]),
    ("core.alternateRefsCommand", FAILS, &[]),
    ("core.askPass", FAILS, &[]),
    ("core.editor", FAILS, &[]),
    ("core.fsmonitor", "false", &[]),
    ("core.gitProxy", FAILS, &[]),
    ("core.hooksPath", "/dev/null", &[]),
    ("core.pager", "cat", &[]),
    ("core.sshCommand", FAILS, SSH),
    // An empty value takes back those before it.
    ("credential.helper", "", HELPERS),
    ("credential.*.helper", "", HELPERS),
    ("diff.external", FAILS, &[]),
    ("diff.*.command", FAILS, &[]),
    ("diff.*.textconv", FAILS, &[]),
    ("difftool.*.cmd", FAILS, &[]),
    ("difftool.*.path", FAILS, &[]),
    ("filter.*.clean", "", FILTERS),
    ("filter.*.process", "", FILTERS),
    ("filter.*.smudge", "", FILTERS),
    ("gc.recentObjectsHook", "true", &[]),
    ("gpg.program", FAILS, &[]),
    ("gpg.*.program", FAILS, &[]),
    ("gpg.ssh.defaultKeyCommand", FAILS, &[]),
    ("guitool.*.cmd", FAILS, &[]),
    ("hook.*.command", "true", &[]),
    ("imap.tunnel", FAILS, &[]),
    // A directory of hooks, for new repositories.
    ("init.templateDir", "", &[]),
    ("instaweb.browser", FAILS, &[]),
    ("instaweb.httpd", FAILS, &[]),
    ("interactive.diffFilter", "cat", &[]),
    ("lfs.customtransfer.*.path", FAILS, &[]),
    ("lfs.extension.*.clean", FAILS, &[]),
    ("lfs.extension.*.smudge", FAILS, &[]),
    ("man.*.cmd", FAILS, &[]),
    ("man.*.path", FAILS, &[]),
    ("merge.*.driver", FAILS, &[]),
    ("mergetool.*.cmd", FAILS, &[]),
    ("mergetool.*.path", FAILS, &[]),
    ("pager.*", "false", &[]),
    ("remote.*.receivepack", "git-receive-pack", &[]),
    ("remote.*.uploadpack", "git-upload-pack", &[]),
    ("remote.*.vcs", FAILS, &[]),
    ("sendemail.*.ccCmd", FAILS, &[]),
    ("sendemail.*.toCmd", FAILS, &[]),
    ("sendemail.ccCmd", FAILS, &[]),
    ("sendemail.headerCmd", FAILS, &[]),
    ("sendemail.sendmailCmd", FAILS, &[]),
    // A path is a program, everything else a host.
    ("sendemail.smtpServer", FAILS, &[]),
    ("sendemail.*.smtpServer", FAILS, &[]),
    ("sendemail.tocmd", FAILS, &[]),
    ("sequence.editor", FAILS, &[]),
    ("submodule.*.update", "none", &[]),
    ("tar.*.command", FAILS, &[]),
    ("trailer.*.cmd", FAILS, &[]),
    ("trailer.*.command", FAILS, &[]),
    ("uploadpack.packObjectsHook", FAILS, &[]),
];

/// Overridden even if the user has not set them.
const ALWAYS: [(&str, &str); 4] =
    [("core.hooksPath", "/dev/null"), ("core.fsmonitor", "false"), ("gc.auto", "0"), ("maintenance.auto", "false")];

/// The user's approval of one command, in a configuration that no repository can write.
const APPROVAL: &str = "calve.command";

struct Setting {
    scope: String,
    name: String,
    value: String,
}

/// Parses the output of `git config -z --show-scope --list`: `scope\0name\nvalue\0`.
fn scoped(printed: &[u8]) -> Vec<Setting> {
    let mut records = printed.split(|&byte| byte == 0).map(String::from_utf8_lossy);
    let mut found = Vec::new();
    while let (Some(scope), Some(record)) = (records.next(), records.next()) {
        let (name, value) = record.split_once('\n').unwrap_or((&record, ""));
        found.push(Setting { scope: scope.into_owned(), name: name.to_owned(), value: value.to_owned() });
    }
    found
}

fn approved(settings: &[Setting]) -> Vec<String> {
    let is_the_users = |setting: &&Setting| {
        setting.name.eq_ignore_ascii_case(APPROVAL) && matches!(setting.scope.as_str(), "global" | "system")
    };
    settings.iter().filter(is_the_users).map(|setting| setting.value.clone()).collect()
}

fn program_setting(name: &str) -> Option<&'static ProgramSetting> {
    PROGRAMS.iter().find(|(known, ..)| matches(known, name))
}

/// Returns whether a setting has the documented name. Case counts only in the part for `*`.
fn matches(documented: &str, name: &str) -> bool {
    let Some((first, last)) = documented.split_once('*') else { return documented.eq_ignore_ascii_case(name) };
    // A driver's name may be empty.
    name.len() >= first.len() + last.len()
        && name.get(..first.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(first))
        && name.get(name.len() - last.len()..).is_some_and(|end| end.eq_ignore_ascii_case(last))
}

pub(super) fn overrides(printed: &[u8]) -> Vec<(String, String)> {
    let settings = scoped(printed);
    let approved = approved(&settings);
    overrides_of(settings, Some(&approved))
}

/// Returns overrides of the repository's own settings only (`.git/config`), which may be another user's work.
pub(crate) fn overrides_of_own(printed: &[u8]) -> Vec<(String, String)> {
    let mut settings = scoped(printed);
    settings.retain(|setting| matches!(setting.scope.as_str(), "local" | "worktree"));
    // A path can end in the name of an allowed program and lead into the repository itself.
    overrides_of(settings, None)
}

/// Without `approved`, no program runs.
fn overrides_of(settings: Vec<Setting>, approved: Option<&[String]>) -> Vec<(String, String)> {
    let mut instead: Vec<(String, String)> =
        ALWAYS.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    for (name, _) in refused(&settings, approved) {
        instead.extend(["clean", "smudge", "process"].map(|what| (format!("filter.{name}.{what}"), String::new())));
        instead.push((format!("filter.{name}.required"), "false".to_owned()));
    }
    for Setting { name, value, .. } in settings {
        let Some((known, replacement, allowed)) = program_setting(&name) else { continue };
        let may_run = approved.is_some_and(|approved| may_run(&value, allowed, approved));
        if !known.starts_with("filter.") && !may_run {
            instead.push((name, (*replacement).to_owned()));
        }
    }
    instead
}

/// Returns the filters of `git config -z --show-scope --list` that do not run in an untrusted worktree, with commands.
pub(crate) fn refused_filters(printed: &[u8]) -> Vec<(String, String)> {
    let settings = scoped(printed);
    refused(&settings, Some(&approved(&settings)))
}

fn refused(settings: &[Setting], approved: Option<&[String]>) -> Vec<(String, String)> {
    let mut refused: Vec<(String, String)> = Vec::new();
    for Setting { name, value, .. } in settings {
        let known = program_setting(name).filter(|(known, ..)| known.starts_with("filter."));
        let Some((_, _, allowed)) = known else { continue };
        let driver = name.split_once('.').and_then(|(_, rest)| rest.rsplit_once('.')).map_or("", |(driver, _)| driver);
        let is_known = refused.iter().any(|(known, _)| known == driver);
        let may_run = approved.is_some_and(|approved| may_run(value, allowed, approved));
        if !value.is_empty() && !is_known && !may_run {
            refused.push((driver.to_owned(), value.clone()));
        }
    }
    refused
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Settings whose name sounds like a program's, and is not.
    const NO_PROGRAMS: &[&str] = &[
        "advice.ignoredHook",
        "advice.waitingForEditor",
        "clone.filterSubmodules",
        "color.pager",
        "completion.commands",
        "core.fsmonitorHookVersion",
        "credential.<url>.*",
        "credential.protectProtocol",
        "credential.sanitizePrompt",
        "credential.useHttpPath",
        "credential.username",
        "diff.<driver>.binary",
        "diff.<driver>.cachetextconv",
        "diff.<driver>.trustExitCode",
        "diff.<driver>.wordRegex",
        "diff.<driver>.xfuncname",
        "filter.<driver>.required",
        "fsmonitor.allowRemote",
        "gc.repackFilter",
        "gc.repackFilterTo",
        "fsmonitor.socketDir",
        "gitcvs.dbDriver",
        "gpg.format",
        "gpg.minTrustLevel",
        "gpg.ssh.allowedSignersFile",
        "gpg.ssh.revocationFile",
        // The name of a tool, whose program `difftool.*` or `mergetool.*` names.
        "diff.guitool",
        "diff.tool",
        "help.browser",
        "man.viewer",
        "merge.guitool",
        "merge.tool",
        "web.browser",
        "hook.<event>.enabled",
        "hook.<event>.jobs",
        "hook.<friendly-name>.enabled",
        "hook.<friendly-name>.event",
        "hook.<friendly-name>.parallel",
        "hook.jobs",
        "http.proxy",
        "http.proxyAuthMethod",
        "http.proxySSLCAInfo",
        "http.proxySSLCert",
        "http.proxySSLCertPasswordProtected",
        "http.proxySSLKey",
        "include.path",
        "includeIf.<condition>.path",
        "merge.<driver>.name",
        "merge.<driver>.recursive",
        "mergetool.hideResolved",
        "mergetool.keepBackup",
        "mergetool.keepTemporaries",
        "mergetool.prompt",
        "mergetool.writeToTemp",
        "mergetool.<tool>.hideResolved",
        "mergetool.<variant>.layout",
        "mergetool.<tool>.trustExitCode",
        "mergetool.meld.hasOutput",
        "mergetool.meld.useAutoMerge",
        "mergetool.vimdiff.layout",
        "difftool.prompt",
        "difftool.trustExitCode",
        "difftool.guiDefault",
        "mergetool.guiDefault",
        "notes.rewrite.<command>",
        "rebase.abbreviateCommands",
        "rebase.rescheduleFailedExec",
        "remote.<name>.partialclonefilter",
        "remote.<name>.proxy",
        "remote.<name>.proxyAuthMethod",
        "sendemail.smtpServerOption",
        "sendemail.smtpServerPort",
        "ssh.variant",
        "uploadpack.allowFilter",
        "uploadpackfilter.<filter>.allow",
        "uploadpackfilter.allow",
        "uploadpackfilter.tree.maxDepth",
        "commitGraph.maxNewFilters",
        "commit.gpgSign",
        "push.gpgSign",
        "tag.gpgSign",
        "guitool.<name>.argPrompt",
        "guitool.<name>.confirm",
        "guitool.<name>.needsFile",
        "guitool.<name>.noConsole",
        "guitool.<name>.noRescan",
        "guitool.<name>.prompt",
        "guitool.<name>.revPrompt",
        "guitool.<name>.revUnmerged",
        "guitool.<name>.title",
    ];

    /// The words by which the name of a setting sounds like a program's.
    const SOUNDS: &[&str] = &[
        "command",
        "cmd",
        "driver",
        "program",
        "helper",
        "textconv",
        "hook",
        "editor",
        "pager",
        "askpass",
        "proxy",
        ".path",
        "filter",
        "tool",
        "external",
        "viewer",
        ".receivepack",
        ".uploadpack",
        "vcs",
        "fsmonitor",
        "browser",
        "alias.",
        "gpg",
        "httpd",
        "sshcommand",
        "exec",
        "process",
        "smudge",
        "clean",
        "tunnel",
        ">.update",
        "smtpserver",
        ".templatedir",
    ];

    #[test]
    fn every_setting_of_the_installed_git_that_names_a_program_is_in_the_table() {
        is_in_the_table("git");
        let newest = "/usr/local/git/bin/git";
        if calve_testkit::require_program(newest) {
            is_in_the_table(newest);
        }
    }

    fn is_in_the_table(git: &str) {
        let listed = std::process::Command::new(git).args(["help", "--config"]).env("LC_ALL", "C").output().unwrap();
        assert!(listed.status.success());
        let listed = String::from_utf8(listed.stdout).unwrap();
        let names: Vec<&str> = listed.lines().filter(|line| line.contains('.') && !line.contains(' ')).collect();
        assert!(names.len() > 300, "git lists {} settings", names.len());
        let is_in_table = |name: &str| {
            // `filter.<driver>.clean`, `pager.<cmd>`
            let concrete = name
                .split('.')
                .map(|part| if part.starts_with('<') { "x" } else { part })
                .collect::<Vec<_>>()
                .join(".");
            program_setting(&concrete.replace('*', "x")).is_some()
        };
        let missing: Vec<&&str> = names
            .iter()
            .filter(|name| SOUNDS.iter().any(|word| name.to_ascii_lowercase().contains(word)))
            .filter(|name| {
                !is_in_table(name)
                    && !NO_PROGRAMS.contains(*name)
                    && !IRRELEVANT.iter().any(|begin| name.starts_with(begin))
            })
            .collect();
        assert!(missing.is_empty(), "does one of these settings start a program? {missing:?}");
        // Those of the table that git lists have the spelling of git.
        let unknown: Vec<&&str> = ["core.sshCommand", "diff.external", "sequence.editor", "uploadpack.packObjectsHook"]
            .iter()
            .filter(|name| !names.contains(*name))
            .collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }

    /// Whole sections without programs whose names sound like them.
    const IRRELEVANT: &[&str] = &[
        "clean.",
        "column.",
        "commit.cleanup",
        "fsck.",
        "receive.fsck.",
        "sendemail.alias",
        "trailer.<token>.if",
        "advice.",
    ];

    fn printed(settings: &[(&str, &str, &str)]) -> Vec<u8> {
        settings.iter().flat_map(|(scope, name, value)| format!("{scope}\0{name}\n{value}\0").into_bytes()).collect()
    }

    #[test]
    fn what_the_user_has_set_for_all_repositories_runs_in_a_nested_one() {
        let settings = printed(&[
            ("global", "filter.nb.clean", "nbstripout"),
            ("global", "core.fsmonitor", "watch"),
            ("command", "diff.external", "difft"),
            ("local", "filter.evil.clean", "./f.sh"),
            ("local", "filter..smudge", "./f.sh"),
            ("worktree", "filter.nb.smudge", "./f.sh"),
            ("local", "filter.lfs.process", "git-lfs filter-process"),
            ("local", "lfs.extension.x.clean", "./l"),
            ("local", "diff.x.textconv", "./t"),
        ]);
        let instead = overrides_of_own(&settings);
        let value = |name: &str| instead.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        for (name, expected) in [
            ("core.hooksPath", Some("/dev/null")),
            ("core.fsmonitor", Some("false")),
            ("diff.external", None),
            ("filter.evil.clean", Some("")),
            ("filter..process", Some("")),
            // One program of a driver is of no use without the others.
            ("filter.nb.clean", Some("")),
            ("filter.lfs.process", Some("")),
            ("lfs.extension.x.clean", Some("false")),
            ("diff.x.textconv", Some("false")),
        ] {
            assert_eq!(value(name), expected, "{name}");
        }
    }

    #[test]
    fn settings_that_name_code_of_the_tree_are_replaced() {
        let settings = printed(&[
            ("local", "filter.lfs.process", "git-lfs filter-process"),
            ("local", "filter.rel.Clean", "./f.sh"),
            ("local", "filter.rel.smudge", "./f.sh"),
            ("local", "filter.db.smudge", "sqlite3"),
            ("global", "filter.nb.clean", "nbstripout"),
            ("global", "calve.command", "nbstripout"),
            ("local", "calve.command", "sqlite3"),
            ("local", "core.sshcommand", "./ssh"),
            ("global", "credential.helper", "store"),
            ("local", "credential.https://x.org.helper", "!./c"),
            ("local", "remote.o.uploadpack", "./u"),
            ("local", "merge.lst.driver", "sh tools/m.sh %O %A %B"),
            ("local", "diff.x.y.textconv", "./t"),
            ("local", "hook.lint.command", "./lint"),
            ("local", "core.alternaterefscommand", "./a"),
        ]);
        let instead = overrides(&settings);
        let value = |name: &str| instead.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        for (name, expected) in [
            ("core.hooksPath", Some("/dev/null")),
            ("core.fsmonitor", Some("false")),
            ("filter.rel.clean", Some("")),
            ("filter.rel.required", Some("false")),
            ("filter.db.smudge", Some("")),
            ("filter.lfs.process", None),
            ("filter.nb.clean", None),
            ("credential.helper", None),
            ("core.sshcommand", Some("false")),
            ("credential.https://x.org.helper", Some("")),
            ("remote.o.uploadpack", Some("git-upload-pack")),
            ("merge.lst.driver", Some("false")),
            ("diff.x.y.textconv", Some("false")),
            ("hook.lint.command", Some("true")),
            ("core.alternaterefscommand", Some("false")),
        ] {
            assert_eq!(value(name), expected, "{name}");
        }
    }
}
