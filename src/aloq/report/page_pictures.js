// Two pictures of the report: the returns that may come, and the expected return over two policy variables.
function aloqPictures(kit) {
  "use strict";
  const { el, draw, number, show, percent, chart, linear, categories, wide, frame, section, colour, colourBar, column } = kit;
  const LEFT = 70, TOP = 10, BOTTOM = 36, LEVELS = 12;

  function outcomes(data) {
    const o = data.outcomes;
    if (!o) return null;
    const width = wide(1000), height = 250, total = o.common.map((c, i) => c + o.rare[i]), rare = o.rare.reduce((a, b) => a + b, 0);
    const x = linear(o.edges[0], o.edges[o.edges.length - 1], LEFT, width - 10), y = linear(0, 100 * Math.max(...total) * 1.05, height - BOTTOM, TOP);
    const parts = frame(x, y, "return", "share of cases (%)", width, height, LEFT), marks = [];
    total.forEach((t, i) => {
      const from = x(o.edges[i]) + 0.5, wider = Math.max(1, x(o.edges[i + 1]) - x(o.edges[i]) - 1), low = y(0), middle = y(100 * o.common[i]);
      if (o.common[i] > 1e-6) parts.push(draw("rect", { class: "bar", x: from, width: wider, y: middle, height: low - middle }));
      const tall = Math.max(y(100 * o.common[i]) - y(100 * t), o.rare[i] > 2e-4 ? 3 : 0); // so that what is rare can be seen
      if (tall) parts.push(draw("rect", { class: "rare", x: from, width: wider, y: middle - tall, height: tall }));
      marks.push({ x: from + wider / 2, y: middle - tall, flat: true, text: `${number(o.edges[i])} to ${number(o.edges[i + 1])}\n${percent(t)} of cases${o.rare[i] > 1e-6 ? `, ${percent(o.rare[i])} by rare events` : ""}` });
    });
    parts.push(draw("line", { class: "at", x1: x(data.best.mean), x2: x(data.best.mean), y1: TOP, y2: height - BOTTOM }));
    const worse = data.direction === "maximize" ? "below" : "above";
    const text = o.rare_mean === null ? `One case in twenty is ${worse} ${number(o.worst)}.`
      : `Without rare events the return is ${number(o.common_mean)} on average. With one (${percent(rare)} of cases) it is ${number(o.rare_mean)}. One case in twenty is ${worse} ${number(o.worst)}.`;
    return section("outcomes", "What may come of the recommended policy", "The believed shares of the returns over all environments, each as often as it happens. Rare events are orange; very small shares are drawn a little taller, so that they can be seen. "
      + "The dashed line is the expected return. A bar is spread where the return in an environment is not known well.",
      el("div", { class: "card" }, chart("Believed shares of the returns of the recommended policy.", parts, marks, width, height), el("p", { id: "outcomes-says" }, text)));
  }

  /** The values at which colours change: each colour covers as much of the picture. */
  function steps(flat) {
    const sorted = [...flat].sort((a, b) => a - b);
    return Array.from({ length: LEVELS + 1 }, (_, i) => sorted[Math.round((i / LEVELS) * (sorted.length - 1))]);
  }
  /** A picture of the surface, in steps of colour, which show as contours. */
  function painted(s, ends) {
    const canvas = document.createElement("canvas"), rows = s.mean.length, columns = s.mean[0].length;
    canvas.width = 300;
    canvas.height = 240;
    const context = canvas.getContext("2d"), picture = context.createImageData(canvas.width, canvas.height);
    const place = (share, count) => { // few values are steps of their own; between many, one is halfway to the next
      if (count < 12) { const i = Math.min(count - 1, Math.floor(share * count)); return [i, i, 0]; }
      const at = share * (count - 1), i = Math.min(count - 2, Math.floor(at));
      return [i, i + 1, at - i];
    };
    for (let v = 0; v < canvas.height; v += 1) {
      const [b, t, f] = place(1 - (v + 0.5) / canvas.height, rows);
      for (let u = 0; u < canvas.width; u += 1) {
        const [l, r, g] = place((u + 0.5) / canvas.width, columns);
        const mean = (1 - f) * ((1 - g) * s.mean[b][l] + g * s.mean[b][r]) + f * ((1 - g) * s.mean[t][l] + g * s.mean[t][r]);
        let level = 0;
        while (level < LEVELS - 1 && mean >= ends[level + 1]) level += 1;
        picture.data.set([...colour((level + 0.5) / LEVELS, true), 255], 4 * (v * canvas.width + u));
      }
    }
    context.putImageData(picture, 0, 0);
    return canvas.toDataURL();
  }

  function surface(data) {
    const s = data.surface;
    if (!s) return null;
    const width = wide(760), height = Math.min(460, Math.max(300, 0.62 * width)), right = width - 84;
    const scale = (values, from, to, log) => {
      if (values.length >= 12) { const f = linear(values[0], values[values.length - 1], from, to, log); return { f, at: f }; }
      const f = categories(values.map(show), from, to);
      return { f, at: (v) => f(values.indexOf(v)) };
    };
    const x = scale(s.across, LEFT, right, s.logs[0]), y = scale(s.up, height - BOTTOM, TOP, s.logs[1]);
    const ends = steps(s.mean.flat()), best = new Map(data.best.policy);
    const names = ends.map((end, i) => (i % 3 ? "" : number(end)));
    const parts = [...frame(x.f, y.f, s.names[0], s.names[1], width, height, LEFT, width - right), ...colourBar(right + 14, TOP, height - BOTTOM - TOP, names),
      draw("image", { href: painted(s, ends), x: LEFT, y: TOP, width: right - LEFT, height: height - BOTTOM - TOP, preserveAspectRatio: "none" })];
    const [px, py] = s.names.map((name) => column(`policy.${name}`)), states = column("state"), seen = new Set();
    px.forEach((value, i) => {
      const cx = x.at(value), cy = y.at(py[i]), key = `${cx},${cy}`;
      if (states[i] === "pending" || seen.has(key) || !Number.isFinite(cx + cy)) return;
      seen.add(key);
      parts.push(draw("circle", { class: "simulated", cx, cy, r: 2.5 }));
    });
    parts.push(draw("circle", { class: "recommended", cx: x.at(best.get(s.names[0])), cy: y.at(best.get(s.names[1])), r: 7 }));
    const marks = s.up.flatMap((v, i) => s.across.map((u, j) => ({ x: x.at(u), y: y.at(v), text: `${s.names[0]} = ${show(u)}\n${s.names[1]} = ${show(v)}\nexpected return ${number(s.mean[i][j], 5)}` })));
    const others = s.others ? ` The ${s.others === 1 ? "other variable has its" : `${s.others} other variables have their`} recommended value${s.others === 1 ? "" : "s"}; these two were chosen because the return changes most along them.` : "";
    return section("surface", "Over two policy variables", `The believed expected return, in steps of colour. Each step covers as much of the picture, so that the best part can be seen however bad the worst is. Small dots are simulated policies, the ring is the recommended one.${others}`,
      el("div", { class: "card" }, chart(`Expected return over ${s.names.join(" and ")}.`, parts, marks, width, height)));
  }

  return { outcomes, surface };
}
