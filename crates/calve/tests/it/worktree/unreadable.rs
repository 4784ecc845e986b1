//! Damaged records under Calve's home, and those of another version: every list names them and goes on, nothing deletes them, and a command
//! that needs one refuses it, and does not begin anew.

use std::path::{Path, PathBuf};

use calve_testkit::{matrix, require_program};

use super::repo::{Repo, with_environment};
use crate::program::{Calve, RunResult, calve};

/// A home with a record of each kind.
struct Kept {
    repo: Repo,
}

impl Kept {
    fn new() -> Option<Self> {
        if !["redis-server", "redis-cli"].iter().all(|program| require_program(program)) {
            return None;
        }
        let kept = Self { repo: Repo::anywhere() };
        rustix::fs::chmod(&*kept.repo.spot, 0o755.into()).unwrap();
        kept.repo.write(".calve.toml", "[ports]\nweb = 3000\n[services.db]\ntemplate = 't'\nenv = 'REDIS_URL'\n");
        for words in [
            &["db", "template", "create", "t", "--engine", "redis"] as &[&str],
            &["db", "template", "create", "u", "--engine", "redis"],
            &["db", "start", "t", "--name", "s"],
            &["db", "mark", "s", "m"],
            &["db", "pool", "t", "--size", "1", "--keep"],
            &["db", "pool", "u", "--size", "1", "--keep"],
            &["up"],
            &["template", "create", "deps", "node_modules"],
            &["template", "create", "others", "target"],
            &["spares", "add", "node_modules"],
            &["spares", "add", "target"],
        ] {
            kept.calve(words).succeeds();
        }
        Some(kept)
    }

    fn home(&self) -> PathBuf {
        self.repo.spot.join("home")
    }

    fn calve(&self, words: &[&str]) -> Calve {
        with_environment(calve(words)).within(&self.repo.path).env("CALVE_HOME", self.home())
    }

    /// The first directory in one of the home, other than `waiting`.
    fn first(&self, directory: &str) -> String {
        let found = crate::spot::names(self.home().join(directory)).into_iter().find(|name| name.contains('-'));
        format!("{directory}/{}", found.unwrap())
    }

    /// Damages a record in every way, with few rounds in one. `list` names it each time, and shows the rest.
    #[track_caller]
    fn is_named(&self, record: &str, list: &[&str], rest: &str) {
        let path = self.home().join(record);
        let whole = fs_err::read(&path).unwrap();
        for damaged in matrix([whole[..whole.len() / 2].to_vec(), Vec::new(), b"{\"format\": 9}".to_vec()]) {
            fs_err::write(&path, &damaged).unwrap();
            let listed = self.calve(list).succeeds();
            assert!(names_it(&listed, &path) && listed.stdout.contains(rest), "{record}: {listed:?}");
            for words in [
                &["db", "gc"] as &[&str],
                &["db", "list", "--all"],
                &["worktree", "prune"],
                &["spares", "refill"],
                &["cp", "node_modules", "copy"],
                &["rm", "--wait", "copy"],
            ] {
                self.calve(words).succeeds();
            }
            assert_eq!(fs_err::read(&path).unwrap(), damaged, "{record}");
        }
        fs_err::write(&path, whole).unwrap();
        assert!(!self.calve(list).succeeds().stderr.contains("is damaged"), "{record}");
    }

    /// Damages a record in every way, or takes it away if it must not be missing. Each of the commands refuses it, and changes nothing.
    #[track_caller]
    fn is_refused(&self, record: &Path, hint: &str, damages: &[Option<&str>], commands: &[&[&str]]) {
        let whole = fs_err::read(record).unwrap();
        let services = || crate::spot::names(self.home().join("db/services"));
        let before = services();
        for damaged in damages {
            match damaged {
                Some(text) => fs_err::write(record, text).unwrap(),
                None => fs_err::remove_file(record).unwrap(),
            }
            for words in commands {
                let said = format!("error: `{}` is damaged, or of another version\nhint: {hint}", record.display());
                self.calve(words).fails(1).says(&[&said]);
                assert_eq!(fs_err::read_to_string(record).ok().as_deref(), *damaged, "{words:?}");
                assert_eq!(services(), before, "{words:?}");
            }
        }
        fs_err::write(record, whole).unwrap();
    }
}

