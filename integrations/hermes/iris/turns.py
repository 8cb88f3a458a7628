"""What is going on: the turns that the gateway gave us, with the messages, tools and questions that are open in them."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from dataclasses import dataclass, field
from typing import Any, Awaitable, Callable, Dict, List, Optional, Tuple

from .link import Link
from .spool import Frame

Lane = Tuple[str, Optional[str]]
# A message's text may have 64 KiB; an adapter is told to split before that.
MAX_TEXT_BYTES = 60_000
_PREVIEW = 300
_OUTPUT = 2_000
_ARGS_BYTES = 8_000
_CURSOR = "▉"


def new_id(kind: str) -> str:
    return f"{kind}_{uuid.uuid4().hex}"


def without_cursor(text: str) -> str:
    """The streaming cursor that Hermes puts behind unfinished text."""
    return text[:-1].rstrip(" ") if text.endswith(_CURSOR) else text


@dataclass
class Question:
    """An open picker. `answer` gets the chosen value, or None when nobody will answer any more."""

    answer: Callable[[Optional[str]], Awaitable[None]]
    turn: Optional["Turn"]


@dataclass
class Turn:
    turn_id: str
    lane: Lane
    kind: str
    message_id: str
    began: float = field(default_factory=time.monotonic)
    started: bool = False
    finished: bool = False
    stopping: bool = False
    texts: Dict[str, str] = field(default_factory=dict)
    tools: Dict[str, Tuple[int, str, Optional[str]]] = field(default_factory=dict)
    tool_count: int = 0
    questions: List[str] = field(default_factory=list)
    # Answers that Hermes is still acting on.
    answering: int = 0
    reasoning: str = ""
    model: Optional[str] = None
    tokens: int = 0
    context_tokens: Optional[int] = None
    usage: Dict[str, Any] = field(default_factory=dict)
    reason: str = "processing"
    # The automatic name of the thread that waits for a better one.
    auto_name: Optional[str] = None


class Turns:
    """Says what turns do. All of it on the link's event loop."""

    def __init__(self, link: Link, context_length: Callable[[], Optional[int]] = lambda: None) -> None:
        self.link, self.spool = link, link.spool
        self.open: Dict[str, Turn] = {}
        self.questions: Dict[str, Question] = {}
        self._context_length = context_length

    def in_lane(self, lane: Lane) -> Optional[Turn]:
        """The turn that what is said in this lane belongs to: a command that answers at once goes before the turn it runs beside."""
        own = [turn for turn in self.open.values() if turn.lane == lane and not turn.finished]
        return next((turn for turn in own if turn.kind == "command"), own[0] if own else None)

    def chat_turn(self, lane: Lane) -> Optional[Turn]:
        own = [turn for turn in self.open.values() if turn.lane == lane]
        return next((turn for turn in own if turn.kind == "chat"), own[0] if own else None)

    # -- frames ---------------------------------------------------------------

    def frame(self, kind: str, payload: Dict[str, Any], lane: Lane, turn: Optional[Turn] = None) -> Frame:
        scope: Frame = {"type": kind, "chat_id": lane[0], "thread_id": lane[1], "payload": payload}
        return {**scope, "turn_id": turn.turn_id} if turn is not None else scope

    def say(self, kind: str, payload: Dict[str, Any], lane: Lane, turn: Optional[Turn] = None) -> None:
        self.link.say(self.frame(kind, payload, lane, turn))

    # -- beginning and end ----------------------------------------------------

    def accept(self, frame: Frame) -> Optional[Turn]:
        """None: it was accepted before. The acceptance is stored together with the frame's number."""
        payload = frame["payload"]
        lane: Lane = (frame["chat_id"], frame.get("thread_id"))
        turn_id = frame["turn_id"]
        if self.spool.turn(turn_id) is not None:
            return None
        turn = Turn(turn_id, lane, payload["kind"], payload["message"]["message_id"])
        channel = payload.get("channel") or {}
        turn.auto_name = channel.get("name") if channel.get("auto") else None
        self.open[turn_id] = turn
        self.spool.set_turn(turn_id, *lane, "accepted")
        self.spool.said(turn.message_id, *lane, "user", payload["message"]["text"])
        self.say("turn.accepted", {}, lane, turn)
        return turn

    def end(self, turn: Turn, outcome: str, error: Optional[str] = None) -> None:
        if turn.turn_id not in self.open:
            return
        self._close(turn)
        payload: Dict[str, Any] = {"outcome": outcome}
        if error:
            payload["error"] = error[:_OUTPUT]
        if turn.usage:
            payload["usage"] = turn.usage
        with self.spool:
            self.spool.set_turn(turn.turn_id, *turn.lane, "ended")
            self.say("turn.end", payload, turn.lane, turn)
        self.link._pump()
        del self.open[turn.turn_id]

    def _close(self, turn: Turn) -> None:
        for message_id in list(turn.texts):
            self.stop_message(turn, message_id, turn.texts[message_id])
        for call_id, (index, name, _) in list(turn.tools.items()):
            self.say("tool.end", {"index": index, "name": name, "ok": False, "output_preview": "not finished"}, turn.lane, turn)
            del turn.tools[call_id]
        for picker_id in list(turn.questions):
            self.close_question(picker_id, "turn_ended")

    def abandon(self, turn: Turn) -> None:
        """The gateway no longer holds it: nothing more is said of it."""
        self.open.pop(turn.turn_id, None)
        self.spool.set_turn(turn.turn_id, *turn.lane, "ended")

    def interrupted_before(self) -> None:
        """Turns that the last process of ours had begun are over, since what ran them is gone."""
        for turn_id, chat_id, thread_id in self.spool.open_turns():
            with self.spool:
                self.spool.set_turn(turn_id, chat_id, thread_id, "ended")
                self.link.say(
                    {"type": "turn.end", "chat_id": chat_id, "thread_id": thread_id, "turn_id": turn_id, "payload": {"outcome": "interrupted"}}
                )

    def snapshot(self, turn: Turn) -> None:
        self.say(
            "turn.snapshot",
            {
                "messages": [{"message_id": message_id, "role": "assistant", "text": text} for message_id, text in turn.texts.items()],
                "tools": [
                    {"index": index, "name": name, **({} if preview is None else {"preview": preview})} for index, name, preview in turn.tools.values()
                ],
                "pickers": list(turn.questions),
                "reason": turn.reason,
            },
            turn.lane,
            turn,
        )

    # -- messages -------------------------------------------------------------

    def start_message(self, turn: Turn, text: str) -> str:
        message_id = new_id("m")
        turn.texts[message_id] = without_cursor(text)
        self.say("message.start", {"message_id": message_id, "role": "assistant"}, turn.lane, turn)
        self._update(turn, message_id)
        return message_id

    def update_message(self, turn: Turn, message_id: str, text: str) -> None:
        turn.texts[message_id] = without_cursor(text)
        self._update(turn, message_id)

    def _update(self, turn: Turn, message_id: str) -> None:
        payload = {"message_id": message_id, "text": turn.texts[message_id]}
        self.link.pass_on(self.frame("message.update", payload, turn.lane, turn))

    def stop_message(self, turn: Turn, message_id: str, text: str) -> None:
        turn.texts.pop(message_id, None)
        final = without_cursor(text)
        self.spool.said(message_id, *turn.lane, "assistant", final)
        self.say("message.stop", {"message_id": message_id, "final_text": final, **self._footer(turn)}, turn.lane, turn)

    def whole_message(self, lane: Lane, turn: Optional[Turn], text: str, role: str, more: Optional[Dict[str, Any]] = None) -> str:
        message_id = new_id("m")
        footer = self._footer(turn) if turn is not None and role == "assistant" else {}
        self.spool.said(message_id, *lane, role, text)
        self.say("message", {"message_id": message_id, "role": role, "text": text, **footer, **(more or {})}, lane, turn)
        return message_id

    def commentary(self, lane: Lane, turn: Turn, text: str) -> str:
        message_id = new_id("m")
        self.say("commentary", {"message_id": message_id, "text": text}, lane, turn)
        return message_id

    def _footer(self, turn: Turn) -> Dict[str, Any]:
        """What stands under an answer; the reasoning goes with the message that it led to."""
        runtime: Dict[str, Any] = {"latency": round(time.monotonic() - turn.began, 3)}
        if turn.model:
            runtime["model"] = turn.model
        length = self._context_length()
        if turn.context_tokens and length:
            runtime["context_pct"] = max(0, min(100, round(100 * turn.context_tokens / length)))
        footer: Dict[str, Any] = {"runtime": runtime}
        if turn.model:
            footer["model"] = turn.model
        if turn.tokens:
            footer["tokens"] = turn.tokens
        if turn.reasoning:
            footer["reasoning"], turn.reasoning = turn.reasoning[:MAX_TEXT_BYTES], ""
        return footer

    # -- tools ----------------------------------------------------------------

    def tool_started(self, turn: Turn, call_id: str, name: str, args: Dict[str, Any]) -> None:
        if call_id in turn.tools:
            return
        index, preview = turn.tool_count, preview_of(args)
        turn.tool_count += 1
        turn.tools[call_id] = (index, name, preview)
        payload: Dict[str, Any] = {"index": index, "name": name}
        if preview:
            payload["preview"] = preview
        if args and len(json.dumps(args, ensure_ascii=False, default=str)) <= _ARGS_BYTES:
            payload["args"] = json.loads(json.dumps(args, ensure_ascii=False, default=str))
        self.say("tool.start", payload, turn.lane, turn)
        self._busy(turn)

    def tool_ended(self, turn: Turn, call_id: str, name: str, result: Any, ok: bool, duration_ms: Optional[float]) -> None:
        known = turn.tools.pop(call_id, None)
        if known is None:
            return
        payload: Dict[str, Any] = {"index": known[0], "name": known[1], "ok": ok, "output_preview": output_of(result)}
        if duration_ms is not None:
            payload["duration"] = round(float(duration_ms) / 1000, 3)
        self.say("tool.end", payload, turn.lane, turn)
        self._busy(turn)

    def _busy(self, turn: Turn) -> None:
        """A question outweighs a tool. A command beside a running turn says nothing of it."""
        reason = "waiting_input" if turn.questions else "tool" if turn.tools else "processing"
        if reason == turn.reason or turn.kind == "command":
            return
        turn.reason = reason
        self.say("agent.busy", {"reason": reason}, turn.lane, turn)

    # -- questions ------------------------------------------------------------

    def ask(self, kind: str, payload: Dict[str, Any], lane: Lane, answer: Callable[[Optional[str]], Awaitable[None]], timeout_s: float) -> str:
        turn = self.in_lane(lane)
        picker_id = new_id("p")
        self.questions[picker_id] = Question(answer, turn)
        if turn is not None:
            turn.questions.append(picker_id)
        expires_at = int((time.time() + timeout_s) * 1000)
        self.say(f"picker.{kind}", {"picker_id": picker_id, "expires_at": expires_at, **payload}, lane, turn)
        if turn is not None:
            self._busy(turn)
        return picker_id

    def answered(self, picker_id: str, value: Optional[str]) -> Optional[Awaitable[None]]:
        """The gateway has the first answer, or says that there will be none."""
        question = self._take(picker_id)
        return None if question is None else question.answer(value)

    def close_question(self, picker_id: str, reason: str) -> None:
        """It is not asked any more."""
        question = self._take(picker_id)
        if question is None:
            return
        turn = question.turn
        self.say("picker.closed", {"picker_id": picker_id, "reason": reason}, turn.lane if turn else ("", None), turn)

    def _take(self, picker_id: str) -> Optional[Question]:
        question = self.questions.pop(picker_id, None)
        if question is not None and question.turn is not None and picker_id in question.turn.questions:
            question.turn.questions.remove(picker_id)
            if question.turn.turn_id in self.open:
                self._busy(question.turn)
        return question


def preview_of(args: Dict[str, Any]) -> Optional[str]:
    """The argument that says most, on one line."""
    for name in ("command", "query", "path", "url", "question", "goal", "code", "text"):
        if isinstance(args.get(name), str) and args[name]:
            return " ".join(args[name].split())[:_PREVIEW]
    return next((" ".join(value.split())[:_PREVIEW] for value in args.values() if isinstance(value, str) and value), None)


def output_of(result: Any) -> str:
    """The end of what came back: of an object with an output, that."""
    text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, default=str)
    try:
        fields = json.loads(text)
    except (TypeError, ValueError):
        fields = None
    if isinstance(fields, dict):
        text = next((fields[name] for name in ("output", "stdout", "content", "result", "error") if isinstance(fields.get(name), str) and fields[name]), text)
    return text.strip()[-_OUTPUT:]
