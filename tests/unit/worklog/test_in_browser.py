"""The page in a real browser: charts, heat map, links, print and phone; nothing is asked of a network."""

import itertools
import math
import re
import shutil
from dataclasses import replace

import pytest
from worklog_pages import CAMPAIGN, FAMILY, charted, hot_line

from warplog.core.text import Table
from warplog.figures.shared import gallery
from warplog.worklog.html import html
from warplog.worklog.pictures import charts
from warplog.worklog.site import index

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
LINE = "        __syncthreads();"

pytestmark = pytest.mark.skipif(BROWSER is None, reason="needs Chromium or Chrome in PATH")


@pytest.fixture(scope="module")
def address(recorded, tmp_path_factory):
    number = FAMILY.variant("warptile").file.read_text().splitlines().index(LINE) + 1
    line = hot_line(recorded, number, 0.4) | {"text": LINE, "instruction_share": math.nan}
    path = tmp_path_factory.mktemp("page") / "sgemm.html"
    path.write_text(html(charted(recorded, lines=[line]), charts.library()))
    return path.as_uri()


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="needs the package playwright")
    with playwright.sync_playwright() as running:
        shown = running.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield shown
        shown.close()


class Shown:
    """A page that was opened, with what went wrong and what it asked for."""

    def __init__(self, browser, address, width=1400, **options):
        self.page = browser.new_page(viewport={"width": width, "height": 900}, **options)
        self.wrong, self.asked = [], []
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("console", lambda said: self.wrong.append(said.text) if said.type == "error" else None)
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(address)

    def drawn(self):
        self.page.wait_for_selector("html.drawn")
        return self.page

    def bars(self):
        """The names at the axis of the bars, from top to bottom."""
        return self.page.eval_on_selector_all(
            "#chart svg .role-axis-label text, #chart svg .mark-text.role-axis-label text",
            "all => all.map(label => [label.getBoundingClientRect().y, label.textContent]).sort((a, b) => a[0] - b[0])"
            ".map(row => row[1])",
        )

    def check(self):
        assert self.wrong == []
        assert all(url.startswith(("file:", "data:", "blob:")) for url in self.asked)

    def close(self):
        self.check()
        self.page.close()


@pytest.fixture(scope="module")
def shared(browser, address):
    return Shown(browser, address)


@pytest.fixture
def opened(shared):
    """A page of several tests, since opening one takes a second; each leaves on it what it chose and unfolded."""
    yield shared
    shared.page.emulate_media(media="screen")
    shared.check()


def names(shown):
    variants = {v.name for v in FAMILY.variants}
    return [name for name in dict.fromkeys(shown.bars()) if name in variants]


def test_the_charts_replace_the_figure_and_sort_by_speed(opened):
    page = opened.drawn()
    assert not page.is_visible(".static")
    assert names(opened)[0] == "naive"
    page.check('input[name="in_order"][value="speed"]')
    page.wait_for_function("window.chartView.signal('in_order') === 'speed'")
    page.evaluate("window.chartView.runAsync().then(() => 0)")
    assert names(opened)[-1] == "naive"


def test_case_and_unit_are_chosen(opened):
    page = opened.drawn()
    page.select_option('select[name="in_case"]', "1024")
    page.check('input[name="in_unit"][value="% of cublas"]')
    page.wait_for_selector("text=% of cublas at 1024, at rest")


def test_the_axis_of_sizes_bears_the_names_of_the_cases(opened):
    labels = opened.drawn().eval_on_selector_all(
        "#chart svg .role-axis-label text", "all => all.map(element => element.textContent)"
    )
    assert {"128", "1024", "8192"} <= set(labels)
    assert not [label for label in labels if re.fullmatch(r"[\d.]+[kMG]", label)]


def test_a_value_appears_under_the_pointer(opened):
    page = opened.drawn()
    page.hover("#chart svg .mark-rect.role-mark path >> nth=3")
    page.wait_for_selector("#vg-tooltip-element.visible")
    assert "TFLOP/s" in page.inner_text("#vg-tooltip-element")


