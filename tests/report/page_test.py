"""The report in headless Chromium: every chart is drawn, nothing is cut at any width, hovering shows the right value, names
stay text, fifty runs are fluid, the live page follows a run.   page_test.py PROGRAM   (exit 77: no browser)"""
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
            "chart-classes", "chart-confusion", "chart-embeddings")
WIDTHS = (1400, 800, 400)
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
# What reaches beyond the window or its box, or whose text is cut; and canvases larger than their card.
CUT = """(() => { const cut = [], wide = document.documentElement.clientWidth;
  for (const element of document.body.querySelectorAll('*')) {
    const box = element.getBoundingClientRect(), style = getComputedStyle(element);
    if (box.width === 0 || element.id === 'tip' || element.closest('svg, script, details:not([open])')) continue;
    const name = `${element.tagName}#${element.id}.${element.className} ${element.textContent.slice(0, 30)}`;
    if (box.right > wide + 1 || box.left < -1) cut.push(`beyond the window: ${name}`);
    if (style.overflowX !== 'visible' && element.scrollWidth > element.clientWidth + 1) cut.push(`cut: ${name}`);
    if (style.display !== 'inline' && element.scrollWidth > element.clientWidth + 1 && element.clientWidth > 0)
      cut.push(`text beyond its box: ${name}`);
    const card = element.closest('.card, .tile');
    if (card && box.right > card.getBoundingClientRect().right + 1) cut.push(`beyond its card: ${name}`);
  }
  return cut; })()"""
VISIBLE = """[...document.querySelectorAll('canvas')].filter(c => c.offsetWidth > 0).map(c => c.id)"""
HEADS = "[...document.querySelectorAll('#overview th')].map(cell => cell.textContent)"
TIP = "document.getElementById('tip').hidden ? '' : document.getElementById('tip').innerText"


def run_program(*arguments):
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        raise AssertionError(f"{arguments}: {done.stderr}")
    return done.stdout


def make_run(folder, source, epochs, shift):
    """A run of many epochs with the files of a small real one, and curves of its own."""
    folder.mkdir()
    for name in ("config.toml", "environment.json", "result.json", "clusters.json", "embeddings.json"):
        (folder / name).write_text((source / name).read_text())
    with open(folder / "metrics.jsonl", "w") as metrics:
        for epoch in range(1, epochs + 1):
            f1 = 0.9 - 0.5 * math.exp(-epoch / (100 + shift)) - 0.002 * shift
            record = {"epoch": epoch, "loss": 3 / (1 + epoch / (50 + shift)), "lr": 0.01, "seconds": 0.5 + 0.01 * shift,
                      "validation": {"micro_f1": f1, "macro_f1": f1 - 0.05, "loss": 1 - f1, "accuracy": f1, "nodes": 9},
                      "memory": {"resident": 10**8 + 10**6 * shift, "anonymous": 10**7, "peak": 2 * 10**8}}
            metrics.write(json.dumps(record) + "\n")


