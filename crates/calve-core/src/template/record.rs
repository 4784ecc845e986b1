//! The record of a template: fields, each with a NUL behind it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::Stat;

use crate::choice::Strategy;
use crate::tree::stable::Moment;

const VERSION: &[u8] = b"calve-template-1";

/// A template, as it is written down.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Template {
    pub name: String,
    /// The BLAKE3 hash of its manifest, in hexadecimal digits: two templates of equal trees have the same.
    pub key: String,
    /// The directory that it was made of.
    pub source: PathBuf,
    /// The patterns of what was left out.
    pub exclude: Vec<String>,
    /// The directory that was named to keep it in.
    pub at: Option<PathBuf>,
    pub tree: PathBuf,
    /// How many entries it has, with the root.
    pub entries: u64,
    /// The sizes of its files together.
    pub bytes: u64,
    pub created: SystemTime,
    /// The strategy that made it.
    pub strategy: Strategy,
    /// The name of the directory that `tree` is in, different for each refresh.
    pub(super) version: String,
    /// The facts that must not have changed since.
    pub(super) frozen: FrozenState,
}

impl Template {
    /// Returns the path of the manifest.
    pub fn manifest(&self) -> PathBuf {
        self.tree.with_file_name(super::store::MANIFEST)
    }

    /// Returns the directory that the directories of versions are in.
    pub(super) fn versions_directory(&self) -> PathBuf {
        self.tree.parent().and_then(|version| version.parent()).unwrap_or(&self.tree).to_path_buf()
    }
}

/// The facts that tell at little cost that nothing was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FrozenState {
    /// Every entry's change time is at or before this.
    pub(super) moment: Moment,
    pub(super) root: Stamp,
    pub(super) manifest: Stamp,
}

/// One entry at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    inode: u64,
    changed: Moment,
    size: u64,
}

impl Stamp {
    #[allow(clippy::unnecessary_cast, reason = "the fields' types differ between systems")]
    pub(super) fn of(stat: &Stat) -> Self {
        Self { inode: stat.st_ino as u64, changed: Moment::of(stat), size: stat.st_size as u64 }
    }
}

impl Template {
    /// Encodes the record of a template. `own` is the directory below CALVE_HOME, which may be moved as a whole.
    pub(super) fn encode(&self, own: &Path) -> Vec<u8> {
        let path = |path: &PathBuf| path.as_os_str().as_bytes().to_vec();
        let created = self.created.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let mut fields = vec![
            VERSION.to_vec(),
            self.name.clone().into_bytes(),
            self.key.clone().into_bytes(),
            path(&self.source),
            self.at.as_ref().map_or_else(Vec::new, path),
            Some(self.versions_directory()).filter(|directory| directory != own).as_ref().map_or_else(Vec::new, path),
            self.version.clone().into_bytes(),
            self.strategy.name().as_bytes().to_vec(),
        ];
        let (root, manifest) = (self.frozen.root, self.frozen.manifest);
        let moments = [self.frozen.moment, root.changed, manifest.changed].map(Moment::parts);
        let numbers = [self.entries, self.bytes, root.inode, root.size, manifest.inode, manifest.size];
        fields.push(created.to_string().into_bytes());
        fields.extend(numbers.iter().map(|number| number.to_string().into_bytes()));
        fields.extend(moments.iter().map(|(seconds, nanoseconds)| format!("{seconds} {nanoseconds}").into_bytes()));
        fields.extend(self.exclude.iter().map(|pattern| pattern.clone().into_bytes()));
        let mut bytes = Vec::new();
        for field in fields {
            bytes.extend_from_slice(&field);
            bytes.push(0);
        }
        bytes
    }

    /// Decodes the record of the template `name`. Returns `None` for bytes that are no whole record of it.
    pub(super) fn decode(name: &str, bytes: &[u8], own: &Path) -> Option<Self> {
        let mut fields = Fields(bytes.strip_suffix(b"\0")?.split(|&byte| byte == 0));
        if fields.bytes()? != VERSION || fields.text()? != name {
            return None;
        }
        let key = fields.text()?;
        let source = fields.path()?;
        let at = Some(fields.path()?).filter(|at| !at.as_os_str().is_empty());
        let directory = Some(fields.path()?).filter(|directory| !directory.as_os_str().is_empty());
        let directory = directory.unwrap_or_else(|| own.to_path_buf());
        let version = fields.text()?;
        let strategy = fields.text()?.parse().ok()?;
        let created = UNIX_EPOCH + Duration::from_nanos(fields.number()?);
        let (entries, bytes) = (fields.number()?, fields.number()?);
        let (root_inode, root_size) = (fields.number()?, fields.number()?);
        let (manifest_inode, manifest_size) = (fields.number()?, fields.number()?);
        let moment = fields.moment()?;
        let root = Stamp { inode: root_inode, changed: fields.moment()?, size: root_size };
        let manifest = Stamp { inode: manifest_inode, changed: fields.moment()?, size: manifest_size };
        let frozen = FrozenState { moment, root, manifest };
        let exclude = fields.0.map(|field| String::from_utf8(field.to_vec()).ok()).collect::<Option<_>>()?;
        let tree = directory.join(&version).join(super::store::TREE);
        let name = name.to_owned();
        Some(Self { name, key, source, exclude, at, tree, entries, bytes, created, strategy, version, frozen })
    }
}

struct Fields<I>(I);

impl<'a, I: Iterator<Item = &'a [u8]>> Fields<I> {
    fn bytes(&mut self) -> Option<&'a [u8]> {
        self.0.next()
    }

    fn text(&mut self) -> Option<String> {
        String::from_utf8(self.bytes()?.to_vec()).ok()
    }

    fn path(&mut self) -> Option<PathBuf> {
        Some(OsStr::from_bytes(self.bytes()?).into())
    }

    fn number(&mut self) -> Option<u64> {
        self.text()?.parse().ok()
    }

    fn moment(&mut self) -> Option<Moment> {
        let text = self.text()?;
        let (seconds, nanoseconds) = text.split_once(' ')?;
        Some(Moment::from_parts(seconds.parse().ok()?, nanoseconds.parse().ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written_and_a_torn_one_is_none() {
        let stamp = Stamp { inode: 7, changed: Moment::from_parts(-1, 5), size: 9 };
        let template = Template {
            name: "shop".into(),
            key: "00ff".into(),
            source: "/a/\n b".into(),
            exclude: vec!["*.log".into(), "!x".into()],
            at: None,
            tree: "/place/shop-1/tree".into(),
            entries: 3,
            bytes: 4,
            created: UNIX_EPOCH + Duration::from_nanos(12_345),
            strategy: Strategy::Reflink,
            version: "shop-1".into(),
            frozen: FrozenState { moment: Moment::from_parts(1, 2), root: stamp, manifest: stamp },
        };
        let own = Path::new("/own");
        let bytes = template.encode(own);
        assert_eq!(Template::decode("shop", &bytes, own), Some(template));
        assert_eq!(Template::decode("other", &bytes, own), None);
        let whole = bytes.len() - "*.log\0!x\0".len();
        for length in 0..whole {
            assert_eq!(Template::decode("shop", &bytes[..length], own), None, "{length}");
        }
    }
}
