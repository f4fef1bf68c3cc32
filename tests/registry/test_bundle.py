"""A bundle: whole, checkable, and about one model."""

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from nightowl.errors import RegistryError, StageFailed
from nightowl.export_params import ExportParams
from nightowl.files import sha256_bytes, sha256_file
from nightowl.params import Params, load_params
from nightowl.registry.bundle import write_bundle
from nightowl.registry.record import BundleRecord
from nightowl.registry.sums import verify_sums
from tests.bundles import Made, bundle, facts, stage_files


def test_a_bundle_holds_everything_that_its_making_depended_on(tmp_path: Path) -> None:
    folder, record = bundle(tmp_path, Made())
    assert {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()} == {
        "weights.pt",
        "model.json",
        "model.onnx",
        "metrics.json",
        "curves.json",
        "verdict.json",
        "parity.json",
        "results.csv",
        "quarantine.json",
        "params.yaml",
        "dvc.lock",
        "requirements.lock",
        "record.json",
        "MODEL_CARD.md",
        "run_model.py",
        "SHA256SUMS",
        "inputs/manifest.jsonl",
        "inputs/reference.json",
        "inputs/findings.json",
        "inputs/base.json",
        "inputs/champion.json",
        "inputs/decisions.json",
        "inputs/slices.json",
        "inputs/golden.txt",
        "inputs/previous.json",
    }
    assert BundleRecord.model_validate_json((folder / "record.json").read_bytes()) == record


def test_another_format_goes_along_and_is_held_to_its_parity(tmp_path: Path) -> None:
    folder, _ = bundle(tmp_path, Made(openvino=b"graph"))
    assert (folder / "model.xml").read_bytes() == b"graph"
    assert (folder / "model.bin").is_file()
    files = stage_files(tmp_path / "again", Made(openvino=b"graph"))
    (tmp_path / "again" / "model.bin").write_bytes(b"other weights")
    with pytest.raises(StageFailed, match=r"model.bin: SHA-256 .*parity.json is about"):
        write_bundle(files, facts(Made()), Made().params, tmp_path / "none")


def test_a_format_that_was_left_out_is_named_with_its_reasons_in_record_and_card(tmp_path: Path) -> None:
    params = Params(export=ExportParams(formats=("onnx", "openvino", "tensorrt")))
    _, shipped = bundle(tmp_path / "shipped", Made(openvino=b"graph", params=params))
    assert (shipped.formats, shipped.left_out) == ({"onnx": "int8", "openvino": "fp32", "tensorrt": "int8"}, {})
    folder, record = bundle(tmp_path / "left-out", Made(openvino_refused="mAP50-95 gap on test: 0.1", params=params))
    assert record.formats == {"onnx": "int8", "tensorrt": "int8"}
    assert record.left_out == {"openvino": ("int8: largest score gap: 0.5", "fp32: mAP50-95 gap on test: 0.1")}
    card = (folder / "MODEL_CARD.md").read_text()
    assert "- onnx, int8\n- tensorrt, int8: built from the ONNX where the GPU is\n" in card
    assert "- openvino is left out: int8: largest score gap: 0.5; fp32: mAP50-95 gap on test: 0.1" in card
    assert not (folder / "model.xml").exists()


def test_a_format_that_breaks_a_budget_is_in_no_bundle_and_record_and_card_say_why(tmp_path: Path) -> None:
    why = "openvino: seconds an image: 0.2 s, at most 0.1 s allowed"
    params = Params(export=ExportParams(formats=("onnx", "openvino")))
    folder, record = bundle(tmp_path, Made(openvino=b"graph", over_budget=why, params=params))
    assert (record.formats, record.left_out) == ({"onnx": "int8"}, {"openvino": (why,)})
    assert f"- openvino is left out: {why}" in (folder / "MODEL_CARD.md").read_text()
    assert not list(folder.glob("model.[xb]*")) and (folder / "model.onnx").is_file()


def test_the_record_names_every_input_by_digest(tmp_path: Path) -> None:
    made = Made()
    folder, record = bundle(tmp_path, made)
    assert record.weights_sha256 == sha256_bytes(made.weights)
    assert record.onnx_sha256 == sha256_file(folder / "model.onnx")
    assert record.dataset_version == sha256_file(folder / "inputs" / "manifest.jsonl")
    assert record.environment_sha256 == sha256_file(folder / "requirements.lock")
    assert record.params_sha256 == made.params.digest()
    assert (record.verdict, record.parity_passed, record.map50) == ("promote", True, 0.8)


def test_sha256sum_can_check_it(tmp_path: Path) -> None:
    folder, _ = bundle(tmp_path, Made())
    done = subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert "model.onnx: OK" in done.stdout


def test_its_params_give_the_same_params_again(tmp_path: Path) -> None:
    made = Made()
    folder, record = bundle(tmp_path, made)
    checkout = tmp_path / "checkout"
    (checkout / "detectors" / "demo").mkdir(parents=True)
    (checkout / "params.yaml").write_text("detectors: [demo]\n")
    (checkout / "detectors" / "demo" / "params.yaml").write_bytes((folder / "params.yaml").read_bytes())
    assert load_params(checkout, "demo").digest() == record.params_sha256


@pytest.mark.parametrize(
    ("name", "about"),
    [
        ("best.pt", "model.json"),
        ("model.onnx", "parity.json"),
    ],
)
def test_weights_that_were_not_measured_are_refused(name: str, about: str, tmp_path: Path) -> None:
    files = stage_files(tmp_path / "night", Made())
    (tmp_path / "night" / name).write_bytes(b"another model")
    with pytest.raises(StageFailed, match=f"{name}: SHA-256 .*{about} is about"):
        write_bundle(files, facts(Made()), Made().params, tmp_path / "bundle")
    assert not (tmp_path / "bundle").exists()


def test_a_missing_file_is_named_and_nothing_is_written(tmp_path: Path) -> None:
    files = replace(stage_files(tmp_path / "night", Made()), curves=tmp_path / "night" / "gone.json")
    with pytest.raises(StageFailed, match=r"no bundle without .*gone\.json"):
        write_bundle(files, facts(Made()), Made().params, tmp_path / "bundle")
    assert not (tmp_path / "bundle").exists()


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (lambda folder: (folder / "weights.pt").write_bytes(b"flipped"), "weights.pt is damaged"),
        (lambda folder: (folder / "model.onnx").unlink(), "model.onnx is missing"),
        (lambda folder: (folder / "SHA256SUMS").unlink(), "SHA256SUMS is missing"),
        (lambda folder: (folder / "SHA256SUMS").write_text(""), "SHA256SUMS is not the one that was registered"),
        (lambda folder: (folder / "inputs" / "more").write_text("x"), "inputs/more is not listed"),
    ],
)
def test_a_damaged_bundle_is_found_and_the_file_named(harm, message: str, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    folder, _ = bundle(tmp_path, Made())
    sums = sha256_file(folder / "SHA256SUMS")
    verify_sums(folder, sums, "demo version 1")
    harm(folder)
    with pytest.raises(RegistryError, match=f"demo version 1: {message}"):
        verify_sums(folder, sums, "demo version 1")
