"""How long it takes to have 10,000 objects of 20 kB from S3 here, verified and in a folder: nightowl against other clients.

    python -m benchmarks.pull [--repeats 5] [--dvc-repeats 3] [--s5cmd PATH] [--folder /dev/shm]

The server is tests/cloud/object_server.py (asyncio, from memory) in a process of its own; it waits 20 ms before each answer.
Every side is a process, start of the interpreter included, and pulls the same objects, in turns. `nightowl` pulls the prefix,
`nightowl dvc:` and `dvc pull` a folder that DVC tracks; `boto3` is 64 threads of get_object, which check nothing.
"""

import argparse
import json
import math
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
Side = Callable[[str, Path], tuple[float, float] | None]
"""Pulls from an endpoint into a folder; returns seconds, by the clock and of its cores, without the start of the interpreter,
where it knows them."""


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
    from nightowl.cloud.s3 import S3Storage
    from nightowl.cloud.s3_access import Access
    from nightowl.cloud.storage import parse_url

    pull(S3Storage(parse_url(f"s3://{BUCKET}/images"), Access(endpoint)), folder)


def by_nightowl_for_dvc(endpoint: str, folder: Path) -> None:
    from nightowl.cloud.dvc_cache import pull_tracked
    from nightowl.cloud.dvc_tracked import tracked_folder

    pull_tracked(tracked_folder(folder / "checkout" / "images"), folder / "mirror")


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


IN_PYTHON = {"nightowl": by_nightowl, "nightowl dvc:": by_nightowl_for_dvc, "boto3, 64 threads": by_boto3}


def in_a_process(name: str) -> Side:
    def run(endpoint: str, folder: Path) -> tuple[float, float]:
        command = [sys.executable, "-m", "benchmarks.pull", "--run", name, endpoint, str(folder)]
        wall, cores = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.split()
        return float(wall), float(cores)

    return run


def run_here(name: str, endpoint: str, folder: str) -> None:
    """One side in this process; prints its seconds without the start of the interpreter."""
    begun, cores = time.monotonic(), time.process_time()
    IN_PYTHON[name](endpoint, Path(folder))
    print(time.monotonic() - begun, time.process_time() - cores)


def by_s5cmd(program: str) -> Side:
    def run(endpoint: str, folder: Path) -> None:
        command = [program, "--endpoint-url", endpoint, "--log", "error", "cp", f"s3://{BUCKET}/images/*", f"{folder}/"]
        subprocess.run(command, check=True)

    return run


def by_dvc(num_objects: int, *options: str) -> Side:
    def run(endpoint: str, folder: Path) -> None:
        dvc(folder / "checkout", "pull", "--quiet", *options)
        assert sum(1 for path in (folder / "checkout" / "images").rglob("*.jpg")) == num_objects

    return run


def make_checkout(endpoint: str, folder: Path, digest: str) -> None:
    """An empty DVC repository that tracks `images`, whose list of files has this MD5."""
    (folder / ".dvc").mkdir(parents=True)
    remote = f"['remote \"store\"']\n    url = s3://{BUCKET}/dvc\n    endpointurl = {endpoint}\n"
    (folder / ".dvc" / "config").write_text(f"[core]\n    no_scm = true\n    remote = store\n{remote}")
    (folder / "images.dvc").write_text(f"outs:\n- md5: {digest}.dir\n  hash: md5\n  path: images\n")


def dvc(folder: Path, *arguments: str) -> None:
    environment = {**os.environ, "DVC_NO_ANALYTICS": "1", "DVC_SITE_CACHE_DIR": str(folder / "site")}
    subprocess.run([sys.executable, "-m", "dvc", *arguments], cwd=folder, env=environment, check=True)


