// Presses every button of the playground in a browser: node page.mjs URL CHROMIUM [SHOTS]. Prints a line of JSON for each
// check: its name, and the mistake if it failed. With SHOTS, a folder, it leaves pictures there.
import { join } from "node:path";
import { chromium } from "playwright-core";

const [url, executablePath, shots] = process.argv.slice(2);
const args = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const START_MAX_MS = 240_000;
const browser = await chromium.launch({ executablePath, args });
const context = await browser.newContext({ viewport: { width: 1360, height: 1000 } });
const page = await context.newPage();
page.setDefaultTimeout(30_000);
const origins = new Set();
const errors = [];

function watch(one) {
  one.on("request", (request) => origins.add(new URL(request.url()).origin));
  one.on("pageerror", (error) => errors.push(error.message));
  one.on("console", (message) => message.type() === "error" && errors.push(message.text()));
}

async function check(name, work) {
  try {
    const figure = await work();
    console.log(JSON.stringify({ name, figure }));
  } catch (error) {
    console.log(JSON.stringify({ name, mistake: String(error.message).slice(0, 1500) }));
    await shoot(`failed-${name.replaceAll(" ", "-")}`);
  }
}

async function shoot(name) {
  if (!shots) return;
  await page.evaluate(() => scrollTo(0, 0));
  await page.screenshot({ path: join(shots, `${name}.png`), fullPage: true });
}

function must(holds, what) {
  if (!holds) throw new Error(what);
}

const idle = () => page.waitForSelector("body:not([aria-busy])");
const press = async (id) => {
  await idle();
  await page.click(`#${id}`);
  await idle();
};
const badge = () => page.textContent("#badge");
const log = () => page.innerText("#log");
const mustBe = async (look) => must((await page.getAttribute("#badge", "class")) === look, `badge: ${await badge()}\n${await page.innerText("#wrong")}\n${await log()}`);
const mustSay = async (text) => must((await log()).includes(text), `the log lacks ${text}:\n${await log()}`);
const choose = async (name) => {
  await page.selectOption("#example", name);
  await idle();
};
const setCell = async (label, text) => {
  await page.focus(`button[aria-label^="edit ${label}"]`);
  await page.keyboard.press("Enter");
  await page.keyboard.press("Control+A");
  await page.keyboard.type(text);
  await page.keyboard.press("Enter");
  await idle();
};

const first = () => choose("authors-and-books");

// ---------------------------------------------------------------- the start
watch(page);
const began = Date.now();
await check("recording comes first", async () => {
  await page.goto(url);
  await page.waitForSelector("#log li");
  const took = Date.now() - began;
  must((await badge()).includes("every copy is right"), await badge());
  must(!(await page.getAttribute("body", "data-live")), "the engine was quicker");
  await shoot("recording");
  return took;
});
await check("engine starts", async () => {
  await page.waitForSelector("body[data-live]", { timeout: START_MAX_MS });
  await mustBe("right");
  return Date.now() - began;
});
await shoot("light");

// ---------------------------------------------------------------- the pipeline
await check("a check of the same rules loads nothing again", async () => {
  await press("next");
  await page.waitForSelector("#checked:has-text(' ms)')");
  await page.evaluate(() => new Promise((done) => setTimeout(done, 501))); // after the page's own timer
  await idle();
  await mustBe("pending");
});
await check("next", async () => {
  await first();
  const next = await page.locator("#next").boundingBox();
  must(next.y + next.height <= 800, "Next is below the first screen of a laptop");
  await press("next");
  await mustBe("pending");
  must((await page.innerText("#waiting")).includes("MODIFY authors[a1]"), await page.innerText("#waiting"));
});
await check("one step", async () => {
  await press("step");
  await mustSay("push authors[a1]");
  must(await page.isVisible("#upcoming"), "no line says what comes next");
  await shoot("step");
});
await check("run all", async () => {
  await press("run");
  await mustBe("right");
  await mustSay("2 guarded writes");
});

