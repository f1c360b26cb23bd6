"""Objects in a bucket of S3 or of a server that speaks its language, of Google Cloud Storage, and of Azure.

Credentials, region and endpoint (AWS_ENDPOINT_URL) come from the environment, by obstore, and where boto3 is
installed in the usual profile; they are never passed, stored or shown here. obstore retries with exponential backoff
and jitter.
"""

import contextlib
import datetime
import functools
import json
import os
import re
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote

from scalemani.errors import (
    ConfigError,
    CorruptChunkError,
    StoreError,
    UnreachableStoreError,
    installing,
    refuse_credentials,
    without_secrets,
)
from scalemani.store.locks import LOCK, RunLock, already_locked, ended, owner
from scalemani.store.objects import (
    DESCRIPTION_BYTES,
    SAFE_NAME,
    Committed,
    Objects,
    check_length,
    checked_key,
    is_committed,
)

SCHEMES = ("s3://", "gs://", "az://")
CLIENT = {"allow_http": True, "connect_timeout": "10s", "read_timeout": "60s", "timeout": "1h"}
MOST_ANSWERS = 3  # of one object that come damaged
# What obstore says of answers that it cannot read, and of those that end before their end; it asks for them once.
DAMAGED_ANSWER = re.compile(
    r"invalid list response|response body|metadata from headers|[Ii]nvalid content length|ContentRange"
)
TRANSIENT_STATUSES = {408, 429}  # and every one from 500 on
# Of servers that give machines in a cloud their credentials; probed once with PROBE, before retries begin.
METADATA_SERVER = re.compile(r"//(169\.254\.|metadata\.google)")
PROBE = {"connect_timeout": "2s", "timeout": "10s"}
CREDENTIALS = {"AWS_ACCESS_KEY_ID", "GOOGLE_APPLICATION_CREDENTIALS", "AZURE_STORAGE_ACCOUNT_KEY"}
ENVIRONMENT = {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION"}
Answer = TypeVar("Answer")
Version = dict[str, str]  # of an object: its ETag, and where the server has one its version


class Timeouts(NamedTuple):
    """Seconds of requests to a bucket, and of the lease of a run there."""

    retry: float = 90.0  # of a request: a run of hours outlives servers that throttle, fail and restart
    first_wait: float = 0.1  # before a request is sent again, each time twice as long
    longest_wait: float = 5.0
    renewal: float = 5.0  # between two of a lease
    lease: float = 60.0  # without a renewal; longer than the outages and pauses that a run survives


TIMEOUTS = Timeouts()


class MissingObjectError(StoreError):
    """The server says that there is no object under a key."""


class ConflictError(StoreError):
    """The condition of a request does not hold: another process was there first."""


class DamagedAnswerError(UnreachableStoreError):
    """An answer of a server that came damaged, or ended before its end."""


@functools.lru_cache(maxsize=64)
def open_bucket(url: str, timeouts: Timeouts = TIMEOUTS) -> Any:
    """Return this process's connection to a bucket, or to the objects below a prefix or an http(s) address."""
    try:
        from obstore.store import from_url
    except ImportError as error:
        raise ConfigError(f"{url.partition('://')[0]}:// needs obstore: {installing('s3')}") from error
    backoff = {"max_backoff": datetime.timedelta(seconds=timeouts.longest_wait)}
    retry_timeout = datetime.timedelta(seconds=timeouts.retry)
    retries: Any = {"max_retries": 1000, "retry_timeout": retry_timeout, "backoff": backoff}
    client: Any = CLIENT
    if authority := os.environ.get("AWS_CA_BUNDLE"):
        client = {**CLIENT, "root_certificate": Path(authority).read_bytes()}
    scheme, _, place = url.partition("://")
    options: Any = {"config": config_of(scheme), "credential_provider": profile() if scheme == "s3" else None}
    open_url = functools.partial(from_url, f"{scheme}://{quote(place, safe='/:[]')}", **options)
    with bucket_errors(f"open {url}", timeouts.retry):
        if f"{scheme}://" in SCHEMES and os.environ.keys().isdisjoint(CREDENTIALS):
            check_credentials(open_url(client_options={**client, **PROBE}, retry_config={"max_retries": 1}), url)
        return open_url(client_options=client, retry_config=retries)


def check_credentials(bucket: Any, url: str) -> None:
    """Refuse a bucket where only the machine itself could give credentials, as in a cloud, and does not."""
    try:
        bucket.head("credentials")
    except Exception as error:
        if METADATA_SERVER.search(str(error)):
            raise StoreError(
                f"no credentials for {url}: give them in the environment, or in the usual profile with boto3 installed"
            ) from error


def config_of(scheme: str) -> Any:
    """Return the options of a kind of bucket that obstore does not set itself."""
    if scheme == "s3":
        return {"disable_bulk_delete": True}  # which servers other than Amazon's may not know
    account = os.environ.get("AZURE_STORAGE_ACCOUNT_NAME")
    return {"account_name": account} if scheme == "az" and account else None


def profile() -> Any:
    """Return the credentials of the usual profile by boto3; None where the environment has them."""
    if os.environ.keys() >= ENVIRONMENT:
        return None
    try:
        from obstore.auth.boto3 import Boto3CredentialProvider

        return Boto3CredentialProvider()
    except (ImportError, ValueError):  # no boto3, no credentials
        return None


@contextlib.contextmanager
def bucket_errors(what: str, seconds: float = TIMEOUTS.retry) -> Iterator[None]:
    """Raise the errors of obstore as StoreErrors, some by their class; `what` was requested for so many seconds."""
    from obstore import exceptions

    try:
        yield
    except (exceptions.AlreadyExistsError, exceptions.PreconditionError) as error:
        raise ConflictError(
            f"cannot {what}: another process changed it meanwhile; run the same command again"
        ) from error
    except (exceptions.BaseError, FileNotFoundError) as error:
        text = str(error)
        named = re.search(r"<Code>(\w+)</Code>", text)
        status = int(match[1]) if (match := re.search(r"status code: (\d{3})", text)) else 0
        if isinstance(error, FileNotFoundError) and not (named and named[1] in ("NoSuchBucket", "ContainerNotFound")):
            raise MissingObjectError(f"cannot {what}: there is no such object") from error
        lost = "HttpError" in text and "certificate" not in text
        unread = DAMAGED_ANSWER.search(text) or (lost and not re.search(r"after \d+ retries", text))
        if unread and not (named or status):
            raise DamagedAnswerError(
                f"cannot {what}: the answer of the server came damaged or was cut short, and did so for "
                f"{seconds:.0f} s; run the same command again, and look at the address of the server if that "
                "does not help"
            ) from error
        answer = named[1] if named else f"status {status}" if status else "nothing" if lost else ""
        if status >= 500 or status in TRANSIENT_STATUSES or lost:
            raise UnreachableStoreError(
                f"cannot {what}: the server said {answer} for {seconds:.0f} s; the same command resumes once it answers"
            ) from error
        said = f"the server said {answer}" if answer else without_secrets(text.partition("\n")[0])
        raise StoreError(
            f"cannot {what}: {said}; check the bucket, and the credentials in the environment or the profile"
        ) from error


def ask(what: str, request: Callable[[], Answer], timeouts: Timeouts = TIMEOUTS) -> Answer:
    """Return the answer to a request, which is sent again as long as obstore would do so where it comes damaged."""
    end, wait = time.monotonic() + timeouts.retry, timeouts.first_wait
    while True:
        try:
            with bucket_errors(what, timeouts.retry):
                return request()
        except DamagedAnswerError:
            if time.monotonic() + wait >= end:
                raise
        time.sleep(wait)
        wait = min(2 * wait, timeouts.longest_wait)


def version_of(described: Mapping[str, Any]) -> Version:
    """Return the ETag and version of an object, as far as the server gives them, for the condition of a put."""
    return {name: described[name] for name in ("e_tag", "version") if described[name] is not None}


def tag_of(described: Mapping[str, Any]) -> str:
    """Return the ETag of an object; Azure quotes it in answers and leaves the quotes out in lists."""
    tag = (described["e_tag"] or "").strip('"')
    return f'"{tag}"' if tag else ""


class BucketObjects(Objects):
    """Objects of a bucket whose keys start with a prefix; a put is seen whole or not at all."""

    def __init__(self, location: str, timeouts: Timeouts = TIMEOUTS) -> None:
        refuse_credentials(location)
        scheme, _, place = location.rstrip("/").partition("://")
        bucket, _, prefix = place.partition("/")
        if not location.startswith(SCHEMES) or not SAFE_NAME.fullmatch(bucket) or not prefix:
            raise ConfigError(
                f"a run in an object store must be at s3://bucket/name, or so at gs:// or az://, got {location!r}"
            )
        self.bucket, self.prefix = f"{scheme}://{bucket}", checked_key(prefix)
        self.root: str = f"{self.bucket}/{prefix}"
        self.timeouts = timeouts

    def below(self, path: str) -> "BucketObjects":
        """Return the objects whose keys start with `path`."""
        return BucketObjects(f"{self.root}/{checked_key(path)}", self.timeouts)

    def get(self, key: str, most: int = DESCRIPTION_BYTES) -> bytes | None:
        """Return the content of `key`, or None where there is none; CorruptChunkError for more than so many bytes."""
        return self.fetch(key, most)[0]

    def fetch(self, key: str, most: int = DESCRIPTION_BYTES) -> tuple[bytes | None, dict[str, Any]]:
        """Return the content of `key` and what the server says of it, or None and nothing."""

        def fetched(bucket: Any, path: str) -> tuple[bytes, dict[str, Any]]:
            answer = bucket.get(path)
            check_length(answer.meta["size"], most, f"{self.root}/{key}")
            return answer.bytes().to_bytes(), answer.meta

        with contextlib.suppress(MissingObjectError):
            return self._request("read", key, fetched)
        return None, {}

    def get_committed(self, key: str, committed: Committed) -> bytes | None:
        """Return the content of `key`, or None; what arrives other than it was committed is read again."""
        for _ in range(MOST_ANSWERS - 1):
            content = self.get(key, committed[0])
            if content is None or is_committed(content, committed):
                return content
        return self.get(key, committed[0])

    def get_json(self, key: str, most: int = DESCRIPTION_BYTES) -> dict[str, Any] | None:
        """Return the description under `key`, or None; one that arrives damaged is read again."""
        for _ in range(MOST_ANSWERS - 1):
            with contextlib.suppress(CorruptChunkError):
                return super().get_json(key, most)
        return super().get_json(key, most)

    def set(self, key: str, content: bytes) -> str:
        """Write `content` under `key`, replacing what was there in one step; return its ETag."""
        return tag_of(self.put(key, content, "overwrite"))

    def put(self, key: str, content: bytes, mode: str | Version) -> Version:
        """Write in one request and return the version; `mode` is "create", "overwrite", or the version to replace."""

        def written(bucket: Any, path: str) -> Version:
            return version_of(bucket.put(path, content, mode=mode, use_multipart=False))

        return self._request("write", key, written)

    def take(self, key: str, other: Objects, committed: Committed) -> Committed | None:
        """Copy the object of another prefix on the server."""
        if not isinstance(other, BucketObjects) or other.bucket != self.bucket:
            return super().take(key, other, committed)
        source, target, bucket = other._at(key), self._at(key), open_bucket(self.bucket, self.timeouts)

        def copied() -> Committed | None:
            there = bucket.head(source)
            if (there["size"], tag_of(there)) != (committed[0], committed[2] or tag_of(there)):
                return None
            bucket.copy(source, target)
            return (*committed[:2], tag_of(bucket.head(target)))

        with contextlib.suppress(MissingObjectError):
            return ask(f"copy {other.root}/{key} to {self.root}/{key}", copied, self.timeouts)
        return None

    def delete(self, key: str) -> None:
        """Remove `key`; nothing happens where it is not there."""
        with contextlib.suppress(MissingObjectError):
            self._request("delete", key, lambda bucket, path: bucket.delete(path))

    def delete_below(self, prefix: str) -> None:
        """Remove every key that starts with `prefix` and a slash."""
        paths = [entry["path"] for entry in self._list(prefix)]
        self._request("delete", prefix, lambda bucket, _: bucket.delete(paths))

    def names(self, prefix: str = "") -> list[str]:
        """Return the names of objects and folders directly below `prefix`, sorted, without the prefix."""
        there = self._request("list", prefix or None, lambda bucket, folder: bucket.list_with_delimiter(folder))
        paths = [*there["common_prefixes"], *(entry["path"] for entry in there["objects"])]
        return sorted({path.removeprefix(f"{self._at(prefix or None)}/") for path in paths})

    def damaged(self, committed: Mapping[str, Committed], threads: int) -> AbstractSet[str]:
        """Compare lengths and ETags, which the server lists a thousand at a time; reading checks the content."""
        there = {
            entry["path"].removeprefix(f"{self.prefix}/"): (entry["size"], tag_of(entry)) for entry in self._list()
        }
        return {
            key
            for key, (length, _, tag) in committed.items()
            if there.get(key, (-1, ""))[0] != length or (tag and there[key][1] != tag)
        }

    def sweep(self) -> None:
        """Do nothing: an interrupted put leaves no object."""

    def lock(self) -> AbstractContextManager[RunLock]:
        """Hold the run by a lease, or raise StoreLockedError."""
        return hold_lease(self)

    def seconds_since(self, described: Mapping[str, Any]) -> float:
        """Return the age of an object by the clock of the server, which dates one written now."""
        key = f"{LOCK}-{uuid.uuid4().hex}"
        self.set(key, b"")
        now = self._request("read", key, lambda bucket, path: bucket.head(path)["last_modified"])
        self.delete(key)
        return float((now - described["last_modified"]).total_seconds())

    def _at(self, key: str | None) -> str:
        return self.prefix if key is None else f"{self.prefix}/{checked_key(key)}"

    def _request(self, verb: str, key: str | None, request: Callable[[Any, str], Answer]) -> Answer:
        """Return what the bucket answers about the path of a key, or of all; errors say what was requested."""
        bucket, path = open_bucket(self.bucket, self.timeouts), self._at(key)
        return ask(f"{verb} {self.bucket}/{path}", lambda: request(bucket, path), self.timeouts)

    def _list(self, prefix: str = "") -> list[dict[str, Any]]:
        return self._request("list", prefix or None, lambda bucket, folder: list(bucket.list(folder).collect()))


@contextlib.contextmanager
def hold_lease(objects: BucketObjects) -> Iterator[RunLock]:
    """Hold a run in a bucket by an object that is created conditionally and renewed, and is void long after that."""
    lease = {**owner(), "lease": uuid.uuid4().hex}
    version = acquire_lease(objects, lease)
    lock, stop = RunLock(objects.root), threading.Event()
    keeper = threading.Thread(target=renew, args=(objects, lease, version, lock, stop), name="lease", daemon=True)
    keeper.start()
    try:
        yield lock
    finally:
        stop.set()
        keeper.join()
        with contextlib.suppress(StoreError):
            if not lock.lost.is_set() and is_ours(objects, lease):
                objects.delete(LOCK)


def acquire_lease(objects: BucketObjects, lease: dict[str, Any]) -> Version:
    """Return the version of the lock once it is ours.

    A lock of another run is watched until that renews it, which refuses this run, or until the lease is void.
    """
    seen: Version | None = None
    while True:
        content, described = objects.fetch(LOCK)
        mode: str | Version = "create"
        if content is not None:
            holder, mode = read_holder(content), version_of(described)
            if seen is not None and mode != seen:
                raise already_locked(objects.root, describe_holder(holder))
            seen = mode
            if not ended(holder) and objects.seconds_since(described) < objects.timeouts.lease:
                time.sleep(objects.timeouts.renewal / 5)
                continue
        with contextlib.suppress(ConflictError):
            version = objects.put(LOCK, encode(lease), mode)
            refuse_unconditional(objects, lease)
            return version
        if is_ours(objects, lease):  # the answer to the put was lost, and it was sent again
            return version_of(objects.fetch(LOCK)[1])
        seen = seen or {}


def renew(
    objects: BucketObjects, lease: dict[str, Any], version: Version, lock: RunLock, stop: threading.Event
) -> None:
    """Renew a lease until `stop` is set; set `lock.lost` where another run has taken it."""
    count = 0
    while not stop.wait(objects.timeouts.renewal):
        count += 1
        try:
            version = objects.put(LOCK, encode({**lease, "renewed": count}), version)
        except ConflictError:
            with contextlib.suppress(StoreError):
                if is_ours(objects, lease):
                    version = version_of(objects.fetch(LOCK)[1])
                    continue
            lock.lost.set()
            return
        except StoreError:  # not reached; the next round finds out whether the lease is still ours
            continue


def refuse_unconditional(objects: BucketObjects, lease: dict[str, Any]) -> None:
    """Refuse a server that ignores the conditions of writes: no lock is safe there."""
    try:
        objects.put(LOCK, encode(lease), "create")
    except ConflictError:
        return
    raise StoreError(
        f"the server of {objects.root} ignores conditional writes (If-None-Match): use one that knows them"
    )


def is_ours(objects: BucketObjects, lease: dict[str, Any]) -> bool:
    """Return whether the lock that the bucket holds now has the number of this lease."""
    return read_holder(objects.get(LOCK)).get("lease") == lease["lease"]


def read_holder(content: bytes | None) -> dict[str, Any]:
    """Return the owner in a lock, empty where it cannot be read."""
    with contextlib.suppress(ValueError):
        holder = json.loads(content or b"")
        if isinstance(holder, dict):
            return holder
    return {}


def describe_holder(holder: dict[str, Any]) -> str:
    """Return process, host and start of a lock's owner as JSON, for messages."""
    return json.dumps({name: holder[name] for name in ("process", "host", "started") if name in holder})


def encode(lease: dict[str, Any]) -> bytes:
    """Return a lease as the content of the lock: JSON."""
    return json.dumps(lease).encode()
