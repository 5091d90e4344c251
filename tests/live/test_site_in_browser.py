"""The web site of the guide in Chromium: search, keys, frames, width, and whether everybody can use it."""

from __future__ import annotations

import pytest
from conftest import Command, long
from pages import check_axe, errors, until

KEYS = "document.dispatchEvent(new KeyboardEvent('keydown', {key: arguments[0], bubbles: true}))"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("guide") / "site"
    assert Command()("explain", "--site", str(folder)).status == 0
    return folder


def test_the_search_finds_pages_without_a_server(driver, site):
    driver.get((site / "index.html").as_uri())
    field = driver.find_element("id", "query")
    for question, page in (
        ("why is x.grad None", "leaf-and-intermediate"),
        ("retain_graph", "retain-graph"),
        ("gradients add up", "accumulation"),
        ("nan", "nan"),
    ):
        field.clear()
        field.send_keys(question)
        links = [a.get_attribute("href") for a in driver.find_elements("css selector", "#hits a")]
        assert any(f"/{page}.html" in link for link in links[:3]), (question, links)
    field.clear()
    field.send_keys("xyzzy")
    assert driver.find_element("id", "hits").text == "No page has a word of this."
    assert errors(driver) == []


def test_keys_turn_the_pages(driver, site):
    def press(key, then):
        before = driver.current_url
        driver.execute_script(KEYS, key)
        until(driver, lambda d: d.current_url != before and d.current_url.endswith(then))

    driver.get((site / "index.html").as_uri())
    press("n", "/vector-jacobian-product.html")
    press("n", ".html")
    press("p", "/vector-jacobian-product.html")
    driver.execute_script(KEYS, "/")
    assert driver.execute_script("return document.activeElement.id") == "query"


def test_a_frame_has_a_live_page(driver, site):
    driver.get((site / "vector-jacobian-product.html").as_uri())
    driver.switch_to.frame(driver.find_element("css selector", "iframe"))
    assert driver.find_element("css selector", '[data-grad-of="x0"]').get_attribute("data-number") == "26"
    driver.switch_to.default_content()


@pytest.mark.parametrize("width", [360, 1000])
def test_no_page_scrolls_sideways(driver, site, width):
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    for name in ("index", "accumulation", "layers", "benchmarks", "gallery", "nan", "development", "in-place"):
        driver.get((site / f"{name}.html").as_uri())
        until(driver, lambda d: d.execute_script("return document.documentElement.scrollWidth") <= width)
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@long
def test_axe_finds_nothing(driver, site):
    for name in ("index", "accumulation", "corners", "layers"):
        for scheme in ("light", "dark"):
            media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
            driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
            driver.get((site / f"{name}.html").as_uri())
            check_axe(driver)
