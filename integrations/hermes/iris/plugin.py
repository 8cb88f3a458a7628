"""What Hermes finds when it loads the plugin: the platform, and the hooks that say what no adapter is told."""

from __future__ import annotations

import logging
import os
from typing import Any, Dict, Optional

from .adapter import IrisAdapter, default_spool_file, outside
from .spool import Spool
from .turns import Lane, Turn, new_id

logger = logging.getLogger(__name__)

# The apps have their own bubbles for tools, reasoning and the footer: Hermes need not write them into the text.
_DISPLAY: Dict[str, Any] = {
    "tool_progress": "off",
    "show_reasoning": False,
    "tool_preview_length": 0,
    "streaming": True,
    "interim_assistant_messages": True,
    "long_running_notifications": False,
    "busy_ack_detail": False,
    "busy_steer_ack_enabled": False,
}


def _lane_here(session_id: str, adapter: IrisAdapter) -> Optional[Lane]:
    """The lane that the calling thread works for, by Hermes' own context; else by what was learnt of the session."""
    from gateway.session_context import get_session_env

    if get_session_env("HERMES_SESSION_PLATFORM", "") == "iris":
        chat_id = get_session_env("HERMES_SESSION_CHAT_ID", "")
        if chat_id:
            lane = (outside(chat_id), get_session_env("HERMES_SESSION_THREAD_ID", "") or None)
            adapter.sessions[session_id] = lane
            return lane
    return adapter.sessions.get(session_id)


def _on_turn(session_id: str, do: Any) -> None:
    """Run `do(adapter, turn)` on the link's loop. Hooks only hand over: Hermes waits for them."""
    adapter = IrisAdapter.current
    if adapter is None or adapter.loop is None:
        return
    lane = _lane_here(session_id, adapter)
    if lane is None:
        return

    def work() -> None:
        turn = adapter.turns.chat_turn(lane)
        if turn is not None and not turn.stopping and adapter.link is not None:
            do(adapter, turn)

    adapter.loop.call_soon_threadsafe(work)


def _pre_llm_call(session_id: str = "", **_: Any) -> None:
    _on_turn(session_id, lambda adapter, turn: None)


def _pre_tool_call(tool_name: str = "", args: Any = None, session_id: str = "", tool_call_id: str = "", **_: Any) -> None:
    given = dict(args) if isinstance(args, dict) else {}
    _on_turn(session_id, lambda adapter, turn: adapter.turns.tool_started(turn, tool_call_id or new_id("t"), tool_name, given))


def _post_tool_call(
    tool_name: str = "", result: Any = None, session_id: str = "", tool_call_id: str = "", duration_ms: Any = None, status: str = "ok", **_: Any
) -> None:
    _on_turn(session_id, lambda adapter, turn: adapter.turns.tool_ended(turn, tool_call_id, tool_name, result, status != "error", duration_ms))


def _post_api_request(
    session_id: str = "", usage: Any = None, response_model: Any = None, model: Any = None, assistant_message: Any = None, **_: Any
) -> None:
    numbers = usage if isinstance(usage, dict) else {}
    thoughts = next((text for name in ("reasoning_content", "reasoning") if isinstance(text := getattr(assistant_message, name, None), str) and text), "")

    def learn(adapter: IrisAdapter, turn: Turn) -> None:
        turn.model = str(response_model or model or "").rsplit("/", 1)[-1] or turn.model
        turn.tokens += int(numbers.get("output_tokens") or numbers.get("completion_tokens") or 0)
        turn.context_tokens = numbers.get("input_tokens") or numbers.get("prompt_tokens") or turn.context_tokens
        turn.usage = {key: value for key, value in numbers.items() if isinstance(value, (int, float))}
        turn.reasoning = "\n\n".join(part for part in (turn.reasoning, thoughts) if part)

    _on_turn(session_id, learn)


def _post_approval_response(choice: str = "", session_key: str = "", **_: Any) -> None:
    """Hermes waited in vain: the question is not asked any more."""
    adapter = IrisAdapter.current
    if choice != "timeout" or adapter is None or adapter.loop is None:
        return

    def work() -> None:
        for turn in adapter.turns.open.values():
            if adapter._session_key(turn.lane) == session_key:
                for picker_id in list(turn.questions):
                    adapter.turns.close_question(picker_id, "expired")

    adapter.loop.call_soon_threadsafe(work)


def _configured(config: Any = None) -> bool:
    extra = getattr(config, "extra", None) or {}
    return bool((extra.get("gateway_url") or os.getenv("IRIS_GATEWAY_URL")) and (extra.get("agent_token") or os.getenv("IRIS_AGENT_TOKEN")))


def _env_enablement() -> Optional[Dict[str, Any]]:
    if not _configured():
        return None
    home = os.getenv("IRIS_HOME_CHANNEL") or "default"
    return {"gateway_url": os.environ["IRIS_GATEWAY_URL"], "home_channel": {"chat_id": home, "name": home}}


async def _standalone_send(pconfig: Any, chat_id: str, message: str, *, thread_id: Optional[str] = None, media_files: Any = None, **_: Any) -> Dict[str, Any]:
    """From a process beside the gateway's (cron): the running one takes it from the spool. A second link would push out the first."""
    extra = getattr(pconfig, "extra", None) or {}
    spool = Spool(extra.get("spool_file") or os.getenv("IRIS_SPOOL_FILE") or default_spool_file())
    message_id = new_id("m")
    try:
        spool.deliver(
            {
                "type": "message",
                "chat_id": outside(chat_id),
                "thread_id": thread_id,
                "payload": {"message_id": message_id, "role": "cron", "text": message},
            }
        )
    finally:
        spool.close()
    return {"success": True, "platform": "iris", "chat_id": chat_id, "message_id": message_id}


def register(ctx: Any) -> None:
    try:
        from gateway import display_config

        display_config._PLATFORM_DEFAULTS.setdefault("iris", dict(_DISPLAY))
    except (ImportError, AttributeError):
        logger.warning("iris: this Hermes keeps its display defaults elsewhere; see the README for what to set")
    if _configured():
        # Hermes' scheduler asks the variable alone where a job's home is.
        os.environ.setdefault("IRIS_HOME_CHANNEL", "default")
    ctx.register_platform(
        name="iris",
        label="Iris",
        adapter_factory=lambda config: IrisAdapter(config),
        check_fn=lambda: True,
        validate_config=_configured,
        is_connected=_configured,
        required_env=["IRIS_GATEWAY_URL", "IRIS_AGENT_TOKEN"],
        env_enablement_fn=_env_enablement,
        cron_deliver_env_var="IRIS_HOME_CHANNEL",
        standalone_sender_fn=_standalone_send,
        max_message_length=0,
        emoji="🌈",
        platform_hint="You are talking in the Iris apps: Markdown is rendered, tools and their output are shown beside your text, and questions are asked with native pickers.",
    )
    hooks = {
        "pre_llm_call": _pre_llm_call,
        "pre_tool_call": _pre_tool_call,
        "post_tool_call": _post_tool_call,
        "post_api_request": _post_api_request,
        "post_approval_response": _post_approval_response,
    }
    for name, callback in hooks.items():
        ctx.register_hook(name, callback)
