"""Hermes' commands as the catalog behind `/` in the apps."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Dict, List, Tuple

# What is meant for the host's operator, or for another platform.
_HIDDEN = {"start", "topic", "sethome", "update", "restart", "approve", "deny"}


def catalog() -> Tuple[List[Dict[str, Any]], str]:
    """Entries and a name for exactly this list."""
    try:
        from hermes_cli.commands import COMMAND_REGISTRY, _is_gateway_available, _iter_plugin_command_entries
    except ImportError:
        return [], ""
    entries: List[Dict[str, Any]] = []
    for command in COMMAND_REGISTRY:
        if command.name in _HIDDEN or not _is_gateway_available(command):
            continue
        aliases = ["/" + one for one in command.aliases if one.replace("_", "-") != command.name.replace("_", "-")]
        entries.append(entry(command.name, command.description, command.args_hint, command.category, aliases))
    known = {one["name"] for one in entries}
    entries += [entry(name, text, hint) for name, text, hint in _iter_plugin_command_entries() if f"/{name}" not in known]
    return entries, hashlib.sha256(json.dumps(entries, sort_keys=True).encode()).hexdigest()[:16]


def entry(name: str, description: str, args_hint: str = "", category: str = "", aliases: List[str] = []) -> Dict[str, Any]:
    more: Dict[str, Any] = {"args_hint": args_hint, "category": category, "aliases": aliases}
    return {"name": f"/{name}", "description": description or name, **{key: value for key, value in more.items() if value}}
