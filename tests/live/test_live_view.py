"""How the graph of a live page is seen: larger, as a whole, alone for a room; and the link that keeps this."""

from __future__ import annotations

import pytest
from conftest import long
from numpy.testing import assert_allclose
from pages import check_axe, click, find, frame, type_points

pytestmark = long
LOOP = (
    "h[0]=x0; h[t]=tanh(W@h[t-1]+b) for t in 1..30; y=sum(h[30]**2)", "--at",
    "x0=[0.5,-0.2],W=[[0.8,0.3],[-0.4,0.9]],b=[0.1,0.05]",
)  # fmt: skip
EXAMPLE = ("y = mse_loss(x*w, t)", "--at", "x=3,w=2,t=1")
DEEP = ("y = mse_loss(x*w, t) + sum(tanh(x*w*sin(exp(t))*cos(t)))/7", "--at", "x=3,w=2,t=1")
SCALE = """
const svg = document.querySelector(".picture");
return svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
"""
SMALLEST = """
return Math.min(...[...document.querySelectorAll('.picture text')].filter((e) => e.checkVisibility()).map((e) =>
  parseFloat(getComputedStyle(e).fontSize) * e.getScreenCTM().a), 99);
"""


def pressed(driver, action):
    return find(driver, f'[data-action="{action}"]').get_attribute("aria-pressed")


def seen(driver, selector):
    return find(driver, selector).is_displayed()


def test_the_graph_is_made_larger_smaller_and_fit_and_no_text_is_below_11_pixels(opened):
    driver = opened(*DEEP)
    assert_allclose(driver.execute_script(SCALE), 1, atol=0.01)
    click(driver, "zoom-in", 2)
    assert_allclose(driver.execute_script(SCALE), 1.56, atol=0.01)
    for _ in range(6):
        click(driver, "zoom-out")
        assert driver.execute_script(SMALLEST) >= 10.99
    assert driver.execute_script(SCALE) < 0.5
    names = {box.get_attribute("aria-label") for box in driver.find_elements("css selector", ".picture [data-box]")}
    assert {"x", "w", "t"} <= names  # of boxes whose text is too small
    click(driver, "fit")
    assert pressed(driver, "fit") == "true"
    box = driver.execute_script("const r = arguments[0].getBoundingClientRect(); return [r.width, r.height]",
                                find(driver, ".picture"))  # fmt: skip
    assert box[0] <= driver.execute_script("return document.querySelector('.drawing').clientWidth") + 1
    assert box[1] <= driver.execute_script("return innerHeight")
    click(driver, "fit")
    assert_allclose(driver.execute_script(SCALE), 1, atol=0.01)


