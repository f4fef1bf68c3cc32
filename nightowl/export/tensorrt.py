"""Every call of TensorRT, and nothing else: to build an engine from an ONNX, and to run one. Written to the 11.x API, and
right for 10.x.

Networks are strongly typed, which 11.x always is: the precision is that of the ONNX, and TensorRT only compiles it. TensorRT is
no dependency of nightowl; it is imported where it is used.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from nightowl.errors import StageFailed, UserError, WeightsError
from nightowl.export_params import TensorRtParams

_LEVELS = {"none": "NONE", "ampere_plus": "AMPERE_PLUS", "same_compute_capability": "SAME_COMPUTE_CAPABILITY"}


class Built(NamedTuple):
    """A serialised engine, and what was learnt of the speed of its parts, for the next build on the same kind of GPU."""

    plan: bytes
    timing_cache: bytes


def version() -> str:
    """The version of TensorRT that is installed. Raises UserError when none is."""
    return str(_tensorrt().__version__)


def build(onnx: bytes, options: TensorRtParams, timing_cache: bytes) -> Built:
    """Compile the ONNX model for the GPU of this machine; an empty `timing_cache` begins a new one.

    Raises:
        StageFailed: when TensorRT cannot parse or compile it, in its own words where it has any.
    """
    trt = _tensorrt()
    log = trt.Logger(trt.Logger.WARNING)
    builder = trt.Builder(log)
    network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED))
    parser = trt.OnnxParser(network, log)
    if not parser.parse(onnx):
        told = "; ".join(str(parser.get_error(number)) for number in range(parser.num_errors))
        raise StageFailed(f"TensorRT {trt.__version__} cannot read the ONNX: {told}")
    config = builder.create_builder_config()
    _configure(trt, config, options)
    cache = config.create_timing_cache(timing_cache)
    if not config.set_timing_cache(cache, False):  # of another GPU or version: begin anew
        config.set_timing_cache(config.create_timing_cache(b""), False)
    config.add_optimization_profile(_profile(builder, network.get_input(0), options))
    plan = builder.build_serialized_network(network, config)
    if plan is None:
        raise StageFailed(f"TensorRT {trt.__version__} could not build an engine; its log on this machine says why")
    return Built(bytes(plan), bytes(config.get_timing_cache().serialize()))


def _configure(trt: Any, config: Any, options: TensorRtParams) -> None:
    config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, options.workspace_mib << 20)
    config.builder_optimization_level = options.optimization_level
    config.hardware_compatibility_level = getattr(trt.HardwareCompatibilityLevel, _LEVELS[options.hardware_compatibility])
    if options.version_compatible:
        config.set_flag(trt.BuilderFlag.VERSION_COMPATIBLE)
    if not options.tf32:
        config.clear_flag(trt.BuilderFlag.TF32)


def _profile(builder: Any, images: Any, options: TensorRtParams) -> Any:
    """The batch sizes that the engine takes, and the one that it is made best for."""
    _, *rest = images.shape
    profile = builder.create_optimization_profile()
    sizes = (options.min_batch, options.best_batch, options.max_batch)
    profile.set_shape(images.name, *((size, *rest) for size in sizes))
    return profile


class Engine:
    """An engine on the GPU of this machine, one context. Addresses are those of the device, of contiguous float32 arrays."""

    def __init__(self, plan: bytes, host_code: bool, where: str) -> None:
        """`host_code`: a version-compatible engine brings a runtime of its own, which has to be allowed to run.

        Raises:
            WeightsError: when TensorRT refuses it.
        """
        trt = _tensorrt()
        self._log = trt.Logger(trt.Logger.WARNING)
        self._runtime = trt.Runtime(self._log)
        self._runtime.engine_host_code_allowed = host_code
        self._engine = self._runtime.deserialize_cuda_engine(plan)
        self._context: Any = self._engine.create_execution_context() if self._engine is not None else None
        if self._context is None:
            raise WeightsError(f"{where}: TensorRT {trt.__version__} cannot load it; build it again: nightowl engine build")
        names = [self._engine.get_tensor_name(number) for number in range(self._engine.num_io_tensors)]
        inputs = [name for name in names if self._engine.get_tensor_mode(name) == trt.TensorIOMode.INPUT]
        self._input, self._output = inputs[0], next(name for name in names if name not in inputs)
        self.min_batch, self.max_batch = (self._engine.get_tensor_profile_shape(self._input, 0)[place][0] for place in (0, 2))

    def output_shape(self, input_shape: Sequence[int]) -> tuple[int, ...]:
        """The output's shape for an input (B, 3, S, S) that comes next. Raises WeightsError for one that it does not take."""
        if not self._context.set_input_shape(self._input, tuple(input_shape)):
            raise WeightsError(
                f"the engine takes {self.min_batch} to {self.max_batch} images of its own size, got {input_shape}"
            )
        return tuple(self._context.get_tensor_shape(self._output))

    def run(self, input_address: int, output_address: int, stream: int) -> None:
        """Begin the work on a CUDA stream. Raises StageFailed when TensorRT does not take it."""
        self._context.set_tensor_address(self._input, input_address)
        self._context.set_tensor_address(self._output, output_address)
        if not self._context.execute_async_v3(stream):
            raise StageFailed("TensorRT did not run the engine; its log on this machine says why")


def _tensorrt() -> Any:
    try:
        import tensorrt
    except ImportError as error:
        raise UserError("TensorRT is not installed here: pip install tensorrt, on a machine with an NVIDIA GPU") from error
    return tensorrt
