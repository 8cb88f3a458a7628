import asyncio
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))

from iris.link import Link, Refused  # noqa: E402
from iris.spool import Spool  # noqa: E402
from iris.turns import Turns  # noqa: E402
from scripted_gateway import ScriptedGateway  # noqa: E402

LANE = ("android:default", None)


async def until(what, within_s: float = 5.0):
    for _ in range(int(within_s / 0.01)):
        if what():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it does not come")


def note(number: int):
    return {"type": "notification", "chat_id": LANE[0], "payload": {"kind": "generic", "title": "t", "body": str(number)}}


class WithSpool(unittest.IsolatedAsyncioTestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = os.path.join(folder.name, "deep", "spool.db")
        self.links = []

    async def asyncTearDown(self):
        for link in self.links:
            await link.stop(0)

    def link(self, gateway, begin: bool = True) -> Link:
        """A process: another one on the same file is the process after it."""
        link = Link(gateway.url, "token", Spool(self.file))
        link.hello = {"agent": "hermes"}
        self.links.append(link)
        if begin:
            link.start()
        return link


class LinkTest(WithSpool):
    async def test_what_is_said_while_nobody_is_there_comes_in_order(self):
        async with ScriptedGateway() as gateway:
            link = self.link(gateway, begin=False)
            for number in range(300):
                link.say(note(number))
            link.start()
            await until(lambda: len(gateway.kept) == 300)
            self.assertEqual([frame["payload"]["body"] for frame in gateway.kept], [str(n) for n in range(300)])
            await until(lambda: link.spool.unacked == 0)
            self.assertEqual(gateway.faults, [])

    async def test_a_lost_connection_loses_and_repeats_nothing(self):
        async with ScriptedGateway() as gateway:
            link = self.link(gateway)
            for number in range(60):
                link.say(note(number))
                if number % 10 == 5:
                    await until(lambda: link.linked.is_set())
                    await gateway.cut()
                    await until(lambda: not link.linked.is_set())
                await asyncio.sleep(0.002)
            await until(lambda: len(gateway.kept) == 60, 20)
            self.assertEqual([frame["payload"]["body"] for frame in gateway.kept], [str(n) for n in range(60)])
            self.assertEqual(gateway.faults, [])
            self.assertEqual({hello["install_id"] for hello in gateway.hellos}, {link.spool.install_id})

    async def test_the_process_after_says_what_the_one_before_had_kept(self):
        async with ScriptedGateway() as gateway:
            gateway.acking = False
            first = self.link(gateway)
            first.say(note(1))
            await until(lambda: len(gateway.kept) == 1)
            # Killed: nothing is closed, nothing is told.
            first._task.cancel()
            gateway.acking = True
            second = self.link(gateway)
            second.say(note(2))
            await until(lambda: len(gateway.kept) == 2)
            self.assertEqual(gateway.faults, [])
            self.assertEqual(gateway.hellos[0]["install_id"], gateway.hellos[1]["install_id"])
            self.assertNotEqual(gateway.hellos[0]["boot_id"], gateway.hellos[1]["boot_id"])

    async def test_a_frame_of_the_gateway_is_handled_once(self):
        async with ScriptedGateway() as gateway:
            heard = []
            first = self.link(gateway, begin=False)
            first.on_frame = lambda frame: heard.append(frame["seq"])
            first.start()
            await until(lambda: first.linked.is_set())
            for _ in range(5):
                await gateway.tell({"type": "channel.renamed", "payload": {"chat_id": "c", "name": "n"}})
            await until(lambda: len(heard) == 5)
            gateway.out = [{"type": "channel.renamed", "payload": {"chat_id": "c", "name": "n"}, "seq": 5}]
            await gateway.cut()
            await until(lambda: len(gateway.hellos) == 2)
            await gateway.tell({"type": "channel.renamed", "payload": {"chat_id": "c", "name": "n"}})
            await until(lambda: len(heard) == 6)
            self.assertEqual(heard, [1, 2, 3, 4, 5, 6])

    async def test_what_a_handler_could_not_store_is_offered_again(self):
        async with ScriptedGateway() as gateway:
            link = self.link(gateway, begin=False)
            failures = [OSError("disk full")]

            def handle(frame):
                link.say(note(1))
                if failures:
                    raise failures.pop()

            link.on_frame = handle
            link.start()
            await gateway.tell({"type": "channel.renamed", "payload": {"chat_id": "c", "name": "n"}})
            await until(lambda: len(gateway.kept) == 1)
            await asyncio.sleep(0.1)
            self.assertEqual((len(gateway.kept), gateway.faults), (1, []))

    async def test_a_gateway_that_has_forgotten_us_is_told_what_is_owed_under_another_name(self):
        async with ScriptedGateway() as gateway:
            link = self.link(gateway)
            for number in range(3):
                link.say(note(number))
            await until(lambda: link.spool.unacked == 0)
            gateway.install_id, gateway.in_seq, gateway.kept = None, 0, []
            await gateway.cut()
            link.say(note(3))
            await until(lambda: [frame["payload"]["body"] for frame in gateway.kept] == ["3"])
            self.assertEqual(gateway.faults, [])

    async def test_a_refused_token_ends_it(self):
        for code, reason in ((4401, "auth"), (4403, "revoked"), (4409, "replaced")):
            async with ScriptedGateway() as gateway:
                gateway.refuse = code
                ended = []
                link = self.link(gateway, begin=False)
                link.on_ended = ended.append
                link.start()
                await until(lambda: ended == [reason])
                await asyncio.sleep(0.5)
                self.assertEqual(len(gateway.hellos), 0)

    async def test_requests_are_answered_or_refused(self):
        async with ScriptedGateway() as gateway:
            gateway.answers["channel.create"] = {"type": "channel.created", "payload": {"chat_id": "c", "thread_id": "t_1", "name": "n"}}
            gateway.answers["media.request"] = {"type": "error", "payload": {"code": "unsupported", "message": "no media here"}}
            link = self.link(gateway)
            await until(lambda: link.linked.is_set())
            answer = await link.request({"type": "channel.create", "payload": {"name": "n"}}, durable=True)
            self.assertEqual(answer["payload"]["thread_id"], "t_1")
            with self.assertRaisesRegex(Refused, "no media here"):
                await link.request({"type": "media.request", "payload": {}})

    async def test_another_process_hands_over_what_the_running_one_says(self):
        async with ScriptedGateway() as gateway:
            link = self.link(gateway)
            await until(lambda: link.linked.is_set())
            beside = Spool(self.file)
            beside.deliver({"type": "message", "chat_id": LANE[0], "payload": {"message_id": "m", "role": "cron", "text": "seven o'clock"}})
            beside.close()
            await until(lambda: gateway.types() == ["message"])
            self.assertEqual(link.spool.next_seq, 2)


class TurnsTest(WithSpool):
    def turns(self, link) -> Turns:
        turns = Turns(link, lambda: 2_000)
        link.open_turns = lambda: list(turns.open)

        def linked(ack):
            for turn in list(turns.open.values()):
                turns.snapshot(turn)

        link.on_linked = linked
        link.on_frame = lambda frame: turns.accept(frame) if frame["type"] == "turn.start" else None
        return turns

    async def begun(self, gateway):
        link = self.link(gateway, begin=False)
        turns = self.turns(link)
        turns.interrupted_before()
        link.start()
        await gateway.start_turn("tn_1")
        await until(lambda: "tn_1" in turns.open and "turn.accepted" in gateway.types())
        return link, turns, turns.open["tn_1"]

    async def test_a_turn_with_all_that_it_can_say(self):
        async with ScriptedGateway() as gateway:
            link, turns, turn = await self.begun(gateway)
            turn.model, turn.tokens, turn.context_tokens, turn.reasoning = "small", 9, 500, "because"
            message_id = turns.start_message(turn, "Let me ▉")
            turns.update_message(turn, message_id, "Let me look ▉")
            turns.stop_message(turn, message_id, "Let me look")
            turns.tool_started(turn, "call_1", "terminal", {"command": "ls  -l\n /"})
            turns.tool_ended(turn, "call_1", "terminal", '{"output": "two files", "exit_code": 0}', True, 1234)
            turns.whole_message(LANE, turn, "Two files", "assistant")
            turns.end(turn, "completed")
            await until(lambda: "turn.end" in gateway.types())
            payloads = {frame["type"]: frame["payload"] for frame in gateway.kept}
            self.assertEqual(
                gateway.types(),
                ["turn.accepted", "message.start", "message.stop", "tool.start", "agent.busy", "tool.end", "agent.busy", "message", "turn.end"],
            )
            self.assertEqual(payloads["message.stop"]["final_text"], "Let me look")
            self.assertEqual(payloads["message.stop"]["reasoning"], "because")
            self.assertEqual(payloads["message.stop"]["runtime"]["context_pct"], 25)
            self.assertNotIn("reasoning", payloads["message"])
            self.assertEqual(payloads["tool.start"], {"index": 0, "name": "terminal", "preview": "ls -l /", "args": {"command": "ls  -l\n /"}})
            self.assertEqual(payloads["tool.end"], {"index": 0, "name": "terminal", "ok": True, "output_preview": "two files", "duration": 1.234})
            self.assertEqual([frame["payload"]["text"] for frame in gateway.passing if frame["type"] == "message.update"], ["Let me", "Let me look"])
            self.assertEqual(link.spool.turn("tn_1"), "ended")

    async def test_ending_closes_what_is_open(self):
        async with ScriptedGateway() as gateway:
            _, turns, turn = await self.begun(gateway)
            answers = []

            async def answer(value):
                answers.append(value)

            turns.start_message(turn, "half a sen ▉")
            turns.tool_started(turn, "call_1", "terminal", {})
            picker_id = turns.ask("choice", {"choices": []}, LANE, answer, 60)
            turns.end(turn, "failed", "it broke")
            await until(lambda: "turn.end" in gateway.types())
            payloads = {frame["type"]: frame["payload"] for frame in gateway.kept}
            self.assertEqual(payloads["message.stop"]["final_text"], "half a sen")
            self.assertEqual(payloads["tool.end"]["ok"], False)
            self.assertEqual(payloads["picker.closed"], {"picker_id": picker_id, "reason": "turn_ended"})
            self.assertEqual(payloads["turn.end"], {"outcome": "failed", "error": "it broke"})
            self.assertIsNone(turns.answered(picker_id, "late"))

    async def test_a_snapshot_after_a_lost_connection(self):
        async with ScriptedGateway() as gateway:
            _, turns, turn = await self.begun(gateway)
            message_id = turns.start_message(turn, "so far")
            turns.tool_started(turn, "call_1", "terminal", {"command": "ls"})
            await until(lambda: len(gateway.kept) >= 4)
            await gateway.cut()
            await until(lambda: "turn.snapshot" in gateway.types())
            self.assertEqual(gateway.hellos[-1]["open_turns"], ["tn_1"])
            self.assertEqual(
                gateway.kept[-1]["payload"],
                {
                    "messages": [{"message_id": message_id, "role": "assistant", "text": "so far"}],
                    "tools": [{"index": 0, "name": "terminal", "preview": "ls"}],
                    "pickers": [],
                    "reason": "tool",
                },
            )

    async def test_a_turn_that_a_dead_process_had_begun_is_told_as_interrupted_and_never_begun_again(self):
        async with ScriptedGateway() as gateway:
            first, _, _ = await self.begun(gateway)
            first._task.cancel()
            second = self.link(gateway, begin=False)
            turns = self.turns(second)
            turns.interrupted_before()
            second.start()
            await gateway.start_turn("tn_1")
            await until(lambda: "turn.end" in gateway.types())
            await asyncio.sleep(0.1)
            self.assertEqual(turns.open, {})
            self.assertEqual(gateway.types().count("turn.accepted"), 1)
            self.assertEqual(gateway.kept[-1]["payload"], {"outcome": "interrupted"})

    async def test_a_question_and_its_first_answer(self):
        async with ScriptedGateway() as gateway:
            _, turns, turn = await self.begun(gateway)
            answers = []

            async def answer(value):
                answers.append(value)

            picker_id = turns.ask("approval", {"choices": [{"value": "once", "label": "Once"}]}, LANE, answer, 60)
            await turns.answered(picker_id, "once")
            self.assertIsNone(turns.answered(picker_id, "deny"))
            await until(lambda: gateway.types()[-1] == "agent.busy")
            self.assertEqual(answers, ["once"])
            self.assertEqual([frame["payload"]["reason"] for frame in gateway.kept if frame["type"] == "agent.busy"], ["waiting_input", "processing"])


if __name__ == "__main__":
    unittest.main()
