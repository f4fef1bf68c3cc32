"""An engine built from the ONNX that ships, and held on the GPU at once, by the limits of the precision that the ONNX is in."""

from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from nightowl.errors import DataError, StageFailed
from nightowl.evaluation.card import ModelCard
from nightowl.evaluation.runners import OnnxRunner
from nightowl.export import tensorrt
from nightowl.export.engine import Memory, TensorRtRunner
from nightowl.export.engine_on_test import MeasuredImages, checks_on_test
from nightowl.export.engine_record import EngineRecord, Fingerprint, read_fingerprint
from nightowl.export.engine_store import EngineStore
from nightowl.export.parity import ParityCheck, check, measured, refusals
from nightowl.export.tensors import tensor_gap
from nightowl.export_params import ExportParams, PrecisionLimits, TensorRtParams
from nightowl.files import sha256_bytes, sha256_file

NUM_IMAGES, PATCHES = 4, 6


def build_engine(
    onnx: Path,
    params: ExportParams,
    store: EngineStore,
    scratch: Path,
    images: MeasuredImages | str,
    machine: tuple[Fingerprint, str] | None = None,
    memory: Memory | None = None,
) -> EngineRecord:
    """The engine of `onnx` for this machine, published in `store`; one that is there with the same options is returned, but for
    one that had no test images where now there are some.

    It is published only if it says what the ONNX says on the CPU, on coloured patches, and finds on the test images what the
    trained model found; `images` are those, or why there are none.

    Raises:
        StageFailed: when it cannot be built, says something else, or nothing could be judged. UserError: without TensorRT or
            a GPU.
    """
    here, gpu = machine or read_fingerprint()
    found = store.find(sha256_file(onnx), here)
    if found is not None and found.options == params.tensorrt and (found.not_on_test is None or isinstance(images, str)):
        return found
    reference = OnnxRunner(onnx)
    cache = store.timing_cache(here) if params.tensorrt.timing_cache else b""
    built = tensorrt.build(onnx.read_bytes(), params.tensorrt, cache)
    record = _record(sha256_file(onnx), built.plan, here, gpu, params.tensorrt, reference.card)
    (scratch / "model.engine").write_bytes(built.plan)
    (scratch / "model.json").write_text(record.model_dump_json())
    runner = TensorRtRunner(scratch / "model.engine", here, memory)
    record = _held(record, reference, runner, images, params.limits_of(reference.card.model.precision))
    store.publish(record, built.plan)
    if params.tensorrt.timing_cache:
        store.keep_timing_cache(here, built.timing_cache)
    return record


def _record(
    onnx_sha256: str, plan: bytes, here: Fingerprint, gpu: str, options: TensorRtParams, card: ModelCard
) -> EngineRecord:
    """Of an engine that was not held against anything yet."""
    return EngineRecord(
        onnx_sha256=onnx_sha256,
        engine_sha256=sha256_bytes(plan),
        num_bytes=len(plan),
        fingerprint=here,
        gpu=gpu,
        options=options,
        card=card,
        checks=(),
        num_images=0,
        not_on_test=None,
        built_at=datetime.now(UTC),
    )


def _held(
    record: EngineRecord,
    reference: OnnxRunner,
    runner: TensorRtRunner,
    images: MeasuredImages | str,
    limits: PrecisionLimits,
) -> EngineRecord:
    """The record with what was compared. Raises StageFailed where the engine differs, or nothing could be judged."""
    checks = _on_patches(reference, runner, limits)
    num_images, not_on_test = 0, images if isinstance(images, str) else None
    if not isinstance(images, str):
        try:
            checks += measured("on test", lambda: checks_on_test(images, runner, limits))
            num_images = len(images.sources)
        except DataError as error:
            not_on_test = str(error)
    refused = refusals(checks, None)
    if refused:
        raise StageFailed(f"the engine does not say what the model says: {'; '.join(refused)}; it is not published")
    if all(each.limit is None for each in checks):
        raise StageFailed(
            f"an engine in {reference.card.model.precision} is judged on the test images, and there are none here: "
            f"{not_on_test}; have the source on this machine (the setting `sources`)"
        )
    return record.model_copy(update={"checks": checks, "num_images": num_images, "not_on_test": not_on_test})


def _on_patches(reference: OnnxRunner, engine: TensorRtRunner, limits: PrecisionLimits) -> tuple[ParityCheck, ...]:
    """On images of coloured patches, the same each time: where an engine is built there need be no data."""
    card = reference.card
    patches = np.random.default_rng(0).random((NUM_IMAGES, 3, PATCHES, PATCHES), np.float32)
    place = np.arange(card.model.image_size) * PATCHES // card.model.image_size
    images = np.ascontiguousarray(patches[:, :, place][..., place])
    gap = tensor_gap(reference, engine, images, card.model.head, card.limits.confidence_floor)
    scores = check("largest score gap to the ONNX, on patches", gap.score, limits.max_score_gap)
    boxes = check("largest box gap to the ONNX, on patches, px", gap.box_px, limits.max_box_gap_px)
    return (scores,) if gap.box_px is None else (scores, boxes)
