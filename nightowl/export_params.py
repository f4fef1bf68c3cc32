"""Params of the export: in which formats and precision a model ships, and how closely it must follow what was trained."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from nightowl.section import Fraction, Section

Precision = Literal["fp32", "fp16", "int8"]
Format = Literal["onnx", "openvino", "tensorrt"]
Pixels = Annotated[float, Field(gt=0)]


class PrecisionLimits(Section):
    """The largest differences to the trained model that may ship; null: measured and said, not judged."""

    max_map50_95_gap: Fraction = Field(description="mAP50-95 on test, absolute")
    max_class_ap50_95_gap: Fraction = Field(description="AP50-95 of any class on test, absolute")
    max_score_gap: Fraction | None = Field(description="any class score of the network's output")
    max_box_gap_px: Pixels | None = Field(description="any box edge of the network's output, input pixels")
    max_path_score_gap: Fraction | None = Field(description="score of any detection, from image file to box")
    max_path_box_gap_px: Pixels | None = Field(description="any edge of its box, pixels of the image")
    max_unmatched: Fraction = Field(description="share of the detections that the other has not")
    max_miss_rate_gap: Fraction = Field(description="miss rate on test at the stored thresholds, absolute")
    max_fp_per_image_gap: Annotated[float, Field(ge=0)] = Field(description="false positives an image, the same")


FP32 = PrecisionLimits(
    max_map50_95_gap=0.001,
    max_class_ap50_95_gap=0.005,
    max_score_gap=0.001,
    max_box_gap_px=0.1,
    max_path_score_gap=0.001,
    max_path_box_gap_px=0.1,
    max_unmatched=0.0,
    max_miss_rate_gap=0.002,
    max_fp_per_image_gap=0.02,
)
# In FP16 and INT8 two boxes that overlap by just the limit of NMS may both stay, or not: the other side's closest box is then
# another one, and the largest difference says nothing. What is lost, AP and the operating point are judged.
FP16 = PrecisionLimits(
    max_map50_95_gap=0.002,
    max_class_ap50_95_gap=0.01,
    max_score_gap=0.05,
    max_box_gap_px=None,
    max_path_score_gap=None,
    max_path_box_gap_px=None,
    max_unmatched=0.01,
    max_miss_rate_gap=0.005,
    max_fp_per_image_gap=0.05,
)
INT8 = PrecisionLimits(
    max_map50_95_gap=0.005,
    max_class_ap50_95_gap=0.02,
    max_score_gap=None,
    max_box_gap_px=None,
    max_path_score_gap=None,
    max_path_box_gap_px=None,
    max_unmatched=0.05,
    max_miss_rate_gap=0.02,
    max_fp_per_image_gap=0.2,
)


class LimitsParams(Section):
    """The limits of each precision."""

    fp32: PrecisionLimits = FP32
    fp16: PrecisionLimits = FP16
    int8: PrecisionLimits = INT8


class TensorRtParams(Section):
    """How an engine is built from the ONNX that ships; the precision is that of the ONNX."""

    workspace_mib: Annotated[int, Field(ge=1, le=1 << 20)] = Field(1024, description="GPU memory that a build may try out, MiB")
    min_batch: Annotated[int, Field(ge=1, le=1024)] = 1
    best_batch: Annotated[int, Field(ge=1, le=1024)] = Field(1, description="the batch size that it is made fastest for")
    max_batch: Annotated[int, Field(ge=1, le=1024)] = 8
    optimization_level: Annotated[int, Field(ge=0, le=5)] = Field(3, description="higher takes longer to build")
    timing_cache: bool = Field(True, description="begin from what earlier builds on such a GPU learnt of speed")
    tf32: bool = Field(False, description="may float32 be rounded to 10 bits in products? Faster, and not the model measured")
    hardware_compatibility: Literal["none", "ampere_plus", "same_compute_capability"] = Field(
        "none", description="other GPUs that it is to run on; slower"
    )
    version_compatible: bool = Field(False, description="is it to run on later TensorRT of the same major version?")

    @model_validator(mode="after")
    def _check(self) -> "TensorRtParams":
        if not self.min_batch <= self.best_batch <= self.max_batch:
            raise ValueError("min_batch <= best_batch <= max_batch must hold")
        return self


class ExportParams(Section):
    """The artefacts that ship, each in the first of `precisions` in which it keeps all its limits."""

    opset: Annotated[int, Field(ge=13, le=21)] = 17
    formats: tuple[Format, ...] = Field(
        ("onnx",), description="what ships; openvino is made and checked beside the ONNX, tensorrt is built where a GPU is"
    )
    required_formats: tuple[Literal["openvino"], ...] = Field(
        (), description="of formats: without it the version is refused; another that fails is left out. onnx is always required"
    )
    threads: Annotated[int, Field(ge=1, le=1024)] = Field(1, description="threads that each artefact is timed with")
    tensorrt: TensorRtParams = TensorRtParams()
    precisions: Annotated[tuple[Precision, ...], Field(min_length=1)] = Field(
        ("fp32",), description="in order of preference, e.g. [int8, fp16, fp32]"
    )
    fall_back_to_fp32: bool = Field(
        True, description="after the precisions named; false: one of those named, or the version is refused"
    )
    calibration_images: Annotated[int, Field(ge=1, le=100_000)] = Field(500, description="of train, for int8; or all there are")
    calibration_percent: Annotated[float, Field(ge=90, le=100)] = Field(
        99.99, description="of the values of each tensor on those images, by magnitude, that int8 does not clip; 100: none is"
    )
    nms_in_graph: bool = Field(False, description="the file thins overlapping boxes itself and says (B, max_detections, 6)")
    limits: LimitsParams = LimitsParams()

    @model_validator(mode="after")
    def _check(self) -> "ExportParams":
        if len(set(self.precisions)) < len(self.precisions):
            raise ValueError("precisions names one twice")
        if "onnx" not in self.formats or len(set(self.formats)) < len(self.formats):
            raise ValueError("formats must name onnx, which the others are made from, and none more than once")
        if not set(self.required_formats) <= set(self.formats):
            raise ValueError("required_formats must all be in formats")
        return self

    def order(self) -> tuple[Precision, ...]:
        """The precisions that are tried, until one passes."""
        alone = "fp32" in self.precisions or not self.fall_back_to_fp32
        return self.precisions if alone else (*self.precisions, "fp32")

    def limits_of(self, precision: Precision) -> PrecisionLimits:
        limits: PrecisionLimits = getattr(self.limits, precision)
        return limits
