//! kill -9 while services come and go: nothing is half made after the next command, and no committed row is lost.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use calve_testkit::{SplitMix64, rounds};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::repo::git;
use super::services::{POSTGRES, Shop};

/// Kills a command at a random moment, if it lasts that long.
fn killed(shop: &Shop, at: &Path, words: &[&str], random: &mut SplitMix64, longest_us: u64) {
    let running = shop.within(at, words).start();
    sleep(Duration::from_micros(random.below(longest_us)));
    let _ = kill_process(Pid::from_raw(i32::try_from(running.id()).unwrap()).unwrap(), Signal::KILL);
    running.wait();
}

#[test]
fn killed_at_any_moment_nothing_is_half_made_and_no_row_is_lost() {
    let Some(shop) = Shop::new(POSTGRES) else { return };
    let mut random = SplitMix64::new(19);
    let main = shop.repo.path.clone();
    let path = shop.repo.spot.join("proj.x");
    let mut rows = vec![1, 2, 3];
    for round in 0..rounds(25) as u32 {
        // The data of the main worktree is that which must last.
        killed(&shop, &main, &["up"], &mut random, 120_000);
        let row = 100 + round;
        shop.sql(&main, &format!("INSERT INTO t VALUES ({row})"));
        rows.push(row);
        if random.below(2) == 0 {
            for server in shop.servers() {
                super::services::kill(&server["pid"]);
            }
        } else {
            killed(&shop, &main, &["down"], &mut random, 60_000);
        }
        assert_eq!(shop.rows(&main), rows, "round {round}");
        branch_killed(&shop, &rows, &mut random);
        killed(&shop, &main, &["worktree", "add", "--data-from", "template", "x"], &mut random, 150_000);
        let there = || shop.repo.worktrees().contains(&path);
        if !there() {
            let ran = shop.repo.adding("x").args(["--data-from", "template"]).run();
            // A git that the killed one has started may have made it meanwhile.
            assert!(ran.status.success() || there(), "round {round}: {}", ran.stderr);
        }
        // A worktree that was there before its data gets it now.
        assert_eq!(shop.rows(&path), [1, 2, 3], "round {round}");
        shop.sql(&path, "INSERT INTO t VALUES (9)");
        killed(&shop, &path, &["reset", "--yes", "-q"], &mut random, 120_000);
        let left = shop.rows(&path);
        assert!([&[1, 2, 3][..], &[1, 2, 3, 9]].contains(&&*left), "round {round}: {left:?}");
        shop.within(&path, &["reset", "--yes", "-q"]).succeeds();
        assert_eq!(shop.rows(&path), [1, 2, 3], "round {round}");
        // What it has is what the template has, so either is right afterwards.
        killed(&shop, &main, &["db", "promote", "--yes", "x"], &mut random, 900_000);
        killed(&shop, &main, &["worktree", "remove", "-f", "x"], &mut random, 80_000);
        if shop.repo.worktrees().contains(&path) {
            if path.join(".calve.toml").exists() {
                assert_eq!(shop.rows(&path), [1, 2, 3], "round {round}: a worktree that is there has its data");
            }
            shop.within(&main, &["worktree", "remove", "-f", "x"]).succeeds();
        }
        shop.repo.git(["worktree", "prune"]);
        shop.within(&main, &["worktree", "list"]).succeeds();
        shop.within(&main, &["db", "gc"]).succeeds();
        let data = shop.data();
        assert_eq!(data.len(), 1, "round {round}: {data:?}");
        let _ = fs_err::remove_dir_all(&path);
        if !shop.repo.git(["branch", "--list", "x"]).is_empty() {
            shop.repo.git(["branch", "-D", "x"]);
        }
    }
    assert_eq!(shop.rows(&main), rows);
    assert_eq!(shop.servers().len(), 1);
}

