"""`nightowl init`: a detector folder, written from what its data turns out to be."""

from pathlib import Path
from typing import Annotated

import typer


def init(
    name: Annotated[str, typer.Argument(help="a new detector: a-z, 0-9, - and _")],
    source: Annotated[str, typer.Option(help="folder, s3:// address or dvc:PATH of its data")],
    layout: Annotated[str, typer.Option(help="auto, yolo, coco or voc, where detection cannot tell")] = "auto",
    images: Annotated[str | None, typer.Option(help="images folder inside the source, where it is not a usual one")] = None,
) -> None:
    """Write detectors/NAME/params.yaml from what is found at the source, and add NAME to params.yaml and prefect.yaml."""
    from nightowl.data.source import record_source
    from nightowl.night.checkout import checkout_root
    from nightowl.night.detector import add_detector, check_new_name, few_test_images
    from nightowl.night.sources import fetch_source
    from nightowl.params import load_params, parse_params
    from nightowl.settings import load_settings
    from nightowl.training.weights import missing_base

    given = parse_params({"data": {"layout": layout, "images": images}}, "options").data
    root = checkout_root(Path.cwd())
    check_new_name(root, name)
    settings = load_settings(root)
    local = fetch_source(settings, name, source)
    found = add_detector(root, name, local.folder, given)
    record_source(settings, name, local.name)
    print(found.description)
    print(f"wrote detectors/{name}/params.yaml; {name} is now listed in params.yaml and has its deployments in prefect.yaml")
    params = load_params(root, name)
    few = few_test_images(found.num_test, params.gate.min_test_images)
    for warning in filter(None, (few, missing_base(params.train.base, settings, root))):
        print(warning)
    print(f"next: look it over, then: git add -A && git commit -m 'Add {name}' && nightowl night {name}")
