"""Launch templates: what a machine of the run is, once, for however many of them the group starts."""

import base64
from typing import NamedTuple

from nightowl.cloud.ec2_errors import AwsRefused
from nightowl.cloud.ec2_session import Aws
from nightowl.cloud.ec2_tags import DEADLINE, Tags, filters, from_aws, to_aws

USER_DATA_BYTES = 16 * 1024  # the limit of AWS, before base64
_WITH_A_MACHINE = ("volume", "network-interface")


class Template(NamedTuple):
    """A template that is there."""

    name: str
    tags: dict[str, str]


class TemplateSpec(NamedTuple):
    """A template to be had. `image` is an ami-…, or `resolve:ssm:NAME` for the SSM parameter that holds one."""

    name: str
    image: str
    security_group: str
    instance_profile: str
    user_data: str
    volume_gb: int
    device: str
    tags: Tags


def create_template(aws: Aws, spec: TemplateSpec, token: str) -> None:
    """Have it there. `token` makes a repetition of the request the same request; one that is there already is fine.

    The machine ends when it shuts itself down, answers IMDSv2 only, and its volume goes with it.
    """
    tags = to_aws(spec.tags)
    of_machines = to_aws({key: value for key, value in spec.tags.items() if key != DEADLINE})  # that one the group gives
    data = {
        "ImageId": spec.image,
        "IamInstanceProfile": {"Name": spec.instance_profile},
        "SecurityGroupIds": [spec.security_group],
        "UserData": base64.b64encode(spec.user_data.encode()).decode(),
        "InstanceInitiatedShutdownBehavior": "terminate",
        "MetadataOptions": {
            "HttpTokens": "required",
            "HttpEndpoint": "enabled",
            "HttpPutResponseHopLimit": 2,  # a container asks from one hop further
            "InstanceMetadataTags": "enabled",
        },
        "BlockDeviceMappings": [
            {
                "DeviceName": spec.device,
                "Ebs": {"VolumeSize": spec.volume_gb, "VolumeType": "gp3", "Encrypted": True, "DeleteOnTermination": True},
            }
        ],
        "TagSpecifications": [
            {"ResourceType": "instance", "Tags": of_machines},
            *({"ResourceType": kind, "Tags": tags} for kind in _WITH_A_MACHINE),
        ],
    }
    try:
        aws.call(
            "ec2",
            "CreateLaunchTemplate",
            LaunchTemplateName=spec.name,
            ClientToken=token,
            LaunchTemplateData=data,
            TagSpecifications=[{"ResourceType": "launch-template", "Tags": tags}],
        )
    except AwsRefused as refused:
        if "AlreadyExists" not in refused.code:
            raise


def templates_with(aws: Aws, tags: Tags) -> list[Template]:
    """Every template that carries `tags`."""
    rows = aws.pages("ec2", "DescribeLaunchTemplates", "LaunchTemplates", Filters=filters(tags))
    return [Template(row["LaunchTemplateName"], from_aws(row.get("Tags"))) for row in rows]


def delete_template(aws: Aws, name: str) -> None:
    """Have no such template."""
    try:
        aws.call("ec2", "DeleteLaunchTemplate", LaunchTemplateName=name)
    except AwsRefused as refused:
        if "NotFound" not in refused.code:
            raise
