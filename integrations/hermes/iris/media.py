"""Files both ways: what people send is put into Hermes' cache, what Hermes sends goes to the gateway over HTTPS."""

from __future__ import annotations

import hashlib
import mimetypes
import os
from typing import Any, Dict, List, Tuple
from urllib.parse import urljoin

from .link import Link

_MAX_BYTES = 128 * 1024 * 1024


def base_of(gateway_url: str) -> str:
    return "http" + gateway_url[2:] if gateway_url.startswith("ws") else gateway_url


async def fetch(entries: List[Dict[str, Any]], gateway_url: str) -> Tuple[List[str], List[str]]:
    """:returns: paths and types. :raises ValueError: when bytes are not what was announced"""
    paths, types = [], []
    if not entries:
        return paths, types
    import httpx
    from gateway.platforms import base

    async with httpx.AsyncClient(timeout=60, follow_redirects=True) as client:
        for entry in entries:
            if not entry.get("url"):
                continue
            answer = await client.get(urljoin(base_of(gateway_url), entry["url"]))
            answer.raise_for_status()
            data = answer.content
            if len(data) > _MAX_BYTES:
                raise ValueError(f"{entry.get('filename') or entry['media_id']} is too large")
            if entry.get("sha256") and hashlib.sha256(data).hexdigest() != entry["sha256"]:
                raise ValueError(f"{entry.get('filename') or entry['media_id']} came damaged")
            name = entry.get("filename") or entry["media_id"]
            suffix = os.path.splitext(name)[1] or mimetypes.guess_extension(entry["mime"]) or ".bin"
            keep = {"image": base.cache_image_from_bytes, "audio": base.cache_audio_from_bytes, "video": base.cache_video_from_bytes}.get(entry["kind"])
            paths.append(keep(data, suffix) if keep is not None else base.cache_document_from_bytes(data, name))
            types.append(entry["mime"])
    return paths, types


def message_type(mime: str) -> Any:
    from gateway.platforms.base import MessageType

    kinds = {"image": MessageType.PHOTO, "audio": MessageType.AUDIO, "video": MessageType.VIDEO}
    return kinds.get(mime.split("/")[0], MessageType.DOCUMENT)


async def upload(link: Link, path: str, kind: str, name: Any, gateway_url: str) -> Dict[str, Any]:
    """:raises Refused: :raises OSError: :returns: the entry that a message names"""
    import httpx

    with open(path, "rb") as file:
        data = file.read()
    filename = name or os.path.basename(path)
    mime = mimetypes.guess_type(filename)[0] or "application/octet-stream"
    about = {"kind": kind, "mime": mime, "size": len(data), "filename": filename, "sha256": hashlib.sha256(data).hexdigest()}
    grant = (await link.request({"type": "media.request", "payload": about}))["payload"]
    async with httpx.AsyncClient(timeout=120) as client:
        answer = await client.put(urljoin(base_of(gateway_url), grant["url"]), content=data, headers={"content-type": mime})
        answer.raise_for_status()
    return {"media_id": grant["media_id"], **about}
