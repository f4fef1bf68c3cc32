"""AWS's price list, which moto lacks: full prices of a few kinds of machine, in rows as the service gives them."""

import json
from collections.abc import Mapping
from typing import Any

USD_PER_HOUR = {"g5.xlarge": 1.006, "g5.2xlarge": 1.212, "g4dn.xlarge": 0.526}
_LINUX = {"operatingSystem": "Linux", "tenancy": "Shared", "preInstalledSw": "NA", "capacitystatus": "Used"}


def get_products(region: str, params: Mapping[str, str]) -> dict[str, Any]:
    """The answer to GetProducts: the rows that match all filters. `params` holds each parameter as JSON."""
    filters = {each["Field"]: each["Value"] for each in json.loads(params.get("Filters", "[]"))}
    rows = [
        {
            "serviceCode": "AmazonEC2",
            "product": {"productFamily": "Compute Instance", "attributes": attributes},
            "terms": {
                "OnDemand": {"term": {"priceDimensions": {"hour": {"unit": "Hrs", "pricePerUnit": {"USD": f"{usd:.10f}"}}}}}
            },
        }
        for kind, usd in USD_PER_HOUR.items()
        for attributes in [{"instanceType": kind, "regionCode": region, **_LINUX}]
        if filters.items() <= attributes.items()
    ]
    return {"FormatVersion": "aws_v1", "PriceList": [json.dumps(row) for row in rows]}
