"""Objects in a bucket of S3 or of a server that speaks its language.

Credentials, region and endpoint (AWS_ENDPOINT_URL) are found by botocore in the environment or the usual profile; they
are never given, kept or shown here.
"""

import contextlib
import functools
import tempfile
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, TypeVar

from scalemani.errors import (
    ConfigError,
    CorruptChunkError,
    StoreError,
    UnreachableStoreError,
    installing,
    refuse_credentials,
)
from scalemani.store.leases import ConflictError, hold_lease
from scalemani.store.locks import RunLock
from scalemani.store.objects import DESCRIPTION_BYTES, SAFE_NAME, Committed, Objects, check_length, checked_key
from scalemani.store.retrying import GIVE_UP_SECONDS, retried

SCHEME = "s3://"
CONNECT_SECONDS, READ_SECONDS = 10, 60
CONNECTIONS = 32
MOST_ANSWERS = 3  # of one object that come damaged
# Beside every status from 500 on: what servers say when they want to be asked again.
PASSING_CODES = {"SlowDown", "Throttling", "ThrottlingException", "RequestTimeout", "TooManyRequests"}
GONE_CODES = {"NoSuchKey", "404", "NotFound"}
CONFLICT_STATUSES = {409, 412}
ANSWERED = TypeVar("ANSWERED")


@functools.cache
def client() -> Any:
    """Return this process's connection to the object store."""
    try:
        from botocore.config import Config
        from botocore.session import get_session
    except ImportError as error:
        raise ConfigError(f"s3:// needs botocore and s3fs: {installing('s3')}") from error
    config = Config(
        connect_timeout=CONNECT_SECONDS,
        read_timeout=READ_SECONDS,
        max_pool_connections=CONNECTIONS,
        retries={"total_max_attempts": 1},  # asked again by `retried`, which knows when to give up
        request_checksum_calculation="when_required",  # servers other than Amazon's refuse what they do not know
        response_checksum_validation="when_required",
    )
    session = get_session()
    return session.create_client("s3", region_name=session.get_config_variable("region") or "us-east-1", config=config)


def passing(error: Exception) -> bool:
    """Return whether it may help to ask again: no answer, throttling, and errors of the server."""
    from botocore import exceptions

    if isinstance(error, exceptions.ClientError):
        return status_of(error) >= 500 or error.response["Error"].get("Code") in PASSING_CODES
    lost = (exceptions.ConnectionError, exceptions.HTTPClientError, exceptions.ResponseStreamingError)
    return isinstance(error, (*lost, exceptions.IncompleteReadError, OSError)) and not isinstance(
        error, exceptions.SSLError
    )


def status_of(error: Any) -> int:
    """Return the HTTP status of a server's answer."""
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def asked(ask: Callable[[], ANSWERED], what: str, give_up_seconds: float = GIVE_UP_SECONDS) -> ANSWERED:
    """Return what the server answers, asked again while it may help; `what` says in words what was wanted.

    Raises
    ------
    StoreError
        Where the server refuses, or has not answered for so many seconds.
    """
    client()
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        return retried(ask, passing, give_up_seconds)
    except ClientError as error:
        code = error.response["Error"].get("Code", "no code")
        if passing(error):
            raise UnreachableStoreError(
                f"cannot {what}: the server said {code} for {give_up_seconds:.0f} s; the same command goes on"
            ) from error
        raise StoreError(
            f"cannot {what}: the server said {code}; check the bucket, and the credentials in the environment or "
            "the profile"
        ) from error
    except (BotoCoreError, OSError) as error:
        name = type(error).__name__
        if passing(error):
            raise UnreachableStoreError(
                f"cannot {what}: {name} for {give_up_seconds:.0f} s; the same command goes on once it answers"
            ) from error
        raise StoreError(f"cannot {what}: {name}; give credentials in the environment or the usual profile") from error


