"""What a rented machine does first: look whether the run is over, fetch its code, build its environment, start its node.

This file is sent as it is in the user-data, so it needs nothing but the Python that a machine image has (3.9 or later), and
holds no secret: the machine's role gives credentials by the metadata service. Whatever fails is written on the board; the
third boot of a run that fails ends it, so that no machines are rented for ever to fail.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import shutil
import subprocess
import sys
import tarfile
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

METADATA = os.environ.get("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://169.254.169.254").rstrip("/")
MAX_FAILURES = 3
_SLOW = 60
_SAID = 300  # characters
_JSON = {"content-type": "application/json"}
_direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def metadata(path: str, patience_seconds: float = 300, pause_seconds: float = 1) -> str:
    """A value of the metadata service, which may not answer yet when a machine boots."""
    until = time.monotonic() + patience_seconds
    while True:
        try:
            put = urllib.request.Request(f"{METADATA}/latest/api/token", method="PUT")
            put.add_header("X-aws-ec2-metadata-token-ttl-seconds", "300")
            with _direct.open(put, timeout=2) as answer:
                token = answer.read().decode()
            get = urllib.request.Request(f"{METADATA}/latest/meta-data/{path}", headers={"X-aws-ec2-metadata-token": token})
            with _direct.open(get, timeout=2) as answer:
                return str(answer.read().decode())
        except OSError as error:
            if time.monotonic() > until:
                raise RuntimeError(f"metadata service: {path}: {error}") from error
            time.sleep(pause_seconds)


class Aws:
    """Requests in the name of the machine's role."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.region, self.endpoint = job["region"], os.environ.get("AWS_ENDPOINT_URL") or job["endpoint"]
        self.bucket, _, prefix = job["board"][len("s3://") :].partition("/")
        self.prefix = f"{prefix.strip('/')}/runs/{job['run_id']}/".lstrip("/")

    def object(self, method: str, key: str, body: bytes = b"", **headers: str) -> bytes:
        """Of the run's board. Raises HTTPError."""
        path = f"/{self.prefix}{key}"
        if self.endpoint or "." in self.bucket:
            url = f"{self.endpoint or f'https://s3.{self.region}.amazonaws.com'}/{self.bucket}{path}"
        else:
            url = f"https://{self.bucket}.s3.{self.region}.amazonaws.com{path}"
        return self._send("s3", method, url, body, headers)

    def leave_group(self, instance: str) -> None:
        """End this machine, and let nobody take its place."""
        fields = {"InstanceId": instance, "ShouldDecrementDesiredCapacity": "true", "Version": "2011-01-01"}
        body = urllib.parse.urlencode({"Action": "TerminateInstanceInAutoScalingGroup", **fields}).encode()
        kind = {"content-type": "application/x-www-form-urlencoded"}
        url = f"{self.endpoint or f'https://autoscaling.{self.region}.amazonaws.com'}/"
        try:
            self._send("autoscaling", "POST", url, body, kind)
        except urllib.error.HTTPError as error:
            print(f"{instance}: could not leave its group: {error}", flush=True)  # it shuts down all the same

    def _send(self, service: str, method: str, url: str, body: bytes, headers: dict[str, str]) -> bytes:
        for attempt in range(5):
            try:
                signed = self._signed(service, method, url, body, headers)
                request = urllib.request.Request(url, body or None, signed, method=method)
                with urllib.request.urlopen(request, timeout=_SLOW) as answer:
                    return bytes(answer.read())
            except urllib.error.HTTPError as error:
                if error.code < 500 or attempt == 4:
                    raise
            except OSError:
                if attempt == 4:
                    raise
            time.sleep(2**attempt)
        raise AssertionError

    def _signed(self, service: str, method: str, url: str, body: bytes, headers: dict[str, str]) -> dict[str, str]:
        """Signature version 4, with the credentials as they are now."""
        role = metadata("iam/security-credentials/").split()[0]
        keys = json.loads(metadata(f"iam/security-credentials/{role}"))
        parts, now, digest = urllib.parse.urlsplit(url), time.gmtime(), hashlib.sha256(body).hexdigest()
        day, moment = time.strftime("%Y%m%d", now), time.strftime("%Y%m%dT%H%M%SZ", now)
        sent = {"host": parts.netloc, "x-amz-content-sha256": digest, "x-amz-date": moment, **headers}
        if keys.get("Token"):
            sent["x-amz-security-token"] = keys["Token"]
        names = ";".join(sorted(sent))
        lines = "".join(f"{name}:{sent[name]}\n" for name in sorted(sent))
        request = f"{method}\n{parts.path}\n\n{lines}\n{names}\n{digest}"
        scope = f"{day}/{self.region}/{service}/aws4_request"
        text = f"AWS4-HMAC-SHA256\n{moment}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
        key = f"AWS4{keys['SecretAccessKey']}".encode()
        for part in (*scope.split("/"), text):
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        credential = f"Credential={keys['AccessKeyId']}/{scope}, SignedHeaders={names}, Signature={key.hex()}"
        return {**sent, "Authorization": f"AWS4-HMAC-SHA256 {credential}"}


def is_over(aws: Aws) -> bool:
    try:
        aws.object("GET", "END.json")
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return False
        raise
    return True


def fetch(aws: Aws, name: str, sha256: str, folder: Path) -> Path:
    """The object `name` of the board as a file, compared with its digest."""
    content = aws.object("GET", name)
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise RuntimeError(f"{name}: expected sha256 {sha256}, found {found}")
    (folder / name).write_bytes(content)
    return folder / name


