# docker build -t clustergcn . && docker run --rm -v "$PWD:/data" clustergcn train my-graph
FROM debian:bookworm-slim AS build
COPY . /source
WORKDIR /source
RUN tools/install-packages.sh build python && ./run.sh --version \
    && cmake --build build/release --target library manual python_package && cd build/release && cpack -G DEB

FROM debian:bookworm-slim
COPY --from=build /source/build/release/*.deb /tmp/
RUN apt-get update && apt-get install -y --no-install-recommends /tmp/*.deb && rm -rf /tmp/*.deb /var/lib/apt/lists/*
WORKDIR /data
ENTRYPOINT ["clustergcn"]
