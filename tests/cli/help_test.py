"""Help, exit codes, --quiet and colour, as a terminal and a script see them.   help_test.py PROGRAM"""
import os
import pty
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM = ""
COMMANDS = ("import", "download", "generate", "partition", "info", "train", "evaluate", "predict", "report", "reproduce")


def run(*words, columns=None, cwd=None, **variables):
    environment = {**os.environ, **variables}
    environment.pop("COLUMNS", None)
    if columns:
        environment["COLUMNS"] = str(columns)
    return subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, env=environment, cwd=cwd, timeout=120)


def in_terminal(*words, **variables):
    """What the program writes to a terminal, stdout and stderr together."""
    main, other = pty.openpty()
    environment = {**{k: v for k, v in os.environ.items() if k != "NO_COLOR"}, "TERM": "xterm", **variables}
    process = subprocess.Popen([PROGRAM, *words], stdout=other, stderr=other, stdin=other, env=environment)
    os.close(other)
    text = b""
    while True:
        try:
            piece = os.read(main, 4096)
        except OSError:  # its end
            break
        if not piece:
            break
        text += piece
    os.close(main)
    process.wait(60)
    return text.decode()


class Help(unittest.TestCase):
    def test_nothing_breaks_within_a_word_at_60_columns(self):
        for words in (("--help",), *((command, option) for command in COMMANDS for option in ("--help", "--help-all"))):
            with self.subTest(words=words):
                narrow, wide = run(*words, columns=60), run(*words, columns=100)
                self.assertEqual((narrow.returncode, wide.returncode), (0, 0))
                for line in narrow.stdout.splitlines():
                    self.assertTrue(len(line) <= 60 or " " not in line.strip(), line)
                self.assertEqual(narrow.stdout.split(), wide.stdout.split())  # the same words, whole
                self.assertLessEqual(max(map(len, wide.stdout.splitlines())), 100)

    def test_train_shows_a_dozen_options_first(self):
        short, whole = run("train", "--help").stdout, run("train", "--help-all").stdout
        count = lambda text: len(re.findall(r"^  (?:-\w, )?--", text, re.M))
        self.assertTrue(10 <= count(short) <= 16, count(short))
        self.assertGreater(count(whole), 50)
        self.assertIn("\nCompared methods:\n", whole)
        methods = whole.split("\nCompared methods:\n")[1].split("\n\n")[0]
        for option in ("--method", "--fanout", "--layer-nodes", "--control-variate"):
            self.assertIn(option, methods)
        self.assertIn("more options: clustergcn train --help-all", short)

    def test_help_command_is_the_same(self):
        self.assertEqual(run("help", "train").stdout, run("train", "--help").stdout)
        self.assertEqual(run("help").stdout, run("--help").stdout)

    def test_examples_can_be_pasted(self):
        """Every command has one, whole on its lines, with options that the command has."""
        for command in (None, *COMMANDS):
            with self.subTest(command=command):
                text = run(*([command] if command else []), "--help", columns=60).stdout
                examples = re.search(r"\nExamples?:\n((?:  .*\n)+)", text).group(1).replace("\\\n", "")
                for line in examples.splitlines():
                    words = line.split()
                    self.assertEqual(words[0], "clustergcn")
                    self.assertIn(words[1], COMMANDS if command is None else (command,))
                    known = run(words[1], "--help-all", columns=200).stdout
                    for option in filter(lambda word: word.startswith("-"), words):
                        self.assertRegex(known, rf"(?m)^  (-\w, )?{option}\b|^  {option}, ", line)

    def test_wrong_usage_exits_with_2(self):
        with tempfile.TemporaryDirectory() as folder:
            run("generate", "g", "--nodes", 300, "--quiet", cwd=folder)
            for words in ((), ("trian",), ("train", "--epohcs", 3), ("train",), ("train", "g", "--epochs", "many"),
                          ("train", "g", "--epochs", "0"), ("train", "g", "--method", "magic"), ("train", "g", "--recipe", "nothing"),
                          ("train", "--resume"), ("train", "g", "--live-port", 1), ("train", "g", "--memory", "much"),
                          ("evaluate",), ("predict",), ("report",), ("import", "g"), ("import", "a", "b", "--split", "1/2"),
                          ("generate", "h", "--split", "x"), ("reproduce", "--scale", "huge"), ("download", "nothing", "h"), ("help", "nothing"),
                          ("reproduce", "nothing"), ("train", "g", "--seeds", 0), ("train", "g", "--seeds", "x"), ("train", "g", "--run"),
                          ("info", "g", "h"), ("train", "g", "--live", "--live-port", 99999),
                          ("partition", "g", "--parts", "-1"), ("info",), ("train", "g", "--lr", 1, "--lr", 2)):
                with self.subTest(words=words):
                    done = run(*words, cwd=folder)
                    self.assertEqual(done.returncode, 2, done.stderr)
            for words in (("train", "nowhere"), ("info", "nowhere"), ("evaluate", "nowhere"), ("report", "nowhere"),
                          ("import", "nowhere", "h")):
                with self.subTest(words=words):
                    done = run(*words, cwd=folder)
                    self.assertEqual(done.returncode, 1, done.stderr)
                    self.assertRegex(done.stderr, r"\Aerror: nowhere")

    def test_wrong_usage_is_named_in_our_words(self):
        for words, text in ((("help", "trian"), "error: unknown command 'trian' (did you mean 'train'?)"),
                            (("evaluate",), "error: RUN is required"),
                            (("train", "g", "--run"), "error: --run needs a value: --run DIR"),
                            (("train", "g", "--seeds", 0), "error: --seeds: '0' is not a number from 1 to 10,000"),
                            (("info", "g", "h"), "error: unexpected argument: h"),
                            (("train", "g", "--live", "--live-port", 99999), "error: --live-port: '99999' is not a number that it takes"),
                            (("reproduce", "diagnal"), "error: NAME: unknown experiment 'diagnal'\nhint: clustergcn reproduce diagonal")):
            with self.subTest(words=words):
                self.assertTrue(run(*words).stderr.startswith(text), run(*words).stderr)

    def test_quiet_prints_the_result_alone(self):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "edges.csv").write_text("".join(f"{i},{(i + k) % 60}\n" for i in range(60) for k in (1, 2)))
            Path(folder, "labels.csv").write_text("".join(f"{i % 2}\n" for i in range(60)))
            Path(folder, "features.csv").write_text("".join(f"{i % 2},{i}\n" for i in range(60)))
            for words in (("import", "edges.csv", "g", "--split", "60/20/20"), ("generate", "h", "--nodes", 300), ("info", "g"),
                          ("partition", "g", "--parts", 2, "--transductive"),
                          ("train", "g", "--run", "r", "--epochs", 2, "--hidden", 4, "--residual", "--layers", 2, "--transductive"),
                          ("evaluate", "r"), ("predict", "r"), ("predict", "r", "--output", "p.csv"), ("report", "r")):
                with self.subTest(words=words):
                    done = run(*words, "--quiet", cwd=folder)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertIn(done.stderr.partition(":")[0], ("", "note"))  # an option without effect is named all the same
                    self.assertTrue(done.stdout or "--output" in words)  # there the result is the file
            noisy = run("train", "g", "--run", "s", "--epochs", 2, "--residual", "--layers", 2, "--transductive", cwd=folder)
            self.assertIn("note: no effect: --residual", noisy.stderr)
            self.assertNotRegex(noisy.stdout, r"\b0 (B|ms)\b")  # what is zero is left out
            self.assertNotIn("history", noisy.stdout)

    def test_colour_where_the_terminal_has_it(self):
        for words in (("train", "--help"), ("train", "nowhere")):
            self.assertIn("\x1b[", in_terminal(*words).replace("\r\x1b[K", ""))
            self.assertNotIn("\x1b[", in_terminal(*words, NO_COLOR="1").replace("\r\x1b[K", ""))
            self.assertNotIn("\x1b[", in_terminal(*words, TERM="dumb").replace("\r\x1b[K", ""))
            done = run(*words)
            self.assertNotIn("\x1b[", done.stdout + done.stderr)
        self.assertIn("\x1b[1;31merror:\x1b[0m nowhere", in_terminal("train", "nowhere"))


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
