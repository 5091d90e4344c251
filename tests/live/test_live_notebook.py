"""What a notebook shows of `gradcli.explain`: the live page in a frame; printed, the page of `gradcli backward`."""

from __future__ import annotations

import html
import re
import time

import pytest
from conftest import long
from pages import browser, errors, frame

from gradcli import explain, parse


def test_it_is_the_page_of_backward_as_text(cli):
    shown = str(explain("y = x @ M", {"x": [1, 2], "M": [[1, 2], [3, 4]]}, {"y": [1, 10]}))
    assert shown == cli.done("backward", "y = x @ M", "--at", "x=[1,2],M=[[1,2],[3,4]]", "--v", "1,10").out.rstrip("\n")


def test_a_notebook_shows_the_live_page_in_a_frame():
    shown = explain(parse("y = x**2 + x"), {"x": 3.0})
    (source,) = re.fullmatch(
        r'<iframe [^>]*sandbox="allow-scripts" srcdoc="([^"]*)"></iframe><script>.*</script>', shown._repr_html_(), re.S
    ).groups()
    assert html.unescape(source) == shown.html()
    assert 'data-grad-of="x" data-number="7"' in shown.html()


@long
@pytest.mark.parametrize("width", [400, 1280])
def test_the_frame_is_as_high_as_its_content_and_does_nothing_that_its_sandbox_forbids(width, tmp_path):
    driver = browser()
    try:
        driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False},
        )
        page = tmp_path / "notebook.html"
        shown = explain(parse("h = x**2; y = h*w + x; z = sin(h)"), {"x": 3.0, "w": 2.0}, {"y": 1, "z": 1})
        page.write_text(f'<!doctype html><meta charset="utf-8"><body>{shown._repr_html_()}<p>below</p>', "utf-8")
        driver.get(page.as_uri())
        frame(driver)
        for _ in range(50):  # until the frame has told its last height
            driver.switch_to.default_content()
            high = driver.execute_script("return document.querySelector('iframe').clientHeight")
            driver.switch_to.frame(0)
            inner = "const page = document.documentElement; return [page.offsetHeight, page.scrollHeight];"
            heights = driver.execute_script(inner)
            if heights == [high, high]:
                break
            time.sleep(0.1)
        assert heights == pytest.approx([high, high], abs=1)
        assert not driver.find_element("css selector", '[data-action="link"]').is_displayed()
        driver.find_element("css selector", '[data-action="pytorch"]').click()
        copied = driver.find_element("css selector", '[data-part="copied-text"]')
        assert "requires_grad=True" in copied.get_attribute("value")
        assert driver.switch_to.active_element == copied
        field = driver.find_element("css selector", '[data-input="x"]')
        field.clear()
        field.send_keys("4")
        frame(driver)
        assert driver.find_element("css selector", '[data-value-of="h"]').get_attribute("data-number") == "16"
        assert not errors(driver)
    finally:
        driver.quit()
