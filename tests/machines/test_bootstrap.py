"""The user-data, read and run: against moto's S3 and Auto Scaling, with a metadata service on 127.0.0.1."""

import ast
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from nightowl.cloud.bucket import Bucket
from nightowl.errors import SettingsError
from nightowl.machines import boot
from nightowl.machines.board import Board, board_bucket
from nightowl.machines.bootstrap import MAX_BYTES, user_data
from nightowl.machines.job import Environment, Job
from nightowl.machines.records import RunEnd
from tests.machines.jobs import NOW, RUN, a_job
from tests.metadata_service import MetadataService

REGION = "us-east-1"
BOARD = "s3://boards/night"
KEYS = {"AccessKeyId": "AKIDEXAMPLE", "SecretAccessKey": "wJalrXUtnFEMI", "Token": "of the role"}
# Stands in for the run's code: its node says what it was told, and ends as asked.
NODE = """
import os, pathlib, sys
home = pathlib.Path(os.environ["NIGHTOWL_NODE_HOME"])
(home / "told").write_text(" ".join(sys.argv[1:]) + " " + os.environ["AWS_ENDPOINT_URL"])
sys.exit(int(pathlib.Path("exit-code").read_text()))
"""


def tar(files: dict[str, str]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content.encode()))
    return packed.getvalue()


CODE = tar({"nightowl/__init__.py": "", "nightowl/cli.py": NODE, "exit-code": "0"})
FAULTY = tar({"nightowl/__init__.py": "", "nightowl/cli.py": NODE, "exit-code": "7"})


def job_of(code: bytes = CODE, **changes: object) -> Job:
    lock = hashlib.sha256(b"lock").hexdigest()
    baked = Environment(kind="baked", python=sys.executable)
    return a_job(code_sha256=hashlib.sha256(code).hexdigest(), lock_sha256=lock, environment=baked, **changes)


@pytest.fixture
def group(moto_endpoint: str) -> Iterator[Callable[[], dict[str, Any]]]:
    """A group of one machine; how it is now."""
    groups = boto3.client("autoscaling", endpoint_url=moto_endpoint, region_name=REGION)
    ec2 = boto3.client("ec2", endpoint_url=moto_endpoint, region_name=REGION)
    image = ec2.describe_images()["Images"][0]["ImageId"]
    groups.create_launch_configuration(LaunchConfigurationName="c", ImageId=image, InstanceType="t3.micro")
    zones = {"AvailabilityZones": [f"{REGION}a"], "LaunchConfigurationName": "c"}
    groups.create_auto_scaling_group(AutoScalingGroupName="g", MinSize=0, MaxSize=2, DesiredCapacity=1, **zones)
    yield lambda: groups.describe_auto_scaling_groups(AutoScalingGroupNames=["g"])["AutoScalingGroups"][0]
    groups.delete_auto_scaling_group(AutoScalingGroupName="g", ForceDelete=True)
    groups.delete_launch_configuration(LaunchConfigurationName="c")


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, group: Callable[[], dict[str, Any]]) -> Iterator[MetadataService]:
    """The metadata service of the group's machine."""
    with MetadataService().serving() as service:
        service.values["instance-id"] = group()["Instances"][0]["InstanceId"]
        service.values["iam/security-credentials/"] = "node"
        service.values["iam/security-credentials/node"] = json.dumps(KEYS)
        monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", service.endpoint)
        monkeypatch.setattr(boot, "METADATA", service.endpoint)
        yield service


@pytest.fixture
def bucket(moto_endpoint: str) -> Bucket:
    client = boto3.client("s3", endpoint_url=moto_endpoint, region_name=REGION)
    client.create_bucket(Bucket="boards")
    for each in client.list_objects_v2(Bucket="boards").get("Contents", []):
        client.delete_object(Bucket="boards", Key=each["Key"])
    bucket = board_bucket(BOARD, moto_endpoint)
    Board(bucket, RUN).put_file("code.tar.gz", CODE)
    Board(bucket, RUN).put_file("requirements.lock", b"lock")
    return bucket


def ran(script: str, folder: Path) -> tuple[list[str], str]:
    """Run the user-data as a machine would; returns how it was shut down, and what it said."""
    shims = folder / "shims"
    shims.mkdir(exist_ok=True)
    (shims / "shutdown").write_text(f'#!/bin/sh\necho "$@" >>{folder}/shutdown\n')
    (shims / "sleep").write_text("#!/bin/sh\n")
    for shim in shims.iterdir():
        shim.chmod(0o755)
    environment = {**os.environ, "PATH": f"{shims}:{os.environ['PATH']}", "NIGHTOWL_NODE_HOME": str(folder / "home")}
    environment.pop("PYTHONPATH", None)
    done = subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True, timeout=60)
    calls = (folder / "shutdown").read_text().splitlines()
    (folder / "shutdown").unlink()
    return calls, done.stdout + done.stderr


