//! What a template promises when nothing goes wrong, on each file system.

use calve_core::Strategy;
use calve_core::error::TemplateError;
use calve_core::template::TemplateOptions;
use calve_testkit::{FileSystem, Tree, assert_same, everything, fingerprint};
use fs_err as fs;

use super::{TemplateFixture, clone_template, delete_trash, template_error};
use crate::cloning::{assert_holds, is_subvolume, only, options, waiting};
use crate::spare::DISKS;

fn story(file_system: FileSystem) {
    let Some(fixture) = TemplateFixture::new(file_system) else { return };
    let source = fixture.path("source");
    everything(&source);
    let before = fingerprint(&source);
    let made = fixture.create("shop", "source");
    before.assert_unchanged(&source);
    assert_same(&source, &made.template.tree);
    assert_eq!(made.template.source, source);
    assert_eq!(fixture.differences("shop"), []);

    let report = fixture.clone("shop", "dst").unwrap();
    assert_same(&source, fixture.path("dst"));
    let expected = match file_system {
        FileSystem::Btrfs => Strategy::Snapshot,
        FileSystem::Xfs => Strategy::Reflink,
        _ => Strategy::Copy,
    };
    assert_eq!(report.strategy, expected);
    Tree::new(fixture.path("dst")).file("new", "1");
    // A clone of each kind leaves the template as it was.
    for (index, strategy) in [Strategy::Reflink, Strategy::Copy].into_iter().enumerate() {
        let dst = fixture.path(&format!("dst{index}"));
        let _ = clone_template(&fixture.templates(), "shop", &dst, only(strategy));
    }
    let refused = clone_template(&fixture.templates(), "shop", &fixture.path("linked"), only(Strategy::Hardlink));
    assert!(refused.unwrap_err().to_string().contains("would change the template"));
    assert_eq!(fixture.differences("shop"), []);
    assert_eq!(fixture.templates().find("shop").unwrap().key, made.template.key);
    fixture.clone("shop", "again").unwrap();
    // On btrfs the tree is a subvolume, whatever it was made of.
    assert!(file_system != FileSystem::Btrfs || is_subvolume(&made.template.tree));
    delete_trash(&fixture.templates().remove("shop").unwrap().trash);
    assert!(!made.template.tree.exists());
}

#[test]
fn a_template_is_a_frozen_clone_on_each_file_system() {
    DISKS.into_iter().for_each(story);
}

#[test]
fn equal_trees_have_one_key_and_others_another() {
    let (Some(ext4), Some(xfs)) = (TemplateFixture::new(FileSystem::Ext4), TemplateFixture::new(FileSystem::Xfs))
    else {
        return;
    };
    for fixture in [&ext4, &xfs] {
        Tree::new(fixture.path("source"))
            .file("a", "1")
            .file("d/b", "2")
            .hard_link("link", "d/b")
            .symlink("s", "d/b")
            .mtime("s", 8, 1)
            .mtime("a", 5, 1)
            .mtime("d/b", 6, 2)
            .mtime("d", 7, 3)
            .mtime("", 9, 4);
    }
    let key = ext4.create("shop", "source").template.key;
    assert_eq!(ext4.create("other", "source").template.key, key);
    // At another place, by another strategy.
    assert_eq!(xfs.create("shop", "source").template.key, key);
    Tree::new(ext4.path("source")).mode("a", 0o600);
    assert_ne!(ext4.create("third", "source").template.key, key);
}

#[test]
fn the_manifest_names_everything_and_nothing_of_this_machine() {
    let Some(fixture) = TemplateFixture::new(FileSystem::Ext4) else { return };
    Tree::new(fixture.path("source"))
        .file("a b", "hello")
        .mode("a b", 0o640)
        .mtime("a b", 1_000_000_000, 7)
        .symlink("s", "a b")
        .mtime("s", 8, 0)
        .mode("", 0o755)
        .mtime("", 9, 0);
    let made = fixture.create("shop", "source");
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let hash = blake3::hash(b"hello").to_hex();
    let expected = format!(
        "#mtree\n# calve template manifest 1\n\
         . type=dir mode=0755 uid={uid} gid={gid} time=9.000000000\n\
         ./a\\040b type=file mode=0640 uid={uid} gid={gid} time=1000000000.000000007 size=5 blake3digest={hash}\n\
         ./s type=link uid={uid} gid={gid} time=8.000000000 link=a\\040b\n"
    );
    let manifest = fs::read_to_string(&made.template.manifest).unwrap();
    assert_eq!(manifest, expected);
    assert_eq!(made.template.key, blake3::hash(manifest.as_bytes()).to_hex().to_string());
    assert_eq!((made.template.entries, made.template.bytes), (3, 5));
}

