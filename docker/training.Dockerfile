# Training and export: docker build -f docker/training.Dockerfile -t wenlei-training .
# For CUDA: --build-arg TORCH_INDEX=https://download.pytorch.org/whl/cu130, and run it with --gpus all.
ARG BASE_IMAGE=python:3.11-slim-bookworm

FROM ${BASE_IMAGE} AS builder
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE ./
# torch first and from its own index: PyPI's Linux wheel is a CUDA build of several GB.
RUN python3 -m venv /opt/wenlei \
    && /opt/wenlei/bin/pip install --no-cache-dir --index-url "${TORCH_INDEX}" "$(grep '^torch==' constraints.txt)"
COPY app app
COPY model model
COPY training training
RUN /opt/wenlei/bin/pip install --no-cache-dir --constraint constraints.txt ".[cpu,train,fast,postgres]" \
    && /opt/wenlei/bin/wenlei train --help

FROM ${BASE_IMAGE}
LABEL org.opencontainers.image.title="wenlei training" \
      org.opencontainers.image.licenses="Apache-2.0"
ENV PATH=/opt/wenlei/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    WENLEI_HOME=/var/lib/wenlei \
    HF_HOME=/var/lib/wenlei/huggingface
RUN useradd --system --uid 10001 --user-group --home-dir /var/lib/wenlei --create-home wenlei
COPY --from=builder /opt/wenlei /opt/wenlei
USER 10001:10001
WORKDIR /var/lib/wenlei
VOLUME ["/var/lib/wenlei"]
ENTRYPOINT ["wenlei"]
CMD ["--help"]
