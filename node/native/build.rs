//! Tells the linker what an addon for Node needs.

fn main() {
    napi_build::setup();
}
