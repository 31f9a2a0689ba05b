# The server, without torch: docker build -f docker/server.Dockerfile -t wenlei-server .
# It listens for other machines, so make a key first, in the same volume (or database: WENLEI_DATABASE_URL):
#   docker run --rm -v wenlei-home:/var/lib/wenlei wenlei-server wenlei user create NAME
#   docker run --rm -v wenlei-home:/var/lib/wenlei wenlei-server wenlei key create --user NAME
# For CUDA: --build-arg RUNTIME=gpu, and run it with --gpus all --env WENLEI_DEVICE=cuda.
ARG BASE_IMAGE=python:3.11-slim-bookworm

FROM ${BASE_IMAGE} AS builder
ARG RUNTIME=cpu
WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY app app
COPY model model
COPY training training
# Importing onnxruntime here makes a misspelt RUNTIME fail the build and not the first start.
RUN python3 -m venv /opt/wenlei \
    && /opt/wenlei/bin/pip install --no-cache-dir --constraint constraints.txt ".[${RUNTIME},fast,postgres]" \
    && /opt/wenlei/bin/python -c "import onnxruntime" \
    && /opt/wenlei/bin/wenlei --help

FROM ${BASE_IMAGE}
LABEL org.opencontainers.image.title="wenlei server" \
      org.opencontainers.image.licenses="Apache-2.0"
ENV PATH=/opt/wenlei/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    OMP_WAIT_POLICY=PASSIVE \
    WENLEI_HOME=/var/lib/wenlei
# A fixed number, so that volumes keep their owner from one image to the next.
RUN useradd --system --uid 10001 --user-group --home-dir /var/lib/wenlei --create-home wenlei
COPY --from=builder /opt/wenlei /opt/wenlei
USER 10001:10001
WORKDIR /var/lib/wenlei
VOLUME ["/var/lib/wenlei"]
EXPOSE 8000
# The ready route needs no key. Without proxies: a proxy set for the container would be asked for 127.0.0.1 too.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "from urllib.request import ProxyHandler, build_opener; build_opener(ProxyHandler({})).open('http://127.0.0.1:8000/health/ready', timeout=4)"]
CMD ["wenlei", "serve", "--bundle", "/bundle", "--host", "0.0.0.0"]
