# The hub in a container. See docs/guide/deployment.md.
#
#   docker build -t octoprox .
#   docker build -t octoprox --target chromium .             # with Chromium, for the browser tools
#   docker build -t octoprox --target runtimes .             # with Node, Python and uv, for servers started with npx or uvx
#   docker build -t octoprox --target full .                 # with both
#   docker build -t octoprox --build-arg BINARY=prebuilt .   # takes dist/octoprox instead of compiling
#
# With podman and buildah, add --format docker: the OCI format has no health check.

ARG BINARY=build

FROM rust:1.95-slim-trixie AS build
RUN apt-get update && apt-get install -y --no-install-recommends make && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
ARG OCTOPROX_BUILD_COMMIT
RUN cargo build --release --locked -p octoprox && mkdir /out && cp target/release/octoprox /out/

FROM scratch AS prebuilt
COPY dist/octoprox /out/octoprox

FROM ${BINARY} AS binary

# Only maintainer scripts, and commands of git that the hub does not run, need the packages of WITHOUT.
FROM debian:trixie-slim AS packages
COPY packaging/container/make-root /usr/local/bin/
ENV WITHOUT="adduser debconf dpkg init-system-helpers liberror-perl openssl openssl-provider-legacy passwd perl perl-base"

FROM packages AS root
RUN make-root --without "$WITHOUT" /rootfs \
        base-files bash bubblewrap ca-certificates coreutils dash diffutils findutils git grep gzip mawk \
        openssh-client patch sed socat tar tzdata \
    && cp --parents /usr/bin/setsid /usr/bin/unshare /usr/share/doc/util-linux/copyright /rootfs \
    && cd /rootfs \
    && cat usr/share/ca-certificates/mozilla/*.crt >etc/ssl/certs/ca-certificates.crt \
    && echo 'hosts: files dns' >etc/nsswitch.conf \
    && ln -s mawk usr/bin/awk \
    && ln -sf ../../bin/git usr/lib/git-core/git \
    && cd usr/lib/git-core \
    && rm git-daemon git-http-backend git-http-push git-imap-send git-shell scalar ../../bin/git-shell ../../bin/scalar
COPY LICENSE /rootfs/usr/share/doc/octoprox/copyright

FROM packages AS user
ARG PUID=1000
ARG PGID=1000
RUN mkdir -p /user/etc /user/mnt /user/var/lib && cd /user \
    && printf '%s\n' 'root:x:0:0:root:/root:/bin/bash' \
        "octoprox:x:$PUID:$PGID::/var/lib/octoprox:/bin/bash" 'nobody:x:65534:65534::/nonexistent:/bin/false' >etc/passwd \
    && printf '%s\n' 'root:x:0:' "octoprox:x:$PGID:" 'nogroup:x:65534:' >etc/group \
    && install -d -m 700 -o "$PUID" -g "$PGID" var/lib/octoprox \
    && install -d -o "$PUID" -g "$PGID" mnt/workspace mnt/repos mnt/downloads mnt/playbooks

FROM scratch AS hub
COPY --from=root /rootfs /
COPY --from=user /user /
COPY --from=binary /out/octoprox /usr/local/bin/octoprox
# Servers that the hub starts inherit HOME, so that caches of npm and uv are in the state volume. XDG_CONFIG_HOME makes
# /etc/octoprox/octoprox.yaml the settings file, where one is mounted.
ENV PATH=/usr/local/bin:/usr/bin \
    HOME=/var/lib/octoprox \
    XDG_CONFIG_HOME=/etc \
    OCTOPROX_HOST=0.0.0.0 \
    OCTOPROX_PORT=7000 \
    OCTOPROX_ADMIN_HOST=0.0.0.0 \
    OCTOPROX_STATE_DIR=/var/lib/octoprox \
    OCTOPROX_STANDALONE=true \
    OCTOPROX_WORKSPACE=/mnt/workspace
ARG PUID=1000
ARG PGID=1000
USER ${PUID}:${PGID}
WORKDIR /mnt/workspace
VOLUME /var/lib/octoprox
EXPOSE 7000 3100
LABEL org.opencontainers.image.title=octoprox org.opencontainers.image.licenses=Apache-2.0
HEALTHCHECK --interval=15s --timeout=5s --start-period=20s CMD ["octoprox", "healthcheck"]
ENTRYPOINT ["octoprox"]
CMD ["serve"]

# The browser runs without a display, graphics driver or desktop.
FROM packages AS chromium-root
COPY --from=root /rootfs /rootfs
RUN make-root --on /rootfs --without "$WITHOUT adwaita-icon-theme at-spi2-common chromium-sandbox dbus dbus-bin dbus-daemon \
        dbus-session-bus-common dbus-system-bus-common dbus-user-session dconf-gsettings-backend dconf-service \
        gtk-update-icon-cache hicolor-icon-theme libdconf1 libgdk-pixbuf-2.0-0 libgdk-pixbuf2.0-common libgl1-mesa-dri \
        libgtk-3-0t64 libgtk-3-bin libgtk-3-common libllvm19 libopenal1 libpam-systemd libsystemd-shared libz3-4 \
        mesa-libgallium procps shared-mime-info systemd systemd-sysv x11-utils xdg-utils xkb-data" \
    /chromium chromium fonts-liberation libsmartcols1 \
    && cp --parents /usr/bin/findmnt /chromium

FROM node:24-trixie-slim AS node

FROM packages AS runtimes-root
ARG UV_VERSION=0.13.7
COPY --from=root /rootfs /rootfs
RUN make-root --on /rootfs --without "$WITHOUT" /runtimes libatomic1 libstdc++6 python3 \
    && apt-get install -y --no-install-recommends python3-pip \
    && pip install --no-deps --target /tmp/uv "uv==$UV_VERSION" \
    && install -D -t /runtimes/usr/local/bin /tmp/uv/bin/uv /tmp/uv/bin/uvx \
    && ln -s ../lib/node_modules/npm/bin/npm-cli.js /runtimes/usr/local/bin/npm \
    && ln -s ../lib/node_modules/npm/bin/npx-cli.js /runtimes/usr/local/bin/npx
COPY --from=node /usr/local/bin/node /runtimes/usr/local/bin/node
COPY --from=node /usr/local/lib/node_modules/npm /runtimes/usr/local/lib/node_modules/npm

FROM hub AS chromium
COPY --from=chromium-root /chromium /

FROM hub AS runtimes
COPY --from=runtimes-root /runtimes /

FROM chromium AS full
COPY --from=runtimes-root /runtimes /

FROM hub AS default
