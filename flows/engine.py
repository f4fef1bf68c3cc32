"""Build the TensorRT engine of a version where the GPU is: on a worker of the pool `gpu`, one for each kind of GPU."""

from prefect import flow

from tasks.engines import build_engine


@flow(name="engine", flow_run_name="{detector} {version}")
def engine(detector: str, version: str = "champion") -> str:
    """Build the engine of `version` of `detector` for the GPU of this worker. Returns the kind of machine that it is for."""
    return build_engine(detector, version)
