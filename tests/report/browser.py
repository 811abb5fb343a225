"""Headless Chromium, driven through a pair of pipes (the DevTools protocol): no package but the browser is needed."""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
         "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage",
         "--hide-scrollbars", "--remote-debugging-pipe")


def find_browser():
    for name in NAMES:
        path = shutil.which(name)
        if path and subprocess.run([path, "--version"], capture_output=True, timeout=60).returncode == 0:
            return path
    return None


class Browser:
    """One tab. Collects what the page prints to the console as a warning or an error, and uncaught exceptions."""

    def __init__(self, path):
        self.profile = tempfile.mkdtemp(prefix="clustergcn-browser-")
        to_read, self.to = os.pipe()
        self.back, to_write = os.pipe()

        def arrange():  # the browser reads from 3 and writes to 4
            keep_read, keep_write = os.dup(to_read), os.dup(to_write)
            os.dup2(keep_read, 3)
            os.dup2(keep_write, 4)

        self.process = subprocess.Popen([path, *FLAGS, f"--user-data-dir={self.profile}", "about:blank"],
                                        preexec_fn=arrange, close_fds=False, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self.last, self.session, self.buffer, self.events, self.problems = 0, None, b"", [], []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self):
        os.close(self.to)
        os.close(self.back)
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def receive(self, seconds):
        until = time.monotonic() + seconds
        while b"\0" not in self.buffer:
            if not select.select([self.back], [], [], max(0, until - time.monotonic()))[0]:
                raise TimeoutError("the browser does not answer")
            piece = os.read(self.back, 1 << 20)
            if not piece:
                raise EOFError("the browser has ended")
            self.buffer += piece
        line, self.buffer = self.buffer.split(b"\0", 1)
        message = json.loads(line)
        if message.get("method") == "Runtime.exceptionThrown":
            details = message["params"]["exceptionDetails"]
            self.problems.append(details.get("exception", {}).get("description", details["text"]))
        elif message.get("method") == "Runtime.consoleAPICalled" and message["params"]["type"] in ("error", "warning"):
            self.problems.append(str(message["params"]["args"])[:500])
        elif message.get("method") == "Log.entryAdded" and message["params"]["entry"]["level"] in ("error", "warning"):
            self.problems.append(message["params"]["entry"]["text"])
        return message

    def call(self, method, seconds=60, **parameters):
        self.last += 1
        message = {"id": self.last, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive(seconds)
            if answer.get("id") == self.last:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def run(self, script, seconds=60):
        """The value of a JavaScript expression in the page; promises are waited for."""
        answer = self.call("Runtime.evaluate", seconds, expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"])[:2000])
        return answer["result"].get("value")

    def resize(self, width, height, dark=False, phone=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=2 if phone else 1,
                  mobile=phone)
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def open(self, url):
        self.events.clear()
        self.problems.clear()
        self.call("Page.navigate", url=url)
        until = time.monotonic() + 60
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            if time.monotonic() > until:
                raise TimeoutError(f"{url} does not load")
            self.events.append(self.receive(60))
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def requests(self):
        self.run("1")
        return [event["params"]["request"]["url"] for event in self.events
                if event.get("method") == "Network.requestWillBeSent"]

    def move(self, x, y):
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def click(self, x, y):
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def picture(self, file, whole=True):
        answer = self.call("Page.captureScreenshot", 120, format="png", captureBeyondViewport=whole)
        with open(file, "wb") as output:
            output.write(base64.b64decode(answer["data"]))
