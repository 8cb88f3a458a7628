"""Messages that people deleted go from the session's transcript too, and from the agent that has it in memory."""

from __future__ import annotations

import logging
from typing import Any, Dict, List

logger = logging.getLogger(__name__)


def forget(adapter: Any, session_key: str, role: str, text: str) -> bool:
    """:returns: whether something was there to remove"""
    store, runner = getattr(adapter, "_session_store", None), adapter.gateway_runner
    try:
        session_id = store.peek_session_id(session_key) if store is not None else None
        if session_id is None:
            return False
        before = store.load_transcript(session_id)
        after = without(before, role, text)
        if len(after) == len(before) or not store.rewrite_transcript(session_id, after):
            return False
        if runner is not None:
            runner._evict_cached_agent(session_key)
        return True
    except Exception:  # noqa: BLE001 - said to the gateway as missing, which asks again
        logger.exception("iris: a deleted message could not be removed from %s", session_key)
        return False


def without(messages: List[Dict[str, Any]], role: str, text: str) -> List[Dict[str, Any]]:
    """The transcript without the newest message that says this. Tool calls of an answer and their results go with it."""
    wanted = text.strip()

    def says(message: Dict[str, Any]) -> bool:
        content = message.get("content")
        if message.get("role") != role or not isinstance(content, str) or not wanted:
            return False
        # Hermes may put a context in front of what a person wrote.
        return content.strip() == wanted or (role == "user" and content.strip().endswith(wanted))

    at = next((index for index in range(len(messages) - 1, -1, -1) if says(messages[index])), None)
    if at is None:
        return messages
    gone = {at}
    if messages[at].get("tool_calls"):
        index = at + 1
        while index < len(messages) and messages[index].get("role") == "tool":
            gone.add(index)
            index += 1
    return [message for index, message in enumerate(messages) if index not in gone]
