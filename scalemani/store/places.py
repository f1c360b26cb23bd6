"""From where a run is said to be to the objects there."""

from pathlib import Path

from scalemani.errors import ConfigError, refuse_credentials, refuse_nul, refuse_url
from scalemani.store.buckets import SCHEME, BucketObjects
from scalemani.store.objects import LocalObjects, Objects


def open_objects(root: str | Path) -> Objects:
    """Return the objects at a folder, or at s3://bucket/name; nothing is looked at yet."""
    if not isinstance(root, str | Path) or not str(root).strip():
        raise ConfigError(f"a run is a folder or at s3://bucket/name, got {root!r}")
    location = str(root)
    refuse_nul(location)
    if location.startswith(SCHEME):
        return BucketObjects(location)
    if "://" in location:
        refuse_credentials(location)
        raise ConfigError(f"a run is a folder or at s3://bucket/name, got {location!r}")
    refuse_url(location, "a run that is not at s3://bucket/name")
    return LocalObjects(location)
