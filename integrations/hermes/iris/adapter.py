"""The platform adapter: what Hermes says and asks becomes frames of the agent link, what the gateway says becomes events for Hermes."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import time
from contextvars import ContextVar
from datetime import datetime, timezone
from typing import Any, Dict, List, Optional

from gateway.config import Platform, PlatformConfig
from gateway.platforms.base import BasePlatformAdapter, MessageEvent, MessageType, ProcessingOutcome, SendResult
from gateway.session import build_session_key

from . import media
from .commands import catalog
from .forgetting import forget
from .link import Link, Refused
from .spool import Frame, Spool
from .turns import MAX_TEXT_BYTES, Lane, Turn, Turns, new_id

logger = logging.getLogger(__name__)

PREFIX = "android:"
_PATIENCE_S = 120.0
_STOP_GRACE_S = 8.0
_TITLE_LOOKS = 20
_STREAM_METADATA = "expect_edits"
_CRON_HEADER = re.compile(r"\A\s*(?:⏰|🕐|📅)?\s*\*{0,2}(?:Cronjob Response|Cron job|Scheduled task)\b", re.IGNORECASE)


def _recovered_markers() -> List[str]:
    """What Hermes puts in front of an answer that it sends again: here it is the same message, and no duplicate."""
    try:
        from gateway import delivery_ledger
    except ImportError:
        return []
    return [value for name, value in vars(delivery_ledger).items() if name.endswith("_MARKER") and isinstance(value, str)]


def unmarked(text: str) -> str:
    return next((text[len(mark) :] for mark in _recovered_markers() if text.startswith(mark)), text)


# What Hermes would say about a stop or a steer: the apps show it themselves.
_quiet: ContextVar[bool] = ContextVar("iris_quiet", default=False)


def outside(chat_id: str) -> str:
    """Hermes' chat id without the colon, which its delivery targets would take apart."""
    return chat_id if chat_id.startswith(PREFIX) or ":" in chat_id else PREFIX + chat_id


def inside(chat_id: str) -> str:
    return chat_id[len(PREFIX) :] if chat_id.startswith(PREFIX) else chat_id


