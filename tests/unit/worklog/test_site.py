"""A campaign as a folder of static pages: every link leads to a file and, if it names one, to a place in it."""

import re
from html.parser import HTMLParser
from urllib.parse import unquote

import pytest
from worklog_pages import CAMPAIGN

from warplog.worklog.site import Site, case_file


class Links(HTMLParser):
    """Addresses and ids of a page."""

    def __init__(self, source):
        super().__init__()
        self.addresses, self.ids = [], set()
        self.feed(source)

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name in ("href", "src"):
                self.addresses.append(value)
            elif name == "id":
                self.ids.add(value)


@pytest.fixture(scope="module")
def site(page, recorded, tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    made = Site(folder, "window.vegaEmbed = () => 0;")
    made.add(page, recorded)
    made.finish(CAMPAIGN)
    return folder


def test_every_link_leads_to_a_file_of_the_site_and_to_a_place_in_it(site):
    pages = {path: Links(path.read_text()) for path in site.rglob("*.html")}
    assert len(pages) > 10
    for path, seen in pages.items():
        for address in seen.addresses:
            file, _, place = address.partition("#")
            assert not re.match(r"[a-z]+:|/", address), address
            target = (path.parent / unquote(file)).resolve() if file else path
            assert target.is_file(), f"{path.name}: {address}"
            assert not place or place in pages[target].ids, f"{path.name}: {address}"


def test_each_step_and_each_case_has_an_address_that_stays(site, page, recorded):
    names = {path.name for path in (site / "sgemm").glob("*.html")}
    assert names == {
        "index.html",
        *(f"{one.name}.html" for one in page.rungs),
        *(case_file(case) for case in recorded.measurements["case"].unique()),
    }


def test_the_page_of_a_case_shows_its_times(site, recorded):
    rows = recorded.measurements
    one = rows[(rows["variant"] == "naive") & (rows["case"] == "1024")].iloc[0]
    text = (site / "sgemm" / "at-1024.html").read_text()
    assert f">{one['median_us']:.1f} µs<" in text


def test_the_index_names_the_fastest_variant_of_each_family(site):
    text = (site / "index.html").read_text()
    assert '<a href="sgemm/index.html">sgemm</a>' in text
    assert "warptile" in text


def test_a_hostile_case_is_a_file_name():
    assert case_file("../../x y") == "at-..-..-x-y.html"
