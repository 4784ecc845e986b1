//! Links the tests' program for a fixed address: relocating it took half of the time that each of its thousands of starts takes.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|now| now == value);
    // Another linker is for another system.
    if std::env::var_os("RUSTC_LINKER").is_none()
        && is("PROFILE", "debug")
        && is("CARGO_CFG_TARGET_OS", "linux")
        && is("CARGO_CFG_TARGET_ENV", "gnu")
    {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}
