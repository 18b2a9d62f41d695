//! Links the release binary with identical functions folded into one: generic code leaves many.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    // There, the compiler links with LLD, unless its user says otherwise.
    let has_lld = variable("TARGET") == "x86_64-unknown-linux-gnu"
        && !variable("CARGO_ENCODED_RUSTFLAGS").contains("link")
        && variable("RUSTC_LINKER").is_empty();
    if has_lld && variable("PROFILE") == "release" {
        println!("cargo::rustc-link-arg-bins=-Wl,--icf=all");
    }
}