fn names_it(listed: &RunResult, path: &Path) -> bool {
    listed.stderr.contains(&format!("warning: `{}` is damaged, or of another version", path.display()))
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.calve(&["down", "-q"]).run();
        for template in ["t", "u"] {
            self.calve(&["db", "pool", template, "--size", "0", "-q"]).run();
        }
        self.calve(&["db", "stop", "--all", "-q"]).run();
    }
}

#[test]
fn a_record_that_cannot_be_read_is_named_and_not_taken_for_a_missing_one() {
    let Some(kept) = Kept::new() else { return };
    kept.is_named("db/templates/t/template.json", &["db", "template", "list"], "u  redis");
    kept.is_named("db/servers/s/server.json", &["db", "list"], "db-");
    kept.is_named("db/servers/s/marks/m/template.json", &["db", "marks", "s"], "");
    let service = kept.first("db/services") + "/service.json";
    kept.is_named(&service, &["db", "list", "--all"], "\ns ");
    kept.is_named("db/pools/t.json", &["db", "pool"], "standbys of `u`");
    kept.is_named(&(kept.first("spares") + "/set"), &["spares", "list"], "of 1 spare ready");
    // This list says so in its own lines.
    let path = kept.home().join("templates/deps.template");
    for damaged in ["", "calve-template-1\0deps", "calve-template-9\0deps"] {
        fs_err::write(&path, damaged).unwrap();
        let listed = kept.calve(&["template", "list"]).succeeds().stdout;
        assert!(listed.contains("deps    damaged") && listed.contains("others  "), "{listed}");
        kept.calve(&["template", "create", "again", "target"]).succeeds();
        kept.calve(&["template", "remove", "again"]).succeeds();
        assert_eq!(fs_err::read_to_string(&path).unwrap(), damaged);
    }
    // It is not taken for a missing one.
    let broken = [Some(""), Some("{"), Some("{}")];
    let restore = "restore that file, or use the version that wrote it; to begin without it, move `";
    let slot = kept.home().join(kept.first("db/services"));
    let name = slot.file_name().unwrap().to_str().unwrap();
    let to_slot = format!("{restore}{}` away\n", slot.display());
    let ups: &[&[&str]] =
        &[&["up"], &["down"], &["status"], &["env", "--renew"], &["reset", "--yes"], &["exec", "true"]];
    kept.is_refused(&slot.join("service.json"), &to_slot, &[broken[0], broken[1], broken[2], None], ups);
    let server = kept.home().join("db/servers").join(name).join("server.json");
    kept.is_refused(&server, restore, &broken, &[&["up"], &["status"], &["db", "url", name]]);
    let mark = kept.home().join("db/servers/s/marks/m/template.json");
    kept.is_refused(&mark, restore, &broken, &[&["db", "reset", "s", "--to", "m"]]);
    let id = kept.repo.join(".git/calve-services");
    let rm =
        format!("restore that file, or go on without the data or the approvals that belong to it: rm {}", id.display());
    kept.is_refused(&id, &rm, &broken, &[ups, &[&["env"]]].concat());
    assert!(kept.calve(&["status"]).succeeds().stdout.contains("running"));
}

#[test]
fn a_server_with_a_damaged_record_can_still_be_ended() {
    let Some(kept) = Kept::new() else { return };
    kept.repo.commit("services");
    kept.calve(&["worktree", "add", "one"]).succeeds();
    let one = kept.repo.spot.join("proj.one");
    let servers = kept.home().join("db/servers");
    let damage = |name: &str| fs_err::write(servers.join(name).join("server.json"), "").unwrap();
    damage("s");
    // Nothing but its lock tells which process is its supervisor.
    fs_err::remove_file(servers.join("s/sockets")).unwrap();
    // A command that has started it, with a longer number, has signed it before.
    let lock = fs_err::read_to_string(servers.join("s/lock")).unwrap();
    fs_err::write(servers.join("s/lock"), lock + "0\n").unwrap();
    let stopped = kept.calve(&["db", "stop", "s", "--json"]).succeeds().says(&["stopped `s`"]);
    assert!(stopped.stdout.contains("\"servers\": []"), "{}", stopped.stdout);
    assert!(!kept.calve(&["db", "list"]).succeeds().stdout.contains("ended"));
    kept.calve(&["db", "start", "t", "--name", "again"]).succeeds();
    damage("again");
    let name = |at: &str| format!("db-{}", fs_err::read_to_string(kept.repo.join(at)).unwrap());
    let main = name(".git/calve-services");
    damage(&main);
    // It was a standby, whose record has its new name.
    let all = kept.calve(&["db", "stop", "--all"]).succeeds().says(&["stopped `t-"]);
    assert!(!all.stderr.contains(&main) && !servers.join("again").exists(), "{all:?}");
    kept.calve(&["down"]).succeeds().says(&["stopped `db`"]);
    assert!(kept.home().join("db/services").join(main).join("data").exists());
    kept.calve(&["up"]).within(&one).succeeds();
    let name = name(".git/worktrees/proj.one/calve-services");
    damage(&name);
    kept.calve(&["worktree", "remove", "one"]).fails(1).says(&["data of the service `db`, which may have changes"]);
    kept.calve(&["worktree", "remove", "--force", "one"]).succeeds();
    assert!(!one.exists() && !servers.join(&name).exists() && !kept.home().join("db/services").join(&name).exists());
}