@pytest.mark.parametrize("wide", [320, 800, 850, 1200, 3840])
def test_no_page_is_wider_than_its_window_and_no_number_of_the_curve_is_cut_off(opened, wide):
    driver = opened(*LOOP)
    size = {"width": wide, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    driver.refresh()
    frame(driver)
    assert driver.execute_script("return document.documentElement.scrollWidth <= innerWidth")
    cut = driver.execute_script("""
    const [svg, panel] = [".curve", '[data-part="plot"]'].map((s) => document.querySelector(s).getBoundingClientRect());
    const texts = [...document.querySelectorAll(".curve text")].map((e) => [e.textContent, e.getBoundingClientRect()]);
    return texts.filter(([, r]) => r.left < svg.left || r.right > Math.min(svg.right, panel.right)).map(([t]) => t);
    """)
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert cut == []
    assert "… and 22 more" in find(driver, ".focus").text  # of the 30 rounds


@pytest.mark.parametrize(
    ("shape", "array", "begins"),
    [
        ([], [2], "2"),
        ([0], [], "[]"),
        ([2, 2], [1, 2, 3, 4], "[[1, 2], [3, 4]]"),
        ([3, 3], [0.25, 0.75, 0.125, 0.375, 4, 5, 6, 7, 8], "[[0.25, 0.75, …], [0.375, 4, …], …]"),
        ([4, 3], [k / 3 for k in range(12)], "[[0, 0.333333, 0.666667], …]"),
        ([20, 1], range(20), "[[0], [1], [2], …]"),
        ([1, 2, 2, 5], range(20), "[[[[0, 1, 2, 3, …], …], …]]"),
    ],
)
def test_the_beginning_of_an_array_keeps_its_axes(opened, shape, array, begins):
    driver = opened(*EXAMPLE)
    assert driver.execute_script("return summary(...arguments)", shape, list(array), 36) == begins


SAYS = """
const said = [...document.querySelectorAll(".says")].filter((e) => getComputedStyle(e).visibility === "visible");
return [document.querySelector('[data-part="loss"]'),
  document.querySelector('[data-part="plot"] .title'), ...said].map((e) => e.textContent);
"""


def test_a_gradient_of_v_times_y_is_not_said_to_be_that_of_y(opened):
    driver = opened("y=x**2", "--at", "x=1", "--v", "100")
    assert driver.execute_script(SAYS) == ["L = 100·y = 100", "L against x: slope 200",
                                           "x̄ = ∂L/∂x: how fast L grows when x grows", "x̄ = ∂L/∂x"]  # fmt: skip
    driver = opened("y=x**2", "--at", "x=1")
    before = driver.execute_script(SAYS)
    assert before == ["y = 1", "y against x: slope 2", "x̄ = ∂y/∂x: how fast y grows when x grows", "x̄ = ∂y/∂x"]
    type_points(driver, [("data-cotangent", "y")], [[-3]])
    frame(driver)
    assert driver.execute_script(SAYS) == ["(-3)·y = -3", "(-3)·y against x: slope -6"]
    click(driver, "reset")
    frame(driver)
    assert driver.execute_script(SAYS) == before


def test_present_shows_headline_steps_and_graph_alone_in_large_type_until_escape(opened):
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    driver = opened(*EXAMPLE)
    click(driver, "present")
    assert pressed(driver, "present") == "true"
    for part in ("[data-headline]", "[data-step]", '[data-action="next"]', ".picture"):
        assert seen(driver, part)
    for part in ("h1", "[data-input]", ".system", ".focus", ".descent", '[data-action="link"]'):
        assert not seen(driver, part)
    size = "return parseFloat(getComputedStyle(document.querySelector(arguments[0])).fontSize)"
    assert driver.execute_script(size, "[data-step]") >= 24
    assert driver.execute_script(SMALLEST) >= 14
    click(driver, "first")
    click(driver, "next")
    assert seen(driver, '[data-action="next"]')
    ActionChains(driver).send_keys(Keys.ESCAPE).perform()
    assert pressed(driver, "present") == "false"
    assert seen(driver, "[data-input]")


def test_a_link_keeps_the_view_and_open_boxes(opened):
    driver = opened(*EXAMPLE)
    find(driver, '[data-box="y"]').click()
    click(driver, "zoom-in")
    click(driver, "present")
    driver.execute_async_script("setTimeout(arguments[0], 900)")
    address = driver.current_url
    inside = driver.execute_script("return document.querySelector('[data-card]').textContent")
    driver.get("about:blank")
    driver.get(address)
    frame(driver)
    assert pressed(driver, "present") == "true"
    assert find(driver, '[data-box="y"]').get_attribute("aria-expanded") == "true"
    assert driver.execute_script("return document.querySelector('[data-card]').textContent") == inside
    assert_allclose(driver.execute_script(SCALE), 1.25, atol=0.01)
    driver.execute_script("location.hash = '#~zoom=1e9&~open=%22]&~open=99&~present=1'")
    driver.execute_async_script("setTimeout(arguments[0], 200)")
    assert pressed(driver, "present") == "false"
    assert not driver.find_elements("css selector", "[data-card]")
    assert_allclose(driver.execute_script(SCALE), 1, atol=0.01)


@pytest.mark.parametrize("actions", [("present",), ("fit",), ("zoom-out",) * 5])
def test_axe_finds_nothing_in_a_view(opened, actions):
    driver = opened(*DEEP)
    for action in actions:
        click(driver, action)
    check_axe(driver)
