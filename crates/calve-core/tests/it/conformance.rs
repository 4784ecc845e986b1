//! A clone is the source again, whatever the strategy, the file system and the tree, and its receipt is true.

mod choice;
mod inheritance;
mod matrix;
mod privileges;
mod selection;
mod shapes;
mod sharing;
mod single;
mod subvolumes;
mod verify;
