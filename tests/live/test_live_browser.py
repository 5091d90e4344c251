"""Live pages in Chromium: each number is gradcli's, whatever is typed; steps, calls and links do what they say."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import long
from numpy.testing import assert_allclose
from pages import SAMPLES, click, find, flattened, frame, numbers, scalars, system_of, type_points

from gradcli.graph.names import bar
from gradcli.report.live.numbers import GRID

EXAMPLE = ("y0=3*x0**2", "y1=x0**2+2*x1**3", "y2=10*x1", "--at", "x0=1,x1=2", "--v", "1,10,100")
POINTS = 20


def type_into(driver, selector, text):
    field = find(driver, selector)
    field.clear()
    field.send_keys(text)


def points_of(graph, chance):
    """Return random points, some of whose numbers are integers, 0 among them."""
    leaves = sum(x.size for x in graph.inputs.values())
    points = chance.uniform(-2, 2, (POINTS, leaves))
    points[::4] = np.round(points[::4])
    return points.round(3)


def literal(name, shape, values):
    return f"{name}={np.array(values).reshape(shape).tolist()}"


def at_option(graph, point):
    parts, k = [], 0
    for name, x in graph.inputs.items():
        parts.append(literal(name, x.shape, point[k : k + x.size]))
        k += x.size
    return ",".join(parts)


@long
@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_each_number_is_that_of_backward(path, opened, cli, request):
    graph = system_of(path)
    if graph is None or any(x.size > GRID for x in graph.inputs.values()):
        pytest.skip("the page of this system has other fields")
    chance = np.random.default_rng(len(path.stem))
    points = points_of(graph, chance)
    v = [] if sum(y.size for y in graph.outputs.values()) == 1 else ["--v", "ones"]
    fields = [["data-input", name] for name in scalars(graph.inputs)]
    driver = opened("-F", str(path), "--at", at_option(graph, points[0]), *v)
    ats = [option for point in points for option in ("--at", at_option(graph, point))]
    right = cli.done("backward", "-F", str(path), *ats, *v, "-f", "json").objects
    for found, wanted in zip(type_points(driver, fields, points.tolist()), right, strict=True):
        compare(found, wanted)


def compare(found, wanted):
    """Check the values and gradients of a page against those of `gradcli backward -f json`, to 12 digits."""
    for kind, values in (("value-of", wanted["value"]), ("grad-of", wanted["grad"])):
        for name, value in flattened(values).items():
            if f"{kind} {name}" in found or kind == "grad-of":
                assert_allclose(found[f"{kind} {name}"], value, rtol=1e-12, atol=1e-13, err_msg=f"{kind} {name}")


@long
def test_nan_and_infinity(opened, cli):
    driver = opened("y=log(x)*sqrt(z)", "w=1/x", "--at", "x=1,z=1", "--v", "1,1")
    for x, z in (("0", "0"), ("-1", "2"), ("inf", "1"), ("nan", "1"), ("1e308", "1e308"), ("-0.0", "4"), ("0", "-inf")):
        type_into(driver, '[data-input="x"]', x)
        type_into(driver, '[data-input="z"]', z)
        wanted = cli.json("backward", "y=log(x)*sqrt(z)", "w=1/x", "--at", f"x={x},z={z}", "--v", "1,1")
        compare(numbers(driver), wanted)


def test_calls_add_up_until_zero(opened):
    driver = opened(*EXAMPLE)
    assert numbers(driver)["grad-of x0"] == 26
    click(driver, "call", 2)
    assert (numbers(driver)["grad-of x0"], numbers(driver)["grad-of x1"]) == (78, 3720)
    assert numbers(driver)["adjoint-of x0"] == 26
    click(driver, "zero")
    assert (numbers(driver)["grad-of x0"], numbers(driver)["grad-of x1"]) == (0, 0)
    click(driver, "call")
    assert (numbers(driver)["grad-of x0"], numbers(driver)["grad-of x1"]) == (26, 1240)


def sentence(driver):
    return find(driver, "[data-step]").text


@long
def test_steps(opened):
    driver = opened("y=x**2+x", "--at", "x=3")
    click(driver, "first")
    click(driver, "next")
    assert sentence(driver) == "t1 = x**2 = 3**2 = 9"
    assert "value-of t1" in numbers(driver)
    assert "value-of y" not in numbers(driver)
    assert "adjoint-of x" not in numbers(driver)
    click(driver, "next")
    done = "The forward pass is complete. ▶ starts the backward pass at the outputs."
    assert sentence(driver) == f"y = t1 + x = 9 + 3 = 12. {done}"
    click(driver, "next")
    assert sentence(driver) == "The backward pass starts at the outputs: {} = v = 1".format(bar("y"))
    click(driver, "next", 2)
    assert numbers(driver)["adjoint-of x"] == 1
    assert "grad-of x" not in numbers(driver)
    click(driver, "next")
    x, t1 = bar("x"), bar("t1")
    last = f"{x} += {t1}·∂t1/∂x = 1·6 = 6, {x} = 7"
    assert sentence(driver) == f"{last}. x.grad = 7. Call backward again?"
    assert numbers(driver)["grad-of x"] == 7
    click(driver, "previous")
    assert numbers(driver)["adjoint-of x"] == 1
    click(driver, "backward")
    assert numbers(driver)["value-of y"] == 12
    assert "adjoint-of y" not in numbers(driver)
    click(driver, "forward")
    assert "value-of t1" not in numbers(driver)
    click(driver, "last")
    assert numbers(driver)["grad-of x"] == 7


def shown(driver):
    """The text that the page shows, without its fields."""
    return driver.execute_script("return document.querySelector('main').innerText")


def test_hidden_numbers_are_nowhere_in_the_text_before_their_step(opened):
    driver = opened("y0=3*x0**2", "y1=x0**2+7*x1**3", "--at", "x0=11,x1=13", "--v", "1,10")
    frame(driver)
    last = ["286", "35490", "15379", "154153", "363"]  # x̄0 and x̄1, values of t, y1 and y0, L
    assert any(text in shown(driver) for text in last)
    click(driver, "first")
    frame(driver)
    for step in range(20):
        text = shown(driver)
        found = numbers(driver)
        known = {f"{value:g}" for value in found.values()}
        for number in ("286", "35490", "15500", "363"):
            assert (number in text.replace(",", "")) <= (number in known or "L" in text), (step, number)
        assert all(not key.startswith("grad-of") or step > 3 for key in found)
        if find(driver, '[data-action="next"]').get_attribute("disabled"):
            break
        click(driver, "next")
        frame(driver)
    assert numbers(driver)["grad-of x0"] == 286


def test_a_number_is_guessed_before_it_is_shown(opened):
    from selenium.webdriver.common.keys import Keys

    driver = opened("y=x**2+x", "--at", "x=3")
    click(driver, "first")
    click(driver, "guess")
    click(driver, "next")
    assert sentence(driver) == "t1 = x**2 = ?"
    assert "value-of t1" not in numbers(driver)
    find(driver, "[data-guess]").send_keys("9", Keys.ENTER)
    assert "✓ right" in shown(driver)
    assert numbers(driver)["value-of t1"] == 9
    click(driver, "next")
    find(driver, "[data-guess]").send_keys("11", Keys.ENTER)
    assert "it is 12" in shown(driver)


def test_the_headline_tells_what_the_last_change_did(opened):
    driver = opened(*EXAMPLE)
    headline = find(driver, "[data-headline]")
    assert "= 2173" in headline.text
    type_into(driver, '[data-input="x0"]', "2")
    assert "= 2212" in headline.text
    assert "▲ 39 by your last change" in headline.text
    top = driver.execute_script("window.scrollTo(0, 2000); return arguments[0].getBoundingClientRect().top", headline)
    assert 0 <= top < 60


@long
def test_undo_and_reset(opened):
    driver = opened(*EXAMPLE)
    before = numbers(driver)
    type_into(driver, '[data-input="x0"]', "5")
    between = numbers(driver)
    type_into(driver, '[data-input="x1"]', "7")
    click(driver, "undo")
    assert numbers(driver) == between != before
    click(driver, "undo")
    assert numbers(driver) == before
    type_into(driver, '[data-input="x1"]', "7")
    click(driver, "call")
    click(driver, "reset")
    assert numbers(driver) == before


@long
def test_a_link_shows_the_same_numbers(opened):
    driver = opened("y=sum(x**2*w)", "--at", "x=[1,2,3],w=2")
    type_into(driver, '[data-input="x[1]"]', "-4.25")
    type_into(driver, '[data-cotangent="y"]', "3")
    driver.execute_async_script("setTimeout(arguments[0], 900)")
    shown, address = numbers(driver), driver.current_url
    assert "x%5B1%5D=-4.25" in address
    driver.get("about:blank")
    driver.get(address)
    assert numbers(driver) == shown
    assert shown["grad-of x[1]"] == 3 * 2 * -4.25 * 2
