import subprocess
import sys

import pytest

from nightowl.errors import WeightsError
from nightowl.training.architecture import architecture


@pytest.mark.parametrize(
    ("name", "scale", "reason"),
    [
        ("yolo11n.yaml", "n", "one file for all scales"),
        ("yolo26x.yaml", "x", "the newest family"),
        ("yolov8s-p2.yaml", "s", "a variant behind the scale"),
        ("yolov10n.yaml", "n", "a file a scale, which names it too"),
        ("yolov9c.yaml", "", "a file a size without scales"),
        ("yolov3-tiny.yaml", "", "no scales at all"),
    ],
)
def test_a_detector_architecture_is_described(name: str, scale: str, reason: str) -> None:
    description = architecture(name)
    assert (description["scale"], description["yaml_file"]) == (scale, name), reason
    assert description["backbone"] and description["head"]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("yolo11.yaml", "which scale?"),
        ("yolo11q.yaml", "no such scale"),
        ("yolo11n-seg.yaml", "segments"),
        ("yolov8n-rtdetr.yaml", "another kind of head, with a trainer of its own"),
        ("yolov8n-world.yaml", "needs text"),
        ("rtdetr-l.yaml", "not a YOLO"),
        ("../yolo11n.yaml", "a path, not a name"),
        ("resnet.yaml", "unheard of"),
    ],
)
def test_anything_else_is_refused_with_the_known_ones(name: str, reason: str) -> None:
    with pytest.raises(WeightsError, match=r"is no detector architecture; known: .*yolo11\[nsmlx\]\.yaml.*yolov9c\.yaml"):
        architecture(name)


def test_neither_torch_nor_ultralytics_is_imported_to_know_them() -> None:
    code = (
        "import sys; from nightowl.training.architecture import architecture; architecture('yolo11n.yaml');"
        "print('torch' in sys.modules, 'ultralytics' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
