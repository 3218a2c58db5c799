# syntax=docker/dockerfile:1
# Two images come from this file:
#   docker build --tag toolsearch-proxy .
#   docker build --tag toolsearch-proxy:large --target large .
# The first holds the program with its built-in model; the second a larger model for more languages beside it, which
# can be built once the digests in model/manifest.toml are confirmed (docs/models.md).

FROM rust:1.95-bookworm AS build
WORKDIR /build
COPY Cargo.toml Cargo.lock ./
COPY src src
COPY e2e/Cargo.toml e2e/Cargo.toml
COPY e2e/src e2e/src
COPY e2e/fire/Cargo.toml e2e/fire/Cargo.toml
COPY e2e/fire/src e2e/fire/src
COPY bench/Cargo.toml bench/Cargo.toml
COPY bench/src bench/src
COPY model model
COPY deploy/packages/man_and_completions.rs deploy/packages/man_and_completions.rs
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/build/target \
    cargo build --release --locked --package toolsearch-proxy --bin toolsearch-proxy \
    && install -D target/release/toolsearch-proxy /out/usr/local/bin/toolsearch-proxy

# The model's files are compared with the digests that the program holds, and the folder must belong to who reads it.
FROM build AS model
RUN /out/usr/local/bin/toolsearch-proxy fetch-model --model-dir /model/usr/share/toolsearch-proxy/model

# glibc and libgcc; no shell, no package manager. The same Debian that the program is built on.
FROM gcr.io/distroless/cc-debian12:nonroot AS base
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="toolsearch-proxy" \
      org.opencontainers.image.description="An MCP server that lets a model use thousands of tools through five" \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.base.name="gcr.io/distroless/cc-debian12:nonroot"
COPY --from=build /out/ /
# In a container the ports are for others; which of them reach outside is for whoever runs it to say.
ENV TOOLSEARCH_LISTEN=0.0.0.0:8080 \
    TOOLSEARCH_ADMIN_LISTEN=0.0.0.0:9090 \
    TOOLSEARCH_LOG_FORMAT=json
USER 65532:65532
EXPOSE 8080 9090
HEALTHCHECK --interval=10s --timeout=3s --start-period=5s --retries=3 \
    CMD ["/usr/local/bin/toolsearch-proxy", "healthcheck"]
ENTRYPOINT ["/usr/local/bin/toolsearch-proxy"]
CMD ["serve"]

FROM base AS large
COPY --from=model --chown=65532:65532 /model/ /
ENV TOOLSEARCH_MODEL_DIR=/usr/share/toolsearch-proxy/model

FROM base