class BucketObjects(Objects):
    """Objects of a bucket whose keys start with a prefix; a put is seen whole or not at all."""

    def __init__(self, location: str) -> None:
        refuse_credentials(location)
        bucket, _, prefix = location.removeprefix(SCHEME).rstrip("/").partition("/")
        if not location.startswith(SCHEME) or not SAFE_NAME.fullmatch(bucket) or not prefix:
            raise ConfigError(f"a run in an object store must be at s3://bucket/name, got {location!r}")
        self.bucket, self.prefix = bucket, checked_key(prefix)
        self.root: str = f"{SCHEME}{bucket}/{prefix}"

    def below(self, path: str) -> "BucketObjects":
        """Return the objects whose keys start with `path`."""
        return BucketObjects(f"{self.root}/{checked_key(path)}")

    def get(self, key: str, most: int = DESCRIPTION_BYTES) -> bytes | None:
        """Return the content of `key`, or None where there is none; CorruptChunkError for more than so many bytes."""
        return self.fetch(key, most)[0]

    def fetch(self, key: str, most: int = DESCRIPTION_BYTES) -> tuple[bytes | None, dict[str, Any]]:
        """Return the content of `key` and what the server says of it, or None and nothing."""
        from botocore.exceptions import ClientError

        def ask() -> tuple[bytes, dict[str, Any]]:
            answer = client().get_object(**self._at(key))
            check_length(answer["ContentLength"], most, f"{self.root}/{key}")
            return answer["Body"].read(), answer

        try:
            return asked(ask, f"read {self.root}/{key}")
        except StoreError as error:
            cause = error.__cause__
            if isinstance(cause, ClientError) and cause.response["Error"].get("Code") in GONE_CODES:
                return None, {}
            raise

    def get_json(self, key: str, most: int = DESCRIPTION_BYTES) -> dict[str, Any] | None:
        """Return the description under `key`, or None; what comes damaged is asked for again, as on a bad way."""
        for _ in range(MOST_ANSWERS - 1):
            with contextlib.suppress(CorruptChunkError):
                return super().get_json(key, most)
        return super().get_json(key, most)

    def set(self, key: str, content: bytes) -> str:
        """Write `content` under `key`, replacing what was there in one step; return its ETag."""
        return self.put(key, content, {})

    def put(
        self, key: str, content: bytes, condition: Mapping[str, str], give_up_seconds: float = GIVE_UP_SECONDS
    ) -> str:
        """Write under a condition (IfNoneMatch, IfMatch) and return the ETag; ConflictError where it does not hold.

        Parameters
        ----------
        key : name below the prefix.
        content : what is written.
        condition : {"IfNoneMatch": "*"} where there must be none, {"IfMatch": etag} where it must be that one, or {}.
        give_up_seconds : how long a server that does not answer is asked again.

        Raises
        ------
        ConflictError
            Where the condition does not hold.
        StoreError
            Where the server refuses, or does not answer.
        """
        from botocore.exceptions import ClientError

        try:
            answer = asked(
                lambda: client().put_object(**self._at(key), Body=content, **condition),
                f"write {self.root}/{key}",
                give_up_seconds,
            )
        except StoreError as error:
            cause = error.__cause__
            if condition and isinstance(cause, ClientError) and status_of(cause) in CONFLICT_STATUSES:
                raise ConflictError from error
            raise
        return str(answer["ETag"])

    def take(self, key: str, other: Objects, committed: Committed) -> Committed | None:
        """Have the server copy the object of another prefix: nothing of it passes through this process."""
        from botocore.exceptions import ClientError

        if not isinstance(other, BucketObjects):
            return super().take(key, other, committed)

        def copy() -> str | None:
            source = other._at(key)
            there = client().head_object(**source)  # a condition of the copy itself is not kept by every server
            if (there["ContentLength"], there["ETag"]) != (committed[0], committed[2] or there["ETag"]):
                return None
            return str(client().copy_object(**self._at(key), CopySource=source)["CopyObjectResult"]["ETag"])

        try:
            tag = asked(copy, f"copy {other.root}/{key} to {self.root}/{key}")
        except StoreError as error:
            cause = error.__cause__
            if isinstance(cause, ClientError) and cause.response["Error"].get("Code") in GONE_CODES:
                return None
            raise
        return None if tag is None else (*committed[:2], tag)

    def delete(self, key: str) -> None:
        """Remove `key` if it is there."""
        asked(lambda: client().delete_object(**self._at(key)), f"delete {self.root}/{key}")

    def delete_below(self, prefix: str) -> None:
        """Remove every key that starts with `prefix` and a slash."""
        for page in self._pages(f"{self.prefix}/{checked_key(prefix)}/"):
            for entry in page.get("Contents", ()):
                self.delete(entry["Key"].removeprefix(f"{self.prefix}/"))

    def names(self, prefix: str = "") -> list[str]:
        """Return the names directly below `prefix`, sorted."""
        folder = f"{self.prefix}/{checked_key(prefix)}/" if prefix else f"{self.prefix}/"
        names: AbstractSet[str] = set()
        for page in self._pages(folder, Delimiter="/"):
            names |= {entry["Key"].removeprefix(folder) for entry in page.get("Contents", ())}
            names |= {entry["Prefix"].removeprefix(folder).rstrip("/") for entry in page.get("CommonPrefixes", ())}
        return sorted(names - {""})

    def damaged(self, committed: Mapping[str, Committed], threads: int) -> AbstractSet[str]:
        """Compare lengths and ETags, which the server lists a thousand at a time; reading checks the content."""
        folder = f"{self.prefix}/"
        there = {
            entry["Key"].removeprefix(folder): (entry["Size"], entry["ETag"])
            for page in self._pages(folder)
            for entry in page.get("Contents", ())
        }
        return {
            key
            for key, (length, _, tag) in committed.items()
            if there.get(key, (-1, ""))[0] != length or (tag and there[key][1] != tag)
        }

    def prepare(self) -> None:
        """Make sure that the bucket is there and answers to these credentials."""
        self.names()

    def free_bytes(self) -> int | None:
        """Return None: object stores report no free space."""
        return None

    @property
    def scratch_folder(self) -> Path:
        """Where temporary files of this machine go."""
        return Path(tempfile.gettempdir())

    def sweep(self) -> None:
        """Do nothing: a put that was cut short leaves no object."""

    def lock(self) -> AbstractContextManager[RunLock]:
        """Hold the run by a lease, or raise StoreLockedError."""
        return hold_lease(self)

    def _at(self, key: str) -> dict[str, str]:
        return {"Bucket": self.bucket, "Key": f"{self.prefix}/{checked_key(key)}"}

    def _pages(self, prefix: str, **more: str) -> Iterator[dict[str, Any]]:
        following: dict[str, str] = {}
        while True:
            query = {"Bucket": self.bucket, "Prefix": prefix, **more, **following}
            page = asked(functools.partial(client().list_objects_v2, **query), f"list {self.root}")
            yield page
            if not page.get("IsTruncated"):
                return
            following = {"ContinuationToken": page["NextContinuationToken"]}
