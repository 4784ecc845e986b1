//! The record of a template: NUL-terminated fields.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::Stat;
use serde::Serialize;

use crate::home::{from_home, in_home};
use crate::json::{As, ReceiptPath};
use crate::tree::stable::Moment;
use crate::vocabulary::strategy::Strategy;

pub(super) const TREE: &str = "tree";
pub(super) const MANIFEST: &str = "manifest";
const VERSION: &[u8] = b"calve-template-1";

/// A template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename = "TemplateFields")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Template {
    /// The name.
    pub name: String,
    /// The BLAKE3 hash of the manifest in hexadecimal digits. Templates of equal trees have the same key.
    pub key: String,
    /// The directory that the template was made of.
    #[serde(with = "As::<ReceiptPath>")]
    pub source: PathBuf,
    /// The patterns of excluded entries.
    pub exclude: Vec<String>,
    /// The directory that was named to keep it in.
    #[serde(skip)]
    pub at: Option<PathBuf>,
    /// The frozen clone.
    #[serde(with = "As::<ReceiptPath>")]
    pub tree: PathBuf,
    /// The manifest.
    #[serde(with = "As::<ReceiptPath>")]
    pub manifest: PathBuf,
    /// The number of entries, with the root.
    pub entries: u64,
    /// The sum of the files' sizes.
    pub bytes: u64,
    /// When the template was made, in seconds since 1970.
    #[serde(rename = "created_unix_s", with = "As::<u64>")]
    pub created: SystemTime,
    /// The strategy that made the frozen clone.
    pub strategy: Strategy,
    /// The name of the directory that `tree` is in, different for each refresh.
    #[serde(skip)]
    pub(super) version: String,
    /// The facts that must not have changed since.
    #[serde(skip)]
    pub(super) frozen: FrozenState,
}

/// Facts that show cheaply that nothing was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FrozenState {
    /// Every entry's change time is at or before this.
    pub(super) moment: Moment,
    pub(super) root: Stamp,
    pub(super) manifest: Stamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    inode: u64,
    changed: Moment,
    size: u64,
}

impl Stamp {
    #[allow(clippy::unnecessary_cast, reason = "the fields' types differ between systems")]
    pub(super) fn new(stat: &Stat) -> Self {
        Self { inode: stat.st_ino as u64, changed: Moment::of_change(stat), size: stat.st_size as u64 }
    }
}

impl Template {
    pub(super) fn versions_directory(&self) -> PathBuf {
        self.tree.parent().and_then(|version| version.parent()).unwrap_or(&self.tree).to_path_buf()
    }

    /// `own` is the directory for versions below `home`, CALVE_HOME.
    pub(super) fn encode(&self, own: &Path, home: &Path) -> Vec<u8> {
        let path = |path: &PathBuf| path.as_os_str().as_bytes().to_vec();
        let place = |path: &PathBuf| from_home(path, home).as_os_str().as_bytes().to_vec();
        let created = self.created.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let mut fields = vec![
            VERSION.to_vec(),
            self.name.clone().into_bytes(),
            self.key.clone().into_bytes(),
            path(&self.source),
            self.at.as_ref().map_or_else(Vec::new, place),
            Some(self.versions_directory()).filter(|directory| directory != own).as_ref().map_or_else(Vec::new, place),
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
        // Each field ends in a NUL.
        fields.push(Vec::new());
        fields.join(&0)
    }

    /// Returns `None` if the bytes are not a complete record of the template `name`.
    pub(super) fn decode(name: &str, bytes: &[u8], own: &Path, home: &Path) -> Option<Self> {
        let mut fields = Fields(bytes.strip_suffix(b"\0")?.split(|&byte| byte == 0));
        if fields.0.next()? != VERSION || fields.text()? != name {
            return None;
        }
        let key = fields.text()?;
        let source = fields.path()?;
        let mut place =
            || Some(Some(fields.path()?).filter(|path| !path.as_os_str().is_empty()).map(|path| in_home(&path, home)));
        let (at, directory) = (place()?, place()?.unwrap_or_else(|| own.to_path_buf()));
        let version = fields.text()?;
        let [tree, manifest] = [TREE, MANIFEST].map(|name| directory.join(&version).join(name));
        // In the order of the fields.
        Some(Self {
            name: name.to_owned(),
            key,
            source,
            at,
            tree,
            manifest,
            version,
            strategy: fields.text()?.parse().ok()?,
            created: UNIX_EPOCH + Duration::from_nanos(fields.number()?),
            entries: fields.number()?,
            bytes: fields.number()?,
            frozen: fields.frozen()?,
            exclude: fields.0.map(|field| String::from_utf8(field.to_vec()).ok()).collect::<Option<_>>()?,
        })
    }
}

struct Fields<I>(I);

impl<'a, I: Iterator<Item = &'a [u8]>> Fields<I> {
    fn text(&mut self) -> Option<String> {
        String::from_utf8(self.0.next()?.to_vec()).ok()
    }

    fn path(&mut self) -> Option<PathBuf> {
        Some(OsStr::from_bytes(self.0.next()?).into())
    }

    fn number(&mut self) -> Option<u64> {
        self.text()?.parse().ok()
    }

    fn moment(&mut self) -> Option<Moment> {
        let text = self.text()?;
        let (seconds, nanoseconds) = text.split_once(' ')?;
        Some(Moment { seconds: seconds.parse().ok()?, nanoseconds: nanoseconds.parse().ok()? })
    }

    fn frozen(&mut self) -> Option<FrozenState> {
        let [root_inode, root_size, inode, size] = [self.number()?, self.number()?, self.number()?, self.number()?];
        let moment = self.moment()?;
        let root = Stamp { inode: root_inode, changed: self.moment()?, size: root_size };
        Some(FrozenState { moment, root, manifest: Stamp { inode, changed: self.moment()?, size } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written_and_a_torn_one_is_none() {
        let stamp = Stamp { inode: 7, changed: Moment { seconds: -1, nanoseconds: 5 }, size: 9 };
        let template = Template {
            name: "shop".into(),
            key: "00ff".into(),
            source: "/a/\n b".into(),
            exclude: vec!["*.log".into(), "!x".into()],
            at: Some("/own/home".into()),
            tree: "/own/home/place/shop-1/tree".into(),
            manifest: "/own/home/place/shop-1/manifest".into(),
            entries: 3,
            bytes: 4,
            created: UNIX_EPOCH + Duration::from_nanos(12_345),
            strategy: Strategy::Reflink,
            version: "shop-1".into(),
            frozen: FrozenState { moment: Moment { seconds: 1, nanoseconds: 2 }, root: stamp, manifest: stamp },
        };
        let [own, home] = ["/own/home/templates/trees", "/own/home"].map(Path::new);
        let bytes = template.encode(own, home);
        assert_eq!(Template::decode("other", &bytes, own, home), None);
        let moved = Template::decode("shop", &bytes, own, Path::new("/moved")).unwrap();
        assert_eq!((moved.at, moved.tree), (Some("/moved".into()), "/moved/place/shop-1/tree".into()));
        assert_eq!(Template::decode("shop", &bytes, own, home), Some(template));
        let whole = bytes.len() - "*.log\0!x\0".len();
        for length in 0..whole {
            assert_eq!(Template::decode("shop", &bytes[..length], own, home), None, "{length}");
        }
    }
}