def result_share(run, name):
    """The share of the nodes of the embeddings' picture that have this class."""
    picture = json.loads((run / "embeddings.json").read_text())
    number = picture["class_names"].index(name)
    return sum(number in classes for classes in picture["classes"]) / len(picture["classes"])


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory(prefix="clustergcn-page-")
        cls.folder = Path(cls.temporary.name)
        cls.store, cls.run_path = cls.folder / "graph", cls.folder / HOSTILE
        run_program("generate", cls.store, "--like", "small", "--nodes", 1500, "--quiet")
        run_program("train", cls.store, "--run", cls.run_path, "--recipe", "none", "--epochs", 6, "--hidden", 16, "--parts", 12, "--quiet")
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

    def check_page(self, file, drawn):
        """At every width, light and dark: just these charts, all painted, nothing cut, nothing in the console."""
        for width in WIDTHS:
            for dark in (False, True):
                with self.subTest(file=Path(file).name, width=width, dark=dark):
                    self.open(file, width, dark)
                    self.assertEqual(sorted(self.browser.run(VISIBLE)), sorted(drawn))
                    for canvas in drawn:
                        self.assertGreater(self.browser.run(f"{PAINTED}('{canvas}')"), 0.01, canvas)
                    self.assertEqual(self.browser.run(CUT), [])
                    self.assertLessEqual(self.browser.run("document.documentElement.scrollWidth"), width)
                    self.assertEqual(self.browser.run("document.documentElement.dataset.theme"), "dark" if dark else "light")
                    self.assertEqual(self.browser.problems, [])
                    self.assertEqual([url for url in self.browser.requests() if not url.startswith("file:")], [])

    def train(self, store, name, *options):
        run = self.folder / name
        run_program("train", store, "--run", run, "--recipe", "none", "--hidden", 16, "--quiet",
                    *([] if "--epochs" in options else ["--epochs", 4]), *options)
        return run

    def report(self, *runs):
        page = self.folder / f"{runs[-1].name}-page.html"
        run_program("report", *runs, "-o", page)
        return page

    def test_every_chart_is_drawn_and_nothing_is_cut(self):
        self.check_page(self.run_path / "report.html", CANVASES)

    def test_what_is_cut_is_seen(self):
        self.open(self.run_path / "report.html", 400)
        for style in (".tile { width: 250px; overflow: hidden; white-space: nowrap; }", ".tiles { width: 700px; }", "pre { white-space: pre; }"):
            self.browser.run(f"document.head.append(Object.assign(document.createElement('style'), {{id: 'bad', textContent: {json.dumps(style)}}}))")
            self.assertNotEqual(self.browser.run(CUT), [], style)
            self.browser.run("document.getElementById('bad').remove()")

    def test_charts_without_data_are_left_out(self):
        run = self.train(self.store, "full-batch", "--method", "full-batch", "--layers", 1, "--eval-every", 100)
        metrics = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        for record in metrics:  # a run that never validated
            record.pop("validation", None)
        (run / "metrics.jsonl").write_text("".join(json.dumps(record) + "\n" for record in metrics))
        self.check_page(self.report(run), [name for name in CANVASES if name not in
                                           ("chart-f1", "chart-sizes", "chart-entropy", "chart-blocks", "chart-embeddings")])
        self.assertNotIn("Clusters", self.browser.run("document.querySelector('main').innerText.split('\\n')"))

    def test_runs_are_compared_by_the_settings_that_differ(self):
        runs = [self.train(self.store, "small", "--parts", 12), self.train(self.store, "low-rate", "--parts", 12, "--lr", 0.002),
                self.train(self.store, "random", "--parts", 12, "--partitioner", "random")]
        page = self.report(*runs)
        self.check_page(page, CANVASES)
        self.open(page)
        self.assertEqual(self.browser.run(HEADS)[:4], ["Run", "lr", "partitioner", "Test F1"])
        rows = self.browser.run("[...document.querySelectorAll('#overview tr')].map(r => [...r.cells].map(c => c.textContent))")
        values = {row[0]: row[1:3] for row in rows[1:]}
        self.assertEqual(values, {"small": ["0.01", "auto"], "low-rate": ["0.002", "auto"], "random": ["0.01", "random"]})
        form = "document.querySelector('#overview table').className"
        self.assertEqual(self.browser.run(form), "")
        self.open(page, 800)  # a column per run
        self.assertEqual(self.browser.run(form), "turned")
        turned = self.browser.run("[...document.querySelectorAll('#overview tr')].map(r => [...r.cells].map(c => c.textContent))")
        self.assertEqual([list(column) for column in zip(*turned, strict=True)], rows)
        self.open(page, 400)
        for canvas in ("chart-f1", "chart-loss", "chart-memory"):  # every line has its legend
            chart = f"Chart.getChart('{canvas}')"
            self.assertEqual(self.browser.run(f"{chart}.legend.legendItems.map(item => item.text)"),
                             self.browser.run(f"{chart}.data.datasets.map(set => set.label)"))
            self.assertEqual(self.browser.run(f"{chart}.data.datasets.length"), 3)

    def test_the_f1_axis_fits_the_curves(self):
        run = self.folder / "high"
        make_run(run, self.run_path, 40, 0)
        with open(run / "metrics.jsonl") as lines:
            records = [json.loads(line) for line in lines]
        for record in records:
            record["validation"].update(micro_f1=0.93 + 0.0005 * record["epoch"], macro_f1=0.92)
        (run / "metrics.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
        self.open(self.report(run))
        low, high = self.browser.run("(s => [s.min, s.max])(Chart.getChart('chart-f1').scales.y)")
        self.assertTrue(0.9 <= low <= 0.92 and 0.95 <= high <= 0.96, (low, high))

    def test_a_multi_label_run_has_cards_of_its_own(self):
        store = self.folder / "multi"
        run_program("generate", store, "--like", "ppi", "--scale", 0.02, "--quiet")
        run = self.train(store, "labels", "--parts", 4)
        result = json.loads((run / "result.json").read_text())
        self.check_page(self.report(run), [name for name in CANVASES if name != "chart-confusion"] + ["chart-precision"])
        tiles = self.browser.run("document.getElementById('label-tiles').innerText")
        self.assertIn("Exact match", tiles)
        labels = sum(entry["nodes"] for entry in result["test"]["classes"]) / result["test"]["nodes"]
        self.assertIn(f"{labels:.2f}", tiles)
        names = self.browser.run("[...document.getElementById('picture-class').options].map(o => o.value)")
        self.assertEqual(len(names), 12)
        shares = [result_share(run, name) for name in names]
        shown = self.browser.run("document.getElementById('picture-class').value")
        self.assertEqual(abs(shares[names.index(shown)] - 0.5), min(abs(share - 0.5) for share in shares))
        self.browser.run(f"(c => {{ c.value = {json.dumps(names[3])}; c.onchange(); }})(document.getElementById('picture-class'))")
        self.assertIn(f"class {names[3]}", self.browser.run("Chart.getChart('chart-embeddings').data.datasets.map(s => s.label)"))

    def test_a_regression_run_shows_r2_and_values(self):
        edges, nodes = self.folder / "edges.csv", self.folder / "nodes.csv"
        edges.write_text("source,target\n" + "".join(f"{i},{(i + k) % 300}\n" for i in range(300) for k in (1, 2, 5)))
        value = lambda i: f"{200000 + 9000 * math.sin(i / 20):.0f}" if i % 30 else ""  # some are unknown
        nodes.write_text("id,a,price\n" + "".join(f"{i},{math.sin(i / 20):.3f},{value(i)}\n" for i in range(300)))
        run_program("import", edges, self.folder / "houses", "--features", nodes, "--labels", nodes, "--label-column", "price",
                    "--task", "regression", "--split", "60/20/20", "--quiet")
        runs = [self.train(self.folder / "houses", "prices", "--parts", 4), self.train(self.folder / "houses", "fewer", "--parts", 2)]
        drawn = [name for name in CANVASES if name not in ("chart-classes", "chart-confusion", "chart-entropy")]
        self.check_page(self.report(runs[0]), drawn)
        result = json.loads((runs[0] / "result.json").read_text())
        tiles = self.browser.run("document.getElementById('overview').innerText")
        self.assertIn(f"Test R²\n{result['test']['r2']:.4f}", tiles)
        self.assertEqual(self.browser.run("document.getElementById('score-name').textContent"), "R²")
        curve = [json.loads(line)["validation"]["r2"] for line in (runs[0] / "metrics.jsonl").read_text().splitlines()]
        for shown, wanted in zip(self.browser.run("Chart.getChart('chart-f1').data.datasets[0].data.map(p => p.y)"), curve, strict=True):
            self.assertAlmostEqual(shown, wanted, delta=1e-5 * max(1, abs(wanted)))
        self.assertFalse(self.browser.run("document.getElementById('embeddings-scale').hidden"))
        colours = self.browser.run("new Set(Chart.getChart('chart-embeddings').data.datasets[0].backgroundColor).size")
        self.assertGreater(colours, 5)
        page = self.report(*runs)
        self.check_page(page, drawn)
        self.open(page)
        self.assertEqual(self.browser.run(HEADS)[1:4], ["parts", "Test R²", "MAE"])

    def test_a_run_of_one_epoch_has_all_charts(self):
        self.check_page(self.report(self.train(self.store, "short", "--parts", 3, "--epochs", 1)), CANVASES)

    def test_a_hundred_classes_can_be_read(self):
        run, classes = self.folder / "hundred", 100
        make_run(run, self.run_path, 5, 0)
        result = json.loads((run / "result.json").read_text())
        confusion = [[0] * classes for _ in range(classes)]
        for c in range(classes):
            confusion[c][c], confusion[c][(c * 7 + 1) % classes] = 50 + c, c % 9
        confusion[40][41] = 77
        test = result["test"]
        test["confusion"], test["class_count"] = confusion, classes
        test["classes"] = [{"class": f"category {c}", "nodes": sum(confusion[c]), "precision": 0.5 + c / 200,
                            "recall": 0.9, "f1": 0.5 + c / 250} for c in range(classes)]
        (run / "result.json").write_text(json.dumps(result))
        page = self.report(run)
        self.check_page(page, CANVASES)
        self.open(page)
        self.assertIn("category 40\tcategory 41\t77", self.browser.run("document.getElementById('confused').innerText"))
        self.assertGreater(self.browser.run("document.getElementById('chart-confusion').clientWidth"), 800)
        bars = "Chart.getChart('chart-classes').data.labels"
        self.assertEqual(self.browser.run(bars)[:2], ["category 0", "category 1"])  # the lowest F1
        self.assertEqual(self.browser.run(bars + ".length"), 25)
        self.browser.run("document.getElementById('all-classes').click()")
        self.assertEqual(self.browser.run(bars + ".length"), classes)
        self.show("chart-confusion")  # the largest class, 99, is the first row
        place = self.browser.run("""(canvas => { const box = canvas.getBoundingClientRect(), at = heatMaps.get(canvas.id).place;
            return {x: box.left + at.margin + at.side / 2, y: box.top + at.top + at.side / 2}; })
            (document.getElementById('chart-confusion'))""")
        self.browser.move(place["x"], place["y"])
        self.assertIn("predicted right", self.browser.run(TIP))

    def test_the_embeddings_are_those_of_the_run(self):
        self.open(self.run_path / "report.html")
        picture = json.loads((self.run_path / "embeddings.json").read_text())
        sets = self.browser.run("Chart.getChart('chart-embeddings').data.datasets.map(s => [s.label, s.data.length])")
        self.assertEqual(sum(length for _, length in sets), len(picture["x"]))
        first = sum(1 for classes in picture["classes"] if classes == [0])
        self.assertIn([picture["class_names"][0], first], sets)

    def test_hovering_shows_the_value(self):
        self.open(self.run_path / "report.html")
        for index in (0, 3, 5):
            record = self.metrics[index]
            tip = self.hover("chart-f1", 0, index)
            self.assertIn(f"epoch {index + 1}", tip)
            self.assertIn(f"{100 * record['validation']['micro_f1']:.2f} %", tip)
            shown = float(re.search(r"training\s+([0-9.]+)", self.hover("chart-loss", 0, index)).group(1))
            self.assertAlmostEqual(shown, record["loss"], delta=1e-3 * record["loss"])
            megabytes = f"{record['memory']['resident'] / 2**20:.1f} MiB"
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

    def test_processes_of_a_run_under_mpirun_are_listed_by_host(self):
        self.open(self.run_path / "report.html")
        self.assertTrue(self.browser.run("document.getElementById('processes').hidden"))  # one process
        run = self.folder / "ranks"
        make_run(run, self.run_path, 3, 0)
        result = json.loads((run / "result.json").read_text())
        result["batches_per_step"] = 3
        result["ranks"] = [{"rank": r, "host": host, "compute_seconds": 6, "waiting_seconds": 3, "communication_seconds": 1,
                            "bytes_sent": 1 << 20, "peak_memory_bytes": 3 << 20} for r, host in enumerate(("alpha", "alpha", "beta"))]
        (run / "result.json").write_text(json.dumps(result))
        page = self.report(run)
        self.check_page(page, CANVASES)
        rows = self.browser.run("[...document.querySelectorAll('#hosts tr')].map(row => [...row.children].map(cell => cell.textContent))")
        self.assertEqual(rows[1:], [["alpha", "0, 1", "60.00 %", "30.00 %", "10.00 %", "2.0 MiB", "6.0 MiB"],
                                    ["beta", "2", "60.00 %", "30.00 %", "10.00 %", "1.0 MiB", "3.0 MiB"]])
        self.assertEqual(self.browser.run("document.getElementById('processes-part').textContent"), "3 on 2 hosts, 3 batches per step")

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
        self.assertEqual(self.browser.run("document.scripts.length"), 6)
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
        self.assertTrue(self.browser.run("document.getElementById('classes').hidden"))  # they come with the test
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
            address = re.search(r"http://127\.0\.0\.1:\d+/[0-9a-f]{32}/", process.stderr.readline()).group()
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
