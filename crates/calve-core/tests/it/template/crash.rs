//! Killed at any moment, and several at a time.

use std::process::{Child, Command};
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use calve_core::error::TemplateError;
use calve_core::template::{TemplateOptions, Templates};
use calve_core::{CloneOptions, Error};
use calve_testkit::{FileSystem, SplitMix64, Tree, assert_same, rounds};
use fs_err as fs;

use super::{TemplateFixture, clone_template, delete_trash};
use crate::child;
use crate::cloning::names_in;

fn start(fixture: &TemplateFixture) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["template::crash::a_killed_refresh_leaves_one_whole_template_and_nothing_else", "--exact"]);
    child::in_directory(&mut command, &fixture.home());
    command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap()
}

/// Whatever the moment, a killed refresh leaves the old template or the new one, and the next command clears the rest away.
#[test]
fn a_killed_refresh_leaves_one_whole_template_and_nothing_else() {
    // In the processes that are killed.
    if let Some(home) = child::directory() {
        Templates::open(&home).refresh("shop", None, &TemplateOptions::default()).unwrap();
        return;
    }
    let Some(fixture) = TemplateFixture::new(FileSystem::Ext4) else { return };
    let source = fixture.path("source");
    for number in 0..300 {
        Tree::new(&source).file(format!("d{}/f{number}", number % 7), "1");
    }
    let key = fixture.create("shop", "source").template.key;
    let begun = Instant::now();
    assert!(start(&fixture).wait().unwrap().success());
    let whole = begun.elapsed();
    let templates = fixture.templates();
    let mut random = SplitMix64::new(16);
    for _ in 0..rounds(30) {
        let mut child = start(&fixture);
        // When it is killed is left to chance; nothing depends on it.
        thread::sleep(whole.mul_f64(random.below(1100) as f64 / 1000.0));
        child.kill().unwrap();
        child.wait().unwrap();
        // Found and cloned as it is, before anything is cleared away.
        assert_eq!(templates.find("shop").unwrap().key, key);
        let dst = fixture.path("dst");
        clone_template(&templates, "shop", &dst, CloneOptions::default()).unwrap();
        assert_same(&source, &dst);
        fs::remove_dir_all(&dst).unwrap();
        templates.sweep().unwrap();
        delete_trash(&[fixture.home().join("templates/trees")]);
        assert_eq!(names_in(fixture.home().join("templates/trees")).len(), 1);
        assert_eq!(names_in(fixture.home().join("templates/versions")).len(), 1);
    }
}

#[test]
fn of_two_that_make_one_name_one_wins() {
    let Some(fixture) = TemplateFixture::new(FileSystem::Ext4) else { return };
    Tree::new(fixture.path("source")).file("a", "1");
    for round in 0..10 {
        let name = format!("t{round}");
        let barrier = Barrier::new(2);
        let make = || {
            barrier.wait();
            fixture.templates().create(&name, &fixture.path("source"), &TemplateOptions::default()).map(drop)
        };
        let results = thread::scope(|scope| [scope.spawn(make), scope.spawn(make)].map(|one| one.join().unwrap()));
        let won = results.iter().filter(|result| result.is_ok()).count();
        let lost = |result: &Result<(), Error>| matches!(result, Err(Error::Template(TemplateError::Exists(lost))) if *lost == name);
        assert_eq!((won, results.iter().filter(|result| lost(result)).count()), (1, 1), "{results:?}");
    }
    assert_eq!(names_in(fixture.home().join("templates/trees")).len(), 10);
}

/// A clone has one version of the template as a whole, however often that is refreshed meanwhile.
#[test]
fn a_clone_during_refreshes_has_one_whole_version() {
    let Some(fixture) = TemplateFixture::new(FileSystem::Ext4) else { return };
    let version = |number: usize| {
        let source = fixture.path(&format!("source{number}"));
        for file in 0..40 {
            Tree::new(&source).file(format!("f{file}"), number.to_string());
        }
        source
    };
    let sources = [version(0), version(1)];
    let templates = fixture.templates();
    templates.create("shop", &sources[0], &TemplateOptions::default()).unwrap();
    thread::scope(|scope| {
        let refreshing = scope.spawn(|| {
            for round in 1..12 {
                templates.refresh("shop", Some(&sources[round % 2]), &TemplateOptions::default()).unwrap();
            }
        });
        let mut number = 0;
        while !refreshing.is_finished() || number < 5 {
            let dst = fixture.path(&format!("dst{number}"));
            clone_template(&templates, "shop", &dst, CloneOptions::default()).unwrap();
            let first = fs::read_to_string(dst.join("f0")).unwrap();
            for file in 1..40 {
                assert_eq!(fs::read_to_string(dst.join(format!("f{file}"))).unwrap(), first);
            }
            number += 1;
        }
    });
}
