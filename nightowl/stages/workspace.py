"""Where a detector's files lie inside a checkout: what stages read and what they write."""

from dataclasses import dataclass
from pathlib import Path

from nightowl.settings import Settings

STAGES = ("prepare", "train", "evaluate", "export", "gate")


@dataclass(frozen=True)
class Workspace:
    """One detector in one checkout, with the settings in force there."""

    root: Path
    detector: str
    settings: Settings

    @property
    def inputs(self) -> Path:
        return self.root / "inputs" / self.detector

    @property
    def manifest(self) -> Path:
        """The pinned dataset version, faults and all."""
        return self.inputs / "manifest.jsonl"

    @property
    def findings(self) -> Path:
        """What reading the source found wrong."""
        return self.inputs / "findings.json"

    @property
    def base(self) -> Path:
        """The pinned BaseWeights."""
        return self.inputs / "base.json"

    @property
    def champion(self) -> Path:
        """The pinned ChampionRecord, or `null` while there is none."""
        return self.inputs / "champion.json"

    @property
    def reference(self) -> Path:
        """The pinned ChampionRecord of the reference, or `null` while there is none."""
        return self.inputs / "reference.json"

    @property
    def decisions(self) -> Path:
        """The pinned decisions of past nights, and what each spent of the error budget."""
        return self.inputs / "decisions.json"

    @property
    def slice_facts(self) -> Path:
        """The pinned SliceFacts: what is known of images beyond the manifest, to divide test by."""
        return self.inputs / "slices.json"

    @property
    def golden(self) -> Path:
        """The pinned golden set, `sha256  path` a line; empty while there is none."""
        return self.inputs / "golden.txt"

    @property
    def golden_source(self) -> Path:
        """The golden set as it is committed with the detector; absent while there is none."""
        return self.root / "detectors" / self.detector / "golden.txt"

    @property
    def previous(self) -> Path:
        """The pinned DatasetFigures of the champion's data, or `null` while there is no champion."""
        return self.inputs / "previous.json"

    def out(self, stage: str) -> Path:
        """The folder that `stage` publishes, whole."""
        return self.root / "out" / self.detector / stage

    @property
    def dataset(self) -> Path:
        """The usable images and boxes, a manifest without what was quarantined."""
        return self.out("prepare") / "dataset.jsonl"

    @property
    def quarantine(self) -> Path:
        return self.out("prepare") / "quarantine.json"

    @property
    def audit(self) -> Path:
        """The Audit of what was pinned."""
        return self.out("prepare") / "audit.json"

    @property
    def barred(self) -> Path:
        """Golden images and their copies, `sha256  path` a line: what may never be trained on."""
        return self.out("prepare") / "barred.txt"

    @property
    def weights(self) -> Path:
        return self.out("train") / "best.pt"

    @property
    def model(self) -> Path:
        """The ModelRecord of `weights`."""
        return self.out("train") / "model.json"

    @property
    def history(self) -> Path:
        """One row an epoch: losses, learning rates, val metrics."""
        return self.out("train") / "results.csv"

    @property
    def training(self) -> Path:
        """The TrainingRecord: in which numbers and memory it ran, and what went otherwise."""
        return self.out("train") / "training.json"

    def metrics(self, whose: str) -> Path:
        """Metrics on test; `whose` is `candidate`, or `champion`, `reference` (absent where there is none of its own)."""
        return self.out("evaluate") / f"{whose}.json"

    def curves(self, whose: str) -> Path:
        return self.out("evaluate") / f"{whose}_curves.json"

    def detections(self, whose: str) -> Path:
        return self.out("evaluate") / f"{whose}.parquet"

    @property
    def operating(self) -> Path:
        """The OperatingPoint of the candidate, chosen on val."""
        return self.out("evaluate") / "operating.json"

    @property
    def champion_operating(self) -> Path:
        """The OperatingPoint that the champion shipped with, over the classes in common."""
        return self.out("evaluate") / "champion_operating.json"

    @property
    def truth(self) -> Path:
        """The labels of test, kept beside the detections."""
        return self.out("evaluate") / "truth.parquet"

    @property
    def slices(self) -> Path:
        """The Slices of test."""
        return self.out("evaluate") / "slices.json"

    @property
    def operating_test(self) -> Path:
        """The OperatingFigures of the candidate on test; absent when it has no threshold."""
        return self.out("gate") / "operating_test.json"

    @property
    def instrument(self) -> Path:
        """The Instrument that measured."""
        return self.out("evaluate") / "instrument.json"

    @property
    def verdict(self) -> Path:
        return self.out("gate") / "verdict.json"

    @property
    def onnx(self) -> Path:
        return self.out("export") / "model.onnx"

    @property
    def openvino(self) -> Path:
        """The same in OpenVINO's form, its weights beside it as .bin; absent unless params ask for it."""
        return self.out("export") / "model.xml"

    @property
    def shipped_detections(self) -> Path:
        """What the exported model finds on test."""
        return self.out("export") / "detections.parquet"

    @property
    def parity(self) -> Path:
        return self.out("export") / "parity.json"

    @property
    def speed(self) -> Path:
        """The Speed of every artefact."""
        return self.out("export") / "speed.json"

    @property
    def cost(self) -> Path:
        """The Cost of running each exported artefact."""
        return self.out("export") / "cost.json"

    @property
    def hardware(self) -> Path:
        """The HardwareSummary of the last training on a GPU; not an output, as it differs from machine to machine."""
        return self.root / "out" / self.detector / "outcomes" / "hardware.json"

    @property
    def steps_taken(self) -> Path:
        """The Steps of the training here; not an output."""
        return self.root / "out" / self.detector / "outcomes" / "train.step"

    def outcome(self, stage: str) -> Path:
        """How the last execution of `stage` ended; not an output, so DVC neither keeps nor restores it."""
        return self.root / "out" / self.detector / "outcomes" / f"{stage}.json"

    def leader(self, stage: str) -> Path:
        """The process id of the stage that is running now; absent when none is."""
        return self.root / "out" / self.detector / "outcomes" / f"{stage}.pid"
