"""The checker of documents complains where it should."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE))

import blocks  # noqa: E402
import links  # noqa: E402
import run  # noqa: E402


class Blocks(unittest.TestCase):
    def test_kinds(self):
        found = blocks.read("```sh\na\n```\n```sh not here: needs a GPU\nb\n```\n```text\nc\n```\n")
        self.assertEqual([(block.language, block.why_not, block.text) for block in found],
                         [("sh", "", "a\n"), ("sh", "needs a GPU", "b\n"), ("text", "", "c\n")])

    def test_what_is_refused(self):
        for text in ("```sh\n", "```console where\n```\n", "```sh perhaps\n```\n", "```\ncarma queue \n```\n", "```text\n$ ls\n```\n",
                     "```\nscript/build\n```\n"):
            with self.assertRaises(ValueError, msg=text):
                blocks.read(text)

    def test_steps(self):
        block, = blocks.read("```console\n$ one \\\n> two\nout\n$ three\n```\n")
        self.assertEqual(blocks.steps(block), [("one \\\ntwo", ["out"]), ("three", [])])

    def test_alike(self):
        self.assertEqual(run.alike("job  12  1:02:03 /tmp/x/here/log", "/tmp/x/here"), "job # # ~/log")
        self.assertEqual(run.alike("  0 ██▎░░ 15.0 GiB 2.00 MJ x", "/h"), run.alike("  1 ██████ 900.0 MiB 275.7 kJ x", "/h"))
        self.assertEqual(run.alike("free; 3.6 GiB were used", "/h"), run.alike("free; ? were used", "/h"))
        self.assertNotEqual(run.alike("job 1 QUEUED", "/h"), run.alike("job 1 RUNNING", "/h"))
        self.assertTrue(run.matches(["a", "...", "d"], ["a", "b", "c", "d"]))
        self.assertFalse(run.matches(["a", "...", "d"], ["a", "b"]))
        self.assertFalse(run.matches(["a"], ["a", "b"]))


class Links(unittest.TestCase):
    def test_broken(self):
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder, "page.md")
            page.write_text("# A [head](page.md), & `more`\n[good](page.md#a-head--more) [good](#a-head--more) [web](https://x/y)\n"
                            "```\n[no](link.md)\n# no heading\n```\n[gone](gone.md) [lost](page.md#no-heading) [off](#off)\n",
                            encoding="utf-8")
            self.assertEqual([complaint.partition("links to ")[2] for complaint in links.broken_links(page)],
                             ["gone.md, which is not there", "page.md#no-heading, and there is no such heading",
                              "#off, and there is no such heading"])


class Runs(unittest.TestCase):
    def run_document(self, text, **environment):
        with tempfile.TemporaryDirectory() as source:
            pathlib.Path(source, "page.md").write_text(text, encoding="utf-8")
            done = subprocess.run([sys.executable, str(HERE / "run.py"), "/usr", source, "page.md"], capture_output=True,
                                  text=True, check=False, env={**os.environ, **environment})
            return done.returncode, done.stderr

    def test_passes(self):
        page = "```sh\nx=5; touch made\nsleep 1000 &\n```\n```console\n$ echo $x is here\n7 is here\n$ ls\nmade\n```\n" \
               "```console where: false\n$ false\nno\n```\n```console on a terminal\n$ sh -c 'trap \"echo x\" INT; echo 1; sleep 9; sleep 9'\n" \
               "2\n^C\nx\n^C\nx\n$ sh\n$ exit 3\n$ echo $?\n3\n```\n```python\nprint(1)\n```\n"
        self.assertEqual(self.run_document(page), (0, ""))

    def test_fails(self):
        for page, said in {"```sh\ntrue\nfalse\ntrue\n```\n": "exit status 1: false",
                           "```console\n$ echo other\nwords\n```\n": "not as the document has it",
                           "```sh\nexit 3\n```\n": "did not end",
                           "```console on a terminal\n$ echo a\nb\n```\n": "the terminal shows",
                           "```console\n$ false; echo $?\n2\n```\n": "not as the document has it",
                           "```python\nraise ValueError\n```\n": "ValueError"}.items():
            status, complaints = self.run_document(page, PATIENCE_S="2")
            self.assertEqual(status, 1, page)
            self.assertIn(said, complaints)


unittest.main()
