//! `calve bench worktree`.

use calve_testkit::FileSystem;

use crate::program::calve;
use crate::spot::Spot;

use super::repo::{Repo, is_clean, with_environment};

#[test]
fn a_bench_measures_calve_and_leaves_the_repository_alone() {
    let Some(repo) = Repo::on(FileSystem::Xfs) else { return };
    fs_err::remove_file(repo.join("package-lock.json")).unwrap();
    repo.commit("nothing to install");
    let bench = with_environment(calve(["bench", "worktree", "-q", "--json", "--runs", "1", "--repo"]));
    let report = bench.arg(&repo.path).arg("--into").arg(&*repo.spot).succeeds().json();
    assert_eq!(report["bench"], "worktree");
    let commands: Vec<&str> =
        report["results"].as_array().unwrap().iter().map(|row| row["command"].as_str().unwrap()).collect();
    assert!(commands.iter().any(|command| command.starts_with("calve worktree add")), "{report}");
    assert!(commands.iter().any(|command| command.contains("cp -a --reflink=auto")), "{report}");
    assert!(commands.iter().any(|command| command.ends_with("(with a spare)")), "{report:#}");
    assert_eq!(repo.worktrees().len(), 1);
    is_clean(&repo.path);
    repo.spot.holds(&["proj"]);
}

#[test]
fn a_bench_of_what_is_no_repository_is_refused() {
    let spot = Spot::anywhere();
    let bench = calve(["bench", "worktree", "--runs", "1", "--repo", ".", "--into", "."]).within(&spot);
    bench.fails(2).says(&["name the directory that has `.git` in it with `--repo`", "is not the main worktree"]);
    spot.holds(&[]);
}
