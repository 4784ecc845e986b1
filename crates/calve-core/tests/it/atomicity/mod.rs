//! DST is absent, or as it was, or complete: whatever else happens in that place.

mod full;
#[cfg(target_os = "linux")]
mod fuse;
mod places;
mod races;
mod replace;
