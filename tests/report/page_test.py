"""The report in headless Chromium: every chart is drawn, hovering shows the right value, names stay text, fifty runs are
fluid, the live page follows a run.   page_test.py PROGRAM   (exit 77: there is no browser on this machine)"""
import json
import math
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from browser import Browser, find_browser

CANVASES = ("chart-f1", "chart-loss", "chart-stages", "chart-memory", "chart-sizes", "chart-entropy", "chart-blocks",
            "chart-classes", "chart-confusion")
HOSTILE = "<script>alert(1)<"  # a folder cannot have a slash in its name; the closing tag comes with the class names
PROGRAM = ""

# The share of a canvas's pixels that have colour: an empty chart has hardly any.
PAINTED = """(id => { const c = document.getElementById(id);
  const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
  let painted = 0; for (let i = 0; i < d.length; i += 4) if (d[i + 3] > 40) painted++; return painted / (d.length / 4); })"""
# Where a line's point is on the screen.
PLACE = """((id, set, index) => { const canvas = document.getElementById(id);
  const point = Chart.getChart(canvas).getDatasetMeta(set).data[index], box = canvas.getBoundingClientRect();
  return {x: box.left + point.x, y: box.top + point.y}; })"""
TIP = "document.getElementById('tip').hidden ? '' : document.getElementById('tip').innerText"


def run_program(*arguments):
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        raise AssertionError(f"{arguments}: {done.stderr}")
    return done.stdout


