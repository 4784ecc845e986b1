//! A file that is replaced by rename stays open to those who could use it before, and to no others: as the kernel says.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use calve_core::bulk::{Placement, WriteEntry, WriteOptions};
use calve_testkit::{
    Capability, FileSystem, SplitMix64, Tree, UnprivilegedUser, Volume, require_program, require_root,
};
use fs_err as fs;

use crate::child;
use crate::cloning::{names_in, run, write_files};

/// File systems with access control lists.
const FILE_SYSTEMS: [FileSystem; 4] = [FileSystem::Xfs, FileSystem::Ext4, FileSystem::Btrfs, FileSystem::Tmpfs];

fn write(directory: &Path, names: &[String]) {
    let mut options = WriteOptions::default();
    options.placement = Placement::Rename;
    let entries: Vec<_> = names.iter().map(|name| WriteEntry { path: Path::new(name), contents: b"new" }).collect();
    write_files(directory, &entries, options).unwrap();
    for name in names {
        let written = fs::metadata(directory.join(name)).unwrap();
        assert_eq!(written.len(), 3, "{name}");
    }
}

fn acl(path: &Path) -> String {
    run("getfacl", |getfacl| getfacl.args(["-cnE"]).arg(path))
}

fn each_volume(test: impl Fn(&Volume)) {
    if !require_root("giving files to others") || !require_program("setfacl") {
        return;
    }
    for file_system in FILE_SYSTEMS {
        let Some(volume) = Volume::new(file_system) else { return };
        test(&volume);
    }
}

#[test]
fn lists_and_owners_stay_and_what_was_granted_to_other_contents_goes() {
    each_volume(|volume| {
        // The list of one user does not become the group's.
        let tree = Tree::new(volume.path().join("own")).file("npmrc", "old").mode("npmrc", 0o600);
        let tree = tree.owner("npmrc", 0, 1000).acl("npmrc", "u:1001:r").xattr("npmrc", "user.k", "kept");
        let path = tree.path().join("npmrc");
        let before = acl(&path);
        assert_eq!(before, "user::rw-\nuser:1001:r--\ngroup::---\nmask::r--\nother::---\n\n");
        write(tree.path(), &["npmrc".into()]);
        assert_eq!(acl(&path), before);
        let mut value = [0; 16];
        let length = rustix::fs::getxattr(&path, "user.k", &mut value).unwrap();
        assert_eq!(&value[..length], b"kept");
        // A list that the directory bequeaths opens no old file. One that was not there is as any other new one.
        let tree = Tree::new(volume.path().join("bequeathed")).file("env", "old").mode("env", 0o640);
        let tree = tree.acl("", "d:u:1001:rw,d:g:50:rwx");
        write(tree.path(), &["env".into(), "new".into()]);
        assert_eq!(acl(&tree.path().join("env")), "user::rw-\ngroup::r--\nother::---\n\n");
        assert!(acl(&tree.path().join("new")).contains("user:1001:rw-"));
        // Neither set-ID bits nor capabilities were granted to the new contents.
        let tree = Tree::new(volume.path().join("granted")).file("tool", "old").owner("tool", 1001, 1000);
        let tree = tree.acl("tool", "u:1002:---").mode("tool", 0o6755).file("ping", "old").mode("ping", 0o755);
        let tree = tree.capability("ping", Capability::NetRaw);
        write(tree.path(), &["ping".into(), "tool".into()]);
        let tool = fs::metadata(tree.path().join("tool")).unwrap();
        assert_eq!((tool.uid(), tool.gid(), tool.mode() & 0o7777), (1001, 1000, 0o755));
        assert!(acl(&tree.path().join("tool")).contains("user:1002:---"));
        let capability = rustix::fs::getxattr(tree.path().join("ping"), "security.capability", &mut [0; 64]);
        assert!(capability.is_err());
    });
}

/// Users, each with the one group that he is in.
const USERS: [(u32, u32); 6] = [(1001, 1001), (1002, 1002), (2000, 1000), (2001, 50), (1002, 50), (12345, 12345)];

/// The files that each user may read, write or run, as the kernel says.
fn accesses(directory: &Path) -> BTreeSet<(u32, u32, String)> {
    const TRY: &str = "for file in f*; do for how in r w x; do test -$how $file && echo $how $file; done; done; :";
    let tried = |(user, group): (u32, u32)| {
        let ids = [format!("--reuid={user}"), format!("--regid={group}")];
        let lines = run("setpriv", |setpriv| {
            setpriv.args(ids).args(["--clear-groups", "sh", "-c", TRY]).current_dir(directory)
        });
        lines.lines().map(|line| (user, group, line.to_owned())).collect::<Vec<_>>()
    };
    USERS.into_iter().flat_map(tried).collect()
}