// ---------------------------------------------------------------- what goes wrong
await check("deliver twice", async () => {
  await press("twice");
  await mustSay("delivered twice");
  await press("run");
  await mustBe("right");
});
await check("deliver late", async () => {
  await setCell("name of authors[a1]", "Maren V.");
  await setCell("name of authors[a2]", "Tobias Q.");
  await press("late");
  await mustSay("others overtake it");
  must((await page.innerText("#waiting")).startsWith("MODIFY authors[a2]"), await page.innerText("#waiting"));
  await press("run");
  await mustBe("right");
});
await check("die now", async () => {
  await setCell("bio of authors[a1]", "Writes about ports.");
  await press("die");
  await mustSay("The worker dies");
  await press("run");
  await mustSay("The write of the dead worker lands");
  await mustSay("refused");
  await mustBe("right");
});
await check("throttle", async () => {
  await setCell("bio of authors[a1]", "Writes about bays.");
  await press("step");
  await press("throttle");
  await press("run");
  await mustSay("throttled: ThrottlingException");
  await mustBe("right");
});
await check("lag an index", async () => {
  await press("lag");
  await setCell("author_id of books[b3]", "a1");
  await press("run");
  await mustSay("The indexes catch up");
  await mustBe("right");
});
await check("overwrite a copy", async () => {
  await press("overwrite");
  await mustBe("pending");
  must((await page.innerText("#tables")).includes("overwritten"), "no copy was overwritten");
  must((await page.locator("td.wrong").count()) > 0, "no cell is marked");
  await shoot("overwritten");
  await press("run");
  await mustBe("right");
});

for (const name of ["guard", "second-look", "re-check"]) {
  await check(`${name} on`, async () => {
    await press(`try-${name}`);
    await mustBe("right");
    await shoot(`${name}-on`);
  });
  await check(`${name} off`, async () => {
    await press(`on-${name}`);
    await press(`try-${name}`);
    await mustBe("wrong");
    must((await page.innerText("#wrong")).includes("✗"), "no line says what is wrong");
    await shoot(`${name}-off`);
    await press(`on-${name}`);
  });
}

await check("put and delete an item", async () => {
  await first();
  await page.fill('input[aria-label="new item of books"]', "book_id: b7, author_id: a2, title: Dusk");
  await page.keyboard.press("Enter");
  await press("run");
  await mustBe("right");
  must((await page.getAttribute('button[aria-label^="edit author of books[b7]"]', "aria-label")).includes("Tobias"), "no copy on it");
  await page.click('button[aria-label="delete books[b7]"]');
  await press("run");
  must(!(await page.innerText("#tables")).includes("Dusk"), "it is still there");
  await mustBe("right");
});
await check("mistake in an item", async () => {
  await page.fill('input[aria-label="new item of books"]', "title: no key");
  await page.keyboard.press("Enter");
  await page.waitForSelector("#mistake:not([hidden])");
  await page.evaluate(() => scrollTo(0, document.body.scrollHeight));
  const { y, height } = await page.locator("#mistake").boundingBox();
  must(y >= 0 && y + height <= 1000, `the mistake is at ${y}, out of sight`);
});
const put = async (table, item) => {
  await page.fill(`input[aria-label="new item of ${table}"]`, item);
  await page.keyboard.press("Enter");
  await idle();
};
await check("values of an item", async () => {
  await first();
  await put("authors", 'author_id: a7, alter-für: {"number": "7"}, tags: !set [1, 2.50]');
  const tables = await page.innerText("#tables");
  must(tables.includes('number "7"') || tables.includes("number 7"), tables);
  must((await page.getAttribute('button[aria-label^="edit alter-für of authors[a7]"]', "aria-label")).endsWith('{number: "7"}'), "a text became a number");
  must(tables.includes("set [1, 2.50]"), tables);
  await put("authors", 'author_id: a7, tags: !set [1, "a"]');
  must((await page.innerText("#mistake")) === "a set has texts alone, or numbers alone", await page.innerText("#mistake"));
});
await check("a stuck copy", async () => {
  await put("authors", `author_id: a8, name: ${"x".repeat(390_000)}`);
  await put("books", `book_id: b8, author_id: a8, title: ${"y".repeat(30_000)}`);
  await press("run");
  await mustBe("stuck");
  must((await page.innerText("main")).length < 100_000, "the page has the whole text of a huge item");
  must((await page.innerText("#wrong")).includes("books[b8] is stuck: rule author-on-books, ItemTooLarge"), await page.innerText("#wrong"));
});
await check("delete by keyboard", async () => {
  await first();
  await page.focus('button[aria-label="delete books[b4]"]');
  await page.keyboard.press("Enter");
  await idle();
  must((await page.evaluate(() => document.activeElement.getAttribute("aria-label"))) === "new item of books", "the focus is lost");
});
await check("the header hides no focus", async () => {
  await page.setViewportSize({ width: 640, height: 360 });
  await page.focus("footer a");
  for (let stops = 0; stops < 45; stops++) {
    await page.keyboard.press("Shift+Tab");
    const [top, edge] = await page.evaluate(() => [document.activeElement, document.querySelector("header")].map((one) => one.getBoundingClientRect().bottom));
    const isAbove = await page.evaluate(() => document.activeElement === document.body || !!document.activeElement.closest("header"));
    must(isAbove || top > edge, `the focus ends at ${top}, the header at ${edge}`);
  }
  await page.setViewportSize({ width: 1360, height: 1000 });
});