def test_it_fits_and_its_first_line_sets_the_end() -> None:
    script = user_data(job_of(deadline=NOW + timedelta(hours=2)), BOARD, REGION)
    assert len(script.encode()) < MAX_BYTES
    assert script.startswith("#!/bin/bash\nleft=$((") and "; shutdown -h " in script.splitlines()[1]
    assert script.splitlines()[-1] == "shutdown -h now"
    assert subprocess.run(["bash", "-n"], input=script, text=True).returncode == 0


@pytest.mark.parametrize(
    ("boots_after_minutes", "minutes"),
    [
        (0, 130),  # two hours, and ten minutes for what ends it in better order
        (90, 40),  # a late replacement ends at the same hour
        (200, 1),  # past the end
        (-600, 130),  # a clock that is behind
    ],
)
def test_a_machine_ends_itself_at_the_same_hour_whenever_it_boots(
    boots_after_minutes: int, minutes: int, tmp_path: Path
) -> None:
    script = user_data(job_of(submitted_at=NOW, deadline=NOW + timedelta(hours=2)), BOARD, REGION)
    boots = int((NOW + timedelta(minutes=boots_after_minutes)).timestamp())
    told = f"date() {{ echo {boots}; }}; shutdown() {{ echo $*; }}; {script.splitlines()[1]}"
    assert subprocess.run(["bash", "-c", told], capture_output=True, text=True).stdout == f"-h +{minutes}\n"


def test_no_variable_of_the_orchestrator_and_no_setting_is_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hidden-secret")
    script = user_data(job_of(settings={"NIGHTOWL_REGISTRY_URI": "http://user:hidden-word@host"}), BOARD, REGION)
    assert "hidden" not in script


def test_a_board_that_is_a_folder_is_refused() -> None:
    with pytest.raises(SettingsError, match="expected s3://BUCKET/PREFIX"):
        user_data(job_of(), "/tmp/board", REGION)