/// Makes files with random owners, modes and lists, in a directory with this mode and list for new files.
fn random_files(directory: &Path, seed: u64, mode: u32, bequeathed: Option<&str>) -> Vec<String> {
    let mut random = SplitMix64::new(seed);
    let mut below = |limit: u64| random.below(limit);
    let names: Vec<String> = (0..40).map(|number| format!("f{number:02}")).collect();
    for name in &names {
        let owner = [0, 1001, 12345][below(3) as usize];
        let group = [50, 1000, 12345][below(3) as usize];
        let mut tree = Tree::new(directory).file(name, "old").owner(name, owner, group);
        tree = tree.mode(name, u32::try_from(below(0o1000)).unwrap());
        for _ in 0..below(4) {
            let who = ["u:1001", "u:1002", "u:12345", "g:50", "g:1000", "g:12345", "m:"][below(7) as usize];
            let permissions = ["---", "r--", "rw-", "r-x", "rwx", "-w-"][below(6) as usize];
            tree = tree.acl(name, &format!("{who}:{permissions}"));
        }
    }
    if let Some(entries) = bequeathed {
        let _ = Tree::new(directory).acl("", entries);
    }
    let _ = Tree::new(directory).mode("", mode);
    names
}

fn owners(directory: &Path) -> Vec<(String, u32)> {
    names_in(directory)
        .into_iter()
        .map(|name| (name.clone(), fs::metadata(directory.join(&name)).unwrap().uid()))
        .collect()
}

#[test]
fn root_leaves_everybody_what_he_had_and_no_more() {
    each_volume(|volume| {
        for (seed, bequeathed) in [(1, None), (2, Some("d:u:1001:rwx,d:g:50:rwx,d:o::rwx"))] {
            let directory = volume.path().join(seed.to_string());
            let names = random_files(&directory, seed, 0o755, bequeathed);
            let (before, owned) = (accesses(&directory), owners(&directory));
            assert!(before.len() > 100, "{before:?}");
            write(&directory, &names);
            assert_eq!((accesses(&directory), owners(&directory)), (before, owned), "{volume:?}");
        }
    });
}

/// Runs a test again as a user without privileges.
fn run_as_user(name: &str, volume: &Volume, directory: &Path) {
    child::run_copied(name, volume, directory, |program| {
        let mut command = UnprivilegedUser::command(program);
        command.env("TMPDIR", directory);
        command
    });
}

#[test]
fn a_user_who_may_give_nothing_away_opens_a_file_to_nobody_new() {
    const NAME: &str = "replaced::a_user_who_may_give_nothing_away_opens_a_file_to_nobody_new";
    if let Some(directory) = child::directory() {
        let names = names_in(&directory);
        return write(&directory, &names);
    }
    each_volume(|volume| {
        for (seed, bequeathed) in [(3, None), (4, Some("d:u:1001:rwx,d:g:50:rwx,d:g:12345:rwx,d:o::rwx"))] {
            let directory = volume.path().join(seed.to_string());
            random_files(&directory, seed, 0o777, bequeathed);
            let (before, owned) = (accesses(&directory), owners(&directory));
            run_as_user(NAME, volume, &directory);
            // Its owner could have given it to himself before, and the writer has the contents.
            let is_owners = |user: u32, line: &str| {
                user == UnprivilegedUser::UID
                    || owned.iter().any(|(name, owner)| line.ends_with(&**name) && *owner == user)
            };
            let more: Vec<_> = accesses(&directory)
                .into_iter()
                .filter(|access| !before.contains(access) && !is_owners(access.0, &access.2))
                .collect();
            assert!(more.is_empty(), "{volume:?} {more:?}");
            assert!(owners(&directory).iter().all(|(_, owner)| *owner == UnprivilegedUser::UID));
        }
    });
}

#[test]
fn a_file_that_the_writer_may_not_read_keeps_its_list() {
    const NAME: &str = "replaced::a_file_that_the_writer_may_not_read_keeps_its_list";
    if let Some(directory) = child::directory() {
        return write(&directory, &["f".into()]);
    }
    each_volume(|volume| {
        let tree = Tree::new(volume.path().join("r")).file("f", "old").mode("f", 0o600);
        let tree = tree.owner("f", 0, UnprivilegedUser::GID).acl("f", "u:1001:r,g::---").mode("", 0o777);
        run_as_user(NAME, volume, tree.path());
        assert_eq!(acl(&tree.path().join("f")), "user::rw-\nuser:1001:r--\ngroup::---\nmask::r--\nother::---\n\n");
    });
}