def make_run(folder, source, epochs, shift):
    """A run of many epochs with the files of a small real one, and curves of its own."""
    folder.mkdir()
    for name in ("config.toml", "environment.json", "result.json", "clusters.json"):
        (folder / name).write_text((source / name).read_text())
    with open(folder / "metrics.jsonl", "w") as metrics:
        for epoch in range(1, epochs + 1):
            f1 = 0.9 - 0.5 * math.exp(-epoch / (100 + shift)) - 0.002 * shift
            record = {"epoch": epoch, "loss": 3 / (1 + epoch / (50 + shift)), "lr": 0.01, "seconds": 0.5 + 0.01 * shift,
                      "validation": {"micro_f1": f1, "macro_f1": f1 - 0.05, "loss": 1 - f1, "accuracy": f1, "nodes": 9},
                      "memory": {"resident": 10**8 + 10**6 * shift, "anonymous": 10**7, "peak": 2 * 10**8}}
            metrics.write(json.dumps(record) + "\n")


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory(prefix="clustergcn-page-")
        cls.folder = Path(cls.temporary.name)
        cls.store, cls.run_path = cls.folder / "graph", cls.folder / HOSTILE
        run_program("generate", cls.store, "--like", "small", "--nodes", 1500, "--quiet")
        run_program("train", cls.store, "--run", cls.run_path, "--epochs", 6, "--hidden", 16, "--parts", 12, "--quiet")
        cls.metrics = [json.loads(line) for line in (cls.run_path / "metrics.jsonl").read_text().splitlines()]
        cls.browser = Browser(find_browser())

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.temporary.cleanup()

    def open(self, file, width=1400, dark=False):
        self.browser.resize(width, 900, dark, phone=width < 600)
        self.browser.open(Path(file).as_uri())

    def show(self, canvas):
        """Scrolls there, and lets the scrolling end: it hides the box that follows the pointer."""
        self.browser.run(f"document.getElementById('{canvas}').scrollIntoView({{block: 'center'}})")
        self.browser.run("new Promise(done => setTimeout(() => requestAnimationFrame(done), 100))")

    def hover(self, canvas, dataset, index):
        self.show(canvas)
        place = self.browser.run(f"{PLACE}('{canvas}', {dataset}, {index})")
        self.browser.move(place["x"], place["y"])
        return self.browser.run(TIP)

    def test_every_chart_is_drawn_without_a_word_in_the_console(self):
        for width in (1400, 400):
            for dark in (False, True):
                with self.subTest(width=width, dark=dark):
                    self.open(self.run_path / "report.html", width, dark)
                    for canvas in CANVASES:
                        self.assertGreater(self.browser.run(f"{PAINTED}('{canvas}')"), 0.01, canvas)
                    self.assertEqual(self.browser.run("document.documentElement.dataset.theme"), "dark" if dark else "light")
                    self.assertLessEqual(self.browser.run("document.documentElement.scrollWidth"), width)
                    self.assertEqual(self.browser.problems, [])
                    self.assertEqual([url for url in self.browser.requests() if not url.startswith("file:")], [])

    def test_hovering_shows_the_value(self):
        self.open(self.run_path / "report.html")
        for index in (0, 3, 5):
            record = self.metrics[index]
            tip = self.hover("chart-f1", 0, index)
            self.assertIn(f"epoch {index + 1}", tip)
            self.assertIn(f"{100 * record['validation']['micro_f1']:.2f} %", tip)
            shown = float(re.search(r"training\s+([0-9.]+)", self.hover("chart-loss", 0, index)).group(1))
            self.assertAlmostEqual(shown, record["loss"], delta=1e-3 * record["loss"])
            megabytes = f"{record['memory']['resident'] / 2**20:.1f}"
            self.assertIn(megabytes, self.hover("chart-memory", 0, index))
        result = json.loads((self.run_path / "result.json").read_text())
        largest = max(result["test"]["classes"], key=lambda entry: entry["nodes"])
        tip = self.hover("chart-classes", 0, 0)
        self.assertIn(f"{100 * largest['f1']:.2f} %", tip)
        self.assertIn(f"{100 * largest['recall']:.2f} %", tip)

    def test_the_ceiling_of_memory_is_the_budget_where_one_was_given(self):
        run = self.folder / "budget"
        make_run(run, self.run_path, 5, 0)
        environment = json.loads((run / "environment.json").read_text())
        self.assertNotIn("memory_budget_bytes", environment)
        for budget, said in ((None, "that the machine, or its control group, allows"), (2**28, "that --memory allows")):
            if budget:
                (run / "environment.json").write_text(json.dumps({**environment, "memory_budget_bytes": budget}))
            run_program("report", run, "-o", self.folder / "budget.html")
            self.open(self.folder / "budget.html")
            limit = budget or environment["memory_bytes"]
            self.assertIn(said, self.browser.run("document.getElementById('memory-note').textContent"))
            self.browser.run("(box => { if (!box.checked) box.click(); })(document.getElementById('show-ceiling'))")
            ceiling = "Chart.getChart('chart-memory').data.datasets.at(-1).data[0].y"
            self.assertEqual(self.browser.run(ceiling), limit)

    def test_hovering_the_heat_maps_shows_the_cell(self):
        self.open(self.run_path / "report.html")
        clusters = json.loads((self.run_path / "clusters.json").read_text())
        self.show("chart-blocks")
        place = self.browser.run("""(() => {
            const box = document.getElementById('chart-blocks').getBoundingClientRect();
            return {x: box.left, y: box.top, side: box.width / 12}; })()""")
        self.browser.move(place["x"] + 2.5 * place["side"], place["y"] + 1.5 * place["side"])
        tip = self.browser.run(TIP)
        self.assertIn("clusters 1 and 2", tip)
        self.assertRegex(tip, rf"entries of A\s+{clusters['blocks']['entries'][1 * 12 + 2]}\b")

    def test_the_axis_the_theme_and_the_scale_can_be_switched(self):
        self.open(self.run_path / "report.html")
        self.browser.run("document.querySelector('[data-axis=seconds]').click()")
        tip = self.hover("chart-loss", 0, 5)
        self.assertIn("of training", tip)
        self.browser.run("document.getElementById('log-loss').click()")
        self.assertEqual(self.browser.run("Chart.getChart('chart-loss').scales.y.type"), "logarithmic")
        self.browser.run("document.getElementById('theme').click()")
        self.assertEqual(self.browser.run("document.documentElement.dataset.theme"), "dark")
        self.browser.run("document.getElementById('theme').click()")
        self.assertEqual(self.browser.problems, [])

    def test_a_name_that_is_a_script_is_shown_as_text(self):
        damaged = json.loads((self.run_path / "result.json").read_text())
        run = self.folder / "named"
        make_run(run, self.run_path, 3, 0)
        for entry in damaged["test"]["classes"]:
            entry["class"] = "<script>alert(1)</script>"
        (run / "result.json").write_text(json.dumps(damaged))
        run_program("report", run, self.run_path, "-o", self.folder / "named.html")
        self.open(self.folder / "named.html")
        self.assertIn(HOSTILE, self.browser.run("document.getElementById('runs').innerText"))
        self.assertEqual(self.browser.run("document.scripts.length"), 5)
        self.browser.run(f"(() => {{ const choice = document.getElementById('detail'); "
                         f"choice.value = {json.dumps(str(run))}; choice.onchange(); }})()")
        self.assertIn("<script>alert(1)</script>", self.hover("chart-classes", 0, 0))
        self.assertEqual(self.browser.problems, [])

    def test_a_stopped_run_says_so(self):
        run = self.folder / "stopped; by hand"
        make_run(run, self.run_path, 3, 0)
        (run / "result.json").unlink()
        run_program("report", run, "-o", self.folder / "stopped.html")
        self.open(self.folder / "stopped.html")
        banner = self.browser.run("document.getElementById('banner').innerText")
        self.assertIn("stopped after epoch 3 of 6", banner)
        self.assertIn(f"clustergcn train --run {shlex.quote(str(run))} --resume", banner)
        self.assertIn("Comes with the test", self.browser.run("document.getElementById('classes').innerText"))
        self.assertEqual(self.browser.problems, [])

    def test_fifty_runs_of_a_thousand_epochs_are_fluid(self):
        runs = [self.folder / f"many-{i}" for i in range(50)]
        for i, run in enumerate(runs):
            make_run(run, self.run_path, 1000, i)
        run_program("report", *runs, "-o", self.folder / "many.html")
        begin = time.monotonic()
        self.open(self.folder / "many.html")
        self.assertLess(time.monotonic() - begin, 15)
        # What one movement, one switched run and one switched axis take, the drawing included.
        frame = "new Promise(done => requestAnimationFrame(() => setTimeout(done, 0)))"
        took = self.browser.run(f"""(async () => {{
            const canvas = document.getElementById('chart-f1'), box = canvas.getBoundingClientRect();
            const took = {{hover: [], toggle: 0, axis: 0}};
            for (let i = 0; i < 20; i++) {{
              const begin = performance.now();
              const place = {{clientX: box.left + 80 + 20 * i, clientY: box.top + 100, bubbles: true}};
              canvas.dispatchEvent(new MouseEvent('mousemove', place));
              await {frame};
              took.hover.push(performance.now() - begin);
            }}
            let begin = performance.now();
            document.querySelectorAll('#runs button')[5].click();
            await {frame};
            took.toggle = performance.now() - begin;
            begin = performance.now();
            document.querySelector('[data-axis=seconds]').click();
            await {frame};
            took.axis = performance.now() - begin;
            took.hover.sort((a, b) => a - b);
            return took; }})()""")
        print(f"50 runs × 1,000 epochs: a movement {took['hover'][10]:.0f} ms (median), "
              f"a run switched {took['toggle']:.0f} ms, the axis {took['axis']:.0f} ms")
        self.assertLess(took["hover"][10], 150)
        self.assertLess(took["toggle"], 1500)
        self.assertLess(took["axis"], 1500)
        tip = self.hover("chart-f1", 20, 150)
        self.assertRegex(tip, r"and \d+ more")  # than the ten nearest
        self.assertEqual(self.browser.problems, [])

    def test_the_live_page_follows_the_run_to_its_end(self):
        run = self.folder / "live"
        process = subprocess.Popen([PROGRAM, "train", self.store, "--run", run, "--epochs", "60", "--hidden", "128",
                                    "--parts", "12", "--quiet", "--live"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            address = re.search(r"http://127\.0\.0\.1:\d+/", process.stderr.readline()).group()
            self.browser.resize(1400, 900)
            self.browser.open(address)
            self.browser.run("""new Promise((done, fail) => {
                const begin = Date.now();
                const look = () => {
                  if (data.runs[0].state === 'finished') return done();
                  if (Date.now() - begin > 60000) return fail('the page never saw the end');
                  setTimeout(look, 100);
                };
                look(); })""", 70)
            self.assertEqual(self.browser.run("data.runs[0].curves.epoch.length"), 60)
            self.assertGreater(self.browser.run(f"{PAINTED}('chart-confusion')"), 0.01)
            self.assertEqual(self.browser.problems, [])
            self.assertEqual(process.wait(60), 0)
        finally:
            if process.poll() is None:
                process.kill()
            process.communicate()


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    if find_browser() is None:
        print("SKIPPED: there is no Chromium on this machine (tools/install-packages.sh tests)")
        sys.exit(77)
    unittest.main(verbosity=2)
