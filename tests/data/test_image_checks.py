import pytest

from nightowl.data.findings import Kind
from nightowl.data.image_checks import check_storage
from nightowl.data.images import Storage
from nightowl.data.look import Look
from nightowl.data.manifest import Image

PLAIN = Storage("JPEG", "RGB", 8, False, 1)


def kinds(*storages: Storage) -> list[tuple[Kind, str]]:
    images = [Image(f"{number}.jpg", "", 1, 9, 9, "train", ()) for number in range(len(storages))]
    looks = {image.path: Look(storage, 0, b"") for image, storage in zip(images, storages, strict=True)}
    return [(finding.kind, finding.path) for finding in check_storage(images, looks)]


@pytest.mark.parametrize(
    ("storage", "kind"),
    [
        (PLAIN, None),
        (PLAIN._replace(orientation=6), "exif_rotation"),
        (PLAIN._replace(orientation=0), None),
        (PLAIN._replace(format="TIFF"), "lying_extension"),
        (PLAIN._replace(bits=16), "sixteen_bit_image"),
        (PLAIN._replace(mode="CMYK"), "cmyk_image"),
        (PLAIN._replace(mode="RGBA", has_alpha=True), "alpha_image"),
    ],
)
def test_what_is_unusual_is_said(storage: Storage, kind: Kind | None) -> None:
    assert kinds(storage) == ([(kind, "0.jpg")] if kind else [])


def test_grey_is_unusual_among_colour_and_colour_among_grey_but_neither_alone() -> None:
    grey = PLAIN._replace(mode="L")
    assert kinds(grey, grey) == []
    assert kinds(PLAIN, grey, PLAIN) == [("mixed_colour", "1.jpg")]
    assert kinds(grey, grey, PLAIN) == [("mixed_colour", "2.jpg")]


def test_an_image_that_was_not_seen_is_passed_over() -> None:
    assert check_storage([Image("a.jpg", "", 1, 9, 9, "train", ())], {"a.jpg": "cannot be read"}) == []
