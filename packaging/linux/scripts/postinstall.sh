#!/bin/sh
# deb: $1 is "configure", $2 the version before. rpm: $1 is the number of installed versions.
set -e

# Where these fail or are missing, as in an image that is being built, the next boot does it.
if command -v systemd-sysusers >/dev/null; then systemd-sysusers octoprox.conf || true; fi
if command -v systemd-tmpfiles >/dev/null; then systemd-tmpfiles --create octoprox.conf || true; fi
if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi

case "$1:$2" in
    configure: | 1:)
        echo "octoprox: settings are in /etc/octoprox/octoprox.yaml. Start the hub: systemctl enable --now octoprox"
        echo "octoprox: or run one for your own user: systemctl --user enable --now octoprox"
        ;;
    configure:* | 2:)
        echo "octoprox: a running hub keeps its version until you restart it: systemctl restart octoprox"
        ;;
esac
