"""What running an exported model takes: time and size, measured when it is exported, judged by the gate."""

from nightowl.records import Record


class Cost(Record):
    """Seconds an image at batch 1 on the CPU of one machine: the median and the 99th percentile of the ONNX, the median of the
    champion's measured in turn (None without a champion); and the bytes of its file."""

    seconds_per_image: float
    p99_seconds_per_image: float
    champion_seconds_per_image: float | None
    model_bytes: int
