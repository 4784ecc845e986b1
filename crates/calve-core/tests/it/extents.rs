//! What the kernel says about where a file's bytes are (FIEMAP, through `filefrag`).

use std::path::Path;

use crate::cloning::run;

/// The extents of one file.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Extents {
    /// All of them.
    pub count: usize,
    /// Those that other files have too.
    pub shared: usize,
    /// Those inside the file system's metadata.
    pub inline: usize,
    /// Those that are compressed.
    pub encoded: usize,
}

/// Asks for the extents of a file, after it has been written back.
pub fn extents(file: &Path) -> Extents {
    let listing = run("filefrag", |command| command.args(["-s", "-v"]).arg(file));
    let mut extents = Extents::default();
    // `   0:        0..       1:      24576..     24577:      2:             last,shared,eof`
    for line in listing.lines() {
        let mut fields = line.splitn(2, ':');
        let numbered = fields.next().is_some_and(|first| first.trim().parse::<u32>().is_ok());
        let Some(flags) = fields.next().filter(|_| numbered).and_then(|rest| rest.rsplit(':').next()) else { continue };
        extents.count += 1;
        extents.shared += usize::from(flags.contains("shared"));
        extents.inline += usize::from(flags.contains("inline"));
        extents.encoded += usize::from(flags.contains("encoded"));
    }
    extents
}
