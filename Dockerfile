# syntax=docker/dockerfile:1
# nightowl for a machine with NVIDIA GPUs, from requirements.lock; Dockerfile.cpu is the same on a small base (see docs/containers.md).
# The base brings what the GPU's driver and the network between nodes need; its CUDA is the lock's torch's: 13.
FROM nvcr.io/nvidia/pytorch:25.08-py3@sha256:ace9a848c0ae543317e3c4763b6b4248961c47902625abfe3c77a0fb931c50fb

SHELL ["/bin/bash", "-o", "pipefail", "-c"]
ENV PIP_CONSTRAINT="" PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONUNBUFFERED=1 DO_NOT_TRACK=1 DVC_NO_ANALYTICS=1
WORKDIR /opt/nightowl

# The installer, then what the lock names: each compared with its digest. Nothing else of the base's Python is seen.
RUN printf '%s\n' "uv==0.13.9 \
      --hash=sha256:d7f459fe4fd247d830351c75686d3996ace3c6f3f728eb0e85a30b7ada0cef19 \
      --hash=sha256:5435c5ce14a56431208ca0996416d310f1598e8c2c8ba707688985a16bb82dbe" > uv.txt \
 && python3 -m venv uv \
 && uv/bin/pip install --no-cache-dir --require-hashes -r uv.txt
COPY requirements.lock ./
RUN uv/bin/uv venv --python python3 venv \
 && uv/bin/uv pip sync --no-cache --compile-bytecode --require-hashes --python venv/bin/python requirements.lock
COPY pyproject.toml README.md LICENSE ./
COPY nightowl nightowl
COPY flows flows
COPY tasks tasks
RUN uv/bin/uv pip install --no-cache --no-deps --no-build-isolation --python venv/bin/python . \
 && rm -rf uv uv.txt

# A rented machine runs its node as the user whose disk it is (docker run --user); whoever says nothing is nobody's root.
RUN useradd --uid 10001 --create-home nightowl
ENV PATH=/opt/nightowl/venv/bin:$PATH
USER 10001
WORKDIR /home/nightowl
CMD ["nightowl", "--help"]
