//! Where templates are kept.

use calve_core::error::{Operation, TemplateError};
use calve_core::options::Background;
use calve_core::template::{TemplateOptions, Templates};
use calve_core::{CancelToken, Error, reap};
use calve_testkit::{FileSystem, Tree, assert_same, is_root, rounds};
use fs_err as fs;

use super::{TemplateFixture, at, clone_template, delete_trash, template_error};
use crate::cloning::names_in;

fn hidden() -> String {
    format!(".calve-templates-{}", rustix::process::geteuid().as_raw())
}

#[test]
fn a_template_of_another_file_system_is_kept_beside_its_source() {
    let (Some(home), Some(fixture)) = (TemplateFixture::new(FileSystem::Ext4), TemplateFixture::new(FileSystem::Xfs))
    else {
        return;
    };
    Tree::new(fixture.path("project/node_modules")).file("a", "1");
    let templates = Templates::open(&home.home());
    let source = fixture.path("project/node_modules");
    let made = templates.create("shop", &source, &TemplateOptions::default()).unwrap();
    let beside = fixture.path("project").join(hidden());
    assert!(made.template.tree.starts_with(&beside));
    assert_eq!(fs::read_to_string(beside.join(".gitignore")).unwrap(), "*\n");
    let report = clone_template(&templates, "shop", &fixture.path("dst"), Default::default()).unwrap();
    assert_eq!(report.strategy, calve_core::Strategy::Reflink);
    // A clone of the project does not take its templates along.
    let clone = calve_core::clone_tree(&fixture.path("project"), &fixture.path("clone"), &Default::default());
    clone.unwrap();
    assert_eq!(names_in(fixture.path("clone")), ["node_modules"]);
    let removed = templates.remove("shop").unwrap();
    assert_eq!(removed.trash, std::slice::from_ref(&beside));
    delete_trash(&removed.trash);
    assert_eq!(names_in(fixture.path("project")), ["node_modules"]);
    let cancelled = TemplateOptions::default();
    cancelled.cancel.cancel();
    assert!(matches!(templates.create("shop", &source, &cancelled), Err(Error::Interrupted)));
    assert_eq!(names_in(fixture.path("project")), ["node_modules"]);
}

#[test]
fn a_template_is_kept_where_it_was_asked_to_be_also_after_a_refresh() {
    let (Some(home), Some(fixture)) = (TemplateFixture::new(FileSystem::Ext4), TemplateFixture::new(FileSystem::Xfs))
    else {
        return;
    };
    Tree::new(home.path("source")).file("a", "1");
    let templates = Templates::open(&home.home());
    templates.create("shop", &home.path("source"), &at(fixture.path(""))).unwrap();
    let new = templates.refresh("shop", None, &TemplateOptions::default()).unwrap();
    assert!(new.template.tree.starts_with(fixture.path(&hidden())));
    assert_same(home.path("source"), &new.template.tree);
}

#[test]
fn a_directory_that_contains_the_place_is_refused() {
    let Some(fixture) = TemplateFixture::new(FileSystem::Ext4) else { return };
    Tree::new(fixture.path("home/work")).file("a", "1");
    for source in ["home", "."] {
        let made = fixture.templates().create("shop", &fixture.path(source), &TemplateOptions::default());
        assert!(matches!(template_error(made), TemplateError::DirectoryInsideSource { .. }));
    }
    let inside = at(fixture.path("home/work"));
    let made = fixture.templates().create("shop", &fixture.path("home/work"), &inside);
    assert!(matches!(template_error(made), TemplateError::DirectoryInsideSource { .. }));
    // A directory in CALVE_HOME is one as any other; the tree of a template is too.
    let first = fixture.create("shop", "home/work");
    let second = fixture.templates().create("copy", &first.template.tree, &TemplateOptions::default()).unwrap();
    assert_eq!(second.template.key, first.template.key);
}

#[test]
fn what_is_no_directory_or_no_name_is_refused() {
    let Some(fixture) = TemplateFixture::new(FileSystem::Ext4) else { return };
    Tree::new(fixture.path("")).file("file", "1").dir("source").symlink("link", "source");
    let create =
        |name: &str, source: &str| fixture.templates().create(name, &fixture.path(source), &TemplateOptions::default());
    assert!(matches!(create("shop", "none"), Err(Error::Missing(_))));
    assert!(matches!(template_error(create("shop", "file")), TemplateError::NotADirectory(_)));
    for name in ["", "../x", ".hidden", "a/b", "@shop"] {
        assert!(matches!(template_error(create(name, "source")), TemplateError::BadName { .. }));
    }
    // A link stands for the directory behind it.
    assert_eq!(create("shop", "link").unwrap().template.source, fixture.path("source"));
}