/// Makes a worktree with the data of the main one, whose server runs, and kills that server or the command meanwhile.
fn branch_killed(shop: &Shop, rows: &[u32], random: &mut SplitMix64) {
    let (main, path) = (&shop.repo.path, shop.repo.spot.join("proj.y"));
    let words = ["worktree", "add", "y"];
    if random.below(2) == 0 {
        killed(shop, main, &words, random, 400_000);
    } else {
        let server = shop.servers().remove(0);
        let running = shop.within(main, &words).start();
        sleep(Duration::from_micros(random.below(400_000)));
        super::services::kill(&server["pid"]);
        running.wait();
    }
    assert_eq!(shop.rows(main), rows);
    if shop.repo.worktrees().contains(&path) {
        assert_eq!(shop.rows(&path), rows);
        shop.within(main, &["worktree", "remove", "-f", "y"]).succeeds();
    }
    shop.repo.git(["worktree", "prune"]);
    let _ = fs_err::remove_dir_all(&path);
    if !shop.repo.git(["branch", "--list", "y"]).is_empty() {
        shop.repo.git(["branch", "-D", "y"]);
    }
}

/// A reboot ends all processes, empties `/run`, and gives their numbers to others.
#[test]
fn after_a_reboot_data_url_and_ports_are_what_they_were() {
    let Some(shop) = Shop::new(POSTGRES) else { return };
    let text = format!("[services.db]\ntemplate = 'shop'\n[ports]\nweb = {}\n", super::ports::number(140));
    shop.repo.write(".calve.toml", &text);
    shop.repo.commit("a port too");
    let one = shop.repo.added("one");
    shop.within(&one, &["up", "-q"]).succeeds();
    shop.within(&one, &["exec", "--", "sh", "-c", "psql -qc 'INSERT INTO t VALUES (4)' \"$DB_URL\""]).succeeds();
    let environment = shop.within(&one, &["env"]).succeeds().stdout;
    let server = shop.servers().remove(0);
    super::services::kill(&server["pid"]);
    let process = format!("/proc/{}", server["pid"]);
    while Path::new(&process).exists() {
        std::thread::yield_now();
    }
    let socket = PathBuf::from(server["socket"].as_str().unwrap());
    fs_err::remove_dir_all(socket.ancestors().nth(2).unwrap()).unwrap();
    let mut bystander = Command::new("sleep").arg("600").stdin(Stdio::null()).spawn().unwrap();
    let name = server["name"].as_str().unwrap();
    let record = shop.repo.spot.join(format!("home/db/servers/{name}/server.json"));
    let mut written: Value = serde_json::from_slice(&fs_err::read(&record).unwrap()).unwrap();
    for (field, now) in
        [("boot", json!("before")), ("pid", bystander.id().into()), ("supervisor", bystander.id().into())]
    {
        written[field] = now;
    }
    fs_err::write(&record, written.to_string()).unwrap();
    assert_eq!(shop.state(&one), "stopped");
    let rows = shop.within(&one, &["exec", "--", "sh", "-c", "psql -Atc 'SELECT max(a) FROM t' \"$DB_URL\""]);
    assert_eq!(rows.succeeds().stdout, "4\n");
    assert_eq!(shop.within(&one, &["env"]).succeeds().stdout, environment);
    assert!(bystander.try_wait().unwrap().is_none(), "it only has the number");
    bystander.kill().unwrap();
    bystander.wait().unwrap();
}

#[test]
fn a_worktree_whose_add_was_killed_before_its_data_says_so_until_it_is_finished() {
    let Some(shop) = Shop::new(POSTGRES) else { return };
    let create =
        "create = 'echo >>../begun; test -e ../goes-on || exec sleep 600; psql -c \"SELECT 1\" \"$DATABASE_URL\"'";
    shop.repo.write(".calve.toml", &format!("[services.db]\nengine = 'postgres'\nenv = 'DATABASE_URL'\n{create}\n"));
    shop.repo.commit("create");
    shop.within(&shop.repo.path, &["hook", "approve", "--yes"]).succeeds();
    let running = shop.repo.adding("one").start();
    let begun = shop.repo.spot.join("begun");
    while !begun.exists() {
        sleep(Duration::from_millis(10));
    }
    kill_process(Pid::from_raw(i32::try_from(running.id()).unwrap()).unwrap(), Signal::KILL).unwrap();
    running.wait();
    fs_err::write(shop.repo.spot.join("goes-on"), "").unwrap();
    let path = shop.repo.spot.join("proj.one");
    let hint = "`calve up` in it makes its ports and data, unless `calve worktree add` is still at work";
    let list = || shop.within(&shop.repo.path, &["worktree", "list"]).succeeds();
    let listed = list().says(&[&format!("warning: `{}` is unfinished; {hint}", path.display())]);
    assert!(listed.stdout.lines().nth(1).unwrap().contains("  unfinished "), "{}", listed.stdout);
    shop.repo.adding("one").fails(1).says(&["`, which is unfinished\n", hint]);
    shop.within(&path, &["up"]).succeeds();
    let listed = list();
    assert!(!listed.stdout.contains("unfinished") && !listed.stderr.contains("unfinished"), "{listed:?}");
    shop.repo.adding("one").fails(1).says(&["is checked out in `", "work there, or name another branch"]);
}

