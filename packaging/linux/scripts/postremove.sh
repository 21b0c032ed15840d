#!/bin/sh
# The user octoprox, /var/lib/octoprox (with the audit log) and /srv/octoprox stay.
set -e

if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
