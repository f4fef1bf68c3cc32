"""The record of a registered version: everything its making depended on, by name and digest."""

from datetime import datetime

from pydantic import Field

from nightowl.evaluation.budget import Spending
from nightowl.evaluation.champion import ChampionRecord as ChampionRecord
from nightowl.evaluation.instrument import Instrument
from nightowl.records import Record
from nightowl.training.base import BaseWeights


class BundleRecord(Record):
    """What a registered version is, and every input that it depended on.

    `formats` are those that ship, each with its precision; `left_out` are those that params asked for and that did not keep
    their limits against the trained model, or break a budget of time or size, with the reasons.
    """

    detector: str
    night_id: str
    night_key: str
    created_at: datetime
    code_commit: str
    dirty: bool
    dataset_version: str
    params_sha256: str
    environment_sha256: str
    container: str | None = None
    base: BaseWeights
    classes: tuple[str, ...]
    image_size: int
    weights_sha256: str
    onnx_sha256: str
    formats: dict[str, str] = Field(default_factory=lambda: {"onnx": "fp32"})
    left_out: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    detections_sha256: str | None = None
    instrument: Instrument | None = None
    champion_version: str | None
    map50: float | None
    map50_95: float | None
    verdict: str
    verdict_sentence: str = ""
    spending: Spending | None = None
    reference_version: str | None = None
    renews_reference: bool = False
    parity_passed: bool
