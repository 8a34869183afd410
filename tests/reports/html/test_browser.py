"""The report in a browser, where there is one: it loads without errors, sorts, filters, and fits narrow windows."""

import html
import json
import re
import shutil
import subprocess

import numpy as np
import pytest

from manykernels import MKLClassifier
from manykernels.kernels import Gaussian, KernelBank

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium to open the report in")

# The page is shown as it is in a frame; this script looks into it, clicks, and writes down what it sees.
LOOK = """
const frame = document.querySelector("iframe");
frame.addEventListener("load", () => {
  const page = frame.contentDocument, seen = {};
  const column = (place) => [...page.querySelectorAll("table.kernels tbody tr")].map((r) => r.cells[place].textContent);
  const heads = [...page.querySelectorAll("table.kernels thead th")];
  const click = (place) => heads[place].querySelector("button").click();
  const status = () => page.getElementById("kernel-status").textContent;
  seen.width = [page.documentElement.scrollWidth, frame.contentWindow.innerWidth];
  seen.requests = frame.contentWindow.performance.getEntriesByType("resource").map((entry) => entry.name);
  seen.first = [column(0)[0], column(2)[0], column(0).length, status()];
  seen.shares = column(3);
  click(0);
  seen.byName = [column(0), heads.map((head) => head.getAttribute("aria-sort"))];
  click(0);
  seen.byNameDown = [column(0), heads[0].getAttribute("aria-sort")];
  const filter = page.getElementById("kernel-filter");
  filter.value = "second width=0.125";
  filter.dispatchEvent(new Event("input"));
  seen.filtered = [column(0), status(), page.getElementById("kernel-more").hidden];
  filter.value = "";
  filter.dispatchEvent(new Event("input"));
  page.getElementById("kernel-more").click();
  seen.more = column(0).length;
  const printed = (event) => frame.contentWindow.dispatchEvent(new Event(event));
  printed("beforeprint");
  seen.print = [column(0).length, status()];
  printed("afterprint");
  seen.afterPrint = column(0).length;
  seen.focusable = heads.every((head) => head.querySelector("button").tabIndex === 0);
  const marked = document.createElement("pre");
  marked.id = "seen";
  marked.textContent = JSON.stringify(seen);
  document.body.replaceChildren(marked);
});
"""


def looked_at(page, folder, width):
    """Return what the script saw, and what the browser had to say."""
    shown = f'<iframe width="{width}" height="900" srcdoc="{html.escape(page)}"></iframe><script>{LOOK}</script>'
    (folder / "look.html").write_text(f'<!DOCTYPE html><meta charset="utf-8"><body>{shown}', encoding="utf-8")
    options = "--headless=new --no-sandbox --disable-gpu --dump-dom --enable-logging=stderr --virtual-time-budget=10000"
    network = ["--host-resolver-rules=MAP * ~NOTFOUND", "--disable-background-networking", "--no-first-run"]
    command = [CHROMIUM, *options.split(), *network, f"--user-data-dir={folder}", (folder / "look.html").as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    seen = re.search(r'<pre id="seen">(.*?)</pre>', done.stdout, flags=re.DOTALL)
    assert seen, done.stderr[-2000:]
    return json.loads(html.unescape(seen[1])), [line for line in done.stderr.splitlines() if "CONSOLE" in line]


@pytest.fixture(scope="module")
def page():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    bank = KernelBank(
        Gaussian(width, columns=[j], label=name, group=name)
        for j, name in enumerate(("first", "second", "<i>third</i>"))
        for width in np.geomspace(0.125, 64, 100)
    )
    return MKLClassifier(bank, norm=2).fit(X, X[:, 0] > 0).report(X, X[:, 0] > 0, folds=2, title="</title><b>").html


@pytest.fixture(scope="module", params=[1280, 400])
def visit(request, page, tmp_path_factory):
    return looked_at(page, tmp_path_factory.mktemp("browser"), request.param)


def test_no_errors_and_no_requests(visit):
    seen, said = visit
    assert said == []
    assert seen["requests"] == []


def test_the_page_does_not_scroll_sideways(visit):
    content, window = visit[0]["width"]
    assert content <= window


def test_kernels_are_sorted_by_share_at_first(visit):
    seen = visit[0]
    assert seen["first"][2:] == [25, "Showing 25 of 300 kernels."]
    shares = [float(text.strip("<%")) for text in seen["shares"]]
    assert shares == sorted(shares, reverse=True)


def test_clicks_sort(visit):
    names, marks = visit[0]["byName"]
    assert names[0] == "Gaussian(width=0.125) on <i>third</i>"
    assert marks == ["ascending", *[None] * (len(marks) - 1)]
    down, mark = visit[0]["byNameDown"]
    assert (down[0], mark) == ("Gaussian(width=64) on second", "descending")
    assert visit[0]["focusable"]


def test_the_filter_looks_at_all_kernels(visit):
    names, status, hidden = visit[0]["filtered"]
    assert names == ["Gaussian(width=0.125) on second"]
    assert status == "Showing 1 of 1 kernel that matches, of 300 in all."
    assert hidden


def test_more_rows(visit):
    assert visit[0]["more"] == 225


def test_print_shows_the_first_rows_and_the_screen_is_as_before(visit):
    rows, status = visit[0]["print"]
    assert rows == 25
    assert "with a positive weight" in status
    assert visit[0]["afterPrint"] == 225