def unpack(archive: Path, tree: Path) -> None:
    """Refuses what would lie outside of `tree`, and what is neither file nor folder."""
    shutil.rmtree(tree, ignore_errors=True)
    with tarfile.open(archive) as tar:
        for member in tar.getmembers():
            if member.name.startswith("/") or ".." in member.name.split("/") or not (member.isfile() or member.isdir()):
                raise RuntimeError(f"{archive}: {member.name}: expected a file within the tree")
        tar.extractall(tree)


def run(*words: object) -> None:
    """Run a command. Raises RuntimeError with what it said to that, at its beginning and its end."""
    done = subprocess.run(
        [str(word) for word in words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,  # in the order in which it came: venv complains to its output
        text=True,
        errors="replace",
        check=False,
    )
    print(done.stdout, end="", flush=True)
    if done.returncode != 0:
        said = " ".join(done.stdout.split())
        said = said if len(said) <= 2 * _SAID else f"{said[:_SAID]} … {said[-_SAID:]}"
        raise RuntimeError(f"{words[0]} ended with exit code {done.returncode}: {said}")


def command(job: dict[str, Any], home: Path, tree: Path) -> list[str]:
    """Builds the environment; returns the command that is its Python."""
    kind = job["environment"]["kind"]
    if kind == "baked":
        return [job["environment"]["python"]]
    if kind == "container":
        image, gpus = job["environment"]["container"], ["--gpus", "all"] if shutil.which("nvidia-smi") else []
        host = image.split("/")[0]
        if ".dkr.ecr." in host:
            login = f"aws ecr get-login-password --region {host.split('.')[3]} | docker login -u AWS --password-stdin {host}"
            run("bash", "-o", "pipefail", "-c", login)
        run("docker", "pull", "--quiet", image)
        where = [
            "--user",  # the image's own could not write to the machine's disk
            f"{os.getuid()}:{os.getgid()}",
            "-v",
            f"{home}:{home}",
            "-w",
            str(tree),
            "-e",
            f"NIGHTOWL_NODE_HOME={home}",
            "-e",
            f"AWS_REGION={job['region']}",
            "-e",
            "AWS_ENDPOINT_URL",
        ]
        return ["docker", "run", "--rm", "--network=host", "--ipc=host", *gpus, *where, image, "python"]
    uv, python = shutil.which("uv"), home / "environment" / "bin" / "python"
    if uv is None:
        run(sys.executable, "-m", "venv", home / "uv")
        (home / "uv.txt").write_text(job["uv"])
        run(home / "uv/bin/python", "-m", "pip", "install", "--quiet", "--require-hashes", "-r", home / "uv.txt")
        uv = str(home / "uv/bin/uv")
    run(uv, "venv", "--quiet", "--clear", "--python", job["python"], python.parent.parent)
    run(uv, "pip", "sync", "--quiet", "--require-hashes", "--python", python, home / "requirements.lock")
    return [str(python)]


def note_failure(aws: Aws, instance: str, message: str) -> None:
    """On the board, as the next of the run's failed boots; the last that is allowed ends the run."""
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    for number in range(1, MAX_FAILURES + 1):
        record = {"stage": "bootstrap", "instance": instance, "generation": number, "preempted": False, "step": None}
        body = json.dumps({**record, "message": message, "at": at}).encode()
        key = f"failures/bootstrap/{number:03d}.json"
        if not _put_once(aws, key, body):
            if not json.loads(aws.object("GET", key))["preempted"]:
                continue
            aws.object("PUT", key, body, **_JSON)  # a machine started since, so it counts for nothing
        if number == MAX_FAILURES:
            said = f"{MAX_FAILURES} machines could not start their node; the last: {message}"
            _put_once(aws, "END.json", json.dumps({"how": "poison", "message": said, "at": at}).encode())
        return


def _put_once(aws: Aws, key: str, body: bytes) -> bool:
    try:
        aws.object("PUT", key, body, **_JSON, **{"if-none-match": "*"})
    except urllib.error.HTTPError as error:
        if error.code in (409, 412):
            return False
        raise
    return True


def main(job: dict[str, Any], home: Path) -> None:
    begun, instance, aws = time.time(), metadata("instance-id"), Aws(job)
    try:
        if is_over(aws):
            print(f"{job['run_id']} is over", flush=True)
        else:
            fetch(aws, "requirements.lock", job["lock_sha256"], home)
            unpack(fetch(aws, "code.tar.gz", job["code_sha256"], home), home / "tree")
            python = command(job, home, home / "tree")
            node = ["-m", "nightowl.cli", "node", "--run", job["run_id"], "--board", job["board"], "--since", f"{begun:.0f}"]
            environment = {**os.environ, "NIGHTOWL_NODE_HOME": str(home), "AWS_REGION": job["region"], "PYTHONUNBUFFERED": "1"}
            if job["endpoint"]:
                environment["AWS_ENDPOINT_URL"] = aws.endpoint
            code = subprocess.run([*python, *node], check=False, cwd=home / "tree", env=environment).returncode
            if code == 0:
                return
            raise RuntimeError(f"the node ended with exit code {code}")
    except Exception as error:  # noqa: BLE001  whatever it is, it must be on the board before the machine goes
        message = f"{instance}: {type(error).__name__}: {error}"
        if isinstance(error, urllib.error.HTTPError):
            message += f": {error.url.partition('?')[0]}: {error.read(500).decode(errors='replace')}"
        print(message, flush=True)
        note_failure(aws, instance, message)
        if not is_over(aws):
            return  # the machine shuts itself down, and the group sends another
    aws.leave_group(instance)


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[1]).resolve().parent)
