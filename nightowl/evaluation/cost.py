"""What running the exported artefacts takes: time and size, measured when they are exported, judged by the gate."""

from nightowl.records import Record


class ArtefactCost(Record):
    """Seconds an image of one artefact at batch 1 on the CPU of one machine, the median and the 99th percentile, and the bytes
    of its files. `required`: without it the version does not ship; otherwise it can be left out."""

    name: str
    required: bool
    seconds_per_image: float
    p99_seconds_per_image: float
    num_bytes: int


class Cost(Record):
    """The ONNX and every other artefact that kept its limits, and the median of the champion's ONNX, measured in turn with them
    (None without a champion)."""

    artefacts: tuple[ArtefactCost, ...]
    champion_seconds_per_image: float | None
