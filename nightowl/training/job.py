"""One rank's part in a training: its pieces put together from what is pinned and prepared, and the loop run over them."""

from contextlib import ExitStack
from dataclasses import dataclass

from nightowl.checkpoint.plan import Cadence
from nightowl.checkpoint.run import Run
from nightowl.checkpoint.saver import Saver
from nightowl.data.cache.packed import PackedImages
from nightowl.data.labels import labels_of
from nightowl.data.loader import TrainingLoader
from nightowl.data.manifest import Manifest
from nightowl.errors import CheckpointError
from nightowl.evaluation.truth import truth_of
from nightowl.params import Params
from nightowl.settings import Settings
from nightowl.training.architecture import architecture
from nightowl.training.base import BaseWeights
from nightowl.training.compute import choose_compute, has_fast_bf16
from nightowl.training.group import Group
from nightowl.training.loop import Training
from nightowl.training.plan import Plan
from nightowl.training.state import State, compute_of
from nightowl.training.stopping import SaveRequest, StopSource
from nightowl.training.val_images import PackedVal
from nightowl.training.validation import Validator, views_of
from nightowl.training.watch import Watcher
from nightowl.training.weights import base_file
from nightowl.training.yolo import Pieces, build, head_of


@dataclass(frozen=True)
class Job:
    """What is trained on what, with the images prepared; the same on every rank, but for where they lie.

    `views` is the data set as it is looked at, in tiles for instance, and what `train_images` and `val_images` hold.
    """

    params: Params
    settings: Settings
    dataset: Manifest
    views: Manifest
    base: BaseWeights
    train_images: PackedImages
    val_images: PackedImages


def train_on(job: Job, device: str, group: Group, run: Run | None, watcher: Watcher, stop: StopSource) -> None:
    """Train to the end and have the last state committed. `run`: where checkpoints lie, on rank 0 alone.

    Raises:
        Preempted, StageFailed, WeightsError, ParamsError: as `Training.train` and `build`.
    """
    found = _found(group, run)
    plan = _plan(job, device, group, found)
    pieces = build(plan)
    with ExitStack() as open_until_end:
        saver = None
        if run is not None:
            saver = open_until_end.enter_context(Saver(run, Cadence(job.settings.checkpoint_every_seconds), watcher.note))
        loader = open_until_end.enter_context(_loader(job, plan, group))
        training = Training(
            plan=plan,
            pieces=pieces,
            loader=loader,
            validator=_validator(job, plan, pieces, group),
            group=group,
            stop=stop,
            watcher=watcher,
            store=saver,
            found=found,
            request=SaveRequest(job.settings.checkpoint_request),
        )
        training.train()
        if saver:
            saver.flush()


def _found(group: Group, run: Run | None) -> State | None:
    """The newest state, read by rank 0."""
    newest = run.newest() if run is not None else None
    found = group.share(newest.state if newest else None)
    if found is not None and not isinstance(found, dict):
        raise CheckpointError(f"expected a state, found {type(found).__name__}")
    return found


def _plan(job: Job, device: str, group: Group, found: State | None) -> Plan:
    train, base = job.params.train, job.base
    num_images = len(job.train_images)
    return Plan(
        params=train,
        image_size=job.params.prepare.image_size,
        classes=job.dataset.classes,
        num_images=num_images,
        num_steps=-(-num_images // train.global_batch),
        architecture=architecture(base.name) if base.kind == "yaml" else None,
        base=base_file(base, job.settings),
        device=device,
        compute=compute_of(found) if found else choose_compute(train, device, has_fast_bf16(device)),
        world_size=group.world_size,
        micro_batch=-(-min(train.global_batch, num_images) // group.world_size),
    )


def _loader(job: Job, plan: Plan, group: Group) -> TrainingLoader:
    return TrainingLoader(
        job.train_images,
        labels_of(job.views.of("train")),
        job.params.prepare.image_size,
        job.params.train,
        num_workers=job.settings.num_workers,
        rank=group.rank,
        world_size=group.world_size,
        colour_later=plan.compute.colours_on_device,
    )


def _validator(job: Job, plan: Plan, pieces: Pieces, group: Group) -> Validator:
    val = job.dataset.of("val")
    return Validator(
        images=PackedVal(job.val_images, plan.image_size),
        views=views_of(val, job.views.of("val")),
        truth=truth_of(job.dataset.classes, val),
        image_size=plan.image_size,
        head=head_of(pieces.learner.model),
        device=plan.device,
        group=group,
        tiling=job.params.prepare.tiling,
    )