#[test]
fn a_damaged_record_of_a_service_keeps_neither_ports_nor_a_removal() {
    let Some(kept) = Kept::new() else { return };
    kept.repo.commit("services");
    let damage = |slot: &Path| {
        fs_err::write(slot.join("service.json"), "").unwrap();
        format!("`{}/service.json` is damaged, or of another version", slot.display())
    };
    let slot = kept.home().join(kept.first("db/services"));
    let whole = fs_err::read(slot.join("service.json")).unwrap();
    let damaged = damage(&slot);
    let hint = "; restore that file, or use the version that wrote it";
    let environment = kept.calve(&["env"]).succeeds();
    assert!(environment.stdout.starts_with("export WEB_PORT="), "{environment:?}");
    assert!(environment.stdout.ends_with("\nunset REDIS_URL\n"), "{environment:?}");
    environment.says(&[&format!("warning: the services are left out: {damaged}{hint}")]);
    let warning = format!("warning: no data of the donor is cloned: {damaged}{hint}");
    kept.calve(&["worktree", "add", "--dry-run", "one"]).succeeds().says(&[&warning]);
    kept.calve(&["worktree", "add", "one"]).succeeds().says(&[&warning, "data: `db` from the template `t`"]);
    fs_err::write(slot.join("service.json"), whole).unwrap();

    let id = fs_err::read_to_string(kept.repo.join(".git/worktrees/proj.one/calve-services")).unwrap();
    let slot = kept.home().join(format!("db/services/db-{id}"));
    let damaged = damage(&slot);
    kept.calve(&["worktree", "remove", "one"]).fails(1).says(&[&damaged]);
    kept.calve(&["worktree", "remove", "--dry-run", "--lose-data", "one"]).succeeds();
    let stays = format!("warning: this worktree's data was not removed: {damaged}\n");
    kept.calve(&["worktree", "remove", "--lose-data", "one"]).succeeds().says(&[&stays]);
    assert!(!kept.repo.spot.join("proj.one").exists() && slot.join("data").exists());
    kept.calve(&["worktree", "add", "two"]).succeeds();
    let id = fs_err::read_to_string(kept.repo.join(".git/worktrees/proj.two/calve-services")).unwrap();
    damage(&kept.home().join(format!("db/services/db-{id}")));
    kept.calve(&["worktree", "remove", "--force", "two"]).succeeds().says(&["this worktree's data was not removed"]);
}

/// A command that is killed while it notes the donor leaves an empty note.
#[test]
fn a_worktree_with_a_damaged_note_of_its_donor_is_finished_although_a_template_is_missing() {
    let Some(kept) = Kept::new() else { return };
    let other = "[services.other]\ntemplate = 'none'\nenv = 'OTHER_URL'\n";
    kept.repo.write(".calve.toml", &format!("[services.db]\ntemplate = 't'\nenv = 'REDIS_URL'\n{other}"));
    kept.repo.commit("services");
    kept.calve(&["worktree", "add", "--data-from", "none", "one"]).succeeds();
    let one = kept.repo.spot.join("proj.one");
    fs_err::write(kept.repo.join(".git/worktrees/proj.one/calve-data-from"), "").unwrap();
    let list = || kept.calve(&["worktree", "list"]).succeeds();
    list().says(&["is unfinished"]);
    let up = |words: &[&str]| kept.calve(&[&["up"], words].concat()).within(&one);
    up(&["db"]).succeeds();
    list().says(&["is unfinished"]);
    up(&[]).fails(1).says(&["there is no template `none`"]);
    let listed = list();
    assert!(!listed.stdout.contains("unfinished") && !listed.stderr.contains("unfinished"), "{listed:?}");
    up(&["db"]).succeeds();
    kept.calve(&["down"]).within(&one).succeeds();
}
