import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))

from iris.adapter import _CRON_HEADER, inside, outside, unmarked  # noqa: E402
from iris.commands import catalog  # noqa: E402
from iris.forgetting import without  # noqa: E402
from iris.turns import output_of, preview_of, without_cursor  # noqa: E402


class WordsTest(unittest.TestCase):
    def test_chat_ids_lose_their_prefix_inside_and_get_it_back(self):
        for outer, inner in (("android:default", "default"), ("android:chan_7", "chan_7")):
            self.assertEqual((inside(outer), outside(inner), outside(outer)), (inner, outer, outer))

    def test_the_cursor_of_unfinished_text(self):
        self.assertEqual([without_cursor(text) for text in ("so ▉", "so▉", "so", "▉", "a ▉ b")], ["so", "so", "so", "", "a ▉ b"])

    def test_the_argument_that_says_most(self):
        self.assertEqual(preview_of({"timeout": 3, "command": "ls\n  -l"}), "ls -l")
        self.assertEqual(preview_of({"other": "word"}), "word")
        self.assertIsNone(preview_of({"n": 1}))
        self.assertEqual(len(preview_of({"command": "x" * 1_000}) or ""), 300)

    def test_the_end_of_what_a_tool_gave_back(self):
        self.assertEqual(output_of('{"output": "done\\n", "exit_code": 0}'), "done")
        self.assertEqual(output_of({"error": "no such file"}), "no such file")
        self.assertEqual(output_of("plain"), "plain")
        self.assertEqual(len(output_of("x" * 5_000)), 2_000)
        self.assertEqual(output_of("[1]"), "[1]")

    def test_deleting_takes_the_newest_that_says_it_with_its_tools(self):
        transcript = [
            {"role": "user", "content": "list"},
            {"role": "assistant", "content": "Let me look", "tool_calls": [{"id": "c1"}]},
            {"role": "tool", "tool_call_id": "c1", "content": "a b"},
            {"role": "assistant", "content": "Two files"},
            {"role": "user", "content": "[context]\n\nlist"},
            {"role": "assistant", "content": "Two files"},
        ]
        self.assertEqual(without(transcript, "assistant", "Let me look"), [transcript[0], *transcript[3:]])
        self.assertEqual(without(transcript, "assistant", " Two files "), transcript[:5])
        self.assertEqual(without(transcript, "user", "list"), [*transcript[:4], transcript[5]])
        self.assertIs(without(transcript, "user", "nothing of the kind"), transcript)
        self.assertIs(without(transcript, "user", "  "), transcript)

    def test_what_comes_by_itself(self):
        self.assertTrue(_CRON_HEADER.match("Cronjob Response: weather\n-----\n\nSnow"))
        self.assertFalse(_CRON_HEADER.match("The cron job is set up"))

    def test_the_mark_of_a_recovered_reply_goes(self):
        from gateway import delivery_ledger

        marks = [value for name, value in vars(delivery_ledger).items() if name.endswith("_MARKER") and isinstance(value, str)]
        self.assertTrue(marks)
        for mark in marks:
            self.assertEqual(unmarked(mark + "The answer"), "The answer", mark)
        self.assertEqual(unmarked("Recovered files:\nfour"), "Recovered files:\nfour")

    def test_the_catalog_has_what_this_hermes_can(self):
        commands, rev = catalog()
        names = [one["name"] for one in commands]
        self.assertTrue({"/new", "/model", "/status", "/stop"} <= set(names))
        self.assertFalse({"/restart", "/update", "/approve"} & set(names))
        self.assertEqual((len(names), rev), (len(set(names)), catalog()[1]))


if __name__ == "__main__":
    unittest.main()
