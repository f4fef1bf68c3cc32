"""What the audit holds to be a fault of the data, and what it does about each kind.

`quarantine` leaves the box or the image out and goes on, `fail` stops before anything is trained, `allow` says it and no more.
A kind offers what makes sense for it: a box without area cannot be allowed, a drift cannot be quarantined.
"""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from nightowl.section import Fraction, Section

Policy = Literal["quarantine", "fail", "allow"]
Drop = Literal["quarantine", "fail"]
Say = Literal["allow", "fail"]


class AuditPolicies(Section):
    """The policy of each kind of finding; docs/audit.md says what the kinds are."""

    unreadable_image: Drop = "quarantine"
    unparsable_label: Drop = "quarantine"
    unknown_class: Drop = "fail"
    zero_area_box: Drop = "quarantine"
    inverted_box: Drop = "quarantine"
    out_of_frame_box: Drop = "quarantine"
    duplicate_box: Drop = "quarantine"
    golden_missing: Say = "fail"
    golden_duplicate: Drop = "quarantine"
    same_content_across_splits: Policy = "quarantine"
    near_duplicate_across_splits: Policy = "quarantine"
    alike_across_splits: Say = "allow"
    same_content: Policy = "allow"
    near_duplicate: Policy = "allow"
    label_without_image: Say = "allow"
    image_without_label: Policy = "allow"
    image_without_split: Say = "allow"
    split_overlap: Say = "allow"
    same_stem: Say = "allow"
    name_twins: Say = "allow"
    decomposed_name: Say = "allow"
    label_format: Say = "allow"
    unread_kind: Say = "allow"
    size_mismatch: Policy = "allow"
    lying_extension: Policy = "allow"
    exif_rotation: Policy = "allow"
    sixteen_bit_image: Policy = "allow"
    mixed_colour: Policy = "allow"
    cmyk_image: Policy = "allow"
    alpha_image: Policy = "allow"
    class_without_boxes: Say = "allow"
    class_imbalance: Say = "allow"
    no_background_images: Say = "allow"
    class_drift: Say = "allow"
    box_size_drift: Say = "allow"


class NearDuplicateParams(Section):
    """When two images count as one photograph: both must hold, and in a crowd of alike images a third (see docs/audit.md)."""

    hash_bits: Annotated[int, Field(ge=0, le=16)] = Field(8, description="of the 64 of the perceptual hash that may differ")
    max_difference: Annotated[float, Field(gt=0, le=0.5)] = Field(
        0.03, description="1 - correlation of the two as grey thumbnails of 32x32; above it they are different pictures"
    )


class AuditParams(Section):
    """Policies, and the thresholds beyond which something counts as a finding."""

    policies: AuditPolicies = AuditPolicies()
    fail_above: dict[str, Fraction] = Field(
        default_factory=dict, description="kind: fraction of the images; more images than that with it stop the night"
    )
    near_duplicates: NearDuplicateParams = NearDuplicateParams()
    max_class_ratio: Annotated[float, Field(ge=1)] = Field(100.0, description="boxes of the commonest class to the rarest")
    max_psi: Annotated[float, Field(gt=0)] = Field(0.25, description="population stability index against the champion's data")
    min_drift_boxes: Annotated[int, Field(ge=1)] = Field(100, description="with fewer boxes on a side, drift is not judged")

    @model_validator(mode="after")
    def _check(self) -> "AuditParams":
        known = AuditPolicies.model_fields
        unknown = sorted(set(self.fail_above) - set(known))
        if unknown:
            raise ValueError(f"fail_above: {', '.join(unknown)}: no such kind of finding; known: {', '.join(sorted(known))}")
        return self
