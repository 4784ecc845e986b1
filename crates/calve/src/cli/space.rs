use std::path::PathBuf;

use clap::Args;

/// Show what trees take up, share, and would free if deleted
///
/// Copy-on-write makes du count the same blocks several times. Reads the extents of every file. The space that deleting
/// frees is exact where the file system reports it, else a lower and an upper bound. Writes nothing.
#[derive(Debug, Args)]
pub(crate) struct DuArguments {
    /// The files and directories to measure
    #[arg(value_name = "PATH", default_value = ".")]
    pub(crate) paths: Vec<PathBuf>,
    /// Print the answer as JSON on stdout (schema calve.du/1)
    #[arg(long)]
    pub(crate) json: bool,
    /// Leave out other file systems
    #[arg(short = 'x', long)]
    pub(crate) one_file_system: bool,
}

/// Share the blocks of files with equal contents
///
/// On btrfs and XFS. The kernel compares the bytes and shares them in one step (FIDEDUPERANGE), so contents cannot change,
/// even under concurrent writes. Times, modes, attributes and owners are preserved. Hashes of files are kept under $CALVE_HOME,
/// so that the next run need not read them again.
#[derive(Debug, Args)]
pub(crate) struct DedupeArguments {
    /// The directories to look for files in
    #[arg(value_name = "PATH", required = true)]
    pub(crate) paths: Vec<PathBuf>,
    /// Say what would be shared, and share nothing
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
    /// Print what was done as JSON on stdout (schema calve.dedupe/1)
    #[arg(long)]
    pub(crate) json: bool,
    /// Share only with files in DIR, which is never modified (repeatable) [default: with all PATHs]
    #[arg(long, value_name = "DIR")]
    pub(crate) against: Vec<PathBuf>,
    /// Do not use or update the hash cache
    #[arg(long)]
    pub(crate) no_cache: bool,
    /// Leave out other file systems
    #[arg(short = 'x', long)]
    pub(crate) one_file_system: bool,
}

/// Parses a size in bytes with an optional unit: "64K" is 65,536.
pub(super) fn size(text: &str) -> Result<u64, String> {
    let upper = text.trim_end_matches(['b', 'B', 'i']).to_ascii_uppercase();
    let mut units = [('K', 10), ('M', 20), ('G', 30)].into_iter();
    let with_unit = units.find_map(|(unit, shift)| Some((upper.strip_suffix(unit)?, shift)));
    let (digits, shift) = with_unit.unwrap_or((upper.as_str(), 0));
    let bytes = digits.parse().ok().and_then(|number: u64| number.checked_mul(1 << shift));
    bytes.ok_or_else(|| "a size is a number of bytes, or one with K, M or G".into())
}
