// The answers at the top of the report: the verdict, the best policies, and what ignoring rare events would cost.
function aloqAnswers(kit) {
  "use strict";
  const { el, draw, number, show, percent, chart, linear, padded, wide, clip, section, cell, exact } = kit;
  const WORDS = { settled: "Settled", improving: "Still improving", unseen: "Not enough looked at" };
  const ranged = (v) => (Array.isArray(v) ? `${number(v[0])} to ${number(v[1])}` : show(v));
  const listed = (pairs, sign = " = ") => pairs.map(([name, v]) => `${name}${sign}${ranged(v)}`).join(", ");

  function verdict(data) {
    const v = data.verdict;
    if (!v) return null;
    const width = data.best.high - data.best.low, share = percent(v.looked_at);
    const challenger = `the most promising other policy (${listed(v.challenger)})`;
    const more = v.word === "settled" ? `Nothing more is to be gained but ${number(v.gain, 2)}, which is expected of ${challenger}. That is little beside the interval of the expected return, ${number(width, 2)} wide.`
      : `The next 20 simulations may gain about ${number(v.gain, 2)}. So much is expected of ${challenger}, if it were simulated until its value is known.`;
    const holes = v.missing.map((m) => `${listed(m.values)} (${percent(m.probability)})`).join("; ");
    const looked = v.looked_at > 0.9999 ? "All of the environment was simulated near the recommended policy."
      : `${share} of the environment's probability was simulated near the recommended policy.${holes ? ` Never simulated there: ${holes}. What happens then is inferred from other policies.` : ""}`;
    return el("section", { class: `card verdict ${v.word}`, id: "verdict", "aria-label": "Verdict", "data-word": v.word },
      el("h2", {}, WORDS[v.word]),
      el("p", {}, v.word === "unseen" ? looked : more), el("p", {}, v.word === "unseen" ? more : looked),
      el("p", { class: "soft" }, "“Near” means that no policy variable differs by more than a tenth of its range, and the same for the environment. A choice must be equal."));
  }

  function changed(leader, best) {
    const own = new Map(leader.policy), theirs = new Map(best.policy), named = leader.differs.slice(0, 4);
    const text = named.map((name) => `${name} ${show(own.get(name))} (not ${show(theirs.get(name))})`).join(", ");
    return leader.differs.length > 4 ? `${text}, and ${leader.differs.length - 4} more` : text || "hardly at all";
  }
  function leaders(data) {
    if (data.leaders.length < 2) return null;
    const half = (l) => data.z90 * l.std, width = wide(1000), row = 26, left = 40, height = data.leaders.length * row + 46;
    const ends = padded(data.leaders.flatMap((l) => [l.mean - half(l), l.mean + half(l)])), x = linear(ends[0], ends[1], left, width - 14);
    const parts = x.ticks.map((t) => [draw("line", { class: "gridline", x1: x(t), x2: x(t), y1: 10, y2: height - 36 }), draw("text", { x: x(t), y: height - 21, "text-anchor": "middle" }, number(t))]).flat();
    parts.push(draw("text", { x: (left + width) / 2, y: height - 4, "text-anchor": "middle" }, "expected return, with its 90 % interval"));
    const marks = data.leaders.map((l, i) => {
      const y = 10 + row * (i + 0.5);
      parts.push(draw("text", { class: "strong", x: left - 10, y: y + 4, "text-anchor": "end" }, String(i + 1)));
      parts.push(draw("line", { class: "whisker", x1: x(l.mean - half(l)), x2: x(l.mean + half(l)), y1: y, y2: y }), draw("circle", { class: i ? "dot" : "dot best", cx: x(l.mean), cy: y, r: 5 }));
      return { x: x(l.mean), y, text: `${i + 1}: ${number(l.mean, 5)}\n${clip(listed(l.policy), 200)}` };
    });
    const heads = ["", "differs from the recommended policy in", "expected return", "90 % interval", "chance of being better", "simulations"];
    const rows = data.leaders.map((l, i) => el("tr", {}, exact(i + 1, String(i + 1)), cell(i ? changed(l, data.leaders[0]) : "(recommended)", { class: "wrap", title: listed(l.policy) }), exact(l.mean),
      cell(`${number(l.mean - half(l))} to ${number(l.mean + half(l))}`, { class: "number" }), l.chance === null ? cell("") : exact(l.chance, l.chance < 0.0005 ? "< 0.1 %" : percent(l.chance)), exact(l.simulations)));
    return section("leaders", "The best policies", "The policies with the best expected return among those that were simulated. Policies that are alike (no variable differs by more than a twentieth of its range) count as one. "
      + "If two are as good, choose the one that is easier to build.",
      el("div", { class: "card" }, chart("Expected returns of the best policies.", parts, marks, width, height),
        el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "The best policies" }, el("table", { id: "leaders-table" }, el("thead", {}, el("tr", {}, heads.map((h, i) => el("th", { scope: "col", class: i === 1 ? null : "number" }, h)))), el("tbody", {}, rows)))));
  }

  function heedless(data) {
    const h = data.heedless;
    if (!h) return null;
    const half = data.z90 * h.price_std;
    const about = `Rare events happen in ${percent(h.ignored)} of cases. These are the values of the environment beyond the likeliest ones, which make up 95 %.`;
    const text = h.same ? [el("p", {}, "Without them, the same policy would be recommended.")]
      : [el("p", {}, `Without them, this policy would be recommended: ${listed(h.policy)}. It would promise ${number(h.promised)}.`),
        el("p", {}, el("strong", { id: "price", "data-value": h.price }, h.price - half > 0 ? `With rare events it is worse than the recommended policy by ${number(h.price, 3)}` : `With rare events it is worse by ${number(h.price, 3)}, which is not certain`),
          ` (90 %: ${number(h.price - half, 3)} to ${number(h.price + half, 3)}): its expected return is ${number(h.mean)}.`)];
    return section("heedless", "What ignoring rare events would cost", about, el("div", { class: "card" }, text));
  }

  return { verdict, leaders, heedless };
}
