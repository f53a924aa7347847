"""The console in a real Chromium, against a real server."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

from fencepost.server import Transaction
from fencepost.store import subscription_rows as stored
from tests.server.serving import Running, running
from tests.server.test_api import feature, subscribe
from tests.waiting import WAIT_S

CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
HTML = '<img src=x onerror="window.hurt=1"><script>window.hurt=1</script>&amp;\'"</textarea>'

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not Path(CHROMIUM).exists(),
        reason="NO BROWSER: install Debian's chromium, or the console is not tested",
    ),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    expect.set_options(timeout=1_000 * WAIT_S)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[*ARGUMENTS])
        yield browser
        browser.close()


@contextmanager
def console(
    browser: Browser, server: Running, statuses: tuple[str, ...] = (), **more: Any
) -> Iterator[Page]:
    """Open the console; fail on errors in the page and on requests to other hosts.

    Parameters
    ----------
    browser : Browser
    server : Running
    statuses : tuple of str
        Error statuses that the server may return; browsers log them as errors.
    **more
        Options of the browser context.
    """
    settings = {"viewport": {"width": 1280, "height": 800}, "reduced_motion": "reduce", **more}
    context = browser.new_context(**settings)
    page = context.new_page()
    page.set_default_timeout(1_000 * WAIT_S)
    problems: list[str] = []
    expected = tuple(f"the server responded with a status of {status}" for status in statuses)

    def on_console(message: ConsoleMessage) -> None:
        if message.type == "error" and not any(text in message.text for text in expected):
            problems.append(message.text)

    page.on("console", on_console)
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("request", lambda request: check_host(request.url))
    page.on("websocket", lambda request: check_host(request.url))

    def check_host(url: str) -> None:
        local = (server.url, server.url.replace("http", "ws", 1), "data:", "blob:")
        if not url.startswith(local):
            problems.append(f"a request to {url}")

    page.goto(server.url)
    try:
        yield page
        assert problems == []
        assert page.evaluate("window.hurt") is None
    finally:
        context.close()


def ready(page: Page) -> None:
    page.wait_for_selector("body[data-ready]")
    expect(page.locator("#status-text")).to_have_text("live")
    page.wait_for_selector("canvas.leaflet-tile-loaded")


def centre_of_map(page: Page) -> tuple[float, float]:
    box = page.locator("#map").bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_draw_subscribe_publish_and_explain(browser: Browser, server: Running) -> None:
    with console(browser, server) as page:
        ready(page)
        page.locator("#tab-subscribe").click()
        page.get_by_role("button", name="Rectangle").click()
        x, y = centre_of_map(page)
        page.mouse.move(x - 120, y - 90)
        page.mouse.down()
        page.mouse.move(x + 40, y + 30, steps=4)
        page.mouse.move(x + 120, y + 90, steps=4)
        page.mouse.up()
        expression = page.locator("#expression")
        expect(expression).to_have_value(re.compile(r"^S_INTERSECTS\(geometry, BBOX\(.*\)\)$"))
        page.get_by_role("button", name="+ Add a condition").click()
        page.get_by_label("Attribute").fill("kind")
        page.get_by_label("Value").fill("taxi's")
        expect(expression).to_have_value(re.compile(r"AND kind = 'taxi''s'$"))
        page.locator("#new-id").fill("drawn/by hand")
        page.locator("#new-subscriber").fill("me")
        page.get_by_role("button", name="Subscribe", exact=True).click()
        expect(page.locator("#detail-title")).to_have_text("drawn/by hand")
        stored_subscription = server.http.get("/v1/subscriptions/drawn%2Fby hand").json()
        assert stored_subscription["subscriber"] == "me"
        page.wait_for_selector("#map[data-total='1']")

        page.locator("#tab-publish").click()
        page.locator("#properties").fill('{"kind": "taxi\'s"}')
        page.get_by_role("button", name="Publish where I click").click()
        x, y = centre_of_map(page)
        page.mouse.click(x + 20, y + 20)
        expect(page.locator("#published")).to_contain_text("1 message")
        page.wait_for_selector("canvas.live-layer[data-matched='1']")
        expect(page.locator("#announce")).to_have_text("Event 1 matched drawn/by hand")
        page.keyboard.press("Escape")

        page.locator("#tab-live").click()
        event_row = page.locator("#live-events .row.matched")
        expect(event_row).to_contain_text("kind: taxi's")
        event_row.click()
        expect(page.locator(".verdict")).to_have_text("It matches.")
        expect(page.locator(".tree .is-true")).to_have_count(3)
        page.keyboard.press("Escape")

        page.locator("#tab-publish").click()
        page.locator("#properties").fill('{"kind": "taxis"}')
        page.locator("#publish-x").fill("179")
        page.locator("#publish-y").fill("-80")
        page.get_by_role("button", name="Publish", exact=True).click()
        expect(page.locator("#published")).to_contain_text("0 messages")
        page.get_by_role("button", name="Show it").click()
        page.get_by_label("Subscription", exact=True).fill("drawn/by hand")
        page.get_by_role("button", name="Explain").click()
        expect(page.locator(".verdict")).to_have_text("It does not match.")
        expect(page.locator(".facts")).to_contain_text(["relation: disjoint", "close to “taxi's”"])
        expect(page.locator(".facts").first).to_contain_text(re.compile(r"distance [\d,]+ m"))


@pytest.mark.parametrize(
    ("tool", "expected"),
    [
        ("Polygon", r"^S_INTERSECTS\(geometry, POLYGON\(\(.*\)\)\)$"),
        ("Circle", r"^S_DWITHIN\(geometry, POINT\(.*\), \d+\)$"),
    ],
)
def test_other_shapes_by_pointer(
    browser: Browser, server: Running, tool: str, expected: str
) -> None:
    server.http.post("/v1/events", json=[feature(5, 25, n=1), feature(179, 0, n=2)])
    with console(browser, server) as page:
        ready(page)
        page.locator("#tab-subscribe").click()
        page.get_by_role("button", name=tool).click()
        x, y = centre_of_map(page)
        if tool == "Circle":
            page.mouse.move(x, y)
            page.mouse.down()
            page.mouse.move(x + 90, y + 10, steps=5)
            page.mouse.up()
        else:
            for dx, dy in ((-90, -90), (90, -80), (80, 90), (-80, 80)):
                page.mouse.click(x + dx, y + dy)
            page.mouse.click(x - 90, y - 90)  # the first corner closes the polygon
        expect(page.locator("#expression")).to_have_value(re.compile(expected, re.DOTALL))
        page.get_by_role("button", name="Try on recent events").click()
        expect(page.locator("#tried")).to_contain_text("1 of the last 2 events")


def test_the_console_works_without_a_pointer(browser: Browser, server: Running) -> None:
    with console(browser, server) as page:
        ready(page)
        page.keyboard.press("?")
        expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
        page.keyboard.press("Escape")
        page.keyboard.press("3")
        expect(page.locator("#tab-subscribe")).to_be_focused()
        page.locator("[data-draw=rectangle]").focus()
        page.keyboard.press("Enter")
        for label, value in (("West", "10"), ("South", "20"), ("East", "12"), ("North", "22")):
            field = page.get_by_label(label, exact=True)
            field.focus()
            page.keyboard.press("Control+a")
            page.keyboard.type(value)
            page.keyboard.press("Tab")
        expression = "S_INTERSECTS(geometry, BBOX(10, 20, 12, 22))"
        expect(page.locator("#expression")).to_have_value(expression)
        page.locator("#new-id").focus()
        page.keyboard.press("Control+a")
        page.keyboard.type("keys")
        page.keyboard.press("Enter")
        expect(page.locator("#detail-title")).to_have_text("keys")
        expect(page.locator("#detail")).to_be_focused()
        page.keyboard.press("Escape")
        expect(page.locator("#detail")).to_be_hidden()

        page.keyboard.press("Escape")
        page.locator("#tab-subscribe").focus()
        page.keyboard.press("m")
        expect(page.locator("#map")).to_be_focused()
        page.keyboard.press("r")  # draws at the centre of the map
        page.locator("#map").focus()
        page.keyboard.press("Enter")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        expect(page.locator("#expression")).to_have_value(re.compile(r"^S_INTERSECTS.*BBOX"))

        page.locator("#tab-subscribe").focus()
        page.keyboard.press("4")
        page.locator("#publish-x").focus()
        page.keyboard.type("11")
        page.keyboard.press("Tab")
        page.keyboard.type("21")
        page.keyboard.press("Enter")
        expect(page.locator("#published")).to_contain_text("1 message")
        page.locator("#tab-publish").focus()
        page.keyboard.press("ArrowLeft")
        page.keyboard.press("ArrowLeft")
        expect(page.locator("#tab-live")).to_be_focused()
        page.locator("#live-events .row").focus()
        page.keyboard.press("Enter")
        expect(page.locator(".verdict")).to_have_text("It matches.")


def test_focusable_elements_have_names(browser: Browser, server: Running) -> None:
    subscribe(server, "a")
    with console(browser, server) as page:
        ready(page)
        page.keyboard.press("3")
        page.locator("#add-condition").click()
        nameless = page.evaluate(
            """() => [...document.querySelectorAll("button, input, select, textarea, [tabindex]")]
            .filter((element) => !(element.ariaLabel || element.textContent.trim() || element.title
              || element.labels?.length || element.getAttribute("aria-labelledby")))
            .map((element) => element.outerHTML)"""
        )
        assert nameless == []


def test_light_and_dark(browser: Browser, server: Running) -> None:
    colour = "getComputedStyle(document.body).backgroundColor"
    with console(browser, server, color_scheme="dark") as page:
        ready(page)
        dark = page.evaluate(colour)
        page.locator("#theme").click()
        light = page.evaluate(colour)
        assert sum(map(int, re.findall(r"\d+", dark))) < 150
        assert sum(map(int, re.findall(r"\d+", light))) > 600
        page.reload()
        ready(page)
        assert page.evaluate(colour) == light


def test_names_and_properties_that_are_html_stay_text(browser: Browser, server: Running) -> None:
    place = "S_INTERSECTS(geometry, BBOX(-10, -10, 10, 10))"
    name = HTML.replace("/", "∕")
    for id in (name, f"2{name}"):
        body = {
            "id": id,
            "subscriber": name,
            "expression": f"{place} AND \"{name}\" <> '{name[:9]}'",
        }
        body["expression"] = body["expression"].replace(
            f'"{name}"', '"' + name.replace('"', '""') + '"'
        )
        assert server.http.post("/v1/subscriptions", json=body).status_code == 201
    with console(browser, server) as page:
        ready(page)
        page.wait_for_selector("#map[data-total='2']")
        server.http.post("/v1/events", json=feature(1, 1, **{name: name}))
        page.keyboard.press("2")
        expect(page.locator("#live-events .row")).to_contain_text("onerror")
        page.locator("#live-events .row").click()
        expect(page.locator(".tree")).to_contain_text("onerror")
        page.keyboard.press("Escape")
        page.keyboard.press("1")
        expect(page.locator("#listed")).to_contain_text(name)
        page.locator("#listed .row").first.click()
        expect(page.locator("#detail-title")).to_have_text(f"2{name}")
        page.keyboard.press("Escape")
        x, y = centre_of_map(page)
        page.mouse.move(x - 100, y)
        expect(page.locator(".tip")).to_contain_text("onerror")
        page.mouse.click(x - 100, y)
        expect(page.locator(".choice")).to_contain_text("onerror")
        page.keyboard.press("5")
        expect(page.locator("#queues")).to_contain_text("onerror")


def test_a_subscription_is_found_and_deleted(browser: Browser, server: Running) -> None:
    for n in range(30):
        subscribe(
            server,
            f"s{n}",
            f"S_DWITHIN(geometry, POINT({n} 10), 900) AND n = {n}",
            subscriber="me" if n % 2 else "you",
        )
    with console(browser, server) as page:
        ready(page)
        page.wait_for_selector("#map[data-total='30']")
        page.locator("#filter-subscriber").fill("me")
        page.wait_for_selector("#map[data-shown='15']")
        page.keyboard.press("Escape")
        page.locator("#filter-text").fill("n = 2")
        page.wait_for_selector("#map[data-shown='5']")
        expect(page.locator("#listed-count")).to_contain_text("5 of 30 subscriptions")
        page.locator("#listed .row").first.click()
        expect(page.locator("#detail-title")).to_have_text("s21")
        page.get_by_role("button", name="Delete").click()
        page.locator("#confirm-yes").click()
        page.wait_for_selector("#map[data-total='29']")
        assert server.http.get("/v1/subscriptions/s21").status_code == 404
        # Another client changes subscriptions, too.
        server.http.delete("/v1/subscriptions/s23")
        page.wait_for_selector("#map[data-total='28']")


def test_errors_are_shown(browser: Browser, server: Running) -> None:
    subscribe(server, "taken", "a = 1")
    with console(browser, server, statuses=("409", "422")) as page:
        ready(page)
        page.keyboard.press("3")
        expression, problem = page.locator("#expression"), page.locator("#expression-problem")
        expression.fill("kind = = 3")
        page.get_by_role("button", name="Try on recent events").click()
        expect(problem).to_contain_text("▸= 3")
        expression.fill("kind = 3")
        page.locator("#new-id").fill("taken")
        page.get_by_role("button", name="Subscribe", exact=True).click()
        expect(problem).to_contain_text("the subscription 'taken' exists")
        page.locator("#tab-publish").click()
        page.locator("#properties").fill("[1]")
        page.get_by_role("button", name="Publish", exact=True).click()
        expect(page.locator("#publish-problem")).to_have_text(
            "the properties must be a JSON object"
        )
        page.locator("#properties").fill("{}")
        page.locator("#publish-x").fill("500")
        page.locator("#publish-y").fill("0")
        page.get_by_role("button", name="Publish", exact=True).click()
        expect(page.locator("#publish-problem")).to_contain_text("longitude beyond")


def test_a_key_signs_in_and_stays_in_the_tab(browser: Browser, tmp_path: Path) -> None:
    with running(tmp_path, open_access=False) as server:
        key = server.key("admin", "publish", "subscribe", tenant="acme")
        context = browser.new_context(reduced_motion="reduce")
        page = context.new_page()
        page.goto(server.url)
        page.locator("#key").fill("fp_nonsense")
        page.get_by_role("button", name="Sign in").click()
        expect(page.locator("#sign-in-problem")).to_contain_text("unknown, revoked or expired")
        page.locator("#key").fill(key)
        page.get_by_role("button", name="Sign in").click()
        ready(page)
        expect(page.locator("#where")).to_contain_text("acme")
        assert key not in page.url
        assert page.evaluate("JSON.stringify(localStorage)") == "{}"
        assert page.evaluate("document.cookie") == ""
        page.reload()
        ready(page)
        page.get_by_role("button", name="Sign out").click()
        expect(page.locator("#sign-in")).to_be_visible()
        context.close()


def test_planar_space_on_a_phone(browser: Browser, tmp_path: Path) -> None:
    with running(tmp_path, space="planar") as server:
        subscribe(server, "far", "S_INTERSECTS(geometry, BBOX(500000, 4000000, 500900, 4000700))")
        subscribe(server, "near", "S_DWITHIN(geometry, POINT(500100 4000100), 50)")
        phone = {"width": 390, "height": 780}
        with console(browser, server, viewport=phone, has_touch=True) as page:
            ready(page)
            expect(page.locator("#where")).to_have_text("default · planar")
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert wide <= 390
            page.wait_for_selector("#map[data-total='2']")
            page.locator("#listed .row").last.tap()
            expect(page.locator("#detail-title")).to_have_text("near")
            page.locator("#detail-close").tap()
            page.locator("#tab-subscribe").tap()
            page.get_by_role("button", name="Circle").tap()
            page.locator("#tab-publish").tap()
            page.locator("#publish-x").fill("500110")
            page.locator("#publish-y").fill("4000110")
            page.get_by_role("button", name="Publish", exact=True).tap()
            expect(page.locator("#published")).to_contain_text("2 messages")


def test_the_index_of_boxes_agrees_with_brute_force(browser: Browser, server: Running) -> None:
    with console(browser, server) as page:
        wrong = page.evaluate(
            """async () => {
              const { Boxes } = await import("/console/js/boxes.js");
              let seed = 12345;
              const random = () => {
                seed = (seed * 1103515245 + 12345) % 2147483648;
                return seed / 2147483648;
              };
              const wrong = [];
              for (const n of [0, 1, 2, 16, 17, 300, 5000]) {
                const boxes = new Float64Array(n * 4);
                for (let i = 0; i < n; i += 1) {
                  const [x, y] = [random() * 100, random() * 100];
                  const size = random() < 0.1 ? 0 : random() * 5;
                  boxes.set([x, y, x + size, y + size * random()], i * 4);
                }
                const all = Uint32Array.from({ length: n }, (_, i) => i);
                const rows = all.filter((i) => i % 7 !== 3);
                const index = new Boxes(boxes, rows);
                for (let t = 0; t < 50; t += 1) {
                  const [w, s] = [random() * 110 - 5, random() * 110 - 5];
                  const [e, b] = [w + random() * 20, s + random() * 20];
                  const expected = [...rows].filter((i) => boxes[i * 4] <= e
                    && boxes[i * 4 + 2] >= w && boxes[i * 4 + 1] <= b && boxes[i * 4 + 3] >= s);
                  const matches = [...index.search(w, s, e, b)].sort((x, y) => x - y);
                  if (JSON.stringify(matches) !== JSON.stringify(expected)) wrong.push([n, t]);
                }
              }
              return wrong;
            }"""
        )
        assert wrong == []


def test_a_hundred_thousand_subscriptions(browser: Browser, server: Running) -> None:
    n = 100_000

    def fill(transaction: Transaction) -> None:
        # Rows only: the test is about the map, and compiling all subscriptions takes a minute.
        tenant = 1
        numbers = {name: transaction.subscriber_number(tenant, name) for name in ("me", "you")}
        rows = []
        for k in range(n):
            x, y = (k * 0.737) % 300 - 150, (k * 0.4217) % 120 - 60
            where = f"BBOX({x:.4f}, {y:.4f}, {x + 0.3:.4f}, {y + 0.2:.4f})"
            definition = json.dumps({"expression": f"S_INTERSECTS(geometry, {where})"})
            rows.append((f"s{k:06}", numbers["me" if k % 2 else "you"], definition, None))
        stored.put_subscriptions(transaction.connection, tenant, rows, transaction.now, 0)

    server.service.broker.change(fill).result(WAIT_S)
    with console(browser, server) as page:
        page.wait_for_selector(f"#map[data-total='{n}']")
        expect(page.locator("#listed-count")).to_contain_text("100,000 subscriptions")
        x, y = centre_of_map(page)
        for _ in range(3):
            page.mouse.move(x, y)
            page.mouse.down()
            page.mouse.move(x - 200, y - 40, steps=8)
            page.mouse.up()
            page.mouse.wheel(0, -300)
        page.locator("#filter-text").fill("s000777")
        page.wait_for_selector("#map[data-shown='1']")
        page.locator("#listed .row").click()
        expect(page.locator("#detail-title")).to_have_text("s000777")
        page.keyboard.press("Escape")
        page.mouse.click(*centre_of_map(page))  # the map is centred on it
        expect(page.locator("#detail-title")).to_have_text("s000777")
        page.locator("#filter-text").fill("")
        page.wait_for_selector(f"#map[data-shown='{n}']")
        page.reload()  # from the browser's cache, because nothing changed
        page.wait_for_selector(f"#map[data-total='{n}']")
