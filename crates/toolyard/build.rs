//! Links the release binary smaller: identical functions are folded into one (generic code leaves many), and a static
//! binary has its relocations packed. Links an object file of `scripts/release/build-release` into static binaries.

/// The path of an object file to link into the program.
const OBJECT_VARIABLE: &str = "TOOLYARD_LINK_OBJECT";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed={OBJECT_VARIABLE}");
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    if let Some(object) = Some(variable(OBJECT_VARIABLE)).filter(|object| !object.is_empty()) {
        println!("cargo::rustc-link-arg-bins={object}");
    }
    // There, the compiler links with LLD, unless its user says otherwise. Paths in flags are no statement about linking.
    let flags = variable("CARGO_ENCODED_RUSTFLAGS");
    let chooses_linking =
        flags.split('\u{1f}').any(|flag| !flag.starts_with("--remap-path-prefix") && flag.contains("link"));
    let has_lld = variable("TARGET") == "x86_64-unknown-linux-gnu"
        && !chooses_linking
        && variable("RUSTC_LINKER").is_empty();
    if !has_lld || variable("PROFILE") != "release" {
        return;
    }
    println!("cargo::rustc-link-arg-bins=-Wl,--icf=all");
    // A static binary relocates itself with the C library in it, which knows the packed form (glibc 2.36 or later). In a
    // dynamic one, the loader of the user's system would have to know it.
    if variable("CARGO_CFG_TARGET_FEATURE").split(',').any(|feature| feature == "crt-static") {
        println!("cargo::rustc-link-arg-bins=-Wl,--pack-dyn-relocs=relr");
    }
}
