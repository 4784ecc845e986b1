//! A template whose files were changed, by accident or as root.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;

use calve_core::CancelToken;
use calve_core::error::TemplateError;
use calve_core::template::TemplateOptions;
use calve_testkit::{FileSystem, Tree, assert_same, require_root};
use fs_err as fs;

use super::{TemplateFixture, template_error};
use crate::cloning::run;
use crate::spare::DISKS;

/// A change deep in the tree of a template is found by the clone itself, which looks at every entry anyway.
#[test]
fn a_clone_by_file_finds_any_entry_that_was_changed() {
    for file_system in [FileSystem::Ext4, FileSystem::Xfs] {
        let Some(fixture) = TemplateFixture::new(file_system) else { return };
        Tree::new(fixture.path("source")).file("deep/er/a", "1").symlink("deep/s", "er").file("b", "2");
        type Change = fn(&std::path::Path);
        let changes: [(&str, Change); 5] = [
            ("deep/er/a", |tree| fs::write(tree.join("deep/er/a"), "x").unwrap()),
            ("deep/er/a", |tree| fs::set_permissions(tree.join("deep/er/a"), Permissions::from_mode(0o600)).unwrap()),
            ("deep", |tree| fs::remove_file(tree.join("deep/s")).unwrap()),
            ("deep/er", |tree| fs::write(tree.join("deep/er/new"), "").unwrap()),
            ("", |tree| fs::write(tree.join("new"), "").unwrap()),
        ];
        for (index, (path, change)) in changes.into_iter().enumerate() {
            let name = format!("t{index}");
            let tree = fixture.create(&name, "source").template.tree;
            let plan = || {
                let held = fixture.templates().hold(&name)?;
                let mut options = calve_core::CloneOptions::default();
                held.restrict(&mut options);
                calve_core::plan(&held.tree, &fixture.path("dst"), &options)
            };
            plan().unwrap();
            change(&tree);
            assert!(matches!(template_error(plan()), TemplateError::Changed { .. }));
            let error = template_error(fixture.clone(&name, "dst"));
            // A new entry is found before the directory that it was made in.
            let TemplateError::Changed { name: told, path: found } = &error else { panic!("{error}") };
            assert_eq!(*told, name);
            assert!(found.starts_with(tree.join(path)), "{index}: {}", found.display());
            assert!(!fixture.path("dst").exists());
            assert_ne!(fixture.differences(&name), []);
            // Clones of it keep failing, until it is refreshed.
            template_error(fixture.clone(&name, "dst"));
            fixture.refresh(&name);
            fixture.clone(&name, "dst").unwrap();
            assert_same(fixture.path("source"), fixture.path("dst"));
            fs::remove_dir_all(fixture.path("dst")).unwrap();
        }
    }
}

/// A snapshot looks at nothing in the tree, and finds only a change of the root. Verifying finds the rest.
#[test]
fn a_change_below_the_root_of_a_subvolume_is_found_by_verifying() {
    let Some((fixture, shop)) = TemplateFixture::with_shop(FileSystem::Btrfs) else { return };
    fs::write(shop.tree.join("d/a"), "x").unwrap();
    fixture.clone("shop", "dst").unwrap();
    let differences = fixture.differences("shop");
    assert_eq!(differences.iter().map(|found| found.path.to_str().unwrap()).collect::<Vec<_>>(), ["d/a"]);
    fs::write(shop.tree.join("new"), "").unwrap();
    template_error(fixture.clone("shop", "dst2"));
}

#[test]
fn a_change_that_was_taken_back_and_a_move_with_its_home_are_accepted_by_verifying() {
    let Some((fixture, shop)) = TemplateFixture::with_shop(FileSystem::Ext4) else { return };
    let taken_back = || {
        fs::set_permissions(shop.tree.join("d/a"), Permissions::from_mode(0o600)).unwrap();
        fs::set_permissions(shop.tree.join("d/a"), Permissions::from_mode(0o644)).unwrap();
    };
    let moved = || {
        run("cp", |cp| cp.arg("-a").arg(fixture.home()).arg(fixture.path("moved")));
        fs::remove_dir_all(fixture.home()).unwrap();
        fs::rename(fixture.path("moved"), fixture.home()).unwrap();
    };
    for (change, dst) in [(&taken_back as &dyn Fn(), "dst"), (&moved, "dst2")] {
        change();
        template_error(fixture.clone("shop", dst));
        assert_eq!(fixture.differences("shop"), []);
        fixture.clone("shop", dst).unwrap();
        assert_same(fixture.path("source"), fixture.path(dst));
    }
}