def test_what_boots_a_machine_needs_only_the_python_that_images_have() -> None:
    tree = ast.parse(Path(boot.__file__).read_text(), feature_version=(3, 9))
    imported = {alias.name.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {(node.module or "").split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert imported <= sys.stdlib_module_names


def test_requests_are_signed_as_botocore_does(machine: MetadataService) -> None:
    aws_ = boot.Aws({"region": REGION, "endpoint": None, "board": BOARD, "run_id": RUN})
    url = "https://boards.s3.us-east-1.amazonaws.com/night/runs/x/END.json"
    signed = aws_._signed("s3", "PUT", url, b"{}", {"if-none-match": "*"})
    request = AWSRequest("PUT", url, {k: v for k, v in signed.items() if k != "Authorization"}, b"{}")
    request.context["timestamp"] = signed["x-amz-date"]
    auth = SigV4Auth(Credentials(KEYS["AccessKeyId"], KEYS["SecretAccessKey"], KEYS["Token"]), "s3", REGION)
    text = auth.string_to_sign(request, auth.canonical_request(request))
    assert signed["Authorization"].endswith(f"Signature={auth.signature(text, request)}")
    assert "SignedHeaders=host;if-none-match;x-amz-content-sha256;x-amz-date;x-amz-security-token" in signed["Authorization"]


def test_a_machine_starts_its_node_and_ends_when_that_is_done(
    tmp_path: Path,
    machine: MetadataService,
    bucket: Bucket,
    moto_endpoint: str,
) -> None:
    calls, said = ran(user_data(job_of(), BOARD, REGION, moto_endpoint), tmp_path)
    assert (tmp_path / "home" / "told").read_text().startswith(f"node --run {RUN} --board {BOARD} --since "), said
    assert (tmp_path / "home" / "told").read_text().endswith(moto_endpoint)
    assert calls == ["-h +1", "-h now"]  # the job of the table is long past its end
    assert Board(bucket, RUN).failures("bootstrap") == []


def test_one_that_boots_after_the_end_leaves_at_once_and_takes_its_place_with_it(
    tmp_path: Path, machine: MetadataService, bucket: Bucket, moto_endpoint: str, group: Callable[[], dict[str, Any]]
) -> None:
    Board(bucket, RUN).put_end(RunEnd(how="done", message="", at=NOW))
    calls, said = ran(user_data(job_of(), BOARD, REGION, moto_endpoint), tmp_path)
    assert f"{RUN} is over" in said and not (tmp_path / "home" / "told").exists() and calls[-1] == "-h now"
    assert (group()["DesiredCapacity"], group()["Instances"]) == (0, [])


def test_code_that_is_not_what_was_sent_is_not_run(
    tmp_path: Path,
    machine: MetadataService,
    bucket: Bucket,
    moto_endpoint: str,
) -> None:
    calls, said = ran(user_data(job_of(FAULTY), BOARD, REGION, moto_endpoint), tmp_path)
    assert "code.tar.gz: expected sha256" in said and not (tmp_path / "home" / "told").exists()
    (failure,) = Board(bucket, RUN).failures("bootstrap")
    assert failure.message.startswith(f"{machine.values['instance-id']}: RuntimeError: code.tar.gz: expected sha256")
    assert calls[-1] == "-h now" and Board(bucket, RUN).end() is None, "another machine may do better"


def test_the_third_boot_that_fails_ends_the_run(
    tmp_path: Path,
    machine: MetadataService,
    bucket: Bucket,
    moto_endpoint: str,
) -> None:
    Board(bucket, RUN).put_file("code.tar.gz", FAULTY)
    for _ in range(3):
        assert Board(bucket, RUN).end() is None
        ran(user_data(job_of(FAULTY), BOARD, REGION, moto_endpoint), tmp_path)
    end = Board(bucket, RUN).end()
    assert end is not None and end.how == "poison" and "the node ended with exit code 7" in end.message
    assert [each.generation for each in Board(bucket, RUN).failures("bootstrap")] == [1, 2, 3]


def test_boots_that_failed_before_another_machine_did_start_count_for_nothing(
    tmp_path: Path, machine: MetadataService, bucket: Bucket, moto_endpoint: str
) -> None:
    board = Board(bucket, RUN)
    board.put_file("code.tar.gz", FAULTY)
    for forgiving in (True, True, False):
        ran(user_data(job_of(FAULTY), BOARD, REGION, moto_endpoint), tmp_path)
        ran(user_data(job_of(FAULTY), BOARD, REGION, moto_endpoint), tmp_path)
        assert len(board.failures("bootstrap")) == 2 and board.end() is None
        if forgiving:
            board.forgive("bootstrap")


@pytest.mark.parametrize("name", ["/etc/passwd", "../beside", "a/../../b"])
def test_an_archive_stays_within_its_tree(tmp_path: Path, name: str) -> None:
    (tmp_path / "code.tar.gz").write_bytes(tar({name: "x"}))
    with pytest.raises(RuntimeError, match="expected a file within the tree"):
        boot.unpack(tmp_path / "code.tar.gz", tmp_path / "tree")


def test_a_command_that_fails_is_one_line_with_what_it_said() -> None:
    boot.run("true")
    with pytest.raises(RuntimeError, match=r"^sh ended with exit code 3: error: no such thing because of that$"):
        boot.run("sh", "-c", "printf 'error: no such thing\n  because of that\n' >&2; exit 3")
    with pytest.raises(RuntimeError, match=r"^sh ended with exit code 1: error: 1 2 .* … .* 998 999$") as caught:
        boot.run("sh", "-c", "echo error: $(seq 999); exit 1")
    assert len(str(caught.value)) < 700


def commands(monkeypatch: pytest.MonkeyPatch, there: set[str]) -> list[list[str]]:
    ran: list[list[str]] = []
    monkeypatch.setattr(boot.shutil, "which", lambda name: f"/usr/bin/{name}" if name in there else None)
    monkeypatch.setattr(boot, "run", lambda *words: ran.append([str(word) for word in words]))
    return ran


def told(kind: str, **environment: str) -> dict[str, Any]:
    return {"environment": {"kind": kind, **environment}, "python": "3.11", "uv": "uv==1", "region": REGION}


def test_a_wheel_environment_is_what_the_lock_says_by_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = commands(monkeypatch, {"uv"})
    assert boot.command(told("wheel"), tmp_path, tmp_path / "tree") == [f"{tmp_path}/environment/bin/python"]
    assert ran[0][:2] == ["/usr/bin/uv", "venv"] and "3.11" in ran[0]
    assert ran[1][1:3] == ["pip", "sync"] and "--require-hashes" in ran[1] and ran[1][-1] == f"{tmp_path}/requirements.lock"


def test_a_machine_without_uv_gets_one_by_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = commands(monkeypatch, set())
    boot.command(told("wheel"), tmp_path, tmp_path / "tree")
    assert ran[1][1:] == ["-m", "pip", "install", "--quiet", "--require-hashes", "-r", f"{tmp_path}/uv.txt"]
    assert ran[2][0] == f"{tmp_path}/uv/bin/uv"


def test_a_container_runs_by_its_digest_with_the_gpus_there_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    image = "1.dkr.ecr.eu-central-1.amazonaws.com/nightowl@sha256:abc"
    ran = commands(monkeypatch, {"nvidia-smi"})
    command = boot.command(told("container", container=image), tmp_path, tmp_path / "tree")
    assert command[-2:] == [image, "python"] and "--gpus" in command and command[command.index("-w") + 1] == f"{tmp_path}/tree"
    assert command[command.index("--user") + 1] == f"{os.getuid()}:{os.getgid()}"
    assert "--region eu-central-1" in ran[0][-1] and ran[1] == ["docker", "pull", "--quiet", image]