def test_a_variant_is_chosen_in_the_legend(opened):
    page = opened.drawn()
    before = page.evaluate("window.chartView.data('chosen_store').length")
    page.click("#chart svg .role-legend-label text >> text=blocktile_1d")
    page.wait_for_function(f"window.chartView.data('chosen_store').length !== {before}")


def test_a_printed_page_keeps_the_colours_that_are_its_numbers(opened):
    page = opened.page
    page.emulate_media(media="print")
    kept = "element => [getComputedStyle(element).getPropertyValue('print-color-adjust'), element.offsetWidth > 0]"
    for bar in (".fall .up", ".gauge div", ".listing > pre .heat"):
        assert page.eval_on_selector(bar, kept) == ["exact", True], bar


def test_a_printed_page_cuts_no_speed_and_has_no_heading_of_folded_parts(browser, address):
    shown = Shown(browser, address, width=680)  # A4 without margins
    shown.page.emulate_media(media="print")
    right = (
        "all => Math.max(...all.map(element => element.getBoundingClientRect().left + element.scrollWidth))"
    )
    assert shown.page.eval_on_selector_all(".fall .speed", right) <= 680
    assert not shown.page.is_visible(".part")
    shown.close()


def test_a_mention_of_a_line_opens_the_heat_map_at_that_line(opened):
    page = opened.page
    page.evaluate(
        "document.querySelectorAll('#rung-warptile details').forEach(part => part.open = part.className !== 'source')"
    )
    page.click("#rung-warptile a:text-matches('^warptile.cu:')")
    page.wait_for_selector(".source .l:target")
    assert "40 %" in page.inner_text(".l:target .heat")
    assert page.inner_text(".l:target .stall") == "wait"


def test_a_link_to_a_folded_variant_opens_it(opened, address):
    page = opened.page
    page.goto(f"{address}#rung-cublas")
    page.wait_for_selector("#rung-cublas .idea", state="visible")


def test_on_a_phone_the_figures_stand_and_nothing_is_cut_off(browser, address):
    shown = Shown(browser, address, width=390)
    assert shown.page.evaluate("document.documentElement.scrollWidth") <= 390
    assert shown.page.is_visible(".fall")
    assert not shown.page.is_visible("#chart")
    shown.close()