#[test]
fn an_entry_that_cannot_be_read_is_refused_and_nothing_stays() {
    if is_root() {
        // Root may read everything; the unprivileged run has this test.
        return;
    }
    let Some(fixture) = TemplateFixture::new(FileSystem::Ext4) else { return };
    Tree::new(fixture.path("source")).file("a", "1").mode("a", 0o000);
    let made = fixture.templates().create("shop", &fixture.path("source"), &TemplateOptions::default());
    assert!(matches!(made, Err(Error::Io { operation: Operation::Open, .. })));
    assert_eq!(names_in(fixture.home().join("templates/trees")), [""; 0]);
    assert_eq!(names_in(fixture.home().join("templates/versions")), [""; 0]);
}

#[test]
fn a_full_disk_leaves_the_old_template() {
    let Some((fixture, old)) = TemplateFixture::with_shop(FileSystem::Ext4) else { return };
    let free = rustix::fs::statvfs(fixture.path("")).unwrap();
    let size = free.f_bavail * free.f_frsize * 2 / 3;
    let block = vec![7; 1 << 20];
    let mut file = fs::File::create(fixture.path("source/big")).unwrap();
    for _ in 0..size >> 20 {
        std::io::Write::write_all(&mut file, &block).unwrap();
    }
    let refreshed = fixture.templates().refresh("shop", None, &TemplateOptions::default());
    assert!(refreshed.is_err());
    assert_eq!(fixture.templates().find("shop").unwrap(), old);
    assert_eq!(names_in(fixture.home().join("templates/trees")).len(), 1);
    fixture.clone("shop", "dst").unwrap();
}

#[test]
fn a_copied_home_leaves_the_templates_of_the_original_alone() {
    let Some(fixture) = TemplateFixture::new(FileSystem::Ext4) else { return };
    Tree::new(fixture.path("source")).file("a", "1");
    let make = |name: &str| {
        fixture.create(name, "source");
        fixture.templates().create(&format!("{name}-at"), &fixture.path("source"), &at(fixture.path(""))).unwrap();
    };
    ["refreshed", "removed"].into_iter().for_each(make);
    calve_core::clone_tree(&fixture.home(), &fixture.path("copy"), &Default::default()).unwrap();
    let copy = Templates::open(&fixture.path("copy"));
    for name in ["refreshed", "refreshed-at"] {
        copy.refresh(name, None, &TemplateOptions::default()).unwrap();
        copy.hold(name).unwrap();
    }
    for name in ["removed", "removed-at"] {
        copy.remove(name).unwrap();
    }
    for name in ["refreshed", "refreshed-at", "removed", "removed-at"] {
        fixture.templates().hold(name).unwrap();
    }
    assert_eq!(names_in(fixture.path("copy/templates/versions")).len(), 2);
    delete_trash(&[fixture.path("copy/templates/trees")]);
    assert_eq!(names_in(fixture.path("copy/templates/trees")).len(), 1);
}

#[test]
fn a_moved_home_keeps_refreshes_and_removes_its_templates() {
    let Some((fixture, _)) = TemplateFixture::with_shop(FileSystem::Ext4) else { return };
    Tree::new(fixture.home()).dir("volume");
    let (outside, inside) = (at(fixture.path("")), at(fixture.home().join("volume")));
    for (name, options) in [("elsewhere", &outside), ("inside-kept", &inside), ("inside-removed", &inside)] {
        fixture.templates().create(name, &fixture.path("source"), options).unwrap();
    }
    fs::rename(fixture.home(), fixture.path("moved")).unwrap();
    let moved = Templates::open(&fixture.path("moved"));
    for name in ["inside-kept", "inside-removed"] {
        assert!(moved.hold(name).unwrap().tree.starts_with(fixture.path("moved/volume")));
    }
    for name in ["shop", "elsewhere", "inside-removed", "inside-kept"] {
        moved.refresh(name, None, &TemplateOptions::default()).unwrap();
        if name != "inside-kept" {
            delete_trash(&moved.remove(name).unwrap().trash);
        }
    }
    let place = fixture.path("moved/volume").join(hidden());
    delete_trash(&[place.clone(), fixture.path("moved/templates/trees")]);
    assert_eq!(names_in(place).len(), 2, "one version, and .gitignore");
    assert_eq!(names_in(fixture.path("moved/templates/versions")).len(), 1);
    assert_eq!(names_in(fixture.path("moved/templates/trees")), [""; 0]);
    assert!(!fixture.path(&hidden()).exists());
}

#[test]
fn a_directory_for_templates_is_made_while_others_remove_it() {
    let Some(fixture) = TemplateFixture::new(FileSystem::Tmpfs) else { return };
    Tree::new(fixture.path("source")).file("a", "1");
    let options = at(fixture.path(""));
    let make_and_remove = |name: &str| {
        for _ in 0..rounds(2000) {
            fixture.templates().create(name, &fixture.path("source"), &options).unwrap();
            fixture.templates().remove(name).unwrap();
            let place = fixture.path(&hidden());
            if let Ok(directory) = fs::File::open(&place) {
                // The other thread may have removed it meanwhile.
                let _ = reap(directory.into_parts().0.into(), &place, Background::No, &CancelToken::default());
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| make_and_remove("one"));
        make_and_remove("two");
    });
    assert_eq!(names_in(fixture.path("")), ["home", "source"]);
}
