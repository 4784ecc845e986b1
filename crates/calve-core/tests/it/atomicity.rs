//! DST is absent, or as it was, or complete: whatever else happens in that place.

mod full;
mod places;
mod races;
mod replace;
