"""What is unusual in how images are stored. Pure: it sees looks, no files. All of it is read by one rule (see `images`)."""

from collections.abc import Callable, Iterable, Mapping

from nightowl.data.findings import Finding, Kind
from nightowl.data.images import Storage
from nightowl.data.look import Look
from nightowl.data.manifest import Image
from nightowl.data.names import lying_suffix

_GREY = ("1", "L", "LA", "I", "I;16", "I;16B", "I;16L")
_UPRIGHT = (0, 1)  # EXIF has no 0, but cameras write it


def check_storage(images: Iterable[Image], looks: Mapping[str, Look | str]) -> list[Finding]:
    """A finding for each image and each unusual thing about it. Grey is unusual beside colour,
    and colour beside grey."""
    seen = [(image.path, look.storage) for image in images if isinstance(look := looks.get(image.path), Look)]
    num_grey = sum(storage.mode in _GREY for _, storage in seen)
    findings = []
    for path, storage in seen:
        said: dict[Kind, str | None] = {kind: says(storage) for kind, says in _SAYINGS.items()}
        said["lying_extension"] = lying_suffix(path, storage.format)
        said["mixed_colour"] = _mixed(storage, num_grey, len(seen) - num_grey)
        findings += [Finding(kind=kind, path=path, detail=detail, action="kept") for kind, detail in said.items() if detail]
    return findings


def _mixed(storage: Storage, num_grey: int, num_colour: int) -> str | None:
    """What is said of an image that is of the rarer kind, where there are both."""
    if storage.mode in _GREY:
        return f"grey, while {num_colour} images are in colour" if num_colour > 0 and num_grey <= num_colour else None
    return f"in colour, while {num_grey} images are grey" if num_colour < num_grey else None


def _rotation(storage: Storage) -> str | None:
    if storage.orientation in _UPRIGHT:
        return None
    return f"EXIF orientation {storage.orientation}: is turned before use, and its boxes refer to the image as seen"


def _bits(storage: Storage) -> str | None:
    return f"{storage.bits} bits a channel, of which the upper 8 are used" if storage.bits > 8 else None


def _cmyk(storage: Storage) -> str | None:
    return "stored in CMYK, converted to BGR without a colour profile" if storage.mode == "CMYK" else None


def _alpha(storage: Storage) -> str | None:
    return f"has transparency ({storage.mode}), which is dropped, not blended" if storage.has_alpha else None


_SAYINGS: dict[Kind, Callable[[Storage], str | None]] = {
    "exif_rotation": _rotation,
    "sixteen_bit_image": _bits,
    "cmyk_image": _cmyk,
    "alpha_image": _alpha,
}
