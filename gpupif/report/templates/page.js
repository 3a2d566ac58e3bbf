"use strict";
const figures = JSON.parse(document.getElementById("figures").textContent);
const dark = matchMedia("(prefers-color-scheme: dark)");
const PRINTED = 680;
const element = (name, attributes = {}, ...children) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
};

// Colours of figures: heat maps go from near the background to what differs most from it, so that they need no hue.
const themed = (figure, print) => {
  const night = dark.matches && !print;
  const [text, line] = night ? ["#e6edf3", "#30363d"] : ["#1b1f24", "#d0d7de"];
  const scale = night
    ? [[0, "#15283a"], [0.5, "#2f7fb5"], [1, "#eaf6ff"]]
    : [[0, "#e6f0f8"], [0.5, "#4f9bd0"], [1, "#06203f"]];
  const axis = (own = {}) => ({ gridcolor: line, linecolor: line, zerolinecolor: line, ...own });
  const many = figure.data.length > 1;
  const layout = {
    ...figure.layout,
    xaxis: axis(figure.layout.xaxis), yaxis: axis(figure.layout.yaxis),
    shapes: (figure.layout.shapes || []).map((shape) => ({ ...shape, line: { color: text, dash: "dot", width: 1.5 } })),
    annotations: (figure.layout.annotations || []).map((note) => ({ ...note, bgcolor: night ? "#0d1117" : "#ffffff" })),
    font: { color: text, size: 12, family: "system-ui, sans-serif" },
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", autosize: !print,
    margin: { l: 10, r: 10, t: many ? 40 : 16, b: 10 },
    colorway: night ? ["#8b949e", "#58a6ff", "#ffa657", "#7ee787"] : ["#8c959f", "#0969da", "#bc4c00", "#1a7f37"],
    showlegend: many, legend: { orientation: "h", x: 0, y: 1, yanchor: "bottom" }, dragmode: false,
    ...(print ? { width: PRINTED } : {}),
  };
  if (!many && figure.data[0].type !== "heatmap") layout.colorway = layout.colorway.slice(1);
  const data = figure.data.map((trace) => trace.type === "heatmap"
    ? { ...trace, colorscale: scale, text: trace.bands ? trace.z.map((row, i) => row.map(() => trace.bands[i])) : trace.text }
    : trace);
  return [data, layout, { displayModeBar: false, responsive: !print }];
};
// A figure is drawn when it comes near to what is seen, since all at once would take a phone seconds.
const seen = new Set();
const draw = (print) => figures.forEach((figure, i) => {
  if (print || seen.has(i)) Plotly.react(`figure-${i}`, ...themed(figure, print));
});
dark.addEventListener("change", () => draw(false));
addEventListener("beforeprint", () => draw(true));
addEventListener("afterprint", () => { figures.forEach((_, i) => seen.add(i)); draw(false); });

// The landscape shows medians or highest values; both are in its hover.
figures.forEach((figure, i) => {
  const [trace] = figure.data;
  if (!trace.bands) return;
  const { z: median, customdata: highest } = trace;
  trace.hovertemplate = trace.hovertemplate.replace("%{z}", "%{customdata[0]}").replace("%{customdata}", "%{customdata[1]}");
  trace.customdata = median.map((row, band) => row.map((value, column) => [value, highest[band][column]]));
  const id = `shown-${i}`;
  const select = element("select", { id }, element("option", {}, "median"), element("option", {}, "highest"));
  select.addEventListener("change", () => { trace.z = select.value === "median" ? median : highest; draw(false); });
  const bar = element("div", { class: "bar" }, element("label", { for: id }, "CIG of the cells of a band: ", select));
  document.getElementById(`figure-${i}`).parentElement.before(bar);
});
// Prior and posterior of one cell, the riskiest or the one that the reader chooses; the caption says the figures.
figures.forEach((figure, i) => {
  if (!figure.choices) return;
  const id = `cell-${i}`, box = document.getElementById(`figure-${i}`), caption = box.parentElement.querySelector("figcaption");
  const select = element("select", { id }, ...figure.choices.map(({ name }, place) => element("option", { value: place }, name)));
  caption.setAttribute("aria-live", "polite");
  select.addEventListener("change", () => {
    Object.assign(figure, figure.choices[select.value]);
    box.setAttribute("aria-label", figure.said);
    box.style.minHeight = `${figure.layout.height}px`;
    caption.textContent = figure.said;
    draw(false);
  });
  box.parentElement.before(element("div", { class: "bar" }, element("label", { for: id }, "Cell: ", select)));
});
const near = new IntersectionObserver((entries) => entries.filter((entry) => entry.isIntersecting).forEach(({ target }) => {
  const i = Number(target.id.slice("figure-".length));
  near.unobserve(target);
  seen.add(i);
  Plotly.react(target, ...themed(figures[i], false));
}), { rootMargin: "400px" });
figures.forEach((figure, i) => {
  const box = document.getElementById(`figure-${i}`);
  box.style.minHeight = `${figure.layout.height}px`;
  near.observe(box);
});

// Tables are sorted, filtered and exported; text that a spreadsheet would run as a formula is exported with a quote.
const quoted = (text) => `"${(/^[=+\-@\t\r]/.test(text) && isNaN(text) ? `'${text}` : text).replaceAll('"', '""')}"`;
document.querySelectorAll(".tools").forEach((box, place) => {
  const table = box.querySelector("table"), body = table.tBodies[0], heads = [...table.tHead.rows[0].cells];
  const key = (row, column) => row.cells[column].dataset.number ?? row.cells[column].textContent;
  heads.forEach((head, column) => {
    const button = element("button", { type: "button" }, head.textContent);
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") !== "descending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const order = (a, b) => key(a, column).localeCompare(key(b, column), undefined, { numeric: true });
      const numeric = [...body.rows].some((row) => row.cells[column].dataset.number !== undefined);
      const value = (row) => (key(row, column) === "" ? -Infinity : Number(key(row, column)));
      const rows = [...body.rows].sort((a, b) => (numeric ? value(a) - value(b) || 0 : order(a, b)) * (down ? -1 : 1));
      body.append(...rows);
    });
  });
  const filter = element("input", { type: "search", id: `filter-${place}` });
  filter.addEventListener("input", () => {
    const wanted = filter.value.toLowerCase();
    for (const row of body.rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
  });
  const save = element("button", { type: "button" }, "Save as CSV");
  save.addEventListener("click", () => {
    const rows = [table.tHead.rows[0], ...[...body.rows].filter((row) => !row.hidden)];
    const text = rows.map((row) => [...row.cells].map((cell) => quoted(cell.dataset.number ?? cell.textContent)).join(",")).join("\r\n");
    const link = element("a", { href: URL.createObjectURL(new Blob([text], { type: "text/csv" })), download: `table-${place + 1}.csv` });
    link.click();
    URL.revokeObjectURL(link.href);
  });
  box.prepend(element("div", { class: "bar" }, element("label", { for: filter.id }, "Filter: ", filter), save));
});
