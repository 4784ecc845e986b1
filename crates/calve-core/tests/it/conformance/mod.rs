//! A clone is the source again, whatever the strategy, the file system and the tree, and its receipt is true.

mod choice;
mod inheritance;
mod matrix;
mod privileges;
mod selection;
mod shapes;
#[cfg(target_os = "linux")]
mod sharing;
mod single;
#[cfg(target_os = "linux")]
mod subvolumes;
#[cfg(target_os = "linux")]
mod times;
mod verify;
