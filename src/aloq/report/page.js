"use strict";
// Draws the report from the JSON in #data. Every text goes through text nodes, so that no name can become markup.
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const state = { sort: "id", ascending: true, show: "all", x: null, y: null, every: false };
  let data = JSON.parse(document.getElementById("data").textContent);

  // --- elements and numbers ---------------------------------------------------------------------------------------------------

  function fill(node, attributes, children) {
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value === null || value === undefined || value === false) continue;
      if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
      else node.setAttribute(name, value === true ? "" : value);
    }
    for (const child of children.flat(Infinity)) if (child !== null && child !== undefined) node.append(child);
    return node;
  }
  const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
  const draw = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

  function number(value, digits = 4) {
    if (value === null || value === undefined) return "–";
    if (value === 0) return "0";
    const size = Math.abs(value);
    if (size >= 1e6 || size < 1e-4) return value.toExponential(digits - 1).replace(/\.?0+e/, "e").replaceAll("-", "−");
    const text = size >= 10 ** (digits - 1) ? value.toFixed(Math.max(0, Number.isInteger(value) ? 0 : digits - 1 - Math.floor(Math.log10(size))))
      : value.toPrecision(digits);
    return (text.includes(".") ? text.replace(/\.?0+$/, "") : text).replace("-", "−");
  }
  const show = (value) => (typeof value === "number" ? number(value, 5) : value === null ? "none" : String(value));
  const percent = (p) => (p >= 0.9995 && p < 1 ? "> 99.9 %" : `${number(100 * p, 3)} %`);
  const half = (std) => data.z90 * std;
  const interval = (mean, std) => `${number(mean - half(std))} to ${number(mean + half(std))}`;
  const region = (r) => (r.low === null ? show(r.value) : `${number(r.low)} to ${number(r.high)}`);
  const better = () => (data.direction === "maximize" ? 1 : -1);
  const column = (name) => data.trials.columns[data.trials.names.indexOf(name)];

  // --- scales and axes --------------------------------------------------------------------------------------------------------

  function ticks(low, high, count) {
    const rough = (high - low) / count || 1;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = power * ([1, 2, 5, 10].find((m) => m * power >= rough) || 10);
    const first = Math.ceil(low / step - 1e-9);
    return Array.from({ length: Math.max(0, Math.floor(high / step + 1e-9) - first + 1) }, (_, i) => Number(((first + i) * step).toPrecision(12)));
  }
  function logTicks(low, high) {
    const found = [];
    for (let k = Math.floor(Math.log10(low)); k <= Math.log10(high) + 1e-9; k += 1) for (const m of [1, 3]) found.push(m * 10 ** k);
    const inside = found.filter((v) => v >= low * 0.999 && v <= high * 1.001);
    return inside.length > 5 ? inside.filter((_, i) => i % 2 === 0) : inside;
  }
  function linear(low, high, from, to, log = false) {
    const f = log ? Math.log : (v) => v;
    const span = f(high) - f(low) || 1;
    const scale = (v) => from + ((f(v) - f(low)) / span) * (to - from);
    scale.ticks = log ? logTicks(low, high) : ticks(low, high, Math.abs(to - from) > 300 ? 6 : 4);
    return scale;
  }
  function padded(values) {
    const low = Math.min(...values), high = Math.max(...values), margin = (high - low) * 0.06 || Math.abs(high) * 0.05 || 1;
    return [low - margin, high + margin];
  }
  const WIDTH = 360, HEIGHT = 210, LEFT = 70, RIGHT = 10, TOP = 10, BOTTOM = 36;
  const wide = (most) => Math.min(most, Math.max(320, document.documentElement.clientWidth - 80)); // so that text keeps its size on a phone

  function frame(x, y, xLabel, yLabel, width = WIDTH, height = HEIGHT, left = LEFT, right = RIGHT) {
    const parts = [];
    for (const t of y.ticks) {
      parts.push(draw("line", { class: "gridline", x1: left, x2: width - right, y1: y(t), y2: y(t) }));
      parts.push(draw("text", { x: left - 6, y: y(t) + 4, "text-anchor": "end" }, y.names ? clip(y.names[t], 9) : number(t)));
    }
    for (const t of x.ticks) parts.push(draw("text", { x: x(t), y: height - BOTTOM + 15, "text-anchor": "middle" }, x.names ? clip(x.names[t], x.room) : number(t)));
    parts.push(draw("line", { class: "axis", x1: left, x2: width - right, y1: height - BOTTOM, y2: height - BOTTOM }));
    parts.push(draw("text", { x: (left + width - right) / 2, y: height - 4, "text-anchor": "middle" }, clip(xLabel, width / 8)));
    if (yLabel) parts.push(draw("text", { x: 12, y: (TOP + height - BOTTOM) / 2, "text-anchor": "middle", transform: `rotate(-90 12 ${(TOP + height - BOTTOM) / 2})` }, clip(yLabel, height / 7)));
    return parts;
  }
  const clip = (text, room) => (text.length > room ? `${text.slice(0, Math.max(1, Math.floor(room) - 1))}…` : text);
  function categories(names, from, to) {
    const scale = (i) => from + ((i + 0.5) / names.length) * (to - from);
    scale.ticks = names.map((_, i) => i);
    scale.names = names;
    scale.room = Math.abs(to - from) / names.length / 6.5;
    return scale;
  }

  // --- a chart that can be explored by pointer and by keyboard -----------------------------------------------------------------

  function chart(label, parts, marks, width = WIDTH, height = HEIGHT) {
    const cursor = draw("circle", { class: "cursor", r: 5, visibility: "hidden" });
    const picture = draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", tabindex: 0, "aria-label": `${label} Arrow keys read the values.` }, parts, cursor);
    const tip = el("div", { class: "tip", hidden: true });
    const spoken = el("div", { class: "hidden", "aria-live": "polite" });
    const figure = el("figure", {}, picture, tip, spoken);
    figure.style.maxWidth = `${width === WIDTH ? 460 : 1.1 * width}px`;
    let at = -1;
    function point(i, aloud) {
      at = i;
      const mark = marks[i], box = picture.getBoundingClientRect(), factor = box.width / width;
      cursor.setAttribute("cx", mark.x);
      cursor.setAttribute("cy", mark.y);
      cursor.setAttribute("visibility", "visible");
      tip.textContent = mark.text;
      tip.hidden = false;
      const left = Math.min(Math.max(0, mark.x * factor + 10), box.width - tip.offsetWidth);
      tip.style.left = `${left}px`;
      tip.style.top = `${Math.max(0, mark.y * factor - tip.offsetHeight - 10)}px`;
      if (aloud) spoken.textContent = mark.text;
    }
    function leave() {
      cursor.setAttribute("visibility", "hidden");
      tip.hidden = true;
    }
    picture.addEventListener("pointermove", (event) => {
      if (!marks.length) return;
      const box = picture.getBoundingClientRect(), factor = width / box.width;
      const x = (event.clientX - box.left) * factor, y = (event.clientY - box.top) * factor;
      let nearest = 0, least = Infinity;
      marks.forEach((mark, i) => {
        const gap = (mark.x - x) ** 2 + (mark.flat ? 0 : (mark.y - y) ** 2);
        if (gap < least) [nearest, least] = [i, gap];
      });
      point(nearest, false);
    });
    picture.addEventListener("pointerleave", leave);
    picture.addEventListener("blur", leave);
    picture.addEventListener("keydown", (event) => {
      const move = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
      if (event.key === "Escape") leave();
      if (!move || !marks.length) return;
      event.preventDefault();
      point(at < 0 ? 0 : (at + move + marks.length) % marks.length, true);
    });
    return figure;
  }

  const path = (points) => points.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(2)},${y.toFixed(2)}`).join("");

  let frames = 0;
  /** A line with its band, cut off where they leave the frame. rows: {x, mean, std, text}. */
  function lineChart(label, rows, xLabel, { log = false, at = null, range = null, width = WIDTH, height = HEIGHT } = {}) {
    const xs = rows.map((r) => r.x);
    const [low, high] = padded(range && range.every(Number.isFinite) ? range : rows.flatMap((r) => [r.mean - half(r.std), r.mean + half(r.std)]));
    const x = linear(Math.min(...xs), Math.max(...xs), LEFT, width - RIGHT, log), y = linear(low, high, height - BOTTOM, TOP);
    const band = [...rows.map((r) => [x(r.x), y(r.mean + half(r.std))]), ...rows.map((r) => [x(r.x), y(r.mean - half(r.std))]).reverse()];
    const id = `frame-${(frames += 1)}`, shape = draw("rect", { x: LEFT, y: TOP, width: width - RIGHT - LEFT, height: height - BOTTOM - TOP });
    const inside = draw("g", { "clip-path": `url(#${id})` }, draw("path", { class: "band", d: `${path(band)}Z` }), draw("path", { class: "line", d: path(rows.map((r) => [x(r.x), y(r.mean)])) }));
    const parts = [draw("clipPath", { id }, shape), ...frame(x, y, xLabel, data.quantity, width, height), inside];
    if (rows.length === 1) parts.push(draw("circle", { class: "dot", cx: x(rows[0].x), cy: y(rows[0].mean), r: 3 }));
    if (at !== null) parts.push(draw("line", { class: "at", x1: x(at), x2: x(at), y1: TOP, y2: height - BOTTOM }));
    const within = (v) => Math.min(height - BOTTOM, Math.max(TOP, v));
    return chart(label, parts, rows.map((r) => ({ x: x(r.x), y: within(y(r.mean)), text: r.text, flat: true })), width, height);
  }

  /** Dots with whiskers. rows: {name, mean, std, best, text}. */
  function labelChart(label, rows, xLabel) {
    const [low, high] = padded(rows.flatMap((r) => [r.mean - half(r.std), r.mean + half(r.std)]));
    const x = categories(rows.map((r) => r.name), LEFT, WIDTH - RIGHT), y = linear(low, high, HEIGHT - BOTTOM, TOP);
    const parts = frame(x, y, xLabel, data.quantity);
    rows.forEach((r, i) => {
      parts.push(draw("line", { class: "whisker", x1: x(i), x2: x(i), y1: y(r.mean - half(r.std)), y2: y(r.mean + half(r.std)) }));
      parts.push(draw("circle", { class: r.best ? "dot best" : "dot", cx: x(i), cy: y(r.mean), r: 5 }));
    });
    return chart(label, parts, rows.map((r, i) => ({ x: x(i), y: y(r.mean), text: r.text })));
  }

  function dotChart(label, rows, xLabel) {
    const [low, high] = padded(rows.map((r) => r.mean));
    const x = linear(...padded(rows.map((r) => r.x)), LEFT, WIDTH - RIGHT), y = linear(low, high, HEIGHT - BOTTOM, TOP);
    const dots = rows.map((r) => draw("circle", { class: r.best ? "dot best" : "dot", cx: x(r.x), cy: y(r.mean), r: r.best ? 5 : 2.5 }));
    return chart(label, [...frame(x, y, xLabel, data.quantity), dots], rows.map((r) => ({ x: x(r.x), y: y(r.mean), text: r.text })));
  }

  /** Bars to both sides of zero, with whiskers: what each region adds. */
  function addedChart(label, rows) {
    const width = wide(620), row = 24, names = rows.map((r) => (width < 500 && r.name.length > 10 ? clip(r.name, 18) : `${clip(r.name, 22)} (${percent(r.probability)})`));
    const left = Math.max(60, 16 + 6.5 * Math.max(...names.map((name) => name.length))), height = rows.length * row + TOP + BOTTOM;
    const ends = padded([0, ...rows.flatMap((r) => [r.contribution - half(r.contribution_std), r.contribution + half(r.contribution_std)])]);
    const x = linear(ends[0], ends[1], left, width - RIGHT);
    const parts = x.ticks.map((t) => [draw("line", { class: "gridline", x1: x(t), x2: x(t), y1: TOP, y2: height - BOTTOM }), draw("text", { x: x(t), y: height - BOTTOM + 15, "text-anchor": "middle" }, number(t))]).flat();
    const marks = rows.map((r, i) => {
      const y = TOP + row * i, c = r.contribution, good = c * better() >= 0;
      parts.push(draw("text", { class: r.rare && r.drives ? "strong" : null, x: left - 8, y: y + 16, "text-anchor": "end", "font-weight": r.rare && r.drives ? 700 : null }, names[i]));
      parts.push(draw("rect", { class: good ? "up" : "down", x: Math.min(x(0), x(c)), y: y + 5, width: Math.abs(x(c) - x(0)), height: row - 10 }));
      parts.push(draw("line", { class: "whisker", x1: x(c - half(r.contribution_std)), x2: x(c + half(r.contribution_std)), y1: y + row / 2, y2: y + row / 2 }));
      return { x: x(c), y: y + row / 2, text: r.text };
    });
    parts.push(draw("line", { class: "whisker", x1: x(0), x2: x(0), y1: TOP, y2: height - BOTTOM }), draw("text", { x: Math.min((left + width) / 2, width - 110), y: height - 4, "text-anchor": "middle" }, "what it adds to the expected return"));
    return chart(label, parts, marks, width, height);
  }

  // --- sections ---------------------------------------------------------------------------------------------------------------

  const section = (id, title, about, ...content) => el("section", { id, "aria-labelledby": `${id}-title` }, el("h2", { id: `${id}-title` }, title), about && el("p", { class: "soft" }, about), content);
  const cell = (text, attributes = {}) => el("td", attributes, text);
  const exact = (value, text, attributes = {}) => cell(text === undefined ? number(value) : text, { class: "number", "data-value": value, ...attributes });

  function says() {
    const items = [];
    const rare = data.drivers.flatMap((d) => d.regions.filter((r) => r.rare).map((r) => ({ ...r, of: d.name }))).sort((a, b) => Math.abs(b.contribution) - Math.abs(a.contribution));
    const driving = rare.filter((r) => r.drives).slice(0, 3), open = rare.filter((r) => !r.drives && !r.sure && half(r.contribution_std) > half(data.best.std) / 2).slice(0, 2);
    for (const r of driving) {
      const word = r.contribution > 0 ? "raises" : "lowers";
      items.push(el("li", {}, el("strong", {}, `${r.of} = ${region(r)}`), ` happens in ${percent(r.probability)} of cases and ${word} the expected return by ${number(Math.abs(r.contribution), 3)} (± ${number(half(r.contribution_std), 2)}); there it is ${number(r.mean)}.`));
    }
    for (const r of open) items.push(el("li", {}, el("strong", {}, `${r.of} = ${region(r)}`), ` (${percent(r.probability)}) is not settled: what it adds lies between ${number(r.contribution - half(r.contribution_std), 2)} and ${number(r.contribution + half(r.contribution_std), 2)}.`));
    if (data.drivers.length && !driving.length) items.push(el("li", {}, "No environment of 5 % probability or less is known to drive the result."));
    return el("ul", { class: "says" }, items);
  }

  function facts() {
    const { told, failed, pending } = data.counts, items = [];
    const past = data.past, last = past[past.length - 1], earlier = past.filter((p) => p.evaluations <= 0.75 * last.evaluations).pop();
    if (earlier) items.push(el("li", {}, `The believed return of the leader went from ${number(earlier.mean)} to ${number(last.mean)} over the last ${last.evaluations - earlier.evaluations} of ${last.evaluations} evaluations.`));
    items.push(el("li", {}, `${told} simulations gave a return` + (failed ? `, ${failed} failed` : ", none failed") + (pending ? `, ${pending} are under way.` : ".")));
    return el("ul", { class: "says soft" }, items);
  }

  const capital = (text) => text[0].toUpperCase() + text.slice(1);
  const policyList = (policy, id) => el("dl", { class: "policy", id }, policy.map(([name, value]) => [el("dt", {}, name), el("dd", { "data-value": value, title: String(value) }, show(value))]));
  const sure = (best) => `90 % sure to lie between ${number(best.low, 5)} and ${number(best.high, 5)}`;
  function hero() {
    const best = data.best, goal = data.direction === "maximize" ? "larger is better" : "smaller is better";
    if (!best) return el("p", { id: "empty" }, `No simulation has returned anything yet: ${data.counts.pending} under way, ${data.counts.failed} failed.`);
    return el("div", { class: "hero" },
      el("section", { class: "card", "aria-label": "Recommendation" },
        el("h3", {}, "Recommended policy"),
        policyList(best.policy, "policy"),
        facts()),
      el("section", { class: "card", "aria-label": capital(data.quantity) },
        el("h3", {}, `${capital(data.quantity)} `, el("span", { class: "soft" }, `(${data.quantity === "expected return" ? "the average over all that the environment may do; " : ""}${goal})`)),
        data.value && el("div", { class: "soft", id: "formula" }, "of ", el("code", {}, data.value)),
        el("div", { class: "big", id: "mean", "data-value": best.mean }, number(best.mean, 5)),
        el("div", { id: "interval", "data-low": best.low, "data-high": best.high }, sure(best)),
        data.verified && el("div", { class: "soft", id: "verified" }, data.verified),
        best.feasible === null ? null : el("div", { id: "feasible", "data-value": best.feasible }, `The constraints hold with a probability of ${number(best.feasible, 2)}.`),
        says()));
  }

  // --- another formula, asked of the server; the parts stay when the page is drawn anew, so that nothing typed is lost -----------

  const formula = el("input", { id: "whatif-value", type: "text", value: data.value, maxlength: 2000, spellcheck: "false", autocomplete: "off", "aria-label": "Another formula" });
  const asking = el("button", { id: "whatif-ask", type: "submit" }, "Ask");
  const answer = el("div", { id: "whatif-answer", role: "status" });
  const named = (pairs) => pairs.map(([name, value]) => `${name} = ${show(value)}`).join(", ");

  async function ask(event) {
    event.preventDefault();
    asking.disabled = true;
    answer.replaceChildren(el("p", { class: "soft" }, "Computing, which takes some seconds …"));
    try {
      const said = await (await fetch(`best.json?value=${encodeURIComponent(formula.value)}`, { cache: "no-store" })).json();
      answer.replaceChildren(said.error ? el("p", { class: "error" }, said.error) : priced(said));
    } catch {
      answer.replaceChildren(el("p", { class: "error" }, "The server does not answer. Is `aloq watch` still running?"));
    }
    asking.disabled = false;
  }
  function priced(said) {
    const same = named(said.policy) === named(data.best.policy);
    return el("div", {},
      el("h3", {}, same ? "The recommended policy stays the same" : "Recommended policy"),
      same ? null : policyList(said.policy, "whatif-policy"),
      el("div", { class: "big", id: "whatif-mean", "data-value": said.mean }, number(said.mean, 5)),
      el("div", { id: "whatif-interval", "data-low": said.low, "data-high": said.high }, "is expected of ", el("code", {}, said.value), `, after ${said.evaluations} evaluations; ${sure(said)}.`),
      said.least_known.length ? el("div", { id: "whatif-least" }, `Least is known about ${named(said.least_known)}. If the interval is too wide, simulate there.`) : null);
  }
  const whatIf = section("whatif", "Another formula", `What would be recommended if the measures (${data.measures.join(", ")}) were worth something else? This needs no new simulation.`,
    el("form", { class: "card", onsubmit: ask }, el("div", { class: "tools screen" }, formula, asking), answer));

  function progress() {
    const rows = data.past.map((p) => ({ x: p.evaluations, mean: p.mean, std: p.std, text: `after ${p.evaluations} evaluations\n${number(p.mean, 5)}\n90 %: ${interval(p.mean, p.std)}` }));
    return section("progress", "Progress", `The ${data.quantity} of the policy that led at the time, as it was believed at the time, with its 90 % interval: the band contained it with a probability of 90 %. The scale follows the later half, so early intervals may be cut off.`,
      el("div", { class: "card" }, lineChart(`Believed ${data.quantity} of the leader over evaluations.`, rows, "evaluations", { width: wide(1000), height: 240, range: data.range })));
  }

  function slices() {
    if (!data.slices.length) return section("slices", "Along each policy variable", `${data.method} holds no belief about policies that it does not follow.`);
    const about = data.slices[0].kind === "listed" ? `The believed ${data.quantity} of the archive's policies (a sample, where there are many). The recommended one is orange.` : `The believed ${data.quantity} if one variable is changed and the others stay as recommended, with its 90 % interval. The recommended value is marked in orange.`;
    return section("slices", "Along each policy variable", about, el("div", { class: "charts" }, data.slices.map((s) => {
      const label = `${capital(data.quantity)} along ${s.name}.`;
      const rows = s.values.map((v, i) => ({ x: v, name: show(v), mean: s.mean[i], std: s.std[i], best: v === s.at, text: `${s.name} = ${show(v)}\n${number(s.mean[i], 5)}\n90 %: ${interval(s.mean[i], s.std[i])}` }));
      const picture = s.kind === "line" ? lineChart(label, rows, s.name, { log: s.log, at: s.at }) : s.kind === "labels" ? labelChart(label, rows, s.name) : dotChart(label, rows, s.name);
      return el("div", { class: "card" }, el("h3", {}, s.name), picture);
    })));
  }

  function effectRow(name, r) {
    const flag = r.rare && r.drives ? el("span", { class: "badge" }, "rare, matters") : r.rare && typeof r.low !== "number" ? el("span", { class: "soft" }, "rare") : null;
    return el("tr", { class: r.rare && r.drives ? "flag" : null }, name, exact(r.probability, percent(r.probability)), exact(r.simulations), exact(r.mean), cell(interval(r.mean, r.std), { class: "number" }),
      exact(r.contribution), cell(interval(r.contribution, r.contribution_std), { class: "number" }), cell(flag));
  }
  const EFFECTS = ["probability", "simulations", "return there", "90 % interval", "adds", "90 % interval", ""];
  const effects = (heads, rows, label) => el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": label },
    el("table", {}, el("thead", {}, el("tr", {}, heads.map((h) => el("th", { scope: "col" }, h)), EFFECTS.map((h) => el("th", { scope: "col", class: h ? "number" : null }, h)))), el("tbody", {}, rows)));

  function drivers() {
    if (!data.drivers.length) return section("drivers", "Which environments drive the result", `${data.method} holds no belief about single environments.`);
    const cards = data.drivers.map((d) => {
      const rows = d.regions.map((r) => ({ ...r, name: region(r), text: `${d.name} = ${region(r)}\nprobability ${percent(r.probability)}, ${r.simulations} simulations\nexpected return there ${number(r.mean)}\nadds ${number(r.contribution)} (${interval(r.contribution, r.contribution_std)})` }));
      return el("div", { class: "card driver" }, el("h3", {}, d.name), addedChart(`What each part of ${d.name} adds to the expected return.`, rows), effects([d.name], d.regions.map((r) => effectRow(cell(region(r)), r)), `Parts of ${d.name}`));
    });
    const names = data.environment.map((axis) => axis.name);
    const single = data.events.length ? el("div", { class: "card", id: "events" }, el("h3", {}, "Single environments that matter most"),
      effects(names, data.events.map((e) => effectRow(e.environment.map(([, v]) => cell(show(v))), e)), "Single environments")) : null;
    return section("drivers", "Which environments drive the result",
      "At the recommended policy. A part of the environment adds its probability times the difference between the expected return there and everywhere; all parts together add zero. "
      + (data.direction === "maximize" ? "Parts that lower" : "Parts that raise") + " the return are orange. Rare means 5 % or less. Variables with many values are shown in ranges of equal probability, so that they can be compared. All intervals are 90 %.",
      el("div", { class: "wide" }, cards, single));
  }

  // --- where simulations were spent -------------------------------------------------------------------------------------------

  const CIVIDIS = [[0, 34, 78], [60, 77, 110], [124, 123, 120], [187, 173, 108], [254, 232, 56]];
  function colour(share, parts = false) {
    const at = Math.min(Math.max(share, 0), 1) * 4, i = Math.min(3, Math.floor(at)), f = at - i;
    const mixed = CIVIDIS[i].map((c, k) => Math.round(c + f * (CIVIDIS[i + 1][k] - c)));
    return parts ? mixed : `rgb(${mixed.join(",")})`;
  }
  /** What the colours mean, as a bar. `names` stand beside the ends of its steps, from below. */
  function colourBar(x, top, height, names) {
    const levels = names.length - 1, up = (i) => top + height * (1 - i / levels);
    const boxes = names.slice(1).map((_, i) => draw("rect", { x, y: up(i + 1), width: 14, height: height / levels + 0.5, fill: colour((i + 0.5) / levels) }));
    return [...boxes, ...names.map((name, i) => name && draw("text", { x: x + 20, y: Math.min(Math.max(up(i) + 4, top + 9), top + height) }, name))].filter(Boolean);
  }
  function variables() {
    return [...data.policy.map((axis) => ({ ...axis, key: `policy.${axis.name}` })), ...data.environment.map((axis) => ({ ...axis, key: `environment.${axis.name}` }))].filter((a) => a.labels || a.low !== undefined);
  }
  function placed(axis, from, to) {
    const values = column(axis.key);
    if (axis.labels) {
      const names = axis.labels.map(show), scale = categories(names, from, to), spread = (to - from) / names.length / 2.2;
      return { scale, at: (i) => scale(Math.max(0, names.indexOf(show(values[i])))) + (((i * 0.618034) % 1) - 0.5) * spread };
    }
    const numbers = values.filter((v) => typeof v === "number"), log = axis.log;
    const low = log ? axis.low : padded([axis.low, axis.high, ...numbers])[0], high = log ? axis.high : padded([axis.low, axis.high, ...numbers])[1];
    const scale = linear(low, high, from, to, log);
    return { scale, at: (i) => scale(values[i]) };
  }
  function spent() {
    const axes = variables();
    if (axes.length < 1 || !column("id").length) return null;
    state.x = axes.some((a) => a.key === state.x) ? state.x : axes[0].key;
    state.y = axes.some((a) => a.key === state.y) ? state.y : (axes.find((a) => a.key.startsWith("environment.")) || axes[axes.length - 1]).key;
    const holder = el("div", {});
    function redraw() {
      const width = wide(1000), height = 400, ax = axes.find((a) => a.key === state.x), ay = axes.find((a) => a.key === state.y);
      const bar = 90, x = placed(ax, LEFT + 10, width - bar), y = placed(ay, height - BOTTOM, TOP);
      const ids = column("id"), states = column("state"), values = column("value");
      const told = values.filter((v) => v !== null).sort((a, b) => a - b), rank = (v) => (told.length > 1 ? told.indexOf(v) / (told.length - 1) : 0.5);
      const parts = [...frame(x.scale, y.scale, ax.name, ay.name, width, height, LEFT + 10, bar), ...(told.length ? colourBar(width - bar + 12, TOP, height - BOTTOM - TOP, Array.from({ length: 9 }, (_, i) => (i % 2 ? "" : number(told[Math.round((i / 8) * (told.length - 1))], 3)))) : [])], marks = [];
      ids.forEach((id, i) => {
        const cx = x.at(i), cy = y.at(i);
        if (states[i] === "failed") parts.push(draw("path", { class: "cross", d: `M${cx - 4},${cy - 4}L${cx + 4},${cy + 4}M${cx - 4},${cy + 4}L${cx + 4},${cy - 4}` }));
        else if (states[i] === "pending") parts.push(draw("circle", { class: "open", cx, cy, r: 4 }));
        else parts.push(draw("circle", { cx, cy, r: 4.5, fill: colour(rank(values[i])), stroke: "var(--soft)", "stroke-width": 0.8 }));
        const what = states[i] === "told" ? `return ${number(values[i], 5)}` : states[i];
        marks.push({ x: cx, y: cy, text: `trial ${id}: ${what}\n${axes.slice(0, 8).map((a) => `${clip(a.name, 24)} = ${clip(show(column(a.key)[i]), 24)}`).join("\n")}` });
      });
      holder.replaceChildren(chart(`Trials over ${ax.name} and ${ay.name}.`, parts, marks, width, height));
    }
    const picker = (which, text) => el("label", {}, `${text} `, el("select", { id: `spent-${which}`, onchange: (event) => { state[which] = event.target.value; redraw(); } },
      axes.map((a) => el("option", { value: a.key, selected: state[which] === a.key }, `${clip(a.name, 40)} (${a.key.split(".")[0]})`))));
    redraw();
    return section("spent", "Where simulations were spent", "Each mark is a trial: one simulation of a policy in an environment. From dark blue (lowest) to yellow (highest) by the rank of its return, as the bar on the right shows; crosses failed, open circles are under way.",
      el("div", { class: "card" }, el("div", { class: "tools screen" }, picker("x", "across"), picker("y", "up")), holder));
  }

  function sensitivities() {
    if (!data.sensitivities.length) return null;
    const named = data.sensitivities.map((s) => ({ ...s, title: s.label === null ? s.name : `${s.name} = ${s.label}` }));
    const row = 24, width = wide(760), left = width < 500 ? 110 : 170, height = named.length * row + TOP + BOTTOM;
    const ends = named.flatMap((s) => s.length), x = linear(Math.min(...ends) * 0.9, Math.max(...ends) * 1.1, left, width - RIGHT, true);
    const parts = x.ticks.map((t) => [draw("line", { class: "gridline", x1: x(t), x2: x(t), y1: TOP, y2: height - BOTTOM }), draw("text", { x: x(t), y: height - BOTTOM + 15, "text-anchor": "middle" }, number(t))]).flat();
    const marks = named.map((s, i) => {
      const y = TOP + row * (i + 0.5), [low, middle, high] = s.length;
      parts.push(draw("text", { x: left - 8, y: y + 4, "text-anchor": "end" }, clip(s.title, left / 7)), draw("line", { class: "whisker", x1: x(low), x2: x(high), y1: y, y2: y }), draw("circle", { class: s.policy ? "dot" : "dot best", cx: x(middle), cy: y, r: 5 }));
      return { x: x(middle), y, text: `${s.title}\nlength scale ${number(middle, 3)}\n90 % of the samples: ${number(low, 3)} to ${number(high, 3)}` };
    });
    parts.push(draw("text", { x: (left + width) / 2, y: height - 4, "text-anchor": "middle" }, "length scale (1 = the whole range)"));
    const warps = named.filter((s) => s.warp).map((s) => {
      const [low, middle, high] = s.warp, x2 = linear(0, 1, LEFT, WIDTH - RIGHT), y2 = linear(0, 1, HEIGHT - BOTTOM, TOP);
      const line = (ys) => ys.map((v, i) => [x2(data.grid[i]), y2(v)]);
      const drawn = [...frame(x2, y2, `${s.title}, as a share of its range`, "bent"), draw("line", { class: "axis", x1: x2(0), x2: x2(1), y1: y2(0), y2: y2(1) }), draw("path", { class: "band", d: `${path([...line(high), ...line(low).reverse()])}Z` }), draw("path", { class: "line", d: path(line(middle)) })];
      return el("div", { class: "card" }, el("h3", {}, s.title), chart(`Warp of ${s.title}.`, drawn, middle.map((v, i) => ({ x: x2(data.grid[i]), y: y2(v), flat: true, text: `${number(data.grid[i], 3)} → ${number(v, 3)}` }))));
    });
    const noise = data.noise === null ? "" : ` One return scatters around its expectation by ${number(data.noise, 2)} (standard deviation).`;
    return section("sensitivities", "Sensitivities", `How fast the return changes along each variable. The length scale is the distance over which it stays similar, as a share of the range: the shorter, the faster the return changes. The model keeps several likely length scales: the dot is their median, the line holds 90 % of them. Policy variables are blue, environment variables orange.${noise}`,
      el("div", { class: "card" }, chart("Length scales of all variables.", parts, marks, width, height)),
      warps.length ? [el("h3", {}, "Warps"), el("p", { class: "soft" }, "How the model bends each variable before it measures distances: where the curve is steep, the return changes faster. The straight line bends nothing."), el("div", { class: "charts" }, warps)] : null);
  }

  function failures() {
    if (!data.failures.length) return section("failures", "Failures", "No simulation failed.");
    return section("failures", "Failures", `${data.counts.failed} of ${data.counts.told + data.counts.failed} simulations failed.`,
      el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Failures" }, el("table", {}, el("thead", {}, el("tr", {}, ["count", "first trial", "last trial", "reason"].map((h) => el("th", { scope: "col" }, h)))),
        el("tbody", {}, data.failures.map((f) => el("tr", {}, exact(f.count), exact(f.first), exact(f.last), cell(f.reason || "(none given)", { class: "wrap" })))))));
  }

  // --- the table --------------------------------------------------------------------------------------------------------------

  const ROWS = 1000;
  function ordered() {
    const key = data.trials.names.includes(state.sort) ? state.sort : "id", values = column(key), states = column("state");
    const rows = values.map((_, i) => i).filter((i) => state.show === "all" || states[i] === state.show);
    const compare = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a) < String(b) ? -1 : String(a) > String(b) ? 1 : 0);
    return rows.sort((i, j) => {
      const a = values[i], b = values[j];
      if (a === null || b === null) return a === b ? i - j : a === null ? 1 : -1; // what is missing comes last, whichever way
      return (state.ascending ? 1 : -1) * compare(a, b) || i - j;
    });
  }
  function csv() {
    const quoted = (v) => (v === null ? "" : /[",\r\n]/.test(String(v)) ? `"${String(v).replaceAll('"', '""')}"` : String(v));
    const { names, columns } = data.trials;
    return [names, ...ordered().map((i) => columns.map((c) => c[i]))].map((row) => row.map(quoted).join(",")).join("\r\n") + "\r\n";
  }
  function download() {
    const link = el("a", { href: URL.createObjectURL(new Blob([csv()], { type: "text/csv;charset=utf-8" })), download: `${data.title.replace(/[^\w.-]+/g, "_") || "trials"}.csv` });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }
  function trials() {
    const { names, columns } = data.trials, holder = el("div", {});
    const numeric = columns.map((c) => c.every((v) => v === null || typeof v === "number"));
    function heading(name, k) {
      const active = state.sort === name;
      const by = () => { state.ascending = active ? !state.ascending : true; state.sort = name; redraw(); document.getElementById(`sort-${k}`).focus(); };
      return el("th", { scope: "col", class: numeric[k] ? "number" : null, "aria-sort": active ? (state.ascending ? "ascending" : "descending") : "none" },
        el("button", { id: `sort-${k}`, type: "button", title: `Sort by ${name}`, onclick: by }, `${name}${active ? (state.ascending ? " ▲" : " ▼") : ""}`));
    }
    function redraw() {
      const rows = ordered(), shown = state.every ? rows : rows.slice(0, ROWS);
      const body = shown.map((i) => el("tr", {}, columns.map((c, k) => el("td", { class: numeric[k] ? "number" : null, "data-value": c[i], title: c[i] === null ? null : String(c[i]) }, c[i] === null ? "" : typeof c[i] === "number" ? number(c[i], 6) : String(c[i])))));
      const more = shown.length < rows.length ? el("button", { type: "button", class: "screen", onclick: () => { state.every = true; redraw(); } }, `Show all ${rows.length} rows`) : null;
      holder.replaceChildren(el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "All trials" }, el("table", { id: "trials-table" }, el("thead", {}, el("tr", {}, names.map(heading))), el("tbody", {}, body))), more || "");
    }
    const filter = el("label", {}, "show ", el("select", { id: "show", onchange: (event) => { state.show = event.target.value; redraw(); } }, ["all", "told", "failed", "pending"].map((s) => el("option", { value: s, selected: s === state.show }, s))));
    redraw();
    return section("trials", "All trials", "A click on a heading sorts. The CSV has the rows as shown here, in full precision.",
      el("div", { class: "tools screen" }, filter, el("button", { id: "csv", type: "button", onclick: download }, "Download CSV")), holder);
  }

  // --- the page ---------------------------------------------------------------------------------------------------------------

  function stored(value) {
    try { // a page opened from a file may have no storage
      if (value !== undefined) localStorage.setItem("aloq-theme", value);
      return localStorage.getItem("aloq-theme");
    } catch { return null; }
  }
  const dark = matchMedia("(prefers-color-scheme: dark)");
  function paint(theme) { document.documentElement.dataset.theme = theme; }
  paint(stored() || (dark.matches ? "dark" : "light"));
  dark.addEventListener("change", () => { if (!stored()) paint(dark.matches ? "dark" : "light"); });
  function toggle() {
    const next = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    stored(next);
    paint(next);
  }

  const kit = { el, draw, number, show, percent, chart, linear, categories, padded, wide, clip, frame, section, cell, exact, capital, colour, colourBar, column };
  const answers = aloqAnswers(kit), pictures = aloqPictures(kit);
  const status = el("span", { id: "status", class: "soft", role: "status" });
  function render() {
    const focus = document.activeElement && document.activeElement.id, place = window.scrollY;
    document.title = `${data.title}: report`;
    const head = el("header", { class: "top" }, el("a", { class: "skip", href: "#main" }, "Skip to the report"), el("h1", {}, data.title),
      el("span", { class: "soft" }, `${data.counts.told} evaluations, ${data.written}`), status,
      el("span", { class: "right screen" }, el("button", { id: "theme", type: "button", onclick: toggle, "aria-label": "Switch between dark and light" }, "Dark / light"), el("button", { type: "button", onclick: () => print() }, "Print")));
    const body = data.best ? [answers.verdict(data), hero(), data.live && data.measures.length ? whatIf : null, answers.leaders(data), answers.heedless(data), pictures.outcomes(data), progress(), pictures.surface(data), slices(), drivers(), spent(), sensitivities()] : [hero(), spent()];
    const main = el("main", { id: "main" }, body, failures(), trials(), el("footer", {}, `aloq ${data.aloq}, method ${data.method}, seed ${data.seed}. All intervals are 90 %.`));
    document.body.replaceChildren(head, main);
    window.scrollTo(0, place);
    const again = focus && document.getElementById(focus);
    if (again) again.focus({ preventScroll: true });
  }
  render();
  let drawn = wide(1000);
  addEventListener("resize", () => { if (Math.abs(wide(1000) - drawn) > 60) { drawn = wide(1000); render(); } });
  document.documentElement.dataset.ready = "yes";

  if (data.live) {
    let mark = null;
    const poll = async () => {
      try {
        const answer = await fetch("data.json", { headers: mark ? { "If-None-Match": mark } : {}, cache: "no-store" });
        if (answer.status === 200) {
          const first = mark === null;
          mark = answer.headers.get("ETag");
          const next = await answer.json();
          if (!first || next.trials.columns[0].length !== data.trials.columns[0].length || next.counts.told !== data.counts.told) { data = next; render(); }
        }
        status.textContent = "live";
      } catch { status.textContent = "The server has gone; this is what it said last."; }
      setTimeout(poll, 2000);
    };
    poll();
  }
})();
