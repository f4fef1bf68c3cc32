"""One page of a listing of S3 (ListObjectsV2): the request for it, and what its XML says."""

import xml.etree.ElementTree as ET
from collections.abc import Iterator
from urllib.parse import quote, unquote_plus

from nightowl.cloud.retry import Transient
from nightowl.cloud.storage import RemoteObject
from nightowl.errors import RemoteError


def query_of(prefix: str, token: str) -> str:
    """The query of the page that `token` leads to, or of the first: percent-encoded and sorted, as it is signed."""
    query = {"encoding-type": "url", "list-type": "2", "prefix": prefix} | ({"continuation-token": token} if token else {})
    return "&".join(f"{name}={quote(value, safe='-_.~')}" for name, value in sorted(query.items()))


def parse_page(body: bytes) -> ET.Element:
    """Raises Transient for what is no XML."""
    try:
        return ET.fromstring(body)
    except ET.ParseError as error:
        raise Transient(f"the listing is not XML ({error})") from error


def next_token(page: ET.Element) -> str:
    """What leads to the next page; empty after the last. Raises RemoteError when there is more and no way to it."""
    if page.findtext("{*}IsTruncated") != "true":
        return ""
    token = page.findtext("{*}NextContinuationToken")
    if not token:
        raise _no_s3("'NextContinuationToken'")
    return token


def objects_on(page: ET.Element, prefix: str) -> Iterator[RemoteObject]:
    """Its objects, by their keys without `prefix`. Raises RemoteError for an entry that lacks something."""
    encoded = page.findtext("{*}EncodingType") == "url"
    for row in page.iterfind("{*}Contents"):
        values = {child.tag.rpartition("}")[2]: child.text or "" for child in row}  # at a third of what three searches take
        try:
            key = unquote_plus(values["Key"]) if encoded else values["Key"]
            yield RemoteObject(key.removeprefix(prefix), int(values["Size"]), bare(values["ETag"]))
        except KeyError as error:
            raise _no_s3(str(error)) from None


def bare(etag: str) -> str:
    """An ETag without its quotes."""
    return etag.removeprefix("W/").strip('"')


def _no_s3(name: str) -> RemoteError:
    return RemoteError(f"the listing has an entry without {name}: the server does not speak S3 (ListObjectsV2)")