#[test]
fn a_refresh_swaps_the_template_and_keeps_its_patterns() {
    let Some(fixture) = TemplateFixture::new(FileSystem::Ext4) else { return };
    Tree::new(fixture.path("source")).file("a", "1").file("b.log", "x");
    let mut create = TemplateOptions::default();
    create.exclude = vec!["*.log".into()];
    let templates = fixture.templates();
    let old = templates.create("shop", &fixture.path("source"), &create).unwrap();
    Tree::new(fixture.path("source")).file("a", "2");
    let held = templates.hold("shop").unwrap();
    let new = fixture.refresh("shop");
    assert_ne!(old.template.key, new.template.key);
    assert_eq!(fs::read_to_string(new.template.tree.join("a")).unwrap(), "2");
    assert!(!new.template.tree.join("b.log").exists());
    // A holder of the old one keeps it.
    assert_eq!(fs::read_to_string(held.tree.join("a")).unwrap(), "1");
    drop(held);
    assert_eq!(templates.sweep().unwrap().trash.len(), 1);
    assert!(!old.template.tree.exists());

    Tree::new(fixture.path("other")).file("c", "3");
    let other = templates.refresh("shop", Some(&fixture.path("other")), &TemplateOptions::default()).unwrap();
    assert_eq!(other.template.source, fixture.path("other"));
    fixture.clone("shop", "dst").unwrap();
    assert_same(fixture.path("other"), fixture.path("dst"));
    // A clone of a template takes the options of any clone.
    let leave_out = options(|options| options.exclude = vec!["c".into()]);
    clone_template(&templates, "shop", &fixture.path("less"), leave_out).unwrap();
    assert_holds(fixture.path("less"), &[]);
}

#[test]
fn a_removed_template_is_gone_and_its_name_free() {
    let Some(fixture) = TemplateFixture::new(FileSystem::Ext4) else { return };
    Tree::new(fixture.path("source")).file("a", "1");
    let templates = fixture.templates();
    assert_eq!(template_error(templates.find("shop")), TemplateError::Unknown("shop".into()));
    assert!(!fixture.home().exists(), "looking makes nothing");
    fixture.create("shop", "source");
    assert_eq!(
        template_error(templates.create("shop", &fixture.path("source"), &TemplateOptions::default())),
        TemplateError::Exists("shop".into())
    );
    templates.remove("shop").unwrap();
    assert_eq!(template_error(templates.remove("shop")), TemplateError::Unknown("shop".into()));
    assert_eq!(templates.list().unwrap().len(), 0);
    fixture.create("shop", "source");
    let listed = templates.list().unwrap();
    assert_eq!(listed.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["shop"]);
    calve_core::remove_tree(&fixture.home(), &waiting()).unwrap();
}

#[test]
fn differences_are_named_by_path_and_kind() {
    let Some(fixture) = TemplateFixture::new(FileSystem::Ext4) else { return };
    Tree::new(fixture.path("source")).file("a", "1").file("b", "2").file("d/c", "3").file("same", "4");
    let tree = fixture.create("shop", "source").template.tree;
    let mtime = fs::metadata(tree.join("a")).unwrap().modified().unwrap();
    fs::write(tree.join("a"), "x").unwrap();
    std::fs::File::options().write(true).open(tree.join("a")).unwrap().set_modified(mtime).unwrap();
    let found = |tree: &std::path::Path| fs::metadata(tree).unwrap().modified().unwrap();
    let root = found(&tree);
    fs::remove_file(tree.join("b")).unwrap();
    fs::write(tree.join("d/new"), "1").unwrap();
    fs_err::File::open(&tree).unwrap().into_file().set_modified(root).unwrap();
    let differences = fixture.differences("shop");
    let told: Vec<_> = differences
        .iter()
        .map(|difference| {
            (difference.path.to_str().unwrap(), difference.code.to_string(), difference.keywords.concat())
        })
        .collect();
    let expected = [
        ("a", "changed".to_owned(), "blake3digest".to_owned()),
        ("b", "missing".to_owned(), String::new()),
        ("d", "changed".to_owned(), "time".to_owned()),
        ("d/new", "added".to_owned(), String::new()),
    ];
    assert_eq!(told, expected);
}
