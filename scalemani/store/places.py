"""Open the objects of a run from its path or URL."""

import ipaddress
import os
from pathlib import Path
from urllib.parse import urlsplit

from scalemani.errors import ConfigError, refuse_credentials, refuse_home, refuse_nul, refuse_url
from scalemani.store.buckets import SCHEMES, BucketObjects
from scalemani.store.objects import LocalObjects, Objects

# Variables that name another server, the first before the others.
ENDPOINTS = {
    "s3://": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"),
    "gs://": ("GOOGLE_BASE_URL",),
    "az://": ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"),
}


def open_objects(root: str | Path) -> Objects:
    """Return the objects at a folder, or at s3://bucket/name, gs:// or az://; nothing is read yet."""
    if not isinstance(root, str | Path) or not str(root).strip():
        raise ConfigError(f"a run is a folder or at s3://bucket/name, got {root!r}: give one of these")
    location = str(root)
    refuse_nul(location)
    refuse_home(location)
    if location.startswith(SCHEMES):
        return BucketObjects(location)
    if "://" in location:
        refuse_credentials(location)
        raise ConfigError(f"a run is a folder or at s3://bucket/name, got {location!r}: give one of these")
    refuse_url(location, "a run that is not at s3://bucket/name")
    return LocalObjects(location)


def remark_on(location: str | Path) -> str:
    """Return a warning about a server beyond this machine that is reached without TLS; else an empty string."""
    bucket = str(location).startswith(SCHEMES)
    endpoints = [os.environ[name] for name in ENDPOINTS[str(location)[:5]] if name in os.environ] if bucket else []
    url = urlsplit(endpoints[0] if endpoints else str(location))
    if url.scheme != "http" or not url.hostname or is_loopback(url.hostname):
        return ""
    return (
        f"{url.hostname} is reached over plain HTTP: whoever is on the way can read and change what travels; give an "
        "address at https:// unless all of the way is yours"
    )


def is_loopback(host: str) -> bool:
    """Return whether a host is localhost or an address of the loopback interface; no name is looked up."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
