"""The page of a run in a real browser: it opens from a file without complaint, shows what happened, finds, filters,
steps, tells what led to an event, and runs nothing that the run's own texts contain."""

import base64
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import zlib

from playwright.sync_api import sync_playwright

BINARY = os.environ.get("SEAWALL_BINARY", "target/release/seawall")
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
HOSTILE = "</script><img src=x onerror=\"document.title='owned'\"><b>bold</b>"
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]
# Opening may take long on a busy machine; how long it took is told, not judged.
PATIENCE_MS = 120_000


def make_page(path, *arguments):
    """Runs a seed with a page; whether a promise was broken."""
    words = [BINARY, "--log", "off", "sim", "replay", *arguments, "--report", str(path)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=600)
    assert done.returncode in (0, 1) and path.exists(), (done.returncode, done.stdout[-2000:], done.stderr[-2000:])
    return done.returncode == 1


def make_broken_page(path):
    """The first seed in which this planted bug shows."""
    for seed in range(40):
        if make_page(path, str(seed), "--topology", "standalone", "--mutant", "B16"):
            return seed
    raise AssertionError("the planted bug shows in no seed")


class Opened:
    """A page in the browser, with everything it complained about or asked for."""

    def __init__(self, browser, path, **options):
        self.context = browser.new_context(viewport={"width": 1400, "height": 900}, **options)
        self.tab = self.context.new_page()
        self.complaints = []
        self.requests = []
        self.tab.on("console", lambda message: self.complaints.append(f"{message.type}: {message.text}"))
        self.tab.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.tab.on("request", lambda request: self.requests.append(request.url))
        self.tab.goto(path.absolute().as_uri())
        self.tab.wait_for_selector("html[data-ready]", timeout=PATIENCE_MS)

    def ready_ms(self):
        return int(self.tab.evaluate("document.documentElement.dataset.ready"))

    def close(self):
        assert self.complaints == [], self.complaints
        assert len(self.requests) == 1 and self.requests[0].startswith("file:"), self.requests
        self.context.close()


def coloured(tab):
    """How many colours the lanes are drawn with: an empty picture has a few."""
    return tab.evaluate("""() => {
        const canvas = document.getElementById("lanes");
        const pixels = new Uint32Array(canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.buffer);
        return new Set(pixels).size;
    }""")


def settle(tab):
    tab.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def chosen(tab):
    return tab.evaluate("() => location.hash")


def look_at_a_broken_run(browser, path, seed):
    page = Opened(browser, path)
    tab = page.tab
    assert tab.title() == f"Seed {seed}: failed", tab.title()
    assert "planted bug B16" in tab.text_content("#title")
    first = tab.locator(".violation").first
    assert first.text_content().startswith("P4 broken"), first.text_content()
    assert "subscription_repeats_nothing" in first.text_content()
    assert first.locator(".event").count() >= 3, "a story"
    kinds = first.locator(".event b").all_text_contents()
    assert kinds[-1] == "delivered" and "publishes" in kinds and "acknowledges" in kinds, kinds
    assert tab.text_content("#command").startswith(f"seawall sim replay {seed} --topology standalone")
    # It begins at the moment of the first broken promise.
    assert tab.text_content("#chosen") == "delivered"
    labels = tab.locator("#labels button b").all_text_contents()
    assert labels[:4] == ["run", "node-0", "client-0", "client-1"], labels
    settle(tab)
    assert coloured(tab) > 8
    page.close()


