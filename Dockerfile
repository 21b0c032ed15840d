# The hub in a container. See docs/guide/deployment.md.
#
#   docker build -t octoprox .
#   docker build -t octoprox --build-arg INSTALL_CHROMIUM=true .
#   docker build -t octoprox --build-arg BINARY=prebuilt .       # takes dist/octoprox instead of compiling

ARG BINARY=build

FROM rust:1.95-slim-trixie AS build
RUN apt-get update && apt-get install -y --no-install-recommends make && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
RUN cargo build --release --locked -p octoprox && mkdir /out && cp target/release/octoprox /out/

FROM scratch AS prebuilt
COPY dist/octoprox /out/octoprox

FROM ${BINARY} AS binary

FROM debian:trixie-slim
ARG INSTALL_CHROMIUM=false
ARG PUID=1000
ARG PGID=1000
RUN apt-get update \
    && apt-get install -y --no-install-recommends \
        bubblewrap ca-certificates curl git openssh-client patch tzdata \
    && if [ "$INSTALL_CHROMIUM" = true ]; then \
        apt-get install -y --no-install-recommends chromium fonts-liberation; \
    fi \
    && rm -rf /var/lib/apt/lists/* \
    && groupadd --gid "$PGID" octoprox \
    && useradd --uid "$PUID" --gid "$PGID" --home-dir /var/lib/octoprox --no-create-home octoprox \
    && install -d -m 700 -o "$PUID" -g "$PGID" /var/lib/octoprox \
    && install -d -o "$PUID" -g "$PGID" /mnt/workspace /mnt/repos /mnt/downloads /mnt/playbooks
COPY --from=binary /out/octoprox /usr/local/bin/octoprox

# XDG_CONFIG_HOME makes /etc/octoprox/octoprox.yaml the settings file, where one is mounted.
ENV OCTOPROX_HOST=0.0.0.0 \
    OCTOPROX_PORT=7000 \
    OCTOPROX_STATE_DIR=/var/lib/octoprox \
    OCTOPROX_WORKSPACE=/mnt/workspace \
    XDG_CONFIG_HOME=/etc
USER octoprox
WORKDIR /mnt/workspace
VOLUME /var/lib/octoprox
EXPOSE 7000 3100
HEALTHCHECK --interval=15s --timeout=5s --start-period=20s \
    CMD curl -fsS "http://127.0.0.1:$OCTOPROX_PORT/ready"
ENTRYPOINT ["octoprox"]
CMD ["serve"]
