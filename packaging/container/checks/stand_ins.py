"""Local images under the names of public ones, made from Debian, npm and PyPI packages, for machines that cannot pull.

They have what the Dockerfile and compose.yaml use of the public image and nothing else.
"""
import re
import shutil
import tempfile
from pathlib import Path

NPM_VERSION = "11.12.0"

# As in the public image: scripts run once against a server without network; roles need a password over the network.
POSTGRES_START = """\
#!/bin/bash
set -euo pipefail
export PGDATA=/var/lib/postgresql/data PATH=$PATH:/usr/lib/postgresql/17/bin
if [ ! -s $PGDATA/PG_VERSION ]; then
    install -d -m 700 -o postgres $PGDATA
    as=(setpriv --reuid=postgres --regid=postgres --clear-groups)
    install -m 600 -o postgres /dev/null /tmp/password
    echo "$POSTGRES_PASSWORD" >/tmp/password
    "${as[@]}" initdb --username=postgres --pwfile=/tmp/password --auth=trust >/dev/null
    echo 'host all all all scram-sha-256' >>$PGDATA/pg_hba.conf
    "${as[@]}" pg_ctl start --wait --options="-c listen_addresses=''" >/dev/null
    for script in /docker-entrypoint-initdb.d/*.sh; do "${as[@]}" --no-new-privs bash "$script"; done
    "${as[@]}" pg_ctl stop --wait >/dev/null
fi
exec setpriv --reuid=postgres --regid=postgres --clear-groups postgres -c "listen_addresses=*"
"""


def exists(engine, name):
    return engine.podman("images", "--quiet", f"--filter=reference={name}").strip() != ""


def debian(engine, dockerfile):
    suite = re.search(r"^FROM debian:(\w+)-slim AS", dockerfile, re.M)[1]
    name = f"docker.io/library/debian:{suite}-slim"
    if exists(engine, name):
        return
    tarball = engine.home / f"debian-{suite}.tar"
    if not tarball.exists():
        part = tarball.with_suffix(".part")
        # The certificate authorities that this machine adds, so that downloads work while building.
        engine.run("nice", "mmdebstrap", "--variant=apt", "--include=ca-certificates", "--format=tar",
                   "--setup-hook=mkdir -p $1/usr/local/share/ca-certificates",
                   "--setup-hook=cp -rT /usr/local/share/ca-certificates $1/usr/local/share/ca-certificates",
                   suite, part)
        part.rename(tarball)
    engine.podman("import", tarball, name)


def node(engine, dockerfile):
    name = "docker.io/library/node:" + re.search(r"^FROM node:(\S+) AS", dockerfile, re.M)[1]
    if exists(engine, name):
        return
    program = Path(engine.service_part("npm")["NODE24"])
    with tempfile.TemporaryDirectory() as folder:
        engine.run("npm", "install", "--prefix", folder, "--no-audit", "--no-fund", f"npm@{NPM_VERSION}")
        shutil.copy(program, folder)
        Path(folder, "Dockerfile").write_text("FROM scratch\nCOPY node /usr/local/bin/node\n"
                                              "COPY node_modules/npm /usr/local/lib/node_modules/npm\n")
        engine.run("buildah", "bud", f"--tag={name}", folder)


def postgres(engine):
    name = "docker.io/library/postgres:17"
    if exists(engine, name):
        return
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "start").write_text(POSTGRES_START)
        Path(folder, "start").chmod(0o755)
        Path(folder, "Dockerfile").write_text(
            "FROM debian:trixie-slim\nRUN apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y "
            "--no-install-recommends postgresql-17\nCOPY start /start\nENTRYPOINT [\"/start\"]\n")
        engine.run("nice", "buildah", "bud", "--pull=never", "--network=host", f"--tag={name}", folder)