#[test]
fn a_template_on_a_read_only_file_system_can_be_verified() {
    for file_system in DISKS {
        let Some((fixture, shop)) = TemplateFixture::with_shop(file_system) else { return };
        fixture.volume.remount_read_only();
        assert_eq!(fixture.differences("shop"), []);
        fixture.volume.remount_writable();
        fs::write(shop.tree.join("d/a"), "2").unwrap();
        fixture.volume.remount_read_only();
        assert_eq!(fixture.differences("shop").len(), 1);
    }
}

/// btrfs forgets when a subvolume was renamed.
#[test]
fn a_template_is_unchanged_after_a_restart() {
    for file_system in DISKS {
        let Some((fixture, shop)) = TemplateFixture::with_shop(file_system) else { return };
        fixture.volume.restart();
        fixture.clone("shop", "dst").unwrap();
        assert_same(fixture.path("source"), fixture.path("dst"));
        // Nor is one that was moved away and back, once that was verified.
        fs::rename(&shop.tree, fixture.path("moved")).unwrap();
        fs::rename(fixture.path("moved"), &shop.tree).unwrap();
        assert_eq!(fixture.differences("shop"), []);
        fixture.volume.restart();
        fixture.clone("shop", "dst2").unwrap();
    }
}

#[test]
fn missing_files_and_a_damaged_manifest_or_record_are_told_and_refreshing_repairs_a_manifest() {
    let Some((fixture, shop)) = TemplateFixture::with_shop(FileSystem::Ext4) else { return };
    let verified = |name: &str| template_error(fixture.templates().verify(name, &CancelToken::default()));
    let empty = fixture.create("empty", "source").template;
    fs::remove_dir_all(&empty.tree).unwrap();
    assert!(matches!(template_error(fixture.clone("empty", "dst")), TemplateError::Gone { .. }));
    assert!(matches!(verified("empty"), TemplateError::Gone { .. }));
    fixture.templates().remove("empty").unwrap();

    fs::set_permissions(&shop.manifest, Permissions::from_mode(0o600)).unwrap();
    fs::write(&shop.manifest, "#mtree\n").unwrap();
    assert!(matches!(template_error(fixture.clone("shop", "dst")), TemplateError::Changed { .. }));
    assert!(matches!(verified("shop"), TemplateError::Damaged { .. }));
    fixture.refresh("shop");
    fixture.clone("shop", "dst").unwrap();

    fs::write(fixture.home().join("templates/shop.template"), "nonsense").unwrap();
    assert!(matches!(template_error(fixture.templates().find("shop")), TemplateError::Damaged { .. }));
    assert!(fixture.templates().list().unwrap()[0].1.is_err());
    // Nothing that the record may name is swept; removed, it is.
    assert_eq!(fixture.templates().sweep().unwrap().trash.len(), 0);
    assert_eq!(fixture.templates().remove("shop").unwrap().trash.len(), 1);
}

#[test]
fn another_users_templates_are_refused() {
    if !require_root("giving files to another user") {
        return;
    }
    let Some((fixture, _)) = TemplateFixture::with_shop(FileSystem::Ext4) else { return };
    run("chown", |chown| chown.arg("-R").arg("65534").arg(fixture.home()));
    assert!(matches!(template_error(fixture.clone("shop", "dst")), TemplateError::NotOwn(_)));
    let other = fixture.templates().create("other", &fixture.path("source"), &TemplateOptions::default());
    assert!(matches!(template_error(other), TemplateError::NotOwn(_)));
}
