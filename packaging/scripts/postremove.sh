#!/bin/sh
# After the removal. Settings and data stay, unless `apt purge` asks for their removal. The user stays, too: files that it
# owns elsewhere must not become those of a later user with the same number.
set -e
if [ -d /run/systemd/system ]; then systemctl daemon-reload || true; fi
if [ "$1" = purge ]; then rm -rf /var/lib/toolyard /etc/toolyard /var/lib/misc/toolyard-was-enabled; fi
