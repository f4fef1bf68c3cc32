"""One place's copy of a run's checkpoints: reading, committing, fencing and pruning in one bucket."""

import json
import secrets
from collections.abc import Iterable

from pydantic import ValidationError

from nightowl.checkpoint.commits import COMMITS, DATA, IDENTITY, WRITERS, Commit, data_of, newest_first
from nightowl.checkpoint.identity import Identity
from nightowl.checkpoint.plan import Keep
from nightowl.cloud.bucket import Bucket, Content, ObjectMissing
from nightowl.errors import CheckpointError, Fenced
from nightowl.files import canonical_json, sha256_bytes

_CHECK = "check"


def identity_in(bucket: Bucket) -> Identity | None:
    """The identity of the training whose checkpoints lie there; None while there is none, or it cannot be read."""
    try:
        return Identity.model_validate_json(bucket.get(IDENTITY))
    except (ObjectMissing, ValidationError):
        return None


def commit_names(bucket: Bucket) -> list[str]:
    """The keys of all commit objects, newest first; none of them has been read."""
    return newest_first({found.key for found in bucket.list(COMMITS)})


def read_commit(bucket: Bucket, name: str) -> Commit:
    """Raises CheckpointError saying what is wrong with it."""
    try:
        found = _opened(bucket.get(name))
    except ObjectMissing:
        raise CheckpointError("gone") from None
    except (ValueError, RecursionError):
        raise CheckpointError("its commit object is damaged") from None
    if found.name != name:
        raise CheckpointError(f"its commit object is that of {found.name}")
    return found


def _sealed(commit: Commit) -> bytes:
    """A commit object: the commit and, under `check`, the digest of all else that it says."""
    values = commit.model_dump(mode="json")
    return json.dumps({**values, _CHECK: sha256_bytes(canonical_json(values).encode())}, indent=2).encode()


def _opened(content: bytes) -> Commit:
    """The commit in a commit object. Raises ValueError when it is none, or not what was written."""
    values = json.loads(content)
    if not isinstance(values, dict) or values.pop(_CHECK, None) != sha256_bytes(canonical_json(values).encode()):
        raise ValueError("not what was written")
    return Commit.model_validate_json(json.dumps(values))


def read_data(bucket: Bucket, commit: Commit) -> bytes:
    """The state's bytes, as they were committed. Raises CheckpointError saying what is wrong with them."""
    try:
        content = bucket.get(commit.data)
    except ObjectMissing:
        raise CheckpointError("its data is missing") from None
    if len(content) != commit.num_bytes:
        raise CheckpointError(f"expected {commit.num_bytes} bytes, found {len(content)}")
    if sha256_bytes(content) != commit.sha256:
        raise CheckpointError(f"expected data of sha256 {commit.sha256[:12]}…, found {sha256_bytes(content)[:12]}…")
    return content


def read_commits(bucket: Bucket) -> list[Commit]:
    """Every commit that can be read, newest first; their data is not looked at."""
    found = []
    for name in commit_names(bucket):
        try:
            found.append(read_commit(bucket, name))
        except CheckpointError:
            continue
    return found


def put_state(bucket: Bucket, commit: Commit, content: Content, writer: int) -> None:
    """The data, and once it is there the commit. Raises Fenced when another than `writer` is the writer by now."""
    bucket.put(commit.data, content)
    publish(bucket, commit, writer)


def publish(bucket: Bucket, commit: Commit, writer: int) -> None:
    """The commit of data that is there. Raises Fenced when another than `writer` is the writer by now."""
    require_writer(bucket, writer)
    if not bucket.put_if_absent(commit.name, _sealed(commit)):
        raise Fenced(f"{bucket.url}{commit.name}: somebody else has committed under this name; this process ends")


def prune(bucket: Bucket, keep: Keep, newest: Commit) -> None:
    """Remove what need not stay: commit objects first, then their data, and data before `newest` that was never committed.
    What came after may be another writer's, on its way."""
    for commit in keep.superfluous(read_commits(bucket)):
        bucket.delete(commit.name)
    kept = {data_of(name) for name in commit_names(bucket)}
    for found in bucket.list(DATA):
        if found.key < newest.data and found.key not in kept:
            bucket.delete(found.key)


def remove_all(bucket: Bucket) -> None:
    """Remove every commit, then everything else."""
    keys = [found.key for found in bucket.list()]
    for key in sorted(keys, key=lambda key: not key.startswith(COMMITS)):
        bucket.delete(key)


def newest_writer(bucket: Bucket) -> int:
    """The highest number that a writer has claimed; 0 while there was none."""
    numbers = [found.key.removeprefix(WRITERS) for found in bucket.list(WRITERS)]
    return max((int(number) for number in numbers if number.isdecimal()), default=0)


def claim_writer(buckets: Iterable[Bucket], who: str) -> int:
    """Be the one writer in all `buckets` from now on: a number above every other's. Whoever wrote there before is fenced."""
    places, token = list(buckets), f"{who} {secrets.token_hex(8)}\n".encode()
    number = max(newest_writer(place) for place in places) + 1
    while not all(place.put_if_absent(f"{WRITERS}{number:06}", token) for place in places):
        number += 1
    return number


def require_writer(bucket: Bucket, writer: int) -> None:
    """Raises Fenced when a writer above `writer` has claimed the bucket."""
    newest = newest_writer(bucket)
    if newest > writer:
        who = bucket.get(f"{WRITERS}{newest:06}").decode(errors="replace").rpartition(" ")[0]
        raise Fenced(
            f"{bucket.url}: this training was taken over by {who} (writer {newest}; this process is writer {writer}): nothing "
            "more is committed here"
        )
