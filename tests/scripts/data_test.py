# SPDX-License-Identifier: Apache-2.0
"""What scripts/data promises, with a server on the loopback interface and small files in place of the data sets."""

import contextlib
import hashlib
import http.server
import importlib.machinery
import importlib.util
import io
import os
import pathlib
import random
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "data"
CONTENT = random.Random(1).randbytes(3_000_000)
HALF = len(CONTENT) // 2

loader = importlib.machinery.SourceFileLoader("data", str(SCRIPT))
sys.dont_write_bytecode = True
data = importlib.util.module_from_spec(importlib.util.spec_from_loader("data", loader))
loader.exec_module(data)
REAL_SETS = dict(data.DATA_SETS)


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves server.files; what goes wrong with one stands in server.faults."""

    def do_GET(self):
        server = self.server
        asked = self.headers.get("Range")
        server.requests.append((self.path, asked))
        content = server.files.get(self.path)
        fault = server.faults.pop(0) if server.faults else None
        if content is None or fault == "absent":
            return self.send_error(404)
        start = int(asked[len("bytes="):-1]) if asked and server.ranges else 0
        if start >= len(content):
            return self.send_error(416)
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        if fault == "cut":
            self.wfile.write(content[start:start + HALF])
        elif fault == "stall":
            self.wfile.write(content[start:start + HALF])
            self.wfile.flush()
            server.stalled.set()
            server.go_on.wait(60)
        else:
            self.wfile.write(content[start:])

    def log_message(self, *_):
        pass


class DataTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="acc-data-")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name) / "set"
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.files = {"/a/file.bin": CONTENT, "/b/file.bin": CONTENT}
        self.server.faults, self.server.requests, self.server.ranges = [], [], True
        self.server.stalled, self.server.go_on = threading.Event(), threading.Event()
        thread = threading.Thread(target=self.server.serve_forever, args=[0.01])
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.addCleanup(self.server.go_on.set)
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        self.use(data.File("file.bin", hashlib.sha256(CONTENT).hexdigest()))

    def use(self, file, unpack=None):
        data.DATA_SETS["mnist"] = data.DataSet([f"{self.address}/a/", f"{self.address}/b/"], [file], unpack)

    def run_script(self, *arguments):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = data.main(["mnist", "--folder", str(self.folder), *arguments])
        self.said = err.getvalue()
        return code, out.getvalue().strip()

    def names(self):
        return sorted(path.name for path in self.folder.iterdir() if path.name != ".lock")

    def test_downloads_once_and_prints_the_folder(self):
        self.assertEqual(self.run_script(), (0, str(self.folder)))
        self.assertEqual((self.folder / "file.bin").read_bytes(), CONTENT)
        self.assertEqual(self.names(), ["file.bin"])
        self.assertIn("file.bin: 100 % of 2.9 MiB", self.said)
        self.assertEqual(self.run_script(), (0, str(self.folder)))
        self.assertEqual(len(self.server.requests), 1)

    def test_the_second_mirror_continues_what_the_first_began(self):
        self.server.faults = ["cut"]
        self.assertEqual(self.run_script()[0], 0)
        self.assertEqual((self.folder / "file.bin").read_bytes(), CONTENT)
        self.assertEqual(self.server.requests, [("/a/file.bin", None), ("/b/file.bin", f"bytes={HALF}-")])

    def test_a_cut_download_leaves_no_half_file_and_is_resumed(self):
        self.server.faults = ["cut", "absent"]
        self.assertEqual(self.run_script(), (1, ""))
        self.assertRegex(self.said, r"error: mnist: http://\S+/a/file\.bin: .*; http://\S+/b/file\.bin: .*404")
        self.assertEqual(self.names(), ["file.bin.part"])
        self.assertEqual(self.run_script()[0], 0)
        self.assertEqual(self.names(), ["file.bin"])
        self.assertEqual((self.folder / "file.bin").read_bytes(), CONTENT)
        self.assertEqual(self.server.requests[-1], ("/a/file.bin", f"bytes={HALF}-"))

    def test_a_killed_script_leaves_no_half_file_and_is_resumed(self):
        self.server.faults = ["stall"]
        program = (f"import importlib.machinery as m, sys; sys.dont_write_bytecode = True\n"
                   f"data = m.SourceFileLoader('data', {str(SCRIPT)!r}).load_module()\n"
                   f"data.DATA_SETS['mnist'] = data.DataSet({data.DATA_SETS['mnist'].mirrors!r},"
                   f" [data.File('file.bin', {data.DATA_SETS['mnist'].files[0].sha256!r})])\n"
                   f"data.BLOCK = 4096\n"
                   f"data.main(['mnist', '--folder', {str(self.folder)!r}])\n")
        script = subprocess.Popen([sys.executable, "-W", "ignore", "-c", program], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE, text=True)
        self.assertTrue(self.server.stalled.wait(30))
        # By then the first half is in its buffers or on the disk.
        while not (line := script.stderr.readline()).startswith("file.bin:  40 %"):
            self.assertTrue(line, "the script ended")
        script.send_signal(signal.SIGKILL)
        script.communicate()
        self.server.go_on.set()
        self.assertEqual(self.names(), ["file.bin.part"])
        self.assertEqual(self.run_script()[0], 0)
        self.assertEqual((self.folder / "file.bin").read_bytes(), CONTENT)
        self.assertRegex(self.server.requests[-1][1], r"^bytes=[1-9]\d+-$")

    def test_a_server_without_ranges_sends_the_whole_file(self):
        self.server.ranges = False
        self.folder.mkdir()
        (self.folder / "file.bin.part").write_bytes(CONTENT[:1000])
        self.assertEqual(self.run_script()[0], 0)
        self.assertEqual((self.folder / "file.bin").read_bytes(), CONTENT)

    def test_a_part_that_is_too_long_is_dropped(self):
        self.folder.mkdir()
        (self.folder / "file.bin.part").write_bytes(CONTENT + b"more")
        self.assertEqual(self.run_script()[0], 0)
        self.assertEqual((self.folder / "file.bin").read_bytes(), CONTENT)

    def test_a_wrong_part_is_downloaded_anew_from_the_other_mirror(self):
        self.folder.mkdir()
        (self.folder / "file.bin.part").write_bytes(b"x" * 1000)
        self.assertEqual(self.run_script()[0], 0)
        self.assertEqual((self.folder / "file.bin").read_bytes(), CONTENT)
        self.assertEqual([asked for _, asked in self.server.requests], ["bytes=1000-", None])

    def test_other_content_is_refused(self):
        self.server.files = dict.fromkeys(self.server.files, CONTENT[:-1] + b"?")
        self.assertEqual(self.run_script()[0], 1)
        self.assertIn("SHA-256 is not the expected one", self.said)
        self.assertEqual(self.names(), [])

    def test_a_mirror_can_be_named(self):
        self.server.files["/c/file.bin"] = CONTENT
        self.assertEqual(self.run_script("--mirror", f"{self.address}/c/")[0], 0)
        self.assertEqual(self.server.requests, [("/c/file.bin", None)])

    def serve_archive(self, members):
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w:gz") as tar:
            for name, content in members.items():
                info = tarfile.TarInfo(name)
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
        self.server.files["/a/images.tar.gz"] = archive.getvalue()
        self.use(data.File("images.tar.gz", hashlib.sha256(archive.getvalue()).hexdigest()), ("images", "[.]jpg$"))

    def test_an_archive_is_unpacked_and_gives_its_folder(self):
        self.serve_archive({"images/cat_1.jpg": b"cat", "images/list.mat": b"no image", "../../dog_1.jpg": b"dog",
                            "images/._cat_1.jpg": b"a Mac's"})
        self.assertEqual(self.run_script(), (0, str(self.folder / "images")))
        self.assertEqual({path.name: path.read_bytes() for path in (self.folder / "images").iterdir()},
                         {"cat_1.jpg": b"cat", "dog_1.jpg": b"dog"})
        self.assertEqual(self.names(), ["images"])
        self.assertEqual(self.run_script(), (0, str(self.folder / "images")))
        self.assertEqual(len(self.server.requests), 1)

    def test_an_interrupted_unpacking_is_done_again(self):
        self.serve_archive({"images/cat_1.jpg": b"cat"})
        part = self.folder / "images.part"
        part.mkdir(parents=True)
        (part / "half.jpg").write_bytes(b"ha")
        self.assertEqual(self.run_script()[0], 0)
        self.assertEqual(os.listdir(self.folder / "images"), ["cat_1.jpg"])

    def test_the_real_sets_are_pinned(self):
        for data_set in REAL_SETS.values():
            self.assertTrue(all(mirror.startswith("https://") and mirror.endswith("/") for mirror in data_set.mirrors))
            for file in data_set.files:
                self.assertRegex(file.sha256, "^[0-9a-f]{64}$")


if __name__ == "__main__":
    unittest.main()