def look_at_a_good_run(browser, path, screenshot=None):
    page = Opened(browser, path)
    tab = page.tab
    assert "no promise was broken" in tab.text_content("#verdict")
    assert tab.locator(".violation").count() == 0
    settle(tab)
    labels = tab.locator("#labels button").all_text_contents()
    for name in ("run", "metadata-0", "bookie-0", "bookie-2", "broker-0", "client-1"):
        assert any(label.startswith(name) for label in labels), (name, labels)

    # Search, and from match to match.
    tab.fill("#search", "kind=committed node=client-0")
    tab.wait_for_function("() => /^\\d/.test(document.getElementById('found').textContent)")
    found = int(re.match(r"[\d,]+", tab.text_content("#found")).group().replace(",", ""))
    told = int(re.search(r"(\d+) committed", tab.text_content("#facts")).group(1))
    # The last messages are sent from the other machine.
    assert 0 < found <= told, (found, told)
    tab.press("#search", "Enter")
    tab.press("#search", "Enter")
    assert tab.text_content("#found").startswith("2 of "), tab.text_content("#found")
    assert tab.text_content("#chosen") == "committed"

    # What led to it: its question, and back over the wire to a disk.
    chain = tab.locator("#chain .event .what").all_text_contents()
    assert any(line.startswith("publishes") for line in chain), chain
    if any(line.startswith("arrived") for line in chain):
        assert any(line.startswith("disk") for line in chain), chain
    committed = chosen(tab)
    tab.locator("#chain .event").last.click()
    assert chosen(tab) != committed
    assert tab.locator("#effects .event").count() > 0, "what it led to"

    # Steps, by keys and by buttons.
    tab.focus("#lanes")
    # Onto one that is shown: a cause may be of a group that is hidden, and is not stepped on again.
    tab.keyboard.press("ArrowRight")
    here = chosen(tab)
    tab.keyboard.press("ArrowRight")
    there = chosen(tab)
    assert there != here
    tab.click("#step-back")
    assert chosen(tab) == here

    # Filters by kind and by node: what is hidden is not stepped on.
    for name in ("message", "client", "log", "run", "fault"):
        tab.click(f"#groups button:text-is('{name}')")
    tab.focus("#lanes")
    for _ in range(3):
        tab.keyboard.press("ArrowRight")
        assert "node" in tab.text_content("#panel dl dd:last-of-type"), tab.text_content("#panel dl")
    tab.click("#groups button:text-is('message')")
    tab.click("#labels button:has-text('bookie-1')", modifiers=["Shift"])
    assert tab.get_attribute("#labels button:has-text('broker-0')", "aria-pressed") == "false"
    tab.focus("#lanes")
    for _ in range(3):
        tab.keyboard.press("ArrowLeft")
        assert "bookie-1" in tab.text_content("#panel dl"), tab.text_content("#panel dl")
    tab.click("#labels button:has-text('bookie-1')", modifiers=["Shift"])

    # Zoom, and a click on the picture.
    tab.click("#zoom-all")
    settle(tab)
    stretch = "() => [page.view.from, page.view.to]"
    whole = tab.evaluate(stretch)
    tab.focus("#lanes")
    tab.keyboard.press("+")
    begin, end = tab.evaluate(stretch)
    assert end - begin < whole[1] - whole[0]
    tab.keyboard.press("0")
    assert tab.evaluate(stretch) == whole
    tab.keyboard.press("Escape")
    assert tab.locator("#chosen").count() == 0
    tab.evaluate("() => { document.getElementById('scroll').scrollTop = 0; }")
    tab.click("#lanes", position={"x": 400, "y": 8})
    assert tab.text_content("#chosen") == "phase", tab.text_content("#panel")
    if screenshot:
        tab.screenshot(path=screenshot)
    page.close()

    dark = Opened(browser, path, color_scheme="dark")
    light = "() => getComputedStyle(document.body).backgroundColor"
    assert dark.tab.evaluate(light) == "rgb(20, 24, 28)"
    dark.close()


def unpack(page):
    """What is in the element of events, and its columns as bytes."""
    packed = re.search(r'<script id="events" type="text/plain">([^<]*)', page).group(1)
    rest = zlib.decompress(base64.b64decode(packed))
    columns = []
    while rest:
        length = struct.unpack("<I", rest[:4])[0]
        columns.append(rest[4:4 + length])
        rest = rest[4 + length:]
    return packed, columns


