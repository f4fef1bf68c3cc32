"""What measures: the installed libraries, the evaluation's code and its params, kept so that a change of them is known."""

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from nightowl.files import sha256_bytes, sha256_file
from nightowl.params import EvaluateParams
from nightowl.records import Record

# Those that can move a detection or a figure: decoding, scaling, inference, suppression, matching.
LIBRARIES = ("numpy", "onnxruntime", "opencv-python-headless", "pillow", "torch", "torchvision", "faster-coco-eval")
_PARAMS = ("confidence_floor", "nms_iou", "max_detections")  # what is detected; slices and operating points only look at it


class Instrument(Record):
    """Library names to versions (absent ones left out), the digest of the evaluation's code, and params as text."""

    libraries: dict[str, str]
    code_sha256: str
    params: dict[str, str]

    def differs_from(self, other: "Instrument") -> tuple[str, ...]:
        """What is not as it was in `other`, in words: `torch 2.14.1 -> 2.15.0`."""
        changed = [*_changes("", other.libraries, self.libraries), *_changes("evaluate.", other.params, self.params)]
        return (*changed, *(["the evaluation's code"] if self.code_sha256 != other.code_sha256 else []))


def this_instrument(params: EvaluateParams) -> Instrument:
    """The one that runs here."""
    folder = Path(__file__).parent
    code = "".join(f"{path.name} {sha256_file(path)}\n" for path in sorted(folder.glob("*.py")))
    plain = params.model_dump(mode="json", include=set(_PARAMS))
    return Instrument(
        libraries={name: found for name in LIBRARIES if (found := _installed(name))},
        code_sha256=sha256_bytes(code.encode()),
        params={key: str(value) for key, value in plain.items()},
    )


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _changes(prefix: str, before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    names = sorted({*before, *now})
    return [
        f"{prefix}{name} {before.get(name, 'absent')} -> {now.get(name, 'absent')}"
        for name in names
        if before.get(name) != now.get(name)
    ]