// ---------------------------------------------------------------- questions
const why = (label) => page.locator(`button[aria-label="explain ${label}"]`);
await check("explain a copy", async () => {
  await first();
  await why("author of books[b3]").click();
  const answer = await page.innerText("tr.answer");
  must(answer.includes("right · from authors[a2] · rule author-on-books"), answer);
  must(answer.includes('name: "Tobias Quill"'), answer);
  must(await page.locator("tr:has(button[aria-label^='explain author of books[b3]']) + tr.answer").count(), "it is not below its item");
  await shoot("explained");
  await why("author of books[b3]").click();
  must((await page.locator("tr.answer").count()) === 0, "pressed again, it stays open");
  must((await why("name of authors[a1]").count()) === 0, "a value of the application has a button");
});
await check("explain by keyboard what is not right", async () => {
  await press("overwrite");
  await page.focus('button[aria-label^="edit author of books[b1]"]');
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  const answer = await page.innerText("tr.answer");
  must(answer.includes("author.name: wrong · from authors[a1]") && answer.includes("Not right: it differs"), answer);
  must(await page.evaluate(() => document.activeElement.getAttribute("aria-expanded") === "true"), "the focus is lost");
  await shoot("explained-wrong");
  await press("run");
  await mustBe("right");
});
await check("the graph is drawn", async () => {
  await choose("game-players");
  const drawn = await page.locator("#graph svg text").allTextContents();
  for (const text of ["seat", "game", "game_played"]) must(drawn.includes(text), drawn.join(", "));
  must(drawn.filter((text) => text.endsWith("players-of-games")).length === 2, drawn.join(", "));
  must((await page.locator("#graph path[marker-end], #graph path[marker-start]").count()) === 4, "a rule has no arrowhead");
  await page.focus("#graph");
  await page.keyboard.press("Shift+Tab");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter"); // on the list
  await shoot("graph");
  must((await page.innerText("#arrows")).includes("seat.colour → game_played.colour"), await page.innerText("#arrows"));
});
await check("the graph follows the rules", async () => {
  await choose("car-parts");
  const drawn = await page.locator("#graph svg text").allTextContents();
  must(drawn.includes("component") && !drawn.includes("seat"), drawn.join(", "));
});
await check("access patterns with requests and prices", async () => {
  await first();
  const rows = await page.locator("#patterns tbody tr").allInnerTexts();
  must(rows[0].includes("GetItem books, book_id = {book_id}") && rows[0].includes("0.0625 USD") && rows[0].includes("0.5 read units"), rows[0]);
  must(rows[1].includes("Query books/by_author") && (await page.innerText("#patterns caption")).includes("us-east-1"), rows[1]);
});

