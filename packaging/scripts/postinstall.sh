#!/bin/sh
# After the installation: dpkg calls it with `configure` and the previous version, rpm with the number of versions.
set -e

if command -v systemd-sysusers >/dev/null 2>&1; then
    systemd-sysusers toolyard.conf
elif ! getent passwd toolyard >/dev/null; then
    if command -v useradd >/dev/null 2>&1; then
        useradd --system --user-group --home-dir /var/lib/toolyard --shell /usr/sbin/nologin toolyard
    else
        addgroup --system toolyard
        adduser --system --ingroup toolyard --home /var/lib/toolyard --no-create-home --shell /usr/sbin/nologin toolyard
    fi
fi
mkdir -p /var/lib/toolyard
chown toolyard:toolyard /var/lib/toolyard /etc/toolyard
chmod 0750 /var/lib/toolyard /etc/toolyard
if [ -f /etc/toolyard/toolyard.toml ]; then
    chown toolyard:toolyard /etc/toolyard/toolyard.toml
    chmod 0640 /etc/toolyard/toolyard.toml
fi

# Without a running systemd, as in a container or an image that is being built, there is nothing to start.
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload
    case "$1:$2" in
    configure: | 1:*)
        # Debian enables services by default, Fedora leaves it to the administrator.
        systemctl preset toolyard.service || true
        if systemctl --quiet is-enabled toolyard.service; then systemctl start toolyard.service || true; fi
        ;;
    *) systemctl try-restart toolyard.service || true ;;
    esac
fi