#[test]
fn a_server_that_is_ending_or_has_died_is_waited_for() {
    let Some(shop) = Shop::new(POSTGRES) else { return };
    let main = &shop.repo.path;
    for signal in [Signal::INT, Signal::KILL] {
        for words in [&["up"] as &[&str], &["exec", "psql", "-qc", "SELECT 1"], &["down"], &["reset", "--yes"]] {
            shop.within(main, &["up", "-q"]).succeeds();
            let server = shop.servers()[0]["pid"].as_i64().unwrap() as i32;
            kill_process(Pid::from_raw(server).unwrap(), signal).unwrap();
            let ran = shop.within(main, words).succeeds();
            assert!(!ran.stderr.contains("is already running"), "{}", ran.stderr);
            assert_eq!(shop.rows(main), [1, 2, 3]);
        }
    }
    // One that waits for its sessions does not count as running.
    shop.within(main, &["up", "-q"]).succeeds();
    let session = shop.client(main, "SELECT pg_sleep(600)").start();
    shop.until(main, "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(600)%'", |count| count > 1);
    let server = shop.servers()[0]["pid"].as_i64().unwrap() as i32;
    kill_process(Pid::from_raw(server).unwrap(), Signal::TERM).unwrap();
    for words in [&["up"] as &[&str], &["exec", "true"], &["worktree", "add", "one"]] {
        let ran = shop.within(main, words).ends(1);
        ran.says(&["accepts no clients", "end it, and try again: `calve down` in its worktree, or `calve db stop"])
            .hints();
    }
    shop.within(main, &["down"]).succeeds();
    session.wait();
    assert_eq!(shop.rows(main), [1, 2, 3]);
}

#[test]
fn data_of_a_moved_repository_is_not_orphaned() {
    let Some(shop) = Shop::new(POSTGRES) else { return };
    let one = shop.repo.added("one");
    shop.sql(&one, "INSERT INTO t VALUES (4)");
    let name = shop.status(&one)[0]["server"].as_str().unwrap().to_owned();
    // Another one's damaged id hides nobody else's place.
    shop.repo.git(["worktree", "add", "-q", "--detach", "../damaged"]);
    fs_err::create_dir(shop.repo.path.join(".git/worktrees/damaged/calve-services")).unwrap();
    let places = [&shop.repo.path, &one]
        .map(|place| (place.clone(), shop.repo.spot.join("new").join(place.file_name().unwrap())));
    fs_err::create_dir(shop.repo.spot.join("new")).unwrap();
    places.iter().for_each(|(old, new)| fs_err::rename(old, new).unwrap());
    let main = &places[0].1;
    git(main, ["worktree", "repair", places[1].1.to_str().unwrap()]);
    let swept = shop.within(main, &["db", "gc", "--json"]).run();
    let refused = shop.within(main, &["db", "gc", "--lose-data", &name]).run();
    places.iter().for_each(|(old, new)| fs_err::rename(new, old).unwrap());
    git(&shop.repo.path, ["worktree", "repair", one.to_str().unwrap()]);
    assert_eq!(swept.json()["orphans"], json!([]));
    refused.ended(3);
    assert_eq!(shop.rows(&one), [1, 2, 3, 4]);
}