def measure(side: Side, endpoint: str, scratch: Path, digest: str, again: bool) -> list[float]:
    """Seconds of a first pull, of a second one with nothing to do, and of that without the start of the interpreter, by the
    clock and of its cores; `again`: this client knows what it has, so that there is a second one."""
    folder = Path(tempfile.mkdtemp(dir=scratch))  # removed at the end: ext4 makes files slowly where many were just deleted
    make_checkout(endpoint, folder / "checkout", digest)
    begun = time.monotonic()
    side(endpoint, folder)
    between = time.monotonic()
    if not again:
        return [between - begun, math.nan, math.nan, math.nan]
    inside = side(endpoint, folder)
    return [between - begun, time.monotonic() - between, *(inside or (math.nan, math.nan))]


PEAK = """
import sys, tracemalloc
from pathlib import Path
from benchmarks.pull import IN_PYTHON
import nightowl.cloud.s3
tracemalloc.start()
IN_PYTHON[sys.argv[1]](sys.argv[2], Path(sys.argv[3]))
print(tracemalloc.get_traced_memory()[1])
"""


def bytes_an_object(name: str, num_objects: int, num_bytes: int, scratch: Path) -> float:
    """By how much the peak of Python's memory (tracemalloc) grows with each object of a first pull, from half of them on."""

    def peak(num: int) -> int:
        with tempfile.TemporaryDirectory(dir=scratch) as folder, serving_elsewhere(num, num_bytes) as endpoint:
            make_checkout(endpoint, Path(folder) / "checkout", md5(dvc_folder(num, num_bytes)).hexdigest())
            command = [sys.executable, "-c", PEAK, name, endpoint, folder]
            return int(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)

    return (peak(num_objects) - peak(num_objects // 2)) / (num_objects - num_objects // 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", type=int, default=10_000)
    parser.add_argument("--bytes", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--s5cmd", default=shutil.which("s5cmd"), help="the program, when it is not on PATH")
    parser.add_argument("--folder", help="where to pull to; /dev/shm takes the disk out of the comparison")
    parser.add_argument("--dvc-repeats", type=int, default=3, help="of `dvc pull`, which takes most of the time")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--run", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    os.environ.update(CREDENTIALS)
    if options.serve:
        serve(options.objects, options.bytes)
    elif options.run:
        run_here(*options.run)
    else:
        compare(options)


def compare(options: argparse.Namespace) -> None:
    sides = {name: in_a_process(name) for name in IN_PYTHON}
    if options.s5cmd:
        sides["s5cmd"] = by_s5cmd(options.s5cmd)
    sides |= {"dvc pull": by_dvc(options.objects), "dvc pull, 64 jobs": by_dvc(options.objects, "--jobs", "64")}
    digest = md5(dvc_folder(options.objects, options.bytes)).hexdigest()
    taken: dict[str, list[list[float]]] = {name: [] for name in sides}
    with tempfile.TemporaryDirectory(dir=options.folder) as scratch:
        with serving_elsewhere(options.objects, options.bytes) as endpoint:
            for turn in range(options.repeats):
                for name, side in sides.items():
                    if turn < options.dvc_repeats or not name.startswith("dvc"):
                        again = name.startswith(("nightowl", "dvc"))
                        taken[name].append(measure(side, endpoint, Path(scratch), digest, again))
                        print(f"turn {turn}: {name}: {taken[name][-1][0]:.1f} s", file=sys.stderr, flush=True)
        report(taken)
        for name in ("nightowl", "nightowl dvc:"):
            print(
                f"{name}: {bytes_an_object(name, options.objects, options.bytes, Path(scratch)):.0f} bytes of memory an object"
            )


def report(taken: dict[str, list[list[float]]]) -> None:
    """A table of medians; the ratio is to ours."""
    medians = {name: [statistics.median(column) for column in zip(*rows, strict=True)] for name, rows in taken.items()}
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print("| client | runs | first pull, s | against nightowl | nothing to do, s | without interpreter start | of its cores |")
    print("|---|---|---|---|---|---|---|")
    for name, (first, *rest) in medians.items():
        seconds = " | ".join("" if math.isnan(value) else f"{value:.2f}" for value in rest)
        print(f"| {name} | {len(taken[name])} | {first:.1f} | {first / medians['nightowl'][0]:.2f}x | {seconds} |")


if __name__ == "__main__":
    main()
