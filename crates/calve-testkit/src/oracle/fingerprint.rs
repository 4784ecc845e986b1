use std::fmt;
use std::path::Path;

use super::record::{Record, RecordedEntry};

/// Everything visible of a tree, with change times and inode numbers, to show later that it was not touched.
///
/// Access times are left out, and space taken, because the kernel moves data to the disk, and blocks with it, on its
/// own. A change of contents that restores the mtime still shows in the change time, which no program can set.
#[derive(Clone, Debug)]
pub struct Fingerprint {
    record: Record,
}

pub fn fingerprint(dir: impl AsRef<Path>) -> Fingerprint {
    Fingerprint { record: Record::read(dir.as_ref()) }
}

impl Fingerprint {
    #[track_caller]
    pub fn assert_unchanged(&self, dir: impl AsRef<Path>) {
        let dir = dir.as_ref();
        let changes = self.changes(&fingerprint(dir));
        let shown = changes.iter().take(20).map(|line| format!("\n  {line}")).collect::<String>();
        assert!(changes.is_empty(), "`{}` was changed in {} places:{shown}", dir.display(), changes.len());
    }

    pub fn changes(&self, later: &Self) -> Vec<String> {
        let (before, after) = (&self.record, &later.record);
        let pairs = before.pair_with(after, None);
        let gone = pairs.first_only.iter().map(|old| format!("`{}`: gone", before.shown(*old)));
        let new = pairs.second_only.iter().map(|new| format!("`{}`: new", after.shown(*new)));
        let changed = pairs.both.iter().filter_map(|(old, new)| {
            let fields = changed_fields(&before.entries[*old], &after.entries[*new]);
            (!fields.is_empty()).then(|| format!("`{}`: {}", before.shown(*old), fields.join(", ")))
        });
        gone.chain(new).chain(changed).collect()
    }
}

fn changed_fields(before: &RecordedEntry, after: &RecordedEntry) -> Vec<String> {
    let mut fields = Vec::new();
    let mut field = |name: &str, old: &dyn fmt::Debug, new: &dyn fmt::Debug| {
        let (old, new) = (format!("{old:?}"), format!("{new:?}"));
        if old != new {
            fields.push(format!("{name} {old} became {new}"));
        }
    };
    field("kind", &before.kind, &after.kind);
    field("mode", &format_args!("{:04o}", before.mode), &format_args!("{:04o}", after.mode));
    field("owner", &before.owner, &after.owner);
    field("mtime", &before.mtime, &after.mtime);
    field("ctime", &before.ctime, &after.ctime);
    field("device and inode", &before.inode, &after.inode);
    field("links", &before.links, &after.links);
    field("device number", &before.device, &after.device);
    field("size", &before.size_bytes, &after.size_bytes);
    field("target", &before.target, &after.target);
    field("xattrs", &before.xattrs, &after.xattrs);
    field("content", &before.content, &after.content);
    fields
}
