"use strict";
// Draws the flagged rows from the JSON block, and sorts, searches and opens them. Everything that
// comes from the table is inserted as text, never as markup.
(() => {
  const root = document.documentElement;
  const byId = (id) => document.getElementById(id);

  // --- Light and dark ---
  const theme = byId("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const updateThemeButton = () => theme.setAttribute("aria-pressed", String(isDark()));
  theme.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    updateThemeButton();
  });
  system.addEventListener("change", updateThemeButton);
  theme.hidden = false;
  updateThemeButton();

  // --- Rows ---
  const data = JSON.parse(byId("data").textContent);
  if (!data.rows.length) return;
  const PAGE = 50; // rows shown at first, and with each "Show more"
  const OPENED_IN_PRINT = 50; // longer lists are not opened for printing

  const rows = data.rows.map((row, rank) => {
    const [id, score, p, pText, headline, reasons, bars, rest, threshold, normalIf, note] = row;
    return { rank, id, score, p, pText, headline, reasons, bars, rest, threshold, normalIf, note };
  });
  const nameOf = (feature) => data.names[feature];

  function make(tag, className, text) {
    const element = document.createElement(tag);
    if (className) element.className = className;
    if (text !== undefined) element.textContent = text;
    return element;
  }

  function percent(share) {
    if (share > 0 && share < 0.005) return "under 1 %";
    if (share >= 0.995 && share < 1) return "over 99 %";
    return `${Math.round(100 * share)} %`;
  }

  function cell(role, className, text) {
    const element = make("span", className, text);
    element.setAttribute("role", role);
    return element;
  }

  function barLine(name, value, range, start, share, kind, threshold) {
    const line = make("div");
    line.setAttribute("role", "row");
    line.append(cell("cell", "name", name));
    line.append(cell("cell", kind === "outlier" ? "value out" : "value", value));
    line.append(cell("cell", "range-text", range));
    const track = cell("cell", "track");
    const bar = make("span", `bar ${kind}`);
    bar.style.left = `${100 * start}%`;
    bar.style.width = `${100 * share}%`;
    const cut = make("span", "cut");
    cut.style.left = `${100 * threshold}%`;
    track.append(bar, cut);
    line.append(track, cell("cell", "share", percent(share)));
    return line;
  }

  function waterfall(row) {
    const table = make("div", "fall");
    table.setAttribute("role", "table");
    table.setAttribute("aria-label", "What the score is made of");
    const heads = make("div", "heads");
    heads.setAttribute("role", "row");
    const titles = ["Feature", "Value", "Range", "Share of the score, cumulative", "Share"];
    const classes = ["name", "value", "range-text", "", "share"];
    titles.forEach((title, i) => heads.append(cell("columnheader", classes[i], title)));
    table.append(heads);
    let start = 0;
    for (const [feature, side, share, value, range] of row.bars) {
      const kind = side === 0 ? "in" : "outlier";
      table.append(barLine(nameOf(feature), value, range, start, share, kind, row.threshold));
      start += share;
    }
    const others = data.names.length - row.bars.length;
    if (others > 0) {
      const name = others === 1 ? "1 other feature" : `${others} other features`;
      table.append(barLine(name, "", "", start, row.rest, "rest", row.threshold));
    }
    return table;
  }

  function legend() {
    const line = make("p", "small keys");
    const kinds = [["outlier", "outside its range"], ["normal", "inside its range"], ["dash", "threshold"]];
    for (const [kind, text] of kinds) {
      const part = make("span");
      part.append(make("span", `key ${kind}`), ` ${text}`);
      line.append(part, " ");
    }
    return line;
  }

  function titled(title, ...content) {
    const part = make("div");
    part.append(make("h4", "", title), ...content);
    return part;
  }

  function why(row) {
    const body = make("div", "why");
    const reasons = make("ol");
    for (const [feature, text] of row.reasons) {
      const item = make("li");
      item.append(make("strong", "", nameOf(feature)), text);
      reasons.append(item);
    }
    const suggestion = make("p", "normal-if", `Row ${row.id}${row.normalIf}`);
    if (row.note) body.append(make("p", "", row.note));
    body.append(
      make("p", "", row.headline),
      titled("Reasons", reasons),
      titled("What the score is made of", waterfall(row), legend()),
      titled("Nearest normal", suggestion),
    );
    return body;
  }

  function item(row) {
    const entry = make("li");
    const details = make("details");
    const summary = make("summary", "row");
    const top = make("span", "cell");
    if (row.bars.length) {
      const [feature, , , value, range] = row.bars[0];
      const rangeText = /^(always|only|one of|any) /.test(range) ? range : `range ${range}`;
      top.append(make("span", "feature", nameOf(feature)), `${value}, ${rangeText}`);
    }
    summary.append(make("span", "id", row.id), make("span", "score", row.score));
    summary.append(make("span", "p", row.pText), top);
    details.append(summary);
    entry.append(details);
    row.fill = () => {
      if (details.children.length === 1) details.append(why(row));
    };
    row.open = (open) => {
      if (open) row.fill();
      details.open = open;
    };
    row.isOpen = () => details.open;
    details.addEventListener("toggle", () => details.open && row.fill());
    row.element = entry;
    return entry;
  }

  // --- Searching, sorting, showing ---
  const items = byId("items");
  const search = byId("search");
  const sorts = [...document.querySelectorAll(".sorts button")];
  const more = byId("more");
  const all = byId("all");
  const status = byId("status");
  const order = new Intl.Collator("en", { numeric: true, sensitivity: "base" });
  const topName = (row) => (row.bars.length ? nameOf(row.bars[0][0]) : "");
  const compare = {
    id: (a, b) => order.compare(a.id, b.id),
    score: (a, b) => b.rank - a.rank,
    p: (a, b) => a.p - b.p,
    feature: (a, b) => order.compare(topName(a), topName(b)),
  };
  let sort = { key: "score", sign: -1 };
  let limit = PAGE;
  let visible = rows;

  function words(row) {
    const features = row.bars.map((bar) => nameOf(bar[0]));
    const reasons = row.reasons.map(([feature, text]) => nameOf(feature) + text);
    row.words ??= [row.id, ...features, ...reasons, row.normalIf, row.note].join("\n").toLowerCase();
    return row.words;
  }

  function update() {
    const terms = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    visible = rows.filter((row) => terms.every((term) => words(row).includes(term)));
    visible.sort((a, b) => sort.sign * compare[sort.key](a, b) || a.rank - b.rank);
    show();
  }

  function show() {
    const shown = visible.slice(0, limit);
    items.replaceChildren(...shown.map((row) => row.element ?? item(row)));
    const left = visible.length - shown.length;
    more.hidden = left === 0;
    more.textContent = `Show ${Math.min(PAGE, left)} more of ${visible.length.toLocaleString("en")}`;
    const found = `${visible.length.toLocaleString("en")} of ${rows.length.toLocaleString("en")} rows match.`;
    status.textContent = !search.value.trim() ? "" : visible.length ? found : "No row matches.";
    const opened = shown.length > 0 && shown.every((row) => row.isOpen());
    all.textContent = opened ? "Close all" : "Open all";
    all.hidden = shown.length === 0;
  }

  function updateSortButtons() {
    for (const button of sorts) {
      const pressed = button.dataset.key === sort.key;
      button.setAttribute("aria-pressed", String(pressed));
      button.dataset.label ??= button.textContent;
      const arrow = sort.sign > 0 ? " ↑" : " ↓";
      button.textContent = button.dataset.label + (pressed ? arrow : "");
      const way = sort.sign > 0 ? "ascending" : "descending";
      button.setAttribute("aria-label", `${button.dataset.label}${pressed ? `, sorted ${way}` : ""}`);
    }
  }

  for (const button of sorts) {
    button.addEventListener("click", () => {
      const { key, start } = button.dataset;
      sort = { key, sign: key === sort.key ? -sort.sign : Number(start ?? 1) };
      updateSortButtons();
      update();
    });
  }
  search.addEventListener("input", () => {
    limit = PAGE;
    update();
  });
  more.addEventListener("click", () => {
    const first = limit;
    limit += PAGE;
    show();
    items.children[first].querySelector("summary").focus(); // the first new row
  });
  all.addEventListener("click", () => {
    const open = all.textContent === "Open all";
    visible.slice(0, limit).forEach((row) => row.open(open));
    show();
  });
  items.addEventListener("toggle", () => {
    const opened = visible.slice(0, limit).every((row) => row.isOpen());
    all.textContent = opened ? "Close all" : "Open all";
  }, true);

  // On paper nothing can be opened, so rows are opened before printing unless the list is long.
  let openedToPrint = [];
  addEventListener("beforeprint", () => {
    if (visible.length > OPENED_IN_PRINT) return;
    openedToPrint = visible.filter((row) => !row.isOpen());
    openedToPrint.forEach((row) => row.open(true));
  });
  addEventListener("afterprint", () => {
    openedToPrint.forEach((row) => row.open(false));
    openedToPrint = [];
  });

  updateSortButtons();
  update();
  byId("list").hidden = false;
})();
