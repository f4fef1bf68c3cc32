"""How long it takes to have 10,000 objects of 20 kB from S3 here, verified and in a folder: nightowl against other clients.

    python -m benchmarks.pull [--repeats 5] [--s5cmd PATH] [--folder /dev/shm]

The server is tests/cloud/object_server.py in a process of its own; it waits 20 ms before each answer. Every side pulls the
same objects from it, in turns. `dvc pull` gets them by DVC's own layout, `boto3` by 64 threads of get_object.
"""

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from hashlib import md5
from pathlib import Path

from tests.cloud.object_server import BUCKET, ObjectServer, serving

LATENCY_SECONDS = 0.02
NUM_THREADS = 64
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1"}
Side = Callable[[str, Path], None]


def images(num_objects: int, num_bytes: int) -> Iterator[tuple[str, bytes]]:
    """Paths and contents, the same in every process."""
    draw = random.Random(0)
    for number in range(num_objects):
        yield f"{number // 1000:03}/{number:05}.jpg", draw.randbytes(num_bytes)


def dvc_folder(num_objects: int, num_bytes: int) -> bytes:
    """What DVC keeps of a folder: the MD5 and path of each file."""
    rows = [{"md5": md5(body).hexdigest(), "relpath": path} for path, body in images(num_objects, num_bytes)]
    return json.dumps(rows, sort_keys=True).encode()


def serve(num_objects: int, num_bytes: int) -> None:
    """Serve the images, plain and as a DVC remote, until standard input ends; prints the endpoint."""
    server = ObjectServer(latency_seconds=LATENCY_SECONDS)
    for path, body in images(num_objects, num_bytes):
        server.put(f"images/{path}", body)
        digest = md5(body).hexdigest()
        server.put(f"dvc/files/md5/{digest[:2]}/{digest[2:]}", body)
    folder = dvc_folder(num_objects, num_bytes)
    digest = md5(folder).hexdigest()
    server.put(f"dvc/files/md5/{digest[:2]}/{digest[2:]}.dir", folder)
    with serving(server):
        print(server.endpoint, flush=True)
        sys.stdin.read()


@contextmanager
def serving_elsewhere(num_objects: int, num_bytes: int) -> Iterator[str]:
    command = [sys.executable, "-m", "benchmarks.pull", "--serve", "--objects", str(num_objects), "--bytes", str(num_bytes)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        yield process.stdout.readline().strip()
        process.stdin.close()


def by_nightowl(endpoint: str, folder: Path) -> None:
    from nightowl.cloud.mirror import pull
    from nightowl.cloud.s3 import Access, S3Storage
    from nightowl.cloud.storage import parse_url

    pull(S3Storage(parse_url(f"s3://{BUCKET}/images"), Access(endpoint)), folder)


def by_boto3(endpoint: str, folder: Path) -> None:
    import boto3
    from botocore.config import Config

    client = boto3.client("s3", endpoint_url=endpoint, config=Config(max_pool_connections=NUM_THREADS))
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix="images/")
    keys = [row["Key"] for page in pages for row in page["Contents"]]

    def fetch(key: str) -> None:
        target = folder / key
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(client.get_object(Bucket=BUCKET, Key=key)["Body"].read())

    with ThreadPoolExecutor(NUM_THREADS) as pool:
        list(pool.map(fetch, keys))


def by_s5cmd(program: str) -> Side:
    def run(endpoint: str, folder: Path) -> None:
        command = [program, "--endpoint-url", endpoint, "--log", "error", "cp", f"s3://{BUCKET}/images/*", f"{folder}/"]
        subprocess.run(command, check=True)

    return run


