# pgveil in an image with pg_dump 18, which reads every supported server. Built by docker-compose.yml; not run by CI.

FROM rust:1.95-bookworm AS build
RUN rustup target add wasm32-unknown-unknown wasm32-wasip1
WORKDIR /pgveil
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry --mount=type=cache,target=/pgveil/target \
    cargo build --release --locked --package pgveil && cp target/release/pgveil /usr/local/bin/

FROM postgres:18-bookworm
COPY --from=build /usr/local/bin/pgveil /usr/local/bin/pgveil
USER nobody
ENTRYPOINT []
CMD ["pgveil", "--help"]
