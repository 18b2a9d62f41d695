#!/bin/sh
# After the installation: dpkg calls it with `configure` and the previous version, rpm with the number of versions.
set -e

# Left by the removal script of dpkg if the service was enabled.
was_enabled=/var/lib/misc/toolyard-was-enabled
settings=/etc/toolyard/toolyard.toml
is_first=no
case "$1:$2" in
configure: | 1:*) is_first=yes ;;
esac

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

# Commands such as `toolyard servers add` replace the settings file as the user toolyard; the service itself cannot write there.
# Only at the first installation: later, an administrator may have chosen another owner and mode.
if [ ! -d /var/lib/toolyard ]; then install -d -o toolyard -g toolyard -m 0750 /var/lib/toolyard; fi
if [ "$is_first" = yes ]; then
    chown toolyard:toolyard /var/lib/toolyard /etc/toolyard
    chmod 0750 /var/lib/toolyard /etc/toolyard
    if [ -f "$settings" ]; then
        chown toolyard:toolyard "$settings"
        chmod 0640 "$settings"
    fi
elif [ -f "$settings" ] && [ "$(stat -c %U:%G:%a "$settings")" = root:root:640 ]; then
    # As packed, the service cannot read the file. dpkg keeps owner and mode at upgrades; rpm resets them if the text is unchanged.
    chown toolyard:toolyard "$settings"
fi

# Without a running systemd, as in a container or an image that is being built, there is nothing to start.
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload
    if [ "$is_first" = yes ]; then
        # Debian enables services by default, Fedora leaves it to the administrator.
        systemctl preset toolyard.service || true
        if systemctl --quiet is-enabled toolyard.service; then systemctl start toolyard.service || true; fi
    elif [ -e "$was_enabled" ]; then
        systemctl enable --now toolyard.service || true
    else
        systemctl try-restart toolyard.service || true
    fi
    rm -f "$was_enabled"
fi