def test_the_figures_of_a_run_are_drawn_in_the_frame_in_which_mlflow_shows_them(browser, tmp_path):
    figures = [tmp_path / "ladder.svg", tmp_path / "roofline.svg"]
    for width, path in enumerate(figures, 300):
        path.write_text(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="9"/>')
    shown = Shown(browser, "about:blank")
    shown.page.evaluate(
        """page => { const frame = document.createElement("iframe"); frame.setAttribute("sandbox", "allow-scripts");
        frame.src = URL.createObjectURL(new Blob([page], {type: "text/html"})); document.body.append(frame); }""",
        gallery.page("sgemm", figures),
    )
    frame = shown.page.wait_for_selector("iframe").content_frame()
    frame.wait_for_function("[...document.images].every(image => image.naturalWidth)")
    assert frame.evaluate("[...document.images].map(image => image.naturalWidth)") == [300, 301]
    shown.close()


@pytest.mark.parametrize("width", [390, 700, 1000, 1400])
def test_the_first_page_shows_all_columns_of_its_families(browser, recorded, tmp_path, width):
    note, name = "torch's time includes a copy of the result, which is not small", recorded.family
    tables = replace(recorded, variants=recorded.variants.assign(note=note))
    task = "how a product of matrices comes near a library's speed, tile by tile"
    text = index.page([tables], {name: task}, {name: ["ladder"]}, CAMPAIGN, Table((), ()))
    (tmp_path / "index.html").write_text(text)
    shown = Shown(browser, (tmp_path / "index.html").as_uri(), width=width)
    cut = "all => all.filter(box => box.scrollWidth > box.clientWidth).length"
    assert note in shown.page.inner_text(".wide tbody")
    assert shown.page.eval_on_selector_all(".wide", cut) == 0
    shown.close()


def test_on_a_phone_a_figure_is_wide_enough_to_read_and_scrolls_by_itself(browser, page, tmp_path):
    path = tmp_path / "sgemm.html"
    path.write_text(html(page))
    shown = Shown(browser, path.as_uri(), width=390)
    assert (
        shown.page.eval_on_selector(".static img", "element => element.getBoundingClientRect().width") > 500
    )
    assert shown.page.evaluate("document.documentElement.scrollWidth") <= 390
    shown.close()


def test_without_scripts_the_page_is_whole(browser, address):
    shown = Shown(browser, address, java_script_enabled=False)
    assert shown.page.is_visible(".fall")
    assert shown.page.is_visible("#rung-warptile .listing > pre")
    assert not shown.page.is_visible("#chart")
    shown.close()


def test_print_shows_the_figures_and_not_the_charts(opened):
    page = opened.drawn()
    page.emulate_media(media="print")
    assert not page.is_visible("#chart")
    assert page.is_visible(".fall")


def test_numbers_at_the_axis_of_the_bars_stand_apart(browser, recorded, tmp_path):
    rows = recorded.measurements
    path = tmp_path / "sgemm.html"
    path.write_text(
        html(
            charted(replace(recorded, measurements=rows.assign(gflops=80 * rows["gflops"]))), charts.library()
        )
    )
    shown = Shown(browser, path.as_uri())
    boxes = shown.drawn().eval_on_selector_all(
        "#chart svg .role-axis-label text",
        "all => all.map(element => [element.textContent, element.getBoundingClientRect()]).map(([text, box]) => "
        "[text, box.left, box.right, box.top]).filter(label => /^[0-9.,]+$/.test(label[0]))",
    )
    top = min(box[3] for box in boxes)
    bars = sorted((box for box in boxes if box[3] == top), key=lambda box: box[1])
    assert bars[-1][0] == "4500"
    assert all(after[1] - before[2] > 6 for before, after in itertools.pairwise(bars))
    shown.close()


def test_the_hottest_line_of_the_heat_map_is_in_the_part_that_is_shown(opened):
    page = opened.page
    for part in ("#rung-warptile", "#rung-warptile .source"):
        page.eval_on_selector(part, "element => { element.open = true; }")
    page.wait_for_selector("#rung-warptile .source .heat[style]", state="visible")


@pytest.mark.parametrize("width", [390, 700, 1400])
def test_no_code_box_hides_what_it_holds(browser, address, width):
    shown = Shown(browser, address, width=width)
    hidden = """all => all.filter(line => line.offsetWidth && (
        line.scrollHeight > line.clientHeight + 1 || line.scrollWidth > line.clientWidth + 1)).length"""
    assert shown.page.eval_on_selector_all(".listing pre", hidden) == 0
    assert shown.page.evaluate("document.documentElement.scrollWidth") <= width
    shown.close()


def test_on_a_phone_no_name_of_the_main_path_is_broken(browser, page, tmp_path):
    path = tmp_path / "sgemm.html"
    path.write_text(html(page).replace(">gmem_coalesced</a>", ">wgmma_tile128x256</a>"))
    shown = Shown(browser, path.as_uri(), width=390)
    lines = """all => all.map(line => { const text = document.createRange(); text.selectNodeContents(line);
        return text.getClientRects().length; })"""
    assert set(shown.page.eval_on_selector_all(".fall .name", lines)) == {1}
    shown.close()


def test_in_print_a_line_that_is_too_wide_goes_on_below_its_code(browser, address):
    shown = Shown(browser, address, width=680)
    shown.page.emulate_media(media="print")
    starts = """all => all.filter(line => line.offsetWidth && line.querySelector(".sign")).map(line =>
        line.querySelector(".sign").getBoundingClientRect().right - line.getBoundingClientRect().left
        - parseFloat(getComputedStyle(line).paddingLeft))"""
    for listing in (".listing.hot .l", ".listing:not(.hot) .l"):
        starts_px = shown.page.eval_on_selector_all(listing, starts)
        assert starts_px
        assert max(map(abs, starts_px)) < 1
    shown.close()