def by_dvc(num_objects: int, num_bytes: int) -> Side:
    listed = dvc_folder(num_objects, num_bytes)
    digest = md5(listed).hexdigest()

    def run(endpoint: str, folder: Path) -> None:
        if not (folder / "images.dvc").exists():
            dvc(folder, "init", "--quiet", "--no-scm")
            dvc(folder, "remote", "add", "--quiet", "-d", "store", f"s3://{BUCKET}/dvc")
            dvc(folder, "remote", "modify", "store", "endpointurl", endpoint)
            (folder / "images.dvc").write_text(f"outs:\n- md5: {digest}.dir\n  hash: md5\n  path: images\n")
        dvc(folder, "pull", "--quiet")
        assert sum(1 for path in (folder / "images").rglob("*.jpg")) == num_objects

    return run


def dvc(folder: Path, *arguments: str) -> None:
    environment = {**os.environ, "DVC_NO_ANALYTICS": "1", "DVC_SITE_CACHE_DIR": str(folder / "site")}
    subprocess.run([sys.executable, "-m", "dvc", *arguments], cwd=folder, env=environment, check=True)


def measure(side: Side, endpoint: str, scratch: Path) -> tuple[float, float]:
    """Seconds of a first pull, and of a second one with nothing to do."""
    folder = Path(tempfile.mkdtemp(dir=scratch))  # removed at the end: ext4 makes files slowly where many were just deleted
    seconds = []
    for _ in range(2):
        begun = time.monotonic()
        side(endpoint, folder)
        seconds.append(time.monotonic() - begun)
    return seconds[0], seconds[1]


PEAK = """
import sys
from pathlib import Path
from nightowl.cloud.mirror import pull
from nightowl.cloud.s3 import Access, S3Storage
from nightowl.cloud.storage import parse_url
pull(S3Storage(parse_url(sys.argv[2]), Access(sys.argv[1])), Path(sys.argv[3]))
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


def bytes_an_object(endpoint: str, num_objects: int, scratch: Path) -> float:
    """By how much the peak of resident memory grows with each object of a first pull, beyond the first thousand."""

    def peak(url: str) -> int:
        with tempfile.TemporaryDirectory(dir=scratch) as folder:
            command = [sys.executable, "-c", PEAK, endpoint, url, folder]
            return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout) * 1024

    return (peak(f"s3://{BUCKET}/images") - peak(f"s3://{BUCKET}/images/000")) / (num_objects - 1000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", type=int, default=10_000)
    parser.add_argument("--bytes", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--s5cmd", default=shutil.which("s5cmd"), help="the program, when it is not on PATH")
    parser.add_argument("--folder", help="where to pull to; /dev/shm takes the disk out of the comparison")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.objects, options.bytes)
        return
    os.environ.update(CREDENTIALS)
    sides: dict[str, Side] = {"nightowl": by_nightowl, "dvc pull": by_dvc(options.objects, options.bytes), "boto3": by_boto3}
    if options.s5cmd:
        sides["s5cmd"] = by_s5cmd(options.s5cmd)
    with (
        tempfile.TemporaryDirectory(dir=options.folder) as scratch,
        serving_elsewhere(options.objects, options.bytes) as endpoint,
    ):
        taken: dict[str, list[tuple[float, float]]] = {name: [] for name in sides}
        for _ in range(options.repeats):
            for name, side in sides.items():
                taken[name].append(measure(side, endpoint, Path(scratch)))
        memory = bytes_an_object(endpoint, options.objects, Path(scratch)) if options.objects > 1000 else None
    report(taken)
    print(f"\nmemory of a first pull by nightowl: {memory:.0f} bytes an object" if memory is not None else "")


def report(taken: dict[str, list[tuple[float, float]]]) -> None:
    """A table of medians; the ratio is to ours."""
    firsts = {name: statistics.median(first for first, _ in seconds) for name, seconds in taken.items()}
    again = {name: statistics.median(second for _, second in seconds) for name, seconds in taken.items()}
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; medians of {len(taken['nightowl'])}")
    print("| client | first pull, s | against nightowl | nothing to do, s |\n|---|---|---|---|")
    for name, seconds in firsts.items():
        print(f"| {name} | {seconds:.1f} | {seconds / firsts['nightowl']:.2f}x | {again[name]:.2f} |")


if __name__ == "__main__":
    main()