// ---------------------------------------------------------------- the rules
const type = async (find, text) => {
  await page.locator(".cm-line", { hasText: find }).first().click();
  await page.keyboard.press("End");
  await page.keyboard.type(text);
};
await check("problems as you type", async () => {
  await first();
  await type("on_delete: clear", "\nmodee: live");
  await page.waitForSelector("#problems li.error");
  const problem = await page.innerText("#problems");
  must(problem.includes("modee") && !problem.includes("?."), problem);
  await shoot("problem");
  const took = Number(/\((\d+) ms\)/.exec(await page.textContent("#checked"))[1]);
  for (let left = "\nmodee: live".length + 4; left > 0; left--) await page.keyboard.press("Backspace");
  await page.waitForSelector("#problems li", { state: "detached" });
  return took;
});
await check("a pattern that is not served", async () => {
  await first();
  await type("books-of-author:", "\n");
  await page.keyboard.press("Shift+Home"); // over the editor's own indentation
  await page.keyboard.type("  books-of-title: {get: book, by: [title]}");
  await page.waitForSelector("#patterns .unserved");
  const row = await page.innerText("#patterns .unserved");
  must(row.includes("not served") && row.includes("cure 1") && row.includes("indexes:"), row);
  await shoot("unserved");
});
await check("completion", async () => {
  await type("into: book.author", "");
  await page.keyboard.press("End");
  await page.keyboard.press("Enter");
  await page.keyboard.type("mod");
  await page.waitForSelector(".cm-tooltip-autocomplete");
  must((await page.innerText(".cm-tooltip-autocomplete")).includes("mode"), await page.innerText(".cm-tooltip-autocomplete"));
});
await check("changed rules apply", async () => {
  await first();
  await type("copy: [author.name, author.bio]", "");
  for (let left = ", author.bio]".length; left > 0; left--) await page.keyboard.press("Backspace");
  await page.keyboard.type("]");
  await page.waitForFunction(() => !document.querySelector("#tables td.copy")?.innerText.includes("rivers"));
  await idle();
  await mustBe("right");
});
await check("a refused change is undone", async () => {
  await first();
  const line = page.locator(".cm-line", { hasText: "books:" }).first();
  const before = (await line.textContent()).trim();
  const write = async (text) => {
    await line.click();
    await page.keyboard.press("Home");
    await page.keyboard.press("Shift+End");
    await page.keyboard.insertText(text);
  };
  await write(before.replaceAll("book_id: S", "book_id: N"));
  await page.waitForSelector("#mistake:not([hidden])"); // the items do not fit
  await write(before);
  await page.waitForSelector("#mistake", { state: "hidden" });
  await press("next");
  await mustBe("pending");
});

await check("items of a renamed table", async () => {
  await first();
  const text = await page.evaluate(async () => (await (await fetch("recording.json")).json()).examples[0].rules);
  const write = async (rules) => {
    await page.locator(".cm-content").click();
    await page.keyboard.press("Control+A");
    await page.keyboard.insertText(rules);
  };
  const renamed = text.replace("books:   {key", "volumes: {key").replace("table: books", "table: volumes");
  await write(renamed);
  await page.waitForSelector('input[aria-label="new item of volumes"]');
  await write(text);
  await page.waitForSelector('input[aria-label="new item of books"]');
  await idle();
  must((await page.innerText("#tables")).includes("Upstream"), "the items are lost");
  must(await page.isEnabled("#next"), "the steps are lost");
});

