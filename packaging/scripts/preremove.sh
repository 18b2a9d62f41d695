#!/bin/sh
# Before the removal: dpkg calls it with `remove` or `upgrade`, rpm with the number of versions that stay.
set -e
case "$1" in
remove | 0)
    if [ -d /run/systemd/system ]; then
        # If the package is installed again, dpkg reports an upgrade, because its settings are still there. So that the service is
        # then enabled again, unless the administrator had disabled it, its state is kept, in a folder that only root can write.
        if [ "$1" = remove ] && systemctl --quiet is-enabled toolyard.service; then
            mkdir -p /var/lib/misc
            : >/var/lib/misc/toolyard-was-enabled
        fi
        systemctl disable --now toolyard.service || true
    fi
    ;;
esac
