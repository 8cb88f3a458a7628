"""The agent link from the agent's side: one socket, hello, numbers and acks both ways, resending, keepalive.

Everything here runs on one event loop. What is durable goes through the spool first; nothing overtakes it.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
import time
import uuid
from typing import Any, Awaitable, Callable, Dict, List, Optional

from .spool import Frame, Spool

logger = logging.getLogger(__name__)

SUBPROTOCOL = "iris-agent.v1"
# Bytes sent and not acked above which more waits, so that a gateway that is behind is not flooded.
_IN_FLIGHT_BYTES = 4 * 1024 * 1024
_GREET_S = 15.0
_SILENT_BEATS = 2.5
_BACKOFF_S = (0.2, 0.5, 1, 2, 5, 10)
_DELIVERIES_S = 2.0


class LinkEnded(Exception):
    """The gateway will not have this agent any more: a refused or revoked token, or another process took over."""


class Refused(Exception):
    """The gateway refused a request."""


_FINAL_CLOSES = {4401: "auth", 4403: "revoked", 4409: "replaced"}


class Link:
    """Set `hello` (what it says beside the numbers), `on_frame` (durable frames of the gateway, each once, in order),
    `on_linked` (after hello.ack) and `on_ended` before `start`."""

    def __init__(self, url: str, token: str, spool: Spool) -> None:
        self.url, self.token, self.spool = url, token, spool
        self.boot_id = uuid.uuid4().hex
        self.hello: Dict[str, Any] = {}
        self.on_frame: Callable[[Frame], None] = lambda frame: None
        self.on_linked: Callable[[Frame], None] = lambda ack: None
        self.on_ended: Callable[[str], None] = lambda reason: None
        self.open_turns: Callable[[], List[str]] = lambda: []
        self.linked = asyncio.Event()
        self._socket: Any = None
        self._task: Optional[asyncio.Task[None]] = None
        self._sent_seq = 0
        self._sizes: Dict[int, int] = {}
        self._acked_seq = 0
        self._heard_at = 0.0
        self._out: "asyncio.Queue[str]" = asyncio.Queue()
        self._requests: Dict[str, "asyncio.Future[Frame]"] = {}
        self._failures = 0

    # -- saying ---------------------------------------------------------------

    def say(self, frame: Frame) -> Frame:
        """Durable: kept until the gateway has stored it."""
        numbered = self.spool.keep(frame)
        self._pump()
        return numbered

    def pass_on(self, frame: Frame) -> None:
        """May be lost: said only when the link is up and nothing durable waits before it."""
        if self.linked.is_set() and self._sent_seq == self.spool.next_seq - 1:
            self._write(frame)

    def answer(self, frame: Frame) -> None:
        """Not numbered, but before the ack of what it answers."""
        if self._socket is not None:
            self._write(frame)

    async def request(self, frame: Frame, *, durable: bool = False, timeout_s: float = 20.0) -> Frame:
        """:raises Refused: with the gateway's words; :raises asyncio.TimeoutError:"""
        request_id = uuid.uuid4().hex
        waiting: "asyncio.Future[Frame]" = asyncio.get_running_loop().create_future()
        self._requests[request_id] = waiting
        try:
            if durable:
                self.say({**frame, "id": request_id})
            elif self.linked.is_set():
                self._write({**frame, "id": request_id})
            else:
                raise Refused("the gateway is away")
            return await asyncio.wait_for(waiting, timeout_s)
        finally:
            self._requests.pop(request_id, None)

    def _write(self, frame: Frame) -> None:
        self._out.put_nowait(json.dumps({"v": 1, **frame, "ack": self.spool.in_seq}, ensure_ascii=False))

    def _pump(self) -> None:
        # Said before it is stored, its number could be given to another frame after a crash.
        if not self.linked.is_set() or self.spool.in_transaction:
            return
        while sum(self._sizes.values()) < _IN_FLIGHT_BYTES:
            batch = self.spool.after(self._sent_seq)
            if not batch:
                return
            for seq, text in batch:
                frame = json.loads(text)
                self._sent_seq = seq
                self._sizes[seq] = len(text)
                self._write(frame)
                if sum(self._sizes.values()) >= _IN_FLIGHT_BYTES:
                    return

    # -- life -----------------------------------------------------------------

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="iris-link")

    async def stop(self, flush_s: float = 3.0) -> None:
        give_up = time.monotonic() + flush_s
        while self.linked.is_set() and self.spool.unacked and time.monotonic() < give_up:
            await asyncio.sleep(0.02)
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def _run(self) -> None:
        while True:
            reason = "closed"
            try:
                await self._attempt()
            except LinkEnded as ended:
                logger.error("iris: the link has ended: %s", ended)
                self.on_ended(str(ended))
                return
            except asyncio.CancelledError:
                raise
            except Exception as error:  # noqa: BLE001 - whatever it was, the way on is another attempt
                reason = str(error) or type(error).__name__
            wait = _BACKOFF_S[min(self._failures, len(_BACKOFF_S) - 1)] * (0.5 + random.random())
            self._failures += 1
            logger.info("iris: link lost (%s), again in %.1f s", reason, wait)
            await asyncio.sleep(wait)

    async def _attempt(self) -> None:
        import websockets

        self._out = asyncio.Queue()
        headers = {"Authorization": f"Bearer {self.token}"}
        try:
            socket = await websockets.connect(
                self.url, additional_headers=headers, subprotocols=[SUBPROTOCOL], max_size=8 * 1024 * 1024, ping_interval=None, open_timeout=_GREET_S
            )
        except websockets.InvalidStatus as error:
            if error.response.status_code == 401:
                raise LinkEnded("auth") from error
            raise
        tasks: List[asyncio.Task[Any]] = []
        try:
            self._socket = socket
            self._heard_at = time.monotonic()
            hello = {**self.hello, "install_id": self.spool.install_id, "boot_id": self.boot_id, "last_seq": self.spool.in_seq, "open_turns": self.open_turns()}
            await socket.send(json.dumps({"v": 1, "type": "hello", "payload": hello}))
            await asyncio.wait_for(self._greet(socket), _GREET_S)
            tasks = [asyncio.create_task(work()) for work in (lambda: self._writer(socket), self._beat, self._deliveries)]
            reader = asyncio.create_task(self._reader(socket))
            tasks.append(reader)
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        except websockets.ConnectionClosed as error:
            code = error.rcvd.code if error.rcvd is not None else 1006
            if code in _FINAL_CLOSES:
                raise LinkEnded(_FINAL_CLOSES[code]) from error
            if code == 1012:
                self._failures = 0
            raise
        finally:
            self.linked.clear()
            self._socket = None
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            try:
                await asyncio.wait_for(socket.close(), 2)
            except Exception:  # noqa: BLE001 - it is gone either way
                pass

    async def _greet(self, socket: Any) -> None:
        while True:
            frame = json.loads(await socket.recv())
            if frame.get("type") == "error":
                logger.error("iris: refused: %s", frame.get("payload", {}).get("message"))
            if frame.get("type") != "hello.ack":
                continue
            ack = frame["payload"]
            first = self.spool.after(0, 1)
            # It knows less than it once had confirmed: it is not the gateway it was.
            if ack["last_seq"] < (first[0][0] if first else self.spool.next_seq) - 1:
                logger.warning("iris: the gateway has forgotten this installation; beginning anew")
                self.spool.start_over()
                raise ConnectionError("begin anew")
            self.spool.acked(ack["last_seq"])
            self._acked_seq = self._sent_seq = ack["last_seq"]
            self._sizes = {}
            self._heartbeat_s = ack["heartbeat_ms"] / 1000
            self._failures = 0
            self.linked.set()
            self._pump()
            self.on_linked(ack)
            return

    async def _writer(self, socket: Any) -> None:
        while True:
            await socket.send(await self._out.get())

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(self._heartbeat_s)
            if time.monotonic() - self._heard_at > _SILENT_BEATS * self._heartbeat_s:
                raise ConnectionError("silent")
            self._write({"type": "ping", "payload": {"ts": int(time.time() * 1000)}})

    async def _deliveries(self) -> None:
        while True:
            if any(True for _ in self.spool.take_deliveries()):
                self._pump()
            await asyncio.sleep(_DELIVERIES_S)

    async def _reader(self, socket: Any) -> None:
        async for text in socket:
            self._heard_at = time.monotonic()
            frame = json.loads(text)
            ack = frame.get("ack")
            if isinstance(ack, int) and ack > self._acked_seq:
                self._acked_seq = ack
                self.spool.acked(ack)
                for seq in [seq for seq in self._sizes if seq <= ack]:
                    del self._sizes[seq]
                self._pump()
            self._heard(frame)

    def _heard(self, frame: Frame) -> None:
        kind, seq = frame.get("type"), frame.get("seq")
        if kind == "ping":
            return self._write({"type": "pong", "payload": frame.get("payload", {})})
        if kind == "drain":
            # Come back by another door; what is unacked goes along.
            raise ConnectionError("drain")
        if isinstance(seq, int):
            if seq <= self.spool.in_seq:
                return self._write({"type": "ack", "payload": {}})
            if seq != self.spool.in_seq + 1:
                raise ConnectionError(f"seq {seq} after {self.spool.in_seq}")
        waiting = self._requests.get(str(frame.get("id")))
        if waiting is not None and not waiting.done():
            if kind == "error":
                waiting.set_exception(Refused(frame["payload"].get("message", "refused")))
            else:
                waiting.set_result(frame)
        # Stored with its number before it is acked: what it sets off is either begun or offered again.
        if isinstance(seq, int):
            with self.spool:
                self.on_frame(frame)
                self.spool.processed(seq)
            self._pump()
            self._write({"type": "ack", "payload": {}})
        elif kind not in ("ack", "pong", "hello.ack", "error"):
            self.on_frame(frame)
