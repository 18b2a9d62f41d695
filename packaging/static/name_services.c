// Keeps a program with a static glibc from loading modules of the name service switch (libnss_mdns4.so and others, which
// /etc/nsswitch.conf names on many systems): they belong to another glibc, and loading them ends the process. Names are
// resolved by the parts that glibc has built in. scripts/release/build-release compiles and links this file.
#include <nss.h>

__attribute__((constructor)) static void use_built_in_name_services(void) {
    static const char *const files_only[] = {
        "aliases", "ethers", "group", "gshadow", "initgroups", "netgroup", "networks", "passwd", "protocols",
        "publickey", "rpc", "services", "shadow",
    };
    for (unsigned int i = 0; i < sizeof files_only / sizeof *files_only; i++)
        __nss_configure_lookup(files_only[i], "files");
    __nss_configure_lookup("hosts", "files dns");
}