class IrisAdapter(BasePlatformAdapter):
    REQUIRES_EDIT_FINALIZE = True
    MAX_MESSAGE_LENGTH = MAX_TEXT_BYTES
    supports_code_blocks = True
    splits_long_messages = False
    # The adapter that is connected; hooks, which Hermes calls from any thread, find it here.
    current: Optional["IrisAdapter"] = None

    def __init__(self, config: PlatformConfig) -> None:
        super().__init__(config, Platform("iris"))
        extra = config.extra or {}
        self._url = extra.get("gateway_url") or os.getenv("IRIS_GATEWAY_URL", "")
        self._token = extra.get("agent_token") or os.getenv("IRIS_AGENT_TOKEN", "")
        self._spool_file = extra.get("spool_file") or os.getenv("IRIS_SPOOL_FILE") or default_spool_file()
        self._home = extra.get("home_chat_id") or os.getenv("IRIS_HOME_CHANNEL") or "default"
        self.loop: Optional[asyncio.AbstractEventLoop] = None
        self.turns: Turns
        self.link: Optional[Link] = None
        self._channels: Dict[Lane, str] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self.sessions: Dict[str, Lane] = {}
        self._catalog_rev: Optional[str] = None
        self._context_tokens: Optional[int] = None

    @property
    def message_len_fn(self) -> Any:
        return lambda text: len(text.encode("utf-8"))

    @property
    def authorization_is_upstream(self) -> bool:
        """The gateway has checked who writes: a token opens one tenant."""
        return True

    # -- connection -----------------------------------------------------------

    async def connect(self, *, is_reconnect: bool = False) -> bool:
        self.loop = asyncio.get_running_loop()
        link = self.link = Link(self._url, self._token, Spool(self._spool_file))
        self.turns = Turns(link, self._context_length)
        link.hello = {
            "agent": "hermes",
            "version": hermes_version(),
            "caps": {
                "stream": True,
                "reasoning": True,
                "tools": True,
                "pickers": ["model", "choice", "clarify", "approval", "confirm"],
                "steer": True,
                "stop": True,
                "delete": True,
                "titles": True,
                "cron": True,
                "media": True,
                "resume": True,
            },
        }
        link.open_turns = lambda: list(self.turns.open)
        link.on_frame, link.on_linked, link.on_ended = self._on_frame, self._on_linked, self._on_ended
        self.turns.interrupted_before()
        link.start()
        IrisAdapter.current = self
        try:
            await asyncio.wait_for(link.linked.wait(), 15)
        except asyncio.TimeoutError:
            if self.has_fatal_error:
                return False
            logger.warning("[%s] the gateway is away; what is said waits in the spool", self.name)
        self._mark_connected()
        return True

    async def disconnect(self) -> None:
        if IrisAdapter.current is self:
            IrisAdapter.current = None
        link, self.link = self.link, None
        if link is not None:
            for turn in list(self.turns.open.values()):
                self.turns.end(turn, "interrupted")
            await link.stop()
            link.spool.close()
        self._mark_disconnected()

    def _on_linked(self, ack: Dict[str, Any]) -> None:
        self._channels = {lane_of(one): one.get("name", "") for one in ack.get("channels", [])}
        held = {one["turn_id"] for one in ack.get("turns", [])}
        for turn in list(self.turns.open.values()):
            if turn.turn_id in held:
                self.turns.snapshot(turn)
            else:
                self.turns.abandon(turn)
                self._spawn(self._command(turn.lane, "/stop"))
        self._say_catalog()

    def _on_ended(self, reason: str) -> None:
        texts = {
            "auth": "the gateway refused the token: check IRIS_AGENT_TOKEN",
            "revoked": "the token was revoked",
            "replaced": "another process attached as this agent and took over",
        }
        self._set_fatal_error(f"iris_{reason}", texts[reason], retryable=False)
        self._spawn(self._notify_fatal_error())

    def _spawn(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            logger.error("[%s] failed", self.name, exc_info=task.exception())

    # -- what the gateway says ------------------------------------------------

    def _on_frame(self, frame: Frame) -> None:
        kind, payload = frame.get("type"), frame.get("payload", {})
        if kind == "turn.start":
            turn = self.turns.accept(frame)
            if turn is not None:
                self._spawn(self._run(turn, payload))
        elif kind == "agent.stop":
            turn = self.turns.open.get(frame.get("turn_id", ""))
            if turn is not None:
                self._spawn(self._stop(turn))
        elif kind == "agent.steer":
            self._steer(frame)
        elif kind == "picker.select":
            value = payload.get("value")
            self._settle(payload["picker_id"], ", ".join(value) if isinstance(value, list) else value)
        elif kind == "picker.closed":
            self._settle(payload["picker_id"], None)
        elif kind == "message.deleted":
            own = payload.get("own_ids", {})
            removed = [one for one in payload["message_ids"] if self._forget(own.get(one, one))]
            missing = [one for one in payload["message_ids"] if one not in removed]
            self._acknowledge(frame, {"removed": removed, "missing": missing})
        elif kind in ("channel.created", "channel.renamed"):
            self._channels[lane_of(payload)] = payload.get("name", "")
            self._acknowledge(frame, {})
        elif kind == "channel.deleted":
            gone = lane_of(payload)
            for lane in [lane for lane in self._channels if lane == gone or (gone[1] is None and lane[0] == gone[0])]:
                del self._channels[lane]
            self._acknowledge(frame, {})
        elif kind == "commands.catalog":
            self._catalog_rev = None
            self._say_catalog()

    def _acknowledge(self, frame: Frame, payload: Dict[str, Any]) -> None:
        if self.link is not None and frame.get("id") is not None:
            self.link.answer({"type": "ack", "id": frame["id"], "payload": payload})

    def _settle(self, picker_id: str, value: Optional[str]) -> None:
        question = self.turns.questions.get(picker_id)
        work = self.turns.answered(picker_id, value)
        if work is None:
            return
        turn = question.turn if question is not None else None
        if turn is not None:
            turn.answering += 1
        self._spawn(self._act(turn, work))

    async def _act(self, turn: Optional[Turn], work: Any) -> None:
        try:
            await work
        finally:
            if turn is not None:
                turn.answering -= 1

    def _say_catalog(self) -> None:
        commands, rev = catalog()
        if commands and rev != self._catalog_rev and self.link is not None:
            self._catalog_rev = rev
            self.link.say({"type": "commands.catalog", "payload": {"commands": commands, "rev": rev}})

    # -- turns ----------------------------------------------------------------

    async def _run(self, turn: Turn, payload: Dict[str, Any]) -> None:
        message, channel = payload["message"], payload.get("channel") or {}
        paths, types = await media.fetch(message.get("media") or [], self._url)
        user = payload.get("user") or {}
        event = self._event(turn.lane, message["text"], message["message_id"], user=user, channel=channel)
        event.media_urls, event.media_types = paths, types
        if types and not message["text"].startswith("/"):
            event.message_type = media.message_type(types[0])
        if isinstance(message.get("reply_to"), str):
            said = self.turns.spool.words(message["reply_to"])
            event.reply_to_message_id = message["reply_to"]
            event.reply_to_text = said[3] if said else None
        # While Hermes restores itself it takes events, and says they are done, without having looked at them.
        while getattr(self.gateway_runner, "_startup_restore_in_progress", False) and not turn.stopping:
            await asyncio.sleep(0.05)
        # Hermes runs turns of its own (a background job that came back); one of ours is not to be merged into such a turn.
        while turn.kind == "chat" and self._session_key(turn.lane) in self._active_sessions and not turn.stopping:
            await asyncio.sleep(0.05)
        active = self._session_key(turn.lane) in self._active_sessions
        if turn.stopping:
            return self._finish(turn, "cancelled")
        try:
            await self.handle_message(event)
        except Exception as error:  # noqa: BLE001 - the person is told
            return self._finish(turn, "failed", str(error))
        # A command that bypassed the running turn has answered by now; anything else is told of by the processing hooks.
        if active and not turn.started and turn.kind == "command":
            self._finish(turn, "completed")

    async def handle_message(self, event: MessageEvent) -> None:
        if event.internal and not event.text and not event.media_urls:
            # Hermes would go on by itself with what a restart broke off. Tools may have acted, so that is for the person to say,
            # who has been told that the turn was interrupted.
            key = self._session_key((outside(event.source.chat_id), event.source.thread_id))
            clear = getattr(getattr(self, "_session_store", None), "clear_resume_pending", None)
            if clear is not None:
                await asyncio.to_thread(clear, key)
            return
        await super().handle_message(event)

    def _event(self, lane: Lane, text: str, message_id: str, *, user: Dict[str, Any] = {}, channel: Dict[str, Any] = {}) -> MessageEvent:
        chat_id, thread_id = lane
        auto = bool(channel.get("auto")) and thread_id is not None
        source = self.build_source(
            chat_id=inside(chat_id),
            chat_name=channel.get("name") or self._channels.get(lane) or inside(chat_id),
            chat_type="dm",
            # One tenant is one person, whichever device they write from.
            user_id="iris",
            user_name=user.get("name") or "Iris",
            thread_id=thread_id,
            message_id=message_id,
            auto_thread_created=auto,
            auto_thread_initial_name=channel.get("name") if auto else None,
        )
        return MessageEvent(text=text, message_type=MessageType.TEXT, source=source, message_id=message_id, timestamp=datetime.now(tz=timezone.utc))

    def _session_key(self, lane: Lane) -> str:
        extra = self.config.extra or {}
        return build_session_key(
            self._event(lane, "", "").source,
            group_sessions_per_user=extra.get("group_sessions_per_user", True),
            thread_sessions_per_user=extra.get("thread_sessions_per_user", False),
        )

    async def _command(self, lane: Lane, text: str) -> None:
        """Said to Hermes by us, not by the person: its answer is not shown."""
        token = _quiet.set(True)
        try:
            await self.handle_message(self._event(lane, text, new_id("c")))
        finally:
            _quiet.reset(token)

    async def _stop(self, turn: Turn) -> None:
        turn.stopping = True
        for picker_id in list(turn.questions):
            self._settle(picker_id, None)
        if turn.kind == "chat":
            await self._command(turn.lane, "/stop")
        give_up = time.monotonic() + _STOP_GRACE_S
        while turn.turn_id in self.turns.open and time.monotonic() < give_up and self._session_key(turn.lane) in self._active_sessions:
            await asyncio.sleep(0.02)
        self._finish(turn, "cancelled")

    def _steer(self, frame: Frame) -> None:
        turn = self.turns.open.get(frame.get("turn_id", ""))
        accepted = False
        if turn is not None and not turn.stopping:
            agent = getattr(self.gateway_runner, "_running_agents", {}).get(self._session_key(turn.lane))
            try:
                accepted = bool(agent is not None and agent.steer(frame["payload"]["text"]))
            except Exception:  # noqa: BLE001 - an agent that is only being made has no ear yet
                accepted = False
        if self.link is not None and frame.get("id") is not None:
            self.link.answer({"type": "agent.steer", "id": frame["id"], "payload": {"accepted": accepted}})

    async def on_processing_start(self, event: MessageEvent) -> None:
        turn = self._turn_of(event)
        if turn is not None:
            turn.started = True

    async def on_processing_complete(self, event: MessageEvent, outcome: ProcessingOutcome) -> None:
        turn = self._turn_of(event)
        if turn is None:
            return
        outcomes = {ProcessingOutcome.SUCCESS: "completed", ProcessingOutcome.FAILURE: "failed", ProcessingOutcome.CANCELLED: "cancelled"}
        result = "cancelled" if turn.stopping else outcomes.get(outcome, "completed")
        self._finish(turn, result, "Hermes could not answer" if result == "failed" else None)

    def _turn_of(self, event: MessageEvent) -> Optional[Turn]:
        return next((turn for turn in self.turns.open.values() if turn.message_id == event.message_id), None)

    def _finish(self, turn: Turn, outcome: str, error: Optional[str] = None) -> None:
        """A question that outlives its command (a picker of models) keeps the turn until it is settled."""
        turn.finished = True
        if turn.auto_name and outcome == "completed":
            self._spawn(self._title(turn.lane, turn.auto_name))
        if (turn.questions or turn.answering) and outcome == "completed":
            return self._spawn(self._finish_later(turn, outcome))
        self.turns.end(turn, outcome, error)

    async def _title(self, lane: Lane, auto_name: str) -> None:
        """Hermes names its sessions a moment after the first answer; the thread takes the name, unless a person was faster."""
        database, store = getattr(self.gateway_runner, "_session_db", None), getattr(self, "_session_store", None)
        for _ in range(_TITLE_LOOKS):
            await asyncio.sleep(1)
            try:
                session_id = store.peek_session_id(self._session_key(lane)) if store is not None else None
                title = await database.get_session_title(session_id) if database is not None and session_id else None
            except Exception:  # noqa: BLE001 - a version that keeps its titles elsewhere: the automatic name stays
                return
            if title:
                await self.rename_thread(lane[0], lane[1] or "", title, only_if_current_name=auto_name)
                return

    async def _finish_later(self, turn: Turn, outcome: str) -> None:
        turn.finished = False
        give_up = time.monotonic() + _PATIENCE_S + 15
        while (turn.questions or turn.answering) and turn.turn_id in self.turns.open and time.monotonic() < give_up:
            await asyncio.sleep(0.05)
        # What the answer led to is still being said.
        await asyncio.sleep(0.2)
        self.turns.end(turn, "cancelled" if turn.stopping else outcome)

    def _forget(self, message_id: str) -> bool:
        words = self.turns.spool.words(message_id)
        if words is None:
            return False
        self.turns.spool.forget(message_id)
        chat_id, thread_id, role, text = words
        return forget(self, self._session_key((chat_id, thread_id)), role, text)

    def _context_length(self) -> Optional[int]:
        """Tokens that the model holds, as far as the operator has said it: asking the provider is not for a footer."""
        if self._context_tokens is None:
            try:
                from hermes_cli.config import load_config

                model = load_config().get("model")
                self._context_tokens = int((model or {}).get("context_length") or 0) if isinstance(model, dict) else 0
            except Exception:  # noqa: BLE001 - a footer without it
                self._context_tokens = 0
        return self._context_tokens or None

    # -- what Hermes says -----------------------------------------------------

    def lane(self, chat_id: str, metadata: Optional[Dict[str, Any]]) -> Lane:
        thread_id = (metadata or {}).get("thread_id")
        return outside(str(chat_id)), str(thread_id) if thread_id else None

    async def send(self, chat_id: str, content: str, reply_to: Optional[str] = None, metadata: Optional[Dict[str, Any]] = None) -> SendResult:
        if _quiet.get():
            return SendResult(success=True, message_id=new_id("quiet"))
        if self.link is None:
            return SendResult(success=False, error="not connected", retryable=True)
        lane = self.lane(chat_id, metadata)
        turn = self.turns.in_lane(lane)
        metadata = metadata or {}
        if turn is not None and turn.stopping:
            return SendResult(success=True, message_id=new_id("quiet"))
        if turn is not None and metadata.get(_STREAM_METADATA):
            return SendResult(success=True, message_id=self.turns.start_message(turn, content))
        if turn is None:
            text = unmarked(content)
            role = "cron" if _CRON_HEADER.match(text) else "assistant"
            return SendResult(success=True, message_id=self.turns.whole_message(lane, None, text, role))
        if turn.kind == "command":
            return SendResult(success=True, message_id=self.turns.whole_message(lane, turn, content, "system"))
        if not metadata.get("notify"):
            return SendResult(success=True, message_id=self.turns.commentary(lane, turn, content))
        return SendResult(success=True, message_id=self.turns.whole_message(lane, turn, content, "assistant"))

    async def edit_message(
        self, chat_id: str, message_id: str, content: str, *, finalize: bool = False, metadata: Optional[Dict[str, Any]] = None
    ) -> SendResult:
        turn = next((turn for turn in self.turns.open.values() if message_id in turn.texts), None)
        if turn is None:
            said = self.turns.spool.words(message_id)
            # Closed already with the same words: by the end of its turn, or by an edit that said it was the last.
            same = said is not None and said[3].strip() == content.strip()
            return SendResult(success=same or message_id.startswith("quiet"), message_id=message_id, error=None if same else "the message is finished")
        if finalize:
            self.turns.stop_message(turn, message_id, content)
        else:
            self.turns.update_message(turn, message_id, content)
        return SendResult(success=True, message_id=message_id)

    async def delete_message(self, chat_id: str, message_id: str) -> bool:
        if self.link is None or message_id.startswith("quiet"):
            return message_id.startswith("quiet")
        self.link.say({"type": "message.delete", "chat_id": outside(str(chat_id)), "payload": {"message_ids": [message_id]}})
        return True

    async def send_typing(self, chat_id: str, metadata: Optional[Dict[str, Any]] = None) -> None:
        lane = self.lane(chat_id, metadata)
        if self.link is not None and not _quiet.get():
            self.link.pass_on(self.turns.frame("typing", {"on": True}, lane, self.turns.in_lane(lane)))

    async def stop_typing(self, chat_id: str, metadata: Optional[Dict[str, Any]] = None) -> None:
        lane = self.lane(chat_id, metadata)
        if self.link is not None:
            self.link.pass_on(self.turns.frame("typing", {"on": False}, lane, self.turns.in_lane(lane)))

    async def get_chat_info(self, chat_id: str) -> Dict[str, Any]:
        return {"name": self._channels.get((outside(chat_id), None), chat_id), "type": "dm", "chat_id": chat_id}

    async def create_handoff_thread(self, parent_chat_id: str, name: str) -> Optional[str]:
        return await self._asked(
            {"type": "channel.create", "payload": {"name": name[:128], "kind": "thread", "parent_chat_id": outside(parent_chat_id)}}, "thread_id"
        )

    async def rename_thread(self, chat_id: str, thread_id: str, name: str, *, only_if_current_name: Optional[str] = None, **_: Any) -> bool:
        payload = {"name": name[:128], **({} if only_if_current_name is None else {"only_if_current": only_if_current_name})}
        frame = {"type": "channel.rename", "chat_id": outside(chat_id), "thread_id": thread_id, "payload": payload}
        return await self._asked(frame, "name") is not None

    async def _asked(self, frame: Frame, field: str) -> Optional[str]:
        try:
            answer = await self.link.request(frame, durable=True) if self.link is not None else {}
        except (Refused, asyncio.TimeoutError) as error:
            logger.info("[%s] %s: %s", self.name, frame["type"], error)
            return None
        return answer.get("payload", {}).get(field)

    # -- questions ------------------------------------------------------------

    def _ask(self, kind: str, payload: Dict[str, Any], chat_id: str, metadata: Any, answer: Any, timeout_s: float = _PATIENCE_S) -> SendResult:
        picker_id = self.turns.ask(kind, payload, self.lane(chat_id, metadata), answer, timeout_s)
        return SendResult(success=True, message_id=picker_id)

    async def send_exec_approval(
        self,
        chat_id: str,
        command: str,
        session_key: str,
        description: str = "dangerous command",
        metadata: Optional[Dict[str, Any]] = None,
        allow_permanent: bool = True,
        allow_session: bool = True,
        smart_denied: bool = False,
        **_: Any,
    ) -> SendResult:
        choices = [{"value": "once", "label": "Allow once", "style": "primary"}]
        if allow_session and not smart_denied:
            choices.append({"value": "session", "label": "Allow for this session"})
            if allow_permanent:
                choices.append({"value": "always", "label": "Always allow"})
        choices.append({"value": "deny", "label": "Deny", "style": "danger"})

        async def answer(value: Optional[str]) -> None:
            from tools.approval import resolve_gateway_approval

            resolve_gateway_approval(session_key, value or "deny")
            self.resume_typing_for_chat(chat_id)

        payload = {"title": "May this be done?", "body": description, "command": command, "choices": choices}
        return self._ask("approval", payload, chat_id, metadata, answer, approval_timeout_s())

    async def send_slash_confirm(
        self, chat_id: str, title: str, message: str, session_key: str, confirm_id: str, metadata: Optional[Dict[str, Any]] = None
    ) -> SendResult:
        async def answer(value: Optional[str]) -> None:
            from tools import slash_confirm

            text = await slash_confirm.resolve(session_key, confirm_id, value or "cancel")
            if text:
                await self.send(chat_id, text, metadata={**(metadata or {}), "notify": True})

        choices = [
            {"value": "once", "label": "Once", "style": "primary"},
            {"value": "always", "label": "Always"},
            {"value": "cancel", "label": "Cancel"},
        ]
        return self._ask("confirm", {"title": title, "body": message, "choices": choices}, chat_id, metadata, answer)

    async def send_clarify(
        self, chat_id: str, question: str, choices: Optional[list], clarify_id: str, session_key: str, metadata: Optional[Dict[str, Any]] = None
    ) -> SendResult:
        async def answer(value: Optional[str]) -> None:
            from tools.clarify_gateway import resolve_gateway_clarify

            resolve_gateway_clarify(clarify_id, value or "")
            self.resume_typing_for_chat(chat_id)

        payload: Dict[str, Any] = {"question": question, "allow_text": True}
        if choices:
            payload["choices"] = [{"value": str(one), "label": str(one)} for one in choices]
        return self._ask("clarify", payload, chat_id, metadata, answer, clarify_timeout_s())

    async def send_model_picker(
        self,
        chat_id: str,
        providers: List[Dict[str, Any]],
        current_model: str,
        current_provider: str,
        session_key: str,
        on_model_selected: Any,
        metadata: Optional[Dict[str, Any]] = None,
    ) -> SendResult:
        async def answer(value: Optional[str]) -> None:
            if value is None:
                return
            provider, _, model = value.partition("/")
            await self._tell(chat_id, await on_model_selected(chat_id, model, provider), metadata)

        offered = [
            {
                "id": str(one.get("slug") or one.get("name")),
                "label": str(one.get("name") or one.get("slug")),
                "models": [{"id": str(model), "label": str(model)} for model in one.get("models", [])],
            }
            for one in providers
            if one.get("models")
        ]
        if not offered:
            return SendResult(success=False, error="no provider has models")
        payload = {"title": "Model", "current_model": current_model or "", "current_provider": current_provider or "", "providers": offered}
        return self._ask("model", payload, chat_id, metadata, answer)

    async def send_choice_picker(
        self, chat_id: str, title: str, choices: List[Dict[str, Any]], session_key: str, on_choice_selected: Any, metadata: Optional[Dict[str, Any]] = None
    ) -> SendResult:
        async def answer(value: Optional[str]) -> None:
            if value is not None:
                await self._tell(chat_id, await on_choice_selected(chat_id, value), metadata)

        offered = [
            {"value": str(one["value"]), "label": str(one.get("label") or one["value"]), **({"is_current": True} if one.get("is_current") else {})}
            for one in choices
        ]
        return self._ask("choice", {"title": title, "choices": offered}, chat_id, metadata, answer)

    async def _tell(self, chat_id: str, text: Any, metadata: Optional[Dict[str, Any]]) -> None:
        if text:
            await self.send(chat_id, str(text), metadata={**(metadata or {}), "notify": True})

    # -- files ----------------------------------------------------------------

    async def _send_file(self, chat_id: str, path: str, kind: str, caption: Optional[str], metadata: Optional[Dict[str, Any]], name: Optional[str] = None) -> SendResult:
        if self.link is None:
            return SendResult(success=False, error="not connected", retryable=True)
        lane = self.lane(chat_id, metadata)
        try:
            entry = await media.upload(self.link, path, kind, name, self._url)
        except Exception as error:  # noqa: BLE001 - said to the person, never lost in silence
            return await self.send(chat_id, f"{caption or ''}\n\n(The file {name or os.path.basename(path)} could not be sent: {error})".strip(), metadata=metadata)
        turn = self.turns.in_lane(lane)
        return SendResult(success=True, message_id=self.turns.whole_message(lane, turn, caption or "", "assistant", {"media": [entry]}))

    async def send_image_file(self, chat_id: str, image_path: str, caption: Optional[str] = None, reply_to: Optional[str] = None, metadata: Any = None, **_: Any) -> SendResult:
        return await self._send_file(chat_id, image_path, "image", caption, metadata)

    async def send_voice(self, chat_id: str, audio_path: str, caption: Optional[str] = None, reply_to: Optional[str] = None, metadata: Any = None, **_: Any) -> SendResult:
        return await self._send_file(chat_id, audio_path, "audio", caption, metadata)

    async def send_video(self, chat_id: str, video_path: str, caption: Optional[str] = None, reply_to: Optional[str] = None, metadata: Any = None, **_: Any) -> SendResult:
        return await self._send_file(chat_id, video_path, "video", caption, metadata)

    async def send_document(
        self, chat_id: str, file_path: str, caption: Optional[str] = None, file_name: Optional[str] = None, reply_to: Optional[str] = None, metadata: Any = None, **_: Any
    ) -> SendResult:
        return await self._send_file(chat_id, file_path, "file", caption, metadata, file_name)


def lane_of(entry: Dict[str, Any]) -> Lane:
    return entry["chat_id"], entry.get("thread_id")


def default_spool_file() -> str:
    from hermes_constants import get_hermes_home

    return os.path.join(str(get_hermes_home()), "iris", "spool.db")


def hermes_version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("hermes-agent")
    except PackageNotFoundError:
        return "unknown"


def approval_timeout_s() -> float:
    """A little less than Hermes waits itself, so that the answer is never the later one."""
    try:
        from tools.approval import _get_approval_timeout

        return max(5.0, float(_get_approval_timeout()) - 2)
    except Exception:  # noqa: BLE001 - another version, with its default
        return 290.0


def clarify_timeout_s() -> float:
    try:
        from tools.clarify_gateway import get_clarify_timeout

        return max(5.0, float(get_clarify_timeout()) - 2)
    except Exception:  # noqa: BLE001
        return 290.0
