"""Which images an INT8 export is calibrated on: of train, every class in its share, and the same for the same data.

Ranges of activations come from what is seen; a class that calibration never saw has been exported to zero. So a part of the
places goes to each class in turn, rarest first, and the rest is drawn from all images, empty ones included.
"""

import hashlib
from collections import defaultdict
from collections.abc import Sequence

from nightowl.data.manifest import Image

_CLASS_PART = 0.5  # of all places, shared by the classes alike; the rest follows the data


def choose(images: Sequence[Image], num: int) -> tuple[Image, ...]:
    """`num` of `images`, or all there are, in order of path. Which is a function of their contents alone."""
    if len(images) <= num:
        return tuple(sorted(images, key=lambda image: image.path))
    drawn = sorted(images, key=_draw)
    chosen = {image.path: image for image in _of_each_class(drawn, round(num * _CLASS_PART))}
    for image in drawn:
        if len(chosen) >= num:
            break
        chosen.setdefault(image.path, image)
    return tuple(chosen[path] for path in sorted(chosen))


def _of_each_class(drawn: Sequence[Image], num: int) -> list[Image]:
    """At most `num` images, an equal share of those with each class, the rarest class served first."""
    members: dict[int, list[Image]] = defaultdict(list)
    for image in drawn:
        for class_id in {box.class_id for box in image.boxes if not box.ignore}:
            members[class_id].append(image)
    chosen: dict[str, Image] = {}
    rarest_first = sorted(members, key=lambda class_id: (len(members[class_id]), class_id))
    for place, class_id in enumerate(rarest_first):
        share = (num - len(chosen)) // (len(rarest_first) - place)
        unused = [image for image in members[class_id] if image.path not in chosen]
        chosen.update({image.path: image for image in unused[:share]})
    return list(chosen.values())


def _draw(image: Image) -> bytes:
    return hashlib.sha256(f"calibration:{image.sha256}".encode()).digest()
