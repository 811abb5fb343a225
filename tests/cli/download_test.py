#!/usr/bin/env python3
"""clustergcn download against a server on this machine: whole, cut, resumed, missing and wrong files.

  download_test.py PATH_OF_CLUSTERGCN [PATH_OF_REAL_GRAPHS]
"""
import gzip
import http.server
import io
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import unittest
import zipfile

PROGRAM = os.path.abspath(sys.argv[1])
REAL_GRAPHS = sys.argv[2] if len(sys.argv) > 2 else ""


class Server(http.server.ThreadingHTTPServer):
    """Serves `files` (name → bytes), with ranges or without; cuts the next answers after so many bytes."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files, self.ranges, self.cuts, self.requests = {}, True, [], []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return "http://127.0.0.1:%d" % self.server_port


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        server, name = self.server, self.path.lstrip("/")
        asked = self.headers.get("Range")
        server.requests.append((name, asked))
        if name not in server.files:
            return self.send_error(404)
        body, status = server.files[name], 200
        if asked and server.ranges:
            start = int(asked.split("=")[1].split("-")[0])
            if start >= len(body):
                return self.send_error(416)
            status, whole, body = 206, len(body), body[start:]
        self.send_response(status)
        if status == 206:
            self.send_header("Content-Range", "bytes %d-%d/%d" % (start, whole - 1, whole))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if server.cuts:
            body = body[:server.cuts.pop(0)]
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def npy(rows):
    """A float32 matrix as numpy.save writes it."""
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }" % (len(rows), len(rows[0]))
    header = header.ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + b"".join(
        struct.pack("<f", x) for row in rows for x in row)


def zipped(members, method=zipfile.ZIP_DEFLATED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def ppi_members(folder="ppi/", nodes=200):
    flags = [{"id": i, "val": i % 5 == 3, "test": i % 5 == 4} for i in range(nodes)]
    links = [{"source": i, "target": (i * 7 + 1) % nodes} for i in range(nodes)]
    return {
        folder + "ppi-G.json": json.dumps({"directed": False, "graph": {}, "nodes": flags, "links": links}),
        folder + "ppi-feats.npy": npy([[i, i * 0.5, -i] for i in range(nodes)]),
        folder + "ppi-id_map.json": json.dumps({str(i): i for i in range(nodes)}),
        folder + "ppi-class_map.json": json.dumps({str(i): [i % 2, (i // 2) % 2] for i in range(nodes)}),
        folder + "ppi-walks.txt": "0\t1\n",
    }


class Download(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="cgcn-download-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.server = Server()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.store = os.path.join(self.folder, "store")
        self.base_url = self.server.url

    def run_download(self, name, *options):
        command = [PROGRAM, "download", name, self.store, "--base-url", self.base_url, *options]
        return subprocess.run(command, capture_output=True, text=True, timeout=60)

    def expect_success(self, name, *options):
        result = self.run_download(name, *options, "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def expect_failure(self, name, message, *options, code=1):
        result = self.run_download(name, *options)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        self.assertIn(message, result.stderr)
        self.assertFalse(os.path.exists(self.store))
        return result

    def test_archive_becomes_a_store_and_nothing_else_is_left(self):
        self.server.files["ppi.zip"] = zipped(ppi_members())
        summary = self.expect_success("ppi")
        self.assertEqual((summary["nodes"], summary["name"], summary["format"]), (200, "ppi", "graphsage"))
        self.assertEqual(summary["split"], {"train": 120, "validation": 40, "test": 40})
        self.assertEqual(os.listdir(self.folder), ["store"])

    def test_a_file_without_a_known_checksum_is_named(self):
        self.server.files["ppi.zip"] = zipped(ppi_members())
        result = self.run_download("ppi")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("no checksum is known for ppi.zip", result.stderr)

    def test_archive_without_its_folder_stored_not_deflated(self):
        self.server.files["ppi.zip"] = zipped(ppi_members(folder=""), zipfile.ZIP_STORED)
        kept = os.path.join(self.folder, "kept")
        self.expect_success("ppi", "--keep", "--folder", kept)
        self.assertIn("ppi.zip", os.listdir(kept))
        count = len(self.server.requests)
        self.expect_success("ppi", "--force", "--folder", kept)  # nothing is fetched twice
        self.assertEqual(len(self.server.requests), count)
        self.assertFalse(os.path.exists(kept))

    def test_ogb_archive(self):
        def packed(text):
            return gzip.compress(text.encode())
        self.server.files["arxiv.zip"] = zipped({
            "arxiv/raw/edge.csv.gz": packed("0,1\n1,2\n2,3\n"), "arxiv/raw/num-node-list.csv.gz": packed("4\n"),
            "arxiv/raw/num-edge-list.csv.gz": packed("3\n"), "arxiv/raw/node-feat.csv.gz": packed("1\n2\n3\n4\n"),
            "arxiv/raw/node-label.csv.gz": packed("0\n1\n0\n1\n"), "arxiv/split/time/train.csv.gz": packed("0\n1\n"),
            "arxiv/split/time/valid.csv.gz": packed("2\n"), "arxiv/split/time/test.csv.gz": packed("3\n")})
        summary = self.expect_success("ogbn-arxiv")
        self.assertEqual((summary["nodes"], summary["edges"], summary["name"]), (4, 3, "ogbn-arxiv"))

    def test_a_cut_connection_goes_on_where_it_stopped(self):
        body = zipped(ppi_members())
        self.server.files["ppi.zip"] = body
        self.server.cuts = [len(body) // 3]
        self.expect_success("ppi")
        self.assertEqual(self.server.requests, [("ppi.zip", None), ("ppi.zip", "bytes=%d-" % (len(body) // 3))])

    def test_the_next_call_goes_on_too(self):
        body = zipped(ppi_members())
        self.server.files["ppi.zip"] = body
        self.server.cuts = [100, 100, 100, 100]
        self.expect_failure("ppi", "the same command resumes the download")
        self.assertEqual(os.path.getsize(self.store + ".download/ppi.zip.part"), 400)
        self.expect_success("ppi")
        self.assertEqual(self.server.requests[-1], ("ppi.zip", "bytes=400-"))

    def test_a_server_without_ranges_sends_all_again(self):
        body = zipped(ppi_members())
        self.server.files["ppi.zip"] = body
        self.server.ranges, self.server.cuts = False, [1000]
        self.assertEqual(self.expect_success("ppi")["nodes"], 200)

    def test_a_part_of_another_file_is_thrown_away(self):
        self.server.files["ppi.zip"] = body = zipped(ppi_members())
        os.makedirs(self.store + ".download")
        with open(self.store + ".download/ppi.zip.part", "wb") as part:
            part.write(b"x" * (len(body) + 5))
        self.assertEqual(self.expect_success("ppi")["nodes"], 200)

    def test_missing_file(self):
        self.expect_failure("ppi", "ppi.zip: the server answered 404")

    def test_no_server(self):
        self.base_url = "http://127.0.0.1:1"
        self.expect_failure("ppi", "ppi.zip: cannot be fetched")

    def test_unknown_name(self):
        self.expect_failure("cara", "DATASET: unknown data set 'cara'", code=2)

    def test_existing_store_is_kept_and_nothing_fetched(self):
        os.makedirs(self.store)
        result = self.run_download("ppi")
        self.assertEqual(result.returncode, 1)
        self.assertIn("already exists", result.stderr)
        self.assertEqual(self.server.requests, [])

    def test_damaged_archive_is_refused_and_fetched_again(self):
        good = zipped(ppi_members())
        damaged = bytearray(good)
        damaged[len(damaged) // 4] ^= 0x55
        for body in (bytes(damaged), b"<html>moved</html>", good[:-30], zipped({"other": "x"})):
            self.server.files["ppi.zip"] = body
            self.expect_failure("ppi", "ppi.zip: what arrived is not the archive that it should be")
        self.server.files["ppi.zip"] = good
        self.expect_success("ppi")

    def test_file_of_the_wrong_size_or_checksum(self):
        self.server.files["ind.cora.x"] = b"x" * 100
        self.expect_failure("cora", "ind.cora.x: is 100 bytes long, but 22119 are expected")
        self.server.files["ind.cora.x"] = b"x" * 22119
        self.expect_failure("cora", "does not have the checksum that is expected")

    @unittest.skipUnless(os.path.isdir(os.path.join(REAL_GRAPHS, "cora")), "the real graphs are not on this machine")
    def test_real_planetoid_files(self):
        for name, nodes, edges in (("cora", 2708, 5278), ("citeseer", 3327, 4552)):
            for file in os.listdir(os.path.join(REAL_GRAPHS, name)):
                with open(os.path.join(REAL_GRAPHS, name, file), "rb") as source:
                    self.server.files[file] = source.read()
            summary = self.expect_success(name, "--force")
            self.assertEqual((summary["nodes"], summary["edges"]), (nodes, edges))


unittest.main(argv=sys.argv[:1], verbosity=1)
