"""Who looks on at the training of a detector, by the settings: the display, TensorBoard, MLflow, and the monitor of its GPU."""

from collections.abc import Iterator
from contextlib import contextmanager

from nightowl.files import write_record
from nightowl.registry.store import open_registry
from nightowl.settings import home_of
from nightowl.stages.workspace import Workspace
from nightowl.training.hardware import HardwareMonitor, gpu_of
from nightowl.training.onlookers import Onlookers
from nightowl.training.scalars import Behind, Sink, Sinks, TensorBoardSink
from nightowl.training.steps_taken import StepsTaken
from nightowl.training.watch import Watcher


@contextmanager
def looked_on(shown: Watcher, workspace: Workspace, key: str, device: str) -> Iterator[Watcher]:
    """`shown` with all others, for the duration of the block. What the GPU did is in `workspace.hardware` afterwards."""
    settings, detector = workspace.settings, workspace.detector
    folder = settings.tensorboard or home_of(settings) / "tensorboard"
    sinks: list[Sink] = [Behind(lambda: TensorBoardSink(folder / detector / key[:12]))]
    if settings.mlflow_live:
        sinks.append(Behind(lambda: open_registry(settings).scalars_of(detector, key)))
    figures = Sinks(sinks, shown.note)
    with HardwareMonitor(gpu_of(device), shown.note).watching() as monitor:
        watcher = StepsTaken(Onlookers(shown, figures, monitor), workspace.steps_taken)
        try:
            yield watcher
        finally:
            watcher.close()
            figures.close()
            summary = monitor.summary()
            if summary is not None:
                write_record(workspace.hardware, summary)
