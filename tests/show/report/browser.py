"""A headless Chromium, controlled through its DevTools protocol."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import websocket

from ...waiting import LIMIT, wait_until


def find_chromium() -> str | None:
    """Path of the first installed browser command, or None."""
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    return next(filter(None, map(shutil.which, names)), None)


class Browser:
    """One page of one browser; `events` contains all its events."""

    def __init__(self, command: str, profile: Path) -> None:
        self._process = subprocess.Popen(
            [
                *(command, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
                *("--no-first-run", "--disable-dev-shm-usage", "--disable-background-networking"),
                *("--remote-debugging-port=0", "--remote-allow-origins=*"),
                *(f"--user-data-dir={profile}", "about:blank"),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.events: list[dict[str, Any]] = []
        self._last = 0
        self._session: str | None = None
        try:
            self._socket = websocket.create_connection(self._address(profile), timeout=LIMIT)
            target = self.call("Target.createTarget", url="about:blank")["targetId"]
            attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
            self._session = attached["sessionId"]
            for domain in ("Page", "Runtime", "Log", "Network"):
                self.call(f"{domain}.enable")
        except BaseException:
            self._process.kill()
            raise

    def _address(self, profile: Path) -> str:
        """The browser's websocket address, which it writes to its profile."""
        port_file = profile / "DevToolsActivePort"

        def lines() -> list[str]:
            return port_file.read_text().split("\n") if port_file.exists() else []

        wait_until(lambda: len(lines()) > 1 or self._process.poll() is not None)
        if self._process.poll() is not None:
            raise RuntimeError("Chromium did not start")
        port, path = lines()[:2]
        return f"ws://127.0.0.1:{port}{path}"

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Send one protocol command and return the answer."""
        self._last += 1
        message: dict[str, Any] = {"id": self._last, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        self._socket.send(json.dumps(message))
        while True:
            answer = json.loads(self._socket.recv())
            if answer.get("id") == self._last:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def open(self, page: Path) -> None:
        """Load a file and clear the events."""
        self.events.clear()
        self.call("Page.navigate", url=page.as_uri())
        self.wait("document.readyState === 'complete' && location.protocol === 'file:'")

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression; an exception in it raises RuntimeError."""
        answer = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(str(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def wait(self, expression: str) -> None:
        """Wait until a JavaScript expression is true."""
        wait_until(lambda: self.evaluate(expression))

    def settle(self) -> None:
        """Wait until the page has been drawn again."""
        frame = "requestAnimationFrame(() => requestAnimationFrame(done))"
        self.evaluate(f"new Promise((done) => {frame})")

    def click(self, selector: str) -> None:
        """Click in the middle of an element with the mouse."""
        found = json.dumps(selector)
        self.evaluate(
            f"document.querySelector({found}).scrollIntoView({{block: 'center', "
            "behavior: 'instant'})"
        )
        x, y = self.evaluate(
            f"(() => {{ const r = document.querySelector({found}).getBoundingClientRect();"
            "return [r.x + r.width / 2, r.y + r.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
        self.settle()

    def press(self, key: str) -> None:
        """Press a key: "Tab", "Enter", "Space", "ArrowLeft", "ArrowRight", "Home" or "End"."""
        code, text = {
            **{"Tab": (9, ""), "Enter": (13, "\r"), "Space": (32, " "), "End": (35, "")},
            **{"Home": (36, ""), "ArrowLeft": (37, ""), "ArrowRight": (39, "")},
        }[key]
        name = " " if key == "Space" else key
        for kind in ("keyDown", "keyUp"):
            more = {"text": text} if text and kind == "keyDown" else {}
            self.call(
                "Input.dispatchKeyEvent",
                type=kind, key=name, code=key, windowsVirtualKeyCode=code, **more,
            )  # fmt: skip
        self.settle()

    def type(self, text: str) -> None:
        """Type text into the element that has the focus."""
        self.call("Input.insertText", text=text)
        self.settle()

    def resize(self, width: int, height: int = 900) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip
        self.settle()

    def prefer(self, scheme: str) -> None:
        """Set the system's colour scheme, "light" or "dark"."""
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.call("Emulation.setEmulatedMedia", features=[feature])
        self.settle()

    def screenshot(self, whole: bool = False) -> bytes:
        """The visible part or the whole page as PNG."""
        answer = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        return base64.b64decode(answer["data"])

    def pdf(self) -> bytes:
        """The printed page."""
        answer = self.call("Page.printToPDF", preferCSSPageSize=True, printBackground=True)
        return base64.b64decode(answer["data"])

    def problems(self) -> list[str]:
        """Errors and warnings of the console, and requests for anything but the file itself."""
        found = []
        for event in self.events:
            method, params = event.get("method", ""), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                found.append(str(params["exceptionDetails"]))
            if method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
                found.append(str(params["args"]))
            if method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
                found.append(str(params["entry"]))
            if method == "Network.requestWillBeSent":
                url = params["request"]["url"]
                found += [] if url.startswith(("file:", "data:")) else [f"request for {url}"]
        return found

    def close(self) -> None:
        """End this browser."""
        try:
            self.call("Browser.close")
        except (RuntimeError, OSError, websocket.WebSocketException):
            self._process.terminate()
        self._socket.close()
        try:
            self._process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            self._process.kill()
