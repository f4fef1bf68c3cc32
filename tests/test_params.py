from pathlib import Path

import pytest
from ruamel.yaml import YAML

from nightowl.errors import ParamsError
from nightowl.params import SECTIONS, Params, load_params, parse_params

ROOT = Path(__file__).resolve().parents[1]


def checkout(folder: Path, shared: str = "", own: str = "") -> Path:
    """A folder with both params files; the detector's has every section unless `own` says otherwise."""
    (folder / "detectors" / "line").mkdir(parents=True)
    (folder / "params.yaml").write_text(f"detectors: [line]\n{shared}")
    sections = "".join(f"{name}: {{}}\n" for name in SECTIONS if f"{name}:" not in own)
    (folder / "detectors" / "line" / "params.yaml").write_text(own + sections)
    return folder


def test_params_yaml_states_every_default_that_the_code_has() -> None:
    stated = YAML(typ="safe", pure=True).load((ROOT / "params.yaml").read_text())
    del stated["detectors"]
    assert stated == Params().model_dump(mode="json")


@pytest.mark.parametrize("detector", ["demo", "bccd"])
def test_the_committed_detectors_are_valid(detector: str) -> None:
    assert load_params(ROOT, detector).train.base.endswith((".yaml", ".pt"))


def test_a_detectors_values_lie_over_the_shared_ones_key_by_key(tmp_path: Path) -> None:
    root = checkout(tmp_path, "train: {epochs: 7, augment: {mosaic: 0.5, mixup: 0.1}}", "train: {augment: {mosaic: 0.2}}\n")
    train = load_params(root, "line").train
    assert (train.epochs, train.augment.mosaic, train.augment.mixup) == (7, 0.2, 0.1)


def test_scientific_notation_is_a_number_as_in_yaml_1_2(tmp_path: Path) -> None:
    assert load_params(checkout(tmp_path, own="train: {lr0: 1e-3}\n"), "line").train.lr0 == 0.001


def test_all_faults_of_both_files_are_told_at_once_with_their_key_paths(tmp_path: Path) -> None:
    root = checkout(tmp_path, "train: {epochs: many}", "train: {lr: 0.1, lr0: -1}\nprepare: {image_size: 100}\n")
    with pytest.raises(ParamsError) as caught:
        load_params(root, "line")
    told = str(caught.value)
    shared, own = root / "params.yaml", root / "detectors" / "line" / "params.yaml"
    assert f'{shared}: train.epochs: input should be a valid integer, got "many"' in told
    assert f"{own}: train.lr0: input should be greater than 0, got -1" in told
    assert (
        f"{own}: train.lr is not a known key (did you mean lrf or lr0?); known here: activation_checkpointing, augment, base, "
        in told
    )
    assert f"{own}: prepare.image_size: input should be a multiple of 32, got 100" in told


@pytest.mark.parametrize(
    ("own", "expected", "reason"),
    [
        ("train: [1]\n", "train", "a section must be a mapping"),
        (
            "prepare: {audit: {policies: {typo: fail}}}\n",
            "prepare.audit.policies.typo is not a known key; known",
            "no such kind",
        ),
        (
            "prepare: {audit: {policies: {zero_area_box: allow}}}\n",
            "'quarantine' or 'fail'",
            "a box without area cannot be used",
        ),
        ("prepare: {audit: {fail_above: {typo: 0.1}}}\n", "fail_above: typo: no such kind of finding; known: ", "no such kind"),
        ("data: {split: {group_table: a.csv}}\n", "group_table and group_column belong together", "a table without a column"),
        (
            "data: {split: {group_table: a.csv, group_column: lot, group_pattern: x}}\n",
            "group_pattern and group_column both say what a group is",
            "two definitions of a group",
        ),
        ("train: {epochs: 1.5}\n", "valid integer", "a fraction is not a count"),
        ("train: {lr0: .nan}\n", "lr0", "NaN is no learning rate"),
        ("train: {lr0: 2.0}\n", "train.lr0: input should be less than or equal to 1", "ultralytics takes no more"),
        ("train: {seed: true}\n", "train.seed", "a bool is not an integer"),
        ("trian: {}\n", "trian is not a known key (did you mean train?)", "a typo is an error, not a new section"),
        ("data: {split: {val_fraction: 0.6, test_fraction: 0.5}}\n", "nothing is left to train on", "fractions over the whole"),
        ("data: {split: {group_pattern: '('}}\n", "not a regular expression", "a broken pattern"),
        ("train: {\n", "not readable as YAML", "broken YAML"),
        ("train: {epochs: 99999999999999999999}\n", "less than or equal to 100000", "more epochs than a life has"),
        ("train: {seed: 4294967296}\n", "train.seed", "numpy takes 32 bits"),
        ("train: { epochs: " + "9" * 5000 + " }\n", "not readable as YAML", "a number that no int is made of"),
        ("data: \x01\n", "not readable as YAML", "a character that no text has"),
        ("data: " + "{a: " * 2000 + "1" + "}" * 2000 + "\n", "nested deeper", "a file that is no params"),
        ("detectors: [line]\n", "detectors is not a known key", "the list stands in the shared file alone"),
        ("- a\n", "not readable as YAML", "broken by the sections that follow"),
    ],
)
def test_a_fault_is_one_clear_line(tmp_path: Path, own: str, expected: str, reason: str) -> None:
    with pytest.raises(ParamsError) as caught:
        load_params(checkout(tmp_path, own=own), "line")
    assert expected in str(caught.value), reason
    assert "\n" not in str(caught.value)


def test_a_missing_section_is_named_because_dvc_needs_it(tmp_path: Path) -> None:
    root = checkout(tmp_path)
    (root / "detectors" / "line" / "params.yaml").write_text("train: {}\n")
    with pytest.raises(ParamsError, match=r"section `gate` is missing; write `gate: \{\}`"):
        load_params(root, "line")


def test_an_unlisted_detector_is_refused_with_the_list(tmp_path: Path) -> None:
    with pytest.raises(ParamsError, match=r"no detector 'other' in its list `detectors` \(line\)"):
        load_params(checkout(tmp_path), "other")


def test_equal_values_have_equal_digests_however_they_were_written() -> None:
    assert parse_params({"train": {"epochs": 100}}, "").digest() == Params().digest()
    assert parse_params({"train": {"epochs": 99}}, "").digest() != Params().digest()


def test_params_cannot_be_mutated() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Params().train.epochs = 3  # type: ignore[misc]


def test_a_detector_is_listed_once(tmp_path: Path) -> None:
    root = checkout(tmp_path)
    (root / "params.yaml").write_text("detectors: [line, line]\n")
    with pytest.raises(ParamsError, match="more than once: line, line"):
        load_params(root, "line")


def test_params_written_as_yaml_are_read_back_the_same() -> None:
    params = parse_params({"train": {"lr0": 1e-05, "base": "yes.pt"}, "data": {"classes": ["no", "1"]}}, "")
    assert parse_params(YAML(typ="safe", pure=True).load(params.as_yaml()), "") == params