const names = await page.locator("#example option").allTextContents();
await check("every example", async () => {
  for (const name of names) {
    await choose(name);
    await mustBe("right");
    while (await page.isEnabled("#next")) await press("next");
    await press("run");
    must(!["pending", "wrong"].includes(await page.getAttribute("#badge", "class")), await badge()); // or stuck, as the example says
    if (name === "organisations-users-tickets") await shoot("single-table");
  }
});
await check("phone width", async () => {
  await first();
  await press("next");
  await page.setViewportSize({ width: 390, height: 844 });
  const widths = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  must(widths[0] <= widths[1], `the page is ${widths[0]} wide`);
  await why("author of books[b1]").click();
  const sides = await page.locator("tr.answer div").evaluate((one) => [one.getBoundingClientRect().left, one.getBoundingClientRect().right]);
  must(sides[0] >= 0 && sides[1] <= 390, `the explanation is from ${sides[0]} to ${sides[1]}`);
  await shoot("phone");
  await page.setViewportSize({ width: 1360, height: 1000 });
});
await check("dark", async () => {
  await page.emulateMedia({ colorScheme: "dark" });
  await shoot("dark");
  const paper = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  await page.emulateMedia({ colorScheme: "light" });
  must(paper !== (await page.evaluate(() => getComputedStyle(document.body).backgroundColor)), paper);
});
await check("share", async () => {
  await setCell("name of authors[a2]", "Ada Shared");
  await press("run");
  await page.click("#share");
  await page.waitForFunction(() => location.hash.startsWith("#s="));
  const other = await context.newPage();
  watch(other);
  await other.goto(page.url());
  await other.waitForSelector("body[data-live]", { timeout: START_MAX_MS });
  must((await other.innerText("#tables")).includes("Ada Shared"), "the items are not shared");
  must((await other.textContent("#badge")).includes("every copy is right"), await other.textContent("#badge"));
  await other.close();
});
const visit = async (fragment) => {
  const other = await context.newPage();
  watch(other);
  await other.goto(`${url}${fragment}`);
  await other.waitForSelector("body[data-live]", { timeout: START_MAX_MS });
  await other.waitForSelector("body:not([aria-busy])");
  return other;
};
await check("a damaged link", async () => {
  const { hash } = new URL(page.url());
  const other = await visit(hash.slice(0, hash.length / 2));
  must((await other.innerText("#mistake")).includes("damaged"), "the page says nothing");
  must(await other.isEnabled("#next"), "the first example does not run");
  await other.close();
});
await check("an unknown example", async () => {
  const other = await visit("#none");
  must((await other.innerText("#mistake")).includes("no example none"), "the page says nothing");
  await other.close();
});
await check("shared rules with an error", async () => {
  await first();
  await type("copy: [author.name, author.bio]", " x");
  await page.waitForSelector("#problems li.error");
  await page.click("#share");
  await page.waitForFunction(() => location.hash.startsWith("#s="));
  const other = await visit(new URL(page.url()).hash);
  await other.waitForSelector("#problems li.error");
  await other.locator(".cm-line", { hasText: "author.bio" }).first().click();
  await other.keyboard.press("End");
  await other.keyboard.press("Backspace");
  await other.waitForSelector("#badge.right");
  must((await other.innerText("#tables")).includes("Upstream"), "the items are lost");
  await other.waitForFunction((old) => location.hash !== old, new URL(page.url()).hash); // a reload keeps the edit
  must(await other.isHidden("#mistake"), await other.innerText("#mistake"));
  await other.close();
});
await check("the licences of all packages", async () => {
  const text = await page.evaluate(async () => (await fetch(document.querySelector("footer a").href)).text());
  const found = [...text.matchAll(/^-{80}\n(\S+) \d\S+ \(\S+\)$/gm)].map(([, name]) => name);
  const known = ["pyodide", "CPython", "sync-rules", "pydantic", "tenacity", "@codemirror/view", "@lezer/lr", "style-mod"];
  must(known.every((name) => found.includes(name)), found.join(", "));
  return found.length;
});
await check("no other origin", () => must([...origins].every((one) => one === new URL(url).origin), [...origins].join(" ")));
await check("no error", () => must(errors.length === 0, errors.join("\n")));
await browser.close();
