"""How long artefacts took, as it is kept."""

from nightowl.records import Record


class Timing(Record):
    """Seconds a call at one batch size. Of fewer than 100 calls the 99th percentile is little but the slowest one."""

    batch: int
    num_calls: int
    p50_seconds: float
    p95_seconds: float
    p99_seconds: float
    images_per_second: float


class ArtefactSpeed(Record):
    """`name` is the artefact's: `.pt`, `onnx`, `openvino`, or `champion` for the champion's ONNX."""

    name: str
    timings: tuple[Timing, ...]

    def at(self, batch: int) -> Timing:
        return next(timing for timing in self.timings if timing.batch == batch)


class Speed(Record):
    """All artefacts of one export, on the processor `cpu`, `threads` threads each; the network alone, from input to output."""

    cpu: str
    threads: int
    artefacts: tuple[ArtefactSpeed, ...]

    def of(self, name: str) -> ArtefactSpeed | None:
        return next((artefact for artefact in self.artefacts if artefact.name == name), None)
