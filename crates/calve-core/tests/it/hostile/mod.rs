//! A tree whose owner attacks while it is being worked on, by root: nothing outside is read, written or deleted.

mod attacker;
mod clones;
mod destinations;
mod removals;
