import pytest
import torch

from nightowl.params import TrainParams
from nightowl.training.step import Taken
from tests.training.live_bytes import LiveBytes
from tests.training.standins import a_batch, a_plan, a_training


@pytest.mark.parametrize("name", ["yolo11n.yaml", "yolo26n.yaml"])
def test_two_epochs_with_recomputed_activations_end_as_without_bit_for_bit(name: str) -> None:
    ended = []
    for recompute in (False, True):
        training = a_training(a_plan(num_images=6, base=name, activation_checkpointing=recompute))
        training.train()
        ended.append(training.learner.model.state_dict())
    for key, value in ended[0].items():
        assert torch.equal(ended[1][key], value), key


def test_it_takes_less_memory() -> None:
    peaks = []
    for recompute in (False, True):
        training = a_training(a_plan(width := 8, activation_checkpointing=recompute))
        with LiveBytes() as held:
            assert isinstance(training.stepper.take(a_batch(list(range(width))), 0, 0, width), Taken)
        peaks.append(held.peak)
    assert peaks[1] < 0.8 * peaks[0], peaks
    assert TrainParams().activation_checkpointing is False
