"""What an account and a region have, before anything is created there: who asks, images, kinds of machine, rights."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from nightowl.cloud.ec2_errors import AwsRefused
from nightowl.cloud.ec2_session import Aws

_KINDS = {"aws:TagKeys": "stringList"}  # of condition keys; all others of ours are single strings


class Image(NamedTuple):
    """A machine image, and where its root volume is."""

    id: str
    root_device: str


class Subnet(NamedTuple):
    id: str
    zone: str
    vpc: str


class Right(NamedTuple):
    """Whether someone may do `action`."""

    action: str
    allowed: bool


def caller(aws: Aws) -> str:
    """The ARN of whoever the credentials belong to."""
    return str(aws.call("sts", "GetCallerIdentity")["Arn"])


def role_arn(caller_arn: str) -> str:
    """Whose policies count for a caller: of a session, its role. Roles under a path have another ARN: those are not found."""
    head, _, rest = caller_arn.partition(":assumed-role/")
    return f"{head.replace(':sts:', ':iam:')}:role/{rest.split('/')[0]}" if rest else caller_arn


def find_image(aws: Aws, image: str) -> Image:
    """The image that the id, or the SSM parameter of that name, stands for. Raises AwsRefused when there is none."""
    image_id = image
    if image.startswith("/"):
        try:
            image_id = aws.call("ssm", "GetParameter", Name=image)["Parameter"]["Value"]
        except AwsRefused as refused:
            if refused.code != "ParameterNotFound":
                raise
            raise AwsRefused(f"machines.image: there is no SSM parameter {image} in {aws.region}", refused.code) from refused
    rows = aws.call("ec2", "DescribeImages", ImageIds=[image_id]).get("Images", [])
    if not rows:
        raise AwsRefused(f"machines.image: there is no machine image {image_id} in {aws.region}", "InvalidAMIID.NotFound")
    return Image(image_id, rows[0].get("RootDeviceName") or "/dev/sda1")


def find_subnets(aws: Aws, ids: Sequence[str]) -> list[Subnet]:
    rows = aws.call("ec2", "DescribeSubnets", SubnetIds=list(ids))["Subnets"]
    return [Subnet(row["SubnetId"], row["AvailabilityZone"], row["VpcId"]) for row in rows]


def group_admits_only_itself(aws: Aws, security_group: str) -> tuple[str, bool]:
    """The VPC of the security group, and whether every rule for what comes in names the group itself and nothing else."""
    row = aws.call("ec2", "DescribeSecurityGroups", GroupIds=[security_group])["SecurityGroups"][0]
    closed = all(
        not rule.get("IpRanges")
        and not rule.get("Ipv6Ranges")
        and not rule.get("PrefixListIds")
        and all(pair["GroupId"] == security_group for pair in rule.get("UserIdGroupPairs", []))
        for rule in row.get("IpPermissions", [])
    )
    return row["VpcId"], closed


def profile_role(aws: Aws, profile: str) -> str | None:
    """The ARN of the role in the instance profile. None when there is no such profile, or no role in it."""
    try:
        roles = aws.call("iam", "GetInstanceProfile", InstanceProfileName=profile)["InstanceProfile"]["Roles"]
    except AwsRefused as refused:
        if refused.code != "NoSuchEntity":
            raise
        return None
    return roles[0]["Arn"] if roles else None


def offered(aws: Aws, types: Sequence[str], zones: Sequence[str]) -> set[tuple[str, str]]:
    """The (type, zone) that AWS has at all."""
    wanted = [{"Name": "location", "Values": list(zones)}, {"Name": "instance-type", "Values": list(types)}]
    rows = aws.pages(
        "ec2", "DescribeInstanceTypeOfferings", "InstanceTypeOfferings", LocationType="availability-zone", Filters=wanted
    )
    return {(row["InstanceType"], row["Location"]) for row in rows}


def vcpus(aws: Aws, types: Sequence[str]) -> Mapping[str, int]:
    rows = aws.pages("ec2", "DescribeInstanceTypes", "InstanceTypes", InstanceTypes=list(types))
    return {row["InstanceType"]: row["VCpuInfo"]["DefaultVCpus"] for row in rows}


def placement_score(aws: Aws, types: Sequence[str], nodes: int) -> int | None:
    """How likely AWS finds it to have so many spot machines of `types` in the region, 1 to 10; None when it does not say."""
    rows = aws.call(
        "ec2",
        "GetSpotPlacementScores",
        InstanceTypes=list(types),
        TargetCapacity=nodes,
        TargetCapacityUnitType="units",
        RegionNames=[aws.region],
    )
    scores = [row["Score"] for row in rows.get("SpotPlacementScores", [])]
    return max(scores) if scores else None


def bucket_region(aws: Aws, bucket: str) -> str:
    """Where the bucket is. Raises AwsRefused when there is none, or it is someone else's."""
    return str(aws.call("s3", "GetBucketLocation", Bucket=bucket).get("LocationConstraint") or "us-east-1")


def rights(
    aws: Aws, arn: str, actions: Sequence[str], resources: Sequence[str], context: Mapping[str, Sequence[str]]
) -> list[Right]:
    """What the policies of `arn` say to `actions` on `resources`, with these values of condition keys."""
    rows = aws.pages(
        "iam",
        "SimulatePrincipalPolicy",
        "EvaluationResults",
        PolicySourceArn=arn,
        ActionNames=list(actions),
        ResourceArns=list(resources),
        ContextEntries=[
            {"ContextKeyName": key, "ContextKeyValues": list(values), "ContextKeyType": _KINDS.get(key, "string")}
            for key, values in context.items()
        ],
    )
    return [Right(row["EvalActionName"], row["EvalDecision"] == "allowed") for row in rows]
