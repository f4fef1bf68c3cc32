import pytest

from nightowl.training.compute import Compute
from nightowl.training.progress import Progress
from nightowl.training.recorded import training_record
from nightowl.training.state import State, digest


def state_of(progress: Progress) -> State:
    compute = Compute(precision="fp32", memory_format="contiguous").model_dump()
    return {"progress": progress.model_dump(mode="json"), "compute": compute, "resolved": {"optimizer": "SGD"}}


BEGUN = Progress(micro_batch=4, val_batch=4)


def test_the_share_of_waiting_is_of_all_steps_also_those_before_a_restart() -> None:
    before = BEGUN.took(waited=3.0, computed=1.0)
    again = Progress.model_validate(before.model_dump(mode="json")).took(waited=0.0, computed=8.0)
    assert training_record(state_of(again)).waiting_for_data == pytest.approx(3 / 12)


def test_a_training_without_a_step_has_no_share_of_waiting() -> None:
    assert training_record(state_of(BEGUN)).waiting_for_data is None


def test_time_is_no_part_of_what_a_training_came_to() -> None:
    quick, slow = (BEGUN.took(waited=seconds, computed=1.0) for seconds in (0.0, 5.0))
    assert digest(state_of(quick)) == digest(state_of(slow))
    assert digest(state_of(quick)) != digest(state_of(quick.stepped({"box_loss": 1.0})))
