"""The guide as a web site: each link leads to a page and a heading, and a page about a computation has a live page."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from gradcli.guide.site import GALLERY, START
from gradcli.guide.topics import topics


class Links(HTMLParser):
    """The anchors of a file, and what it leads to or loads."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.frames = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.ids |= {found["id"]} if "id" in found else set()
        self.links += [found[name] for name in ("href", "src") if name in found]
        self.frames += [found["src"]] if tag == "iframe" else []


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    from conftest import Command

    folder = tmp_path_factory.mktemp("guide") / "site"
    outcome = Command()("explain", "--site", str(folder))
    assert outcome.status == 0
    assert outcome.out == ""
    assert outcome.told.startswith("wrote ")
    return folder


def pages(site):
    return {path.stem: Links(path.read_text("utf-8")) for path in site.glob("*.html")}


def test_every_topic_is_a_page_and_every_link_leads_somewhere(site):
    found = pages(site)
    assert set(found) == {*topics(), "index"}
    for name, page in found.items():
        for link in page.links:
            if link.startswith(("http://", "https://")):
                assert link not in page.frames
                continue
            file, _, anchor = link.partition("#")
            assert not file or (site / file).exists(), (name, link)
            assert not anchor or anchor in found[(file or f"{name}.html").removesuffix(".html")].ids, (name, link)


def test_nothing_is_loaded_from_a_network(site):
    for path in (*site.glob("*.html"), *site.glob("*.css"), *site.glob("*.js")):
        text = path.read_text("utf-8")
        assert not re.search(r"""(?:src|@import|url)\s*[=(]?\s*["']?https?:""", text), path
        assert "fetch(" not in re.sub(r"const SECTIONS = .*", "", text)


def test_the_pages_to_start_with_come_first_and_in_order(site):
    name, order = START[0], []
    while name:
        order.append(name)
        text = (site / f"{name}.html").read_text("utf-8")
        after = re.search(r'<a rel="next" href="(.*?)\.html"', text)
        name = after and after[1]
    assert order[: len(START)] == [*START]
    assert order[len(START)] == GALLERY
    assert sorted(order) == sorted(topics())


def test_a_page_about_a_computation_has_a_live_page(site):
    found = pages(site)
    assert len(found[GALLERY].frames) >= 10
    computes = {t.name for t in topics().values() if t.part in ("gradients", "pytorch")} - {"own-pytorch"}
    assert [name for name in (*computes, "models", "functions") if not found[name].frames] == []
    for page in found.values():
        for frame in page.frames:
            assert "data-input" in (site / frame).read_text("utf-8")


def test_a_folder_with_files_is_kept(site, cli):
    assert "it is there already" in cli.refused("explain", "--site", str(site))
