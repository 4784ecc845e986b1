//! Death of any command at any moment: the next one works, and nothing in the volume is lost.

use super::*;
use crate::kill::Killer;

#[test]
fn a_command_killed_at_any_moment_is_put_right_by_the_next_one() {
    let Some(host) = Host::new(1024 * MIB) else { return };
    host.calve(["create", "work", "--size", "256M"]).succeeds();
    let top = host.attach("work");
    node_modules_like(top.join("tree"), 100);
    let same = host.path().join("same");
    system(&["cp", "-a", top.join("tree").to_str().unwrap(), same.to_str().unwrap()]);
    let mut killer = Killer::new(7);
    let mut size = 256;
    for round in 0..rounds("CALVE_VOLUME_KILLS", 25) {
        match round % 5 {
            0 => killer.let_run(host.calve(["detach", "work"])),
            1 => {
                host.calve(["detach", "work"]).succeeds();
                killer.let_run(host.calve(["attach", "work"]))
            }
            2 => {
                size += 4;
                killer.let_run(host.calve(["grow", "work", "--size", &format!("{size}M")]))
            }
            3 => {
                let _ = host.calve(["remove", "other", "--yes"]).run();
                killer.let_run(host.calve(["create", "other", "--size", "256M"]))
            }
            _ => {
                let _ = host.calve(["create", "other", "--size", "256M"]).run();
                killer.let_run(host.calve(["remove", "other", "--yes"]))
            }
        };
        assert_eq!(host.attach("work"), top);
        assert_same(&same, top.join("tree"));
        assert!(host.findings("work").iter().all(|(_, repaired)| *repaired), "round {round}");
        assert_eq!(host.devices("work").len(), 1, "round {round}");
        assert!(
            names(host.path().join("home/volumes"))
                .iter()
                .all(|name| [".lock", "other", "work"].contains(&name.as_str()))
        );
    }
    assert!(killer.killed() > 3, "only {} were killed", killer.killed());
    host.detach("work");
    system(&["btrfs", "check", host.image("work").to_str().unwrap()]);
    let _ = host.calve(["remove", "other", "--yes"]).run();
    host.calve(["remove", "work", "--yes"]).succeeds();
    assert_eq!(names(host.path().join("home/volumes")), [".lock"]);
}
