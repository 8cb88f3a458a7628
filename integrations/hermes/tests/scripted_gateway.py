"""The gateway's side of the agent link for one agent, in memory, over a real WebSocket. What breaks the contract stands in `faults`."""

from __future__ import annotations

import json
from typing import Any, Dict, List, Optional

import websockets


class ScriptedGateway:
    def __init__(self) -> None:
        self.faults: List[str] = []
        self.kept: List[Dict[str, Any]] = []
        self.passing: List[Dict[str, Any]] = []
        self.hellos: List[Dict[str, Any]] = []
        self.answers: Dict[str, Dict[str, Any]] = {}
        self.in_seq = 0
        self.out: List[Dict[str, Any]] = []
        self.out_seq = 0
        self.install_id: Optional[str] = None
        self.turns: List[Dict[str, Any]] = []
        self.acking = True
        self.refuse: Optional[int] = None
        self.socket: Any = None
        self._texts: Dict[int, str] = {}

    async def __aenter__(self) -> "ScriptedGateway":
        self._server = await websockets.serve(self._serve, "127.0.0.1", 0, subprotocols=["iris-agent.v1"], ping_interval=None)
        self.url = f"ws://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/agent"
        return self

    async def __aexit__(self, *_: Any) -> None:
        self._server.close()
        await self._server.wait_closed()

    async def _serve(self, socket: Any) -> None:
        if self.refuse is not None:
            return await socket.close(self.refuse, "refused")
        self.socket = socket
        try:
            async for text in socket:
                await self._heard(socket, json.loads(text))
        except websockets.ConnectionClosed:
            pass

    async def _write(self, socket: Any, frame: Dict[str, Any]) -> None:
        await socket.send(json.dumps({"v": 1, "ack": self.in_seq, **frame}))

    async def _heard(self, socket: Any, frame: Dict[str, Any]) -> None:
        if frame["type"] == "hello":
            payload = frame["payload"]
            self.hellos.append(payload)
            if self.install_id != payload["install_id"]:
                self.install_id, self.in_seq, self._texts = payload["install_id"], 0, {}
                for number, kept in enumerate(self.out, 1):
                    kept["seq"] = number
                self.out_seq = len(self.out)
            self._acked(payload["last_seq"])
            ack = {"link_id": "l", "epoch": len(self.hellos), "last_seq": self.in_seq, "heartbeat_ms": 20_000, "turns": self.turns, "channels": []}
            await socket.send(json.dumps({"v": 1, "type": "hello.ack", "payload": ack}))
            for kept in list(self.out):
                await self._write(socket, kept)
            return
        self._acked(frame.get("ack", 0))
        seq = frame.get("seq")
        if seq is None:
            if frame.get("id") in self.answers or frame["type"] in ("history", "media.request"):
                await self._write(socket, {**self.answers[frame["type"]], "id": frame["id"]})
            self.passing.append(frame)
            return
        bare = json.dumps({key: value for key, value in frame.items() if key != "ack"}, sort_keys=True)
        if seq <= self.in_seq:
            if self._texts[seq] != bare:
                self.faults.append(f"seq {seq} came again as another frame")
        elif seq != self.in_seq + 1:
            self.faults.append(f"seq {seq} after {self.in_seq}")
        else:
            self.in_seq, self._texts[seq] = seq, bare
            self.kept.append(frame)
            if frame["type"] in self.answers:
                await self.tell({**self.answers[frame["type"]], "id": frame["id"]})
        if self.acking:
            await self._write(socket, {"type": "ack", "payload": {}})

    def _acked(self, seq: int) -> None:
        if seq > self.out_seq:
            self.faults.append(f"ack {seq} of what was not sent")
        self.out = [kept for kept in self.out if kept["seq"] > seq]

    async def tell(self, frame: Dict[str, Any]) -> None:
        self.out_seq += 1
        numbered = {**frame, "seq": self.out_seq}
        self.out.append(numbered)
        if self.socket is not None:
            await self._write(self.socket, numbered)

    async def start_turn(self, turn_id: str, text: str = "hello") -> None:
        self.turns.append({"turn_id": turn_id, "chat_id": "android:default", "thread_id": None, "state": "sent"})
        message = {"message_id": f"u_{turn_id}", "text": text, "ts": 1}
        await self.tell(
            {"type": "turn.start", "chat_id": "android:default", "thread_id": None, "turn_id": turn_id, "payload": {"message": message, "kind": "chat", "attempt": 1}}
        )

    async def cut(self) -> None:
        self.socket.transport.abort()

    def types(self) -> List[str]:
        return [frame["type"] for frame in self.kept]
