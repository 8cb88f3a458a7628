"""What must outlive the process, in one SQLite file: numbers, frames that the gateway has not confirmed, turns, words that were said.

Written on the event loop's thread alone, each call one transaction: what a call has returned from survives a crash of the process.
"""

from __future__ import annotations

import json
import os
import sqlite3
import uuid
from typing import Any, Dict, Iterator, List, Optional, Tuple

Frame = Dict[str, Any]

_TABLES = """
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS frames (seq INTEGER PRIMARY KEY, frame TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS turns (turn_id TEXT PRIMARY KEY, chat_id TEXT NOT NULL, thread_id TEXT, state TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS said (message_id TEXT PRIMARY KEY, chat_id TEXT NOT NULL, thread_id TEXT, role TEXT NOT NULL, text TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS deliveries (id TEXT PRIMARY KEY, frame TEXT NOT NULL);
"""
# Turns that ended are remembered this long, so that one offered again is known; words as long as they can be deleted one by one.
_ENDED_TURNS = 2_000
_SAID = 20_000


class Spool:
    def __init__(self, path: str) -> None:
        if path != ":memory:":
            os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=10)
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=NORMAL")
        self._db.executescript(_TABLES)
        if self._get("install_id") is None:
            self._set("install_id", uuid.uuid4().hex)
        self.install_id: str = self._get("install_id") or ""
        self.next_seq = int(self._get("next_seq") or 1)
        self.in_seq = int(self._get("in_seq") or 0)

    def _get(self, key: str) -> Optional[str]:
        row = self._db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if row is None else row[0]

    def _set(self, key: str, value: Any) -> None:
        self._db.execute("INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value", (key, str(value)))

    def __enter__(self) -> "Spool":
        self._db.execute("BEGIN IMMEDIATE")
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        self._db.execute("ROLLBACK" if kind else "COMMIT")
        if kind:
            self.next_seq, self.in_seq = int(self._get("next_seq") or 1), int(self._get("in_seq") or 0)

    @property
    def in_transaction(self) -> bool:
        """Whether what was kept last may still be lost: it must not be said yet."""
        return self._db.in_transaction

    # -- frames of ours -------------------------------------------------------

    def keep(self, frame: Frame) -> Frame:
        """Number a frame and keep it until the gateway has it."""
        numbered = {**frame, "seq": self.next_seq}
        own = not self._db.in_transaction
        if own:
            self._db.execute("BEGIN IMMEDIATE")
        try:
            self._db.execute("INSERT INTO frames VALUES (?, ?)", (self.next_seq, json.dumps(numbered, ensure_ascii=False)))
            self._set("next_seq", self.next_seq + 1)
        except BaseException:
            if own:
                self._db.execute("ROLLBACK")
            raise
        if own:
            self._db.execute("COMMIT")
        self.next_seq += 1
        return numbered

    def after(self, seq: int, limit: int = 200) -> List[Tuple[int, str]]:
        return list(self._db.execute("SELECT seq, frame FROM frames WHERE seq > ? ORDER BY seq LIMIT ?", (seq, limit)))

    @property
    def unacked(self) -> int:
        return int(self._db.execute("SELECT count(*) FROM frames").fetchone()[0])

    def acked(self, seq: int) -> None:
        self._db.execute("DELETE FROM frames WHERE seq <= ?", (seq,))

    def start_over(self) -> None:
        """The gateway has forgotten this installation: be another, which still says what the old one had not delivered."""
        with self:
            waiting = [json.loads(frame) for _, frame in self.after(0, 1_000_000)]
            self._db.execute("DELETE FROM frames")
            self.install_id, self.next_seq, self.in_seq = uuid.uuid4().hex, 1, 0
            self._set("install_id", self.install_id)
            self._set("next_seq", 1)
            self._set("in_seq", 0)
            for frame in waiting:
                self.keep(frame)

    # -- frames of the gateway ------------------------------------------------

    def processed(self, seq: int) -> None:
        self._set("in_seq", seq)
        self.in_seq = seq

    # -- turns ----------------------------------------------------------------

    def turn(self, turn_id: str) -> Optional[str]:
        row = self._db.execute("SELECT state FROM turns WHERE turn_id = ?", (turn_id,)).fetchone()
        return None if row is None else row[0]

    def set_turn(self, turn_id: str, chat_id: str, thread_id: Optional[str], state: str) -> None:
        self._db.execute("INSERT OR REPLACE INTO turns VALUES (?, ?, ?, ?)", (turn_id, chat_id, thread_id, state))
        if state == "ended":
            self._db.execute(
                "DELETE FROM turns WHERE state = 'ended' AND rowid NOT IN (SELECT rowid FROM turns ORDER BY rowid DESC LIMIT ?)", (_ENDED_TURNS,)
            )

    def open_turns(self) -> List[Tuple[str, str, Optional[str]]]:
        return list(self._db.execute("SELECT turn_id, chat_id, thread_id FROM turns WHERE state <> 'ended' ORDER BY rowid"))

    # -- what was said, for deletions -----------------------------------------

    def said(self, message_id: str, chat_id: str, thread_id: Optional[str], role: str, text: str) -> None:
        self._db.execute("INSERT OR REPLACE INTO said VALUES (?, ?, ?, ?, ?)", (message_id, chat_id, thread_id, role, text))
        if self.next_seq % 100 == 0:
            self._db.execute("DELETE FROM said WHERE rowid NOT IN (SELECT rowid FROM said ORDER BY rowid DESC LIMIT ?)", (_SAID,))

    def words(self, message_id: str) -> Optional[Tuple[str, Optional[str], str, str]]:
        """chat_id, thread_id, role and text."""
        return self._db.execute("SELECT chat_id, thread_id, role, text FROM said WHERE message_id = ?", (message_id,)).fetchone()

    def forget(self, message_id: str) -> None:
        self._db.execute("DELETE FROM said WHERE message_id = ?", (message_id,))

    # -- handed over by another process (cron that runs outside the gateway) ---

    def deliver(self, frame: Frame) -> str:
        delivery_id = uuid.uuid4().hex
        self._db.execute("INSERT INTO deliveries VALUES (?, ?)", (delivery_id, json.dumps(frame, ensure_ascii=False)))
        return delivery_id

    def take_deliveries(self) -> Iterator[Frame]:
        """Each becomes a frame of ours in the transaction that takes it away."""
        for delivery_id, frame in list(self._db.execute("SELECT id, frame FROM deliveries ORDER BY rowid")):
            with self:
                numbered = self.keep(json.loads(frame))
                self._db.execute("DELETE FROM deliveries WHERE id = ?", (delivery_id,))
            yield numbered

    def close(self) -> None:
        self._db.close()
