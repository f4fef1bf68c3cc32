"""Small objects of S3 by obstore: requests, signatures and connections in compiled code, a hundred in flight in one thread.

One attempt an object, handed over only when its MD5 agrees. Whatever else comes (refusals, damage, an ETag that is no MD5) is
None: `S3Storage.download` asks again by itself, and is the one that tells what is wrong, waits and tries again.
"""

from datetime import UTC, datetime, timedelta
from hashlib import md5
from typing import TYPE_CHECKING, Any

from obstore.exceptions import BaseError
from obstore.store import S3Store

from nightowl.cloud.s3_access import Bucket
from nightowl.cloud.storage import Wanted
from nightowl.errors import RemoteError

if TYPE_CHECKING:
    from obstore.store import ClientConfig

SMALL_BYTES = 1 << 20
_ASK_AGAIN = timedelta(minutes=2)
_MISSES = 100


class QuickReader:
    """Reads keys of one bucket. It leaves off for good when most attempts were for nothing, as under KMS, whose ETags lie."""

    def __init__(self, bucket: Bucket, options: "ClientConfig") -> None:
        """Raises RemoteError when the certificates are none."""
        self._bucket, name = bucket, bucket.place.bucket
        before_keys = bucket.path.removesuffix("/" if bucket.in_name else f"/{name}/")
        try:
            self._store = S3Store(
                name,
                endpoint=bucket.endpoint + before_keys,
                region=bucket.region,
                virtual_hosted_style_request=bucket.in_name,
                credential_provider=self._keys,
                client_options=options,
                retry_config={"max_retries": 0},
            )
        except BaseError as error:
            reason = " ".join(str(error).split())[:200]
            raise RemoteError(f"{bucket.place.url}: no connection can be made to {bucket.endpoint}: {reason}") from error
        self._hits = self._misses = 0

    async def read(self, key: str, wanted: Wanted) -> memoryview | None:
        """The content of `key`, which is what was wanted; or None."""
        if not wanted.md5 or (wanted.num_bytes or 0) > SMALL_BYTES or self._misses > _MISSES + self._hits:
            return None
        try:
            answer = await self._store.get_async(key)
            if answer.meta["size"] > SMALL_BYTES:
                return None
            body = memoryview(await answer.bytes_async())
        except (BaseError, RemoteError, OSError):
            self._misses += 1
            return None
        fits = wanted.num_bytes in (None, len(body)) and md5(body, usedforsecurity=False).hexdigest() == wanted.md5
        self._hits += fits
        self._misses += not fits
        return body if fits else None

    def _keys(self) -> Any:
        """botocore renews what is temporary; it is asked again every two minutes."""
        access_key, secret_key, token = self._bucket.keys()
        return {
            "access_key_id": access_key,
            "secret_access_key": secret_key,
            "token": token,
            "expires_at": datetime.now(UTC) + _ASK_AGAIN,
        }
