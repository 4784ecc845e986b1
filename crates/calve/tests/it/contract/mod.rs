//! What `calve cp` promises on its command line: where the clone goes, the output, and how the program ends.

mod choice;
mod destination;
mod options;
mod printed;
mod receipt;

use calve_testkit::FileSystem;

use crate::spot::Spot;

/// A folder with all that destinations are about.
fn folder() -> Spot {
    let spot = Spot::anywhere();
    spot.tree("")
        .file("src/a", b"1")
        .file("src/deeper/b", b"2")
        .file("file", b"3")
        .file("other", b"4")
        .dir("there")
        .file("full/src/old", b"5")
        .symlink("link to src", "src")
        .symlink("link to there", "there");
    spot
}

/// A spot where `src` is a subvolume with two files.
fn subvolume() -> Option<Spot> {
    let spot = Spot::on(FileSystem::Btrfs)?;
    spot.subvolume("src").file("a", b"1").file("d/b", vec![7; 100_000]);
    Some(spot)
}
