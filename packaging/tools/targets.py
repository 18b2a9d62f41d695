"""What each Rust target is called by the package managers."""

from typing import NamedTuple


class Target(NamedTuple):
    deb: str
    rpm: str
    # Tags of wheels. Static binaries need neither glibc nor musl, so that they are for both.
    wheel: list[str]
    npm_os: str
    npm_cpu: str
    oci: str


def linux(deb: str, rpm: str, npm_cpu: str) -> Target:
    wheel = [f"manylinux_2_17_{rpm}", f"manylinux2014_{rpm}", f"musllinux_1_1_{rpm}"]
    return Target(deb, rpm, wheel, "linux", npm_cpu, deb)


X86_64, AARCH64 = linux("amd64", "x86_64", "x64"), linux("arm64", "aarch64", "arm64")
TARGETS = {
    "x86_64-unknown-linux-gnu": X86_64,
    "x86_64-unknown-linux-musl": X86_64,
    "aarch64-unknown-linux-gnu": AARCH64,
    "aarch64-unknown-linux-musl": AARCH64,
    "x86_64-apple-darwin": Target("", "", ["macosx_10_12_x86_64"], "darwin", "x64", ""),
    "aarch64-apple-darwin": Target("", "", ["macosx_11_0_arm64"], "darwin", "arm64", ""),
}