def pack(columns):
    raw = b"".join(struct.pack("<I", len(column)) + column for column in columns)
    return base64.b64encode(zlib.compress(raw)).decode()


def plant_text(page, text):
    """The same page as if a node and a checker had said this: into the data, as the page's maker puts texts there."""
    quoted = text.replace("\\", "\\\\").replace('"', '\\"').replace("<", "\\u003c").replace(">", "\\u003e")
    changed = page.replace('"nodes":["node-0"', f'"nodes":["{quoted}"', 1)
    changed = changed.replace('"lanes":[{"name":"run"', f'"lanes":[{{"name":"{quoted}"', 1)
    changed = re.sub(r'"detail":"', lambda found: found.group() + quoted, changed)
    assert changed.count(quoted) >= 3
    packed, columns = unpack(changed)
    for texts in (15, 16):
        planted = ["" if old == "" else f"{text} {old}" for old in json.loads(columns[texts])]
        columns[texts] = json.dumps(planted).encode()
    return changed.replace(packed, pack(columns))


def look_at_hostile_text(browser, path, folder):
    planted = folder / "hostile.html"
    planted.write_text(plant_text(path.read_text(), HOSTILE))
    page = Opened(browser, planted)
    tab = page.tab
    assert HOSTILE in tab.text_content(".violation .detail")
    assert HOSTILE in tab.text_content("#labels")
    assert HOSTILE in tab.text_content("#panel .text")
    assert HOSTILE in tab.locator(".violation .event").last.text_content()
    tab.fill("#search", "onerror=")
    tab.wait_for_function("() => /^[1-9]/.test(document.getElementById('found').textContent)")
    tab.press("#search", "Enter")
    tab.focus("#lanes")
    for _ in range(5):
        tab.keyboard.press("ArrowLeft")
    settle(tab)
    assert tab.locator("img").count() == 0 and "failed" in tab.title(), tab.title()
    page.close()


def repeat_run(page, least):
    """The same run again and again, until there are so many events: times and causes are distances, so that the
    columns of events only have to be put one behind the other."""
    packed, columns = unpack(page)
    rows = int(re.search(r'"rows":(\d+)', page).group(1))
    times = -(-least // rows)
    columns[:8] = [column * times for column in columns[:8]]
    page = page.replace(packed, pack(columns))
    return page.replace(f'"rows":{rows}', f'"rows":{rows * times}'), rows * times


def look_at_a_large_run(browser, path, folder):
    """A million events: the page has to stay usable. How long it took is told."""
    large = folder / "large.html"
    text, rows = repeat_run(path.read_text(), 1_000_000)
    large.write_text(text)
    page = Opened(browser, large)
    tab = page.tab
    settle(tab)
    drawn = tab.evaluate("""() => { const begun = performance.now(); page.painter.draw(); return performance.now() - begun; }""")
    searched = tab.evaluate("""() => { const begun = performance.now(); page.lookFor("kind=committed"); return performance.now() - begun; }""")
    assert tab.evaluate("page.view.run.at.length") == rows
    nodes = tab.evaluate("document.querySelectorAll('*').length")
    assert nodes < 2000, nodes
    size = large.stat().st_size / 1e6
    print(f"  {rows:,} events: {size:.1f} MB, open after {page.ready_ms()} ms, all of it drawn in {drawn:.0f} ms, "
          f"searched in {searched:.0f} ms, {nodes} elements", flush=True)
    page.close()


def main():
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        folder = pathlib.Path(scratch)
        broken, good = folder / "broken.html", folder / "good.html"
        seed = make_broken_page(broken)
        assert not make_page(good, "1", "--topology", "cluster"), "a promise was broken"
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        look_at_a_broken_run(browser, broken, seed)
        look_at_hostile_text(browser, broken, folder)
        look_at_a_good_run(browser, good, *sys.argv[1:])
        look_at_a_large_run(browser, good, folder)
        browser.close()
    print("page of a run: passed", flush=True)


main()
