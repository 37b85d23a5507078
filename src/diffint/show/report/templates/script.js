"use strict";
// Moves the threshold; draws the flagged rows and their groups from the JSON block, and sorts,
// searches and opens them. Everything that comes from the table is inserted as text, never as markup.
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

  // --- The threshold ---
  const data = JSON.parse(byId("data").textContent);
  if (!data.slider) return; // no rows were scored
  const { own, positions } = data.slider;
  let position = own;
  let positionChanged = () => {};
  const rate = byId("rate");
  const reset = byId("reset");

  function moveThreshold() {
    const [rateText, threshold, meaning, shown, place] = positions[position];
    byId("rate-text").textContent = `${rateText} (threshold ${threshold})`;
    rate.setAttribute("aria-valuetext", rateText);
    byId("rate-meaning").textContent = meaning;
    byId("beyond-cut").setAttribute("x", place);
    byId("cut").style.left = `${place}%`;
    byId("cut-label").style.left = `${place}%`;
    byId("cut-label").classList.toggle("before", place > 60);
    if (byId("shown")) byId("shown").textContent = shown;
    reset.hidden = position === own;
    positionChanged();
  }

  rate.addEventListener("input", () => {
    position = Number(rate.value);
    moveThreshold();
  });
  reset.addEventListener("click", () => {
    position = own;
    rate.value = own;
    moveThreshold();
    rate.focus();
  });
  rate.value = own; // also after a reload, which would keep another value
  moveThreshold();
  byId("slider").hidden = positions.length < 2;

  // --- Rows ---
  if (!data.rows.length) return;
  const PAGE = 50; // rows shown at first, and with each "Show more"
  const GROUP_PAGE = 20; // the same for the rows of a group
  const GROUPS = 12; // the same for groups
  const EXAMPLES = 3; // rows that a closed group links to
  const OPENED_IN_PRINT = 50; // longer lists are not opened for printing

  const rows = data.rows.map((row, rank) => {
    const [id, score, p, pText, level, headline, brief, reasons, bars, ...more] = row;
    const [rest, threshold, normalIf, kept] = more;
    const texts = { id, score, p, pText, headline, brief, normalIf };
    return { rank, level, ...texts, reasons, bars, rest, threshold, kept };
  });
  const nameOf = (feature) => data.names[feature];
  const count = (n) => n.toLocaleString("en");
  const countRows = (n) => (n === 1 ? "1 row" : `${count(n)} rows`);

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
    const titles = ["Feature", "Value", "Nearest pattern", "Share of the score, cumulative", "Share"];
    const classes = ["name", "value", "range-text", "", "share"];
    titles.forEach((title, i) => heads.append(cell("columnheader", classes[i], title)));
    table.append(heads);
    const named = new Set(row.reasons.map(([feature]) => feature));
    let start = 0;
    for (const [feature, share, value, range] of row.bars) {
      const kind = named.has(feature) ? "outlier" : "in";
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
    const kinds = [["outlier", "has a reason"], ["normal", "has none"], ["dash", "threshold"]];
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

  function keptCells(row) {
    const list = make("dl", "kept-cells");
    row.kept.forEach((text, i) => {
      const pair = make("div");
      pair.append(make("dt", "", data.kept[i]), make("dd", "", text || "–"));
      list.append(pair);
    });
    return list;
  }

  function why(row) {
    const body = make("div", "why");
    const reasons = make("ol");
    for (const [feature, text] of row.reasons) {
      const item = make("li");
      if (feature >= 0) item.append(make("strong", "", nameOf(feature)));
      item.append(text);
      reasons.append(item);
    }
    const suggestion = make("p", "normal-if", `Row ${row.id}${row.normalIf}`);
    if (row.kept.length) body.append(keptCells(row));
    body.append(
      make("p", "", row.headline),
      titled("Reasons", reasons),
      titled("What the score is made of", waterfall(row), legend()),
      titled("Nearest normal", suggestion),
    );
    return body;
  }

  // A row of a list. Its details are drawn when it is first opened.
  function item(row, reason) {
    const element = make("li");
    const details = make("details");
    const summary = make("summary", "row");
    summary.append(make("span", "id", row.id), make("span", "score", row.score));
    summary.append(make("span", "p", row.pText), make("span", "cell reason", reason));
    const kept = row.kept.map((text, i) => text && `${data.kept[i]} = ${text}`).filter(Boolean);
    if (kept.length) summary.append(make("span", "cell kept", kept.join(", ")));
    details.append(summary);
    element.append(details);
    const fill = () => {
      if (details.children.length === 1) details.append(why(row));
    };
    details.addEventListener("toggle", () => details.open && fill());
    const open = (opened) => {
      if (opened) fill();
      details.open = opened;
    };
    return { element, summary, open, isOpen: () => details.open };
  }

  // A list of rows that grows by "Show more". named: whether links can lead to its rows; reasons:
  // those to show by row, where it is not the first one of the row.
  function rowList(list, more, page, named, reasons = new Map()) {
    const items = new Map();
    let limit = page;
    let visible = [];
    const itemOf = (row) => {
      if (!items.has(row)) {
        const made = item(row, reasons.get(row) ?? row.brief);
        // The summary, so that following a link moves the focus there.
        if (named) made.summary.id = `row-${row.rank + 1}`;
        items.set(row, made);
      }
      return items.get(row);
    };
    const shown = () => visible.slice(0, limit).map(itemOf);
    const draw = () => {
      list.replaceChildren(...shown().map(({ element }) => element));
      const left = Math.max(visible.length - limit, 0);
      more.hidden = left === 0;
      more.textContent = `Show ${Math.min(page, left)} more of ${count(visible.length)}`;
    };
    more.addEventListener("click", () => {
      const first = limit;
      limit += page;
      draw();
      itemOf(visible[first]).summary.focus();
    });
    return {
      shown,
      show(chosen) {
        visible = chosen;
        draw();
      },
      restart() {
        limit = page;
      },
      reveal(row) {
        limit = Math.max(limit, visible.indexOf(row) + 1);
        draw();
        itemOf(row).open(true);
        return itemOf(row).summary;
      },
    };
  }

  // --- Groups ---
  const linkTo = (row) => {
    const link = make("a", "", row.id);
    link.href = `#row-${row.rank + 1}`;
    return link;
  };

  const groups = data.groups.map(([name, text, places, own]) => {
    const all = places.map((place) => rows[place]);
    const reasons = new Map(Object.entries(own).map(([place, reason]) => [rows[place], reason]));
    const element = make("li");
    const details = make("details");
    const summary = make("summary", "row group");
    const number = make("span", "count");
    const range = make("span", "range-of-scores");
    const examples = make("p", "small examples");
    summary.append(make("span", "name", name), number, range, make("span", "cell", text));
    const list = make("ul", "rows-of-group");
    const more = make("button", "wide");
    more.type = "button";
    details.append(summary, list, more);
    element.append(details, examples);
    const shown = rowList(list, more, GROUP_PAGE, false, reasons);
    let chosen = all;
    const fill = () => details.open && shown.show(chosen);
    details.addEventListener("toggle", fill);
    const update = (visible) => {
      chosen = all.filter((row) => visible.has(row));
      if (!chosen.length) return false;
      const part = chosen.length < all.length ? `${count(chosen.length)} of ` : "";
      number.textContent = part + countRows(all.length);
      const [high, low] = [chosen[0].score, chosen[chosen.length - 1].score];
      range.textContent = high === low ? `score ${high}` : `scores ${low} to ${high}`;
      const links = chosen.slice(0, EXAMPLES).flatMap((row) => [linkTo(row), ", "]);
      if (chosen.length <= EXAMPLES) links.pop();
      examples.replaceChildren("Rows ", ...links, chosen.length > EXAMPLES ? "…" : "");
      fill();
      return true;
    };
    return { element, rows: all, update, focus: () => summary.focus() };
  });
  let groupLimit = GROUPS;

  function showGroups(visible) {
    if (!groups.length) return;
    const found = groups.filter((group) => group.update(visible));
    byId("groups").replaceChildren(...found.slice(0, groupLimit).map(({ element }) => element));
    const left = Math.max(found.length - groupLimit, 0);
    byId("more-groups").hidden = left === 0;
    byId("more-groups").textContent = `Show ${Math.min(GROUPS, left)} more of ${count(found.length)} groups`;
    const inGroups = new Set(found.flatMap((group) => group.rows));
    const alone = [...visible].filter((row) => !inGroups.has(row)).length;
    const have = alone === 1 ? "1 row is in no group." : `${countRows(alone)} are in no group.`;
    byId("alone").textContent = alone ? have : "";
    byId("groups-part").hidden = found.length === 0;
    return found;
  }

  byId("more-groups")?.addEventListener("click", () => {
    const first = groupLimit;
    groupLimit += GROUPS;
    showGroups(new Set(visible))[first]?.focus();
  });

  // --- Searching, sorting, showing ---
  const items = byId("items");
  const list = rowList(items, byId("more"), PAGE, true);
  const search = byId("search");
  const sorts = [...document.querySelectorAll(".sorts button")];
  const all = byId("all");
  const status = byId("status");
  const order = new Intl.Collator("en", { numeric: true, sensitivity: "base" });
  const compare = {
    id: (a, b) => order.compare(a.id, b.id),
    score: (a, b) => b.rank - a.rank,
    p: (a, b) => a.p - b.p,
    reason: (a, b) => order.compare(a.brief, b.brief),
  };
  let sort = { key: "score", sign: -1 };
  let visible = [];

  // Text as it is compared: "Z = −1,200" is "z=-1200".
  function plain(text) {
    const lower = text.toLowerCase().replaceAll("−", "-").replace(/[^\S\n]+/g, " ");
    return lower.replace(/ ?= ?/g, "=").replace(/(\d),(?=\d{3}(?!\d))/g, "$1");
  }

  function words(row) {
    if (row.words === undefined) {
      const cells = row.bars.map(([feature, , value]) => `${nameOf(feature)} = ${value}`);
      const kept = row.kept.map((text, i) => `${data.kept[i]} = ${text}`);
      const reasons = row.reasons.map(([feature, text]) => (nameOf(feature) ?? "") + text);
      const texts = [row.id, ...cells, ...kept, row.brief, ...reasons, row.normalIf];
      row.words = plain(["", ...texts, ""].join("\n"));
    }
    return row.words;
  }
  groups.forEach((group, i) => {
    for (const row of group.rows) row.words = `${words(row)}${plain(data.groups[i][0])}\n`;
  });

  // A value is found as a whole if any row has it, so that "z = 0" does not find z = 0.5.
  function wanted(query) {
    const whole = (text) => {
      const line = `\n${text}\n`;
      return text.includes("=") && rows.some((row) => words(row).includes(line)) ? line : null;
    };
    const text = plain(query.trim());
    const line = whole(text);
    return line ? [line] : text.split(" ").filter(Boolean).map((term) => whole(term) ?? term);
  }

  function update() {
    const parts = wanted(search.value);
    const flagged = rows.filter((row) => row.level <= position);
    visible = flagged.filter((row) => parts.every((part) => words(row).includes(part)));
    showGroups(new Set(visible));
    visible.sort((a, b) => sort.sign * compare[sort.key](a, b) || a.rank - b.rank);
    list.show(visible);
    const found = `${count(visible.length)} of ${countRows(flagged.length)} ${visible.length === 1 ? "matches" : "match"}.`;
    status.textContent = !parts.length ? countRows(flagged.length) : visible.length ? found : "No row matches.";
    updateOpenAll();
  }

  function updateOpenAll() {
    const shown = list.shown();
    const opened = shown.length > 0 && shown.every((one) => one.isOpen());
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
    list.restart();
    update();
  });
  positionChanged = update;
  all.addEventListener("click", () => {
    const open = all.textContent === "Open all";
    list.shown().forEach((one) => one.open(open));
    updateOpenAll();
  });
  items.addEventListener("toggle", updateOpenAll, true);

  // Links to rows, which may not be drawn yet.
  const rowOf = (hash) => visible.find((row) => hash === `#row-${row.rank + 1}`);
  addEventListener("click", (event) => {
    const row = rowOf(event.target.closest?.("a")?.hash ?? "");
    if (row) list.reveal(row);
  });

  // On paper nothing can be opened, so rows are opened before printing unless the list is long.
  let openedToPrint = [];
  addEventListener("beforeprint", () => {
    if (visible.length > OPENED_IN_PRINT) return;
    openedToPrint = list.shown().filter((one) => !one.isOpen());
    openedToPrint.forEach((one) => one.open(true));
  });
  addEventListener("afterprint", () => {
    openedToPrint.forEach((one) => one.open(false));
    openedToPrint = [];
  });

  updateSortButtons();
  update();
  byId("list").hidden = false;
  const linked = rowOf(location.hash);
  if (linked) list.reveal(linked).focus();
})();
