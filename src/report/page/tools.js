// What the page's charts share: text, colours, the box that follows the pointer, line charts, bars, heat maps.
'use strict';

const byId = (id) => document.getElementById(id);

// All text goes in as text: a name is never read as HTML.
function make(tag, className, text) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
}

// Text as people read it.
const count = (n) => n.toLocaleString('en-GB');
const percent = (share, digits = 2) => `${(100 * share).toFixed(digits)} %`;
function figure(value) {
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) return value.toExponential(2);
  return value.toLocaleString('en-GB', {maximumSignificantDigits: 4});
}
function duration(seconds) {
  if (seconds < 0.0995) return `${(1000 * seconds).toFixed(seconds < 0.00995 ? 1 : 0)} ms`;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds), two = (n) => String(n).padStart(2, '0');
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${two(whole % 60)} s`;
  return `${Math.floor(whole / 3600)} h ${two(Math.floor((whole % 3600) / 60))} min`;
}
function bytes(n) {
  let unit = 0;
  while (n >= 999.5 && unit < 5) {
    n /= 1024;
    unit++;
  }
  return `${unit === 0 || n >= 99.95 ? n.toFixed(0) : n.toFixed(1)} ${['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'][unit]}`;
}
// The next round number of bytes: 1, 2, 5, 10 … of a unit.
function byteStep(n) {
  let unit = 1;
  while (n / unit >= 1000) unit *= 1024;
  const power = 10 ** Math.floor(Math.log10(Math.max(n / unit, 1)));
  return unit * power * [1, 2, 5, 10].find((step) => step * power >= n / unit);
}
const shorten = (text, most = 22) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

// Colours: the theme's from the style sheet; a run keeps its own in both themes.
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
const kHues = ['#3b7dd8', '#e07b39', '#2a9d74', '#c0508e', '#8d6cd1', '#b3941a', '#3fa3b5', '#d1495b'];
const runColour = (i) => (i < kHues.length ? kHues[i] : `hsl(${(i * 137.5) % 360} 55% 52%)`);
const classColour = (i) => [...kHues, '#7a5230', '#9bb31f', '#5b6fb0', '#e39ab8'][i];
const isDark = () => document.documentElement.dataset.theme === 'dark';

function heat(share) {
  const stops = isDark() ? [[34, 42, 56], [45, 96, 178], [126, 178, 250], [235, 243, 255]] :
                           [[236, 241, 249], [142, 183, 238], [47, 111, 208], [12, 38, 92]];
  const at = Math.min(Math.max(share, 0), 1) * (stops.length - 1), i = Math.min(Math.floor(at), stops.length - 2);
  return `rgb(${stops[i].map((low, k) => Math.round(low + (stops[i + 1][k] - low) * (at - i))).join(' ')})`;
}
// Texts at even distances along a bar of the heat map's colours.
function showScale(id, texts, colourOf = heat) {
  const bars = texts.slice(1).map((_, i) => {
    const bar = make('i'), at = (k) => colourOf((i + k / 3) / (texts.length - 1));
    bar.style.background = `linear-gradient(90deg, ${[0, 1, 2, 3].map(at).join(', ')})`;
    return bar;
  });
  byId(id).replaceChildren(...texts.flatMap((text, i) => [...(i > 0 ? [bars[i - 1]] : []), make('span', '', text)]));
}
const narrow = () => document.documentElement.clientWidth < 600;

// A table. If its columns do not fit, rows and columns change places (`turns`, for few rows), or its rows become cards.
// A cell is text, or an element.
const tables = new Map(), kMostTurnedRows = 4;
function fillTable(table, titles, rows, turns = false) {
  const cells = rows.map((row) => row.map((content, i) => {
    const cell = content instanceof Element ? content : make('td', '', content);
    cell.dataset.title = titles[i];
    return cell;
  }));
  table.parentElement.classList.toggle('whole', rows.length <= 8);  // of many rows a part is seen
  tables.set(table, {titles, cells, turns: turns && rows.length <= kMostTurnedRows});
  foldTable(table);
}
function foldTable(table) {
  const {titles, cells, turns} = tables.get(table);
  const line = (content) => {
    const row = make('tr');
    row.append(...content);
    return row;
  };
  const head = () => titles.map((title) => make('th', '', title));
  const fits = () => table.offsetWidth <= table.parentElement.clientWidth;
  const arrange = (form, rows) => {
    table.className = form;
    table.replaceChildren(...rows.map(line));
    return fits();
  };
  if (arrange('', [head(), ...cells])) return;
  if (turns && arrange('turned', titles.map((_, i) => [head()[i], ...cells.map((row) => row[i])]))) return;
  arrange('folded', [head(), ...cells]);
}

// The box that follows the pointer. rows: {colour, label, value, near}
function showTip(x, y, head, rows) {
  const tip = byId('tip');
  tip.replaceChildren(...(head ? [make('div', 'head', head)] : []));
  for (const row of rows) {
    const line = make('div', row.near ? 'row near' : 'row');
    if (row.colour) line.append(make('span', 'dot'));
    if (row.colour) line.firstChild.style.background = row.colour;
    line.append(make('span', 'label', row.label), make('b', '', row.value));
    tip.append(line);
  }
  tip.hidden = false;
  const box = tip.getBoundingClientRect(), wide = document.documentElement.clientWidth;
  const left = x + 16 + box.width > wide - 8 ? x - 16 - box.width : x + 16;
  tip.style.left = `${Math.max(8, Math.min(left, wide - box.width - 8))}px`;
  tip.style.top = `${Math.max(8, Math.min(y - box.height / 2, window.innerHeight - box.height - 8))}px`;
}
function hideTip() {
  byId('tip').hidden = true;
}

// A card without data is left out, and so is a section without cards; the cards that are left share the width.
function setShown(id, shown) {
  const card = byId(id).closest('.card'), grid = card.parentElement;
  card.hidden = !shown;
  const left = [...grid.children].filter((other) => !other.hidden);
  grid.classList.toggle('alone', left.length === 1);
  grid.classList.toggle('pair', left.length === 2);
  grid.closest('section').hidden = left.length === 0;
}
const legend = (display, lines = true) => ({
  display,
  position: 'bottom',
  labels: {color: colour('soft'), boxWidth: lines ? 22 : 11, boxHeight: lines ? 0 : 11, font: {size: 12}}
});
// The ends of an axis that fits all values, on round numbers; not below `least` or above `most`.
function fittedRange(values, least = -Infinity, most = Infinity) {
  if (values.length === 0) return {};
  const low = Math.min(...values), high = Math.max(...values), span = (high - low) / 5 || Math.abs(high) / 50 || 0.01;
  const power = 10 ** Math.floor(Math.log10(span)), step = power * [1, 2, 2.5, 5, 10].find((n) => n * power >= span);
  return {
    min: Math.max(least, Math.floor(low / step + 1e-9) * step),
    max: Math.min(most, Math.ceil(high / step - 1e-9) * step || step)
  };
}

// Says in a chart's place why there is nothing to see: every run is switched off.
function setMissing(id, why) {
  const plot = byId(id).parentElement;
  plot.classList.toggle('missing', Boolean(why));
  let text = plot.querySelector('.why');
  if (!text) plot.append(text = make('div', 'why'));
  text.textContent = why || '';
}

// For each line the point nearest to the pointer's x; lines that have none near it are left out.
Chart.Interaction.modes.column = (chart, event) => {
  const scale = chart.scales.x, area = chart.chartArea, found = [];
  if (!area || event.x < area.left - 2 || event.x > area.right + 2) return found;
  const x = scale.getValueForPixel(event.x);
  chart.data.datasets.forEach((dataset, datasetIndex) => {
    const points = dataset.data;
    if (!chart.isDatasetVisible(datasetIndex) || dataset.silent || points.length === 0) return;
    let low = 0, high = points.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (points[middle].x < x)
        low = middle + 1;
      else
        high = middle;
    }
    const index = low > 0 && x - points[low - 1].x < points[low].x - x ? low - 1 : low;
    if (Math.abs(scale.getPixelForValue(points[index].x) - event.x) > 40) return;
    found.push({element: chart.getDatasetMeta(datasetIndex).data[index], datasetIndex, index});
  });
  return found;
};
const crosshair = {
  id: 'crosshair',
  afterDatasetsDraw(chart) {
    const active = chart.getActiveElements();
    if (active.length === 0 || chart.config.type !== 'line') return;
    const {ctx, chartArea} = chart;
    ctx.save();
    ctx.strokeStyle = colour('faint');
    ctx.setLineDash([3, 3]);
    ctx.beginPath();
    ctx.moveTo(active[0].element.x, chartArea.top);
    ctx.lineTo(active[0].element.x, chartArea.bottom);
    ctx.stroke();
    ctx.restore();
  },
};

// The value at the end of each bar, if the first data set has valueText (options that are functions would be
// called).
const barValues = {
  id: 'barValues',
  afterDatasetsDraw(chart) {
    const text = chart.data.datasets.length > 0 && chart.data.datasets[0].valueText;
    if (!text) return;
    const {ctx} = chart;
    ctx.save();
    ctx.font = '12px system-ui, "DejaVu Sans", sans-serif';
    ctx.textBaseline = 'middle';
    chart.getDatasetMeta(0).data.forEach((bar, i) => {
      const label = text(chart.data.datasets[0].data[i]),
            inside = bar.x + ctx.measureText(label).width + 8 > chart.chartArea.right;
      ctx.fillStyle = inside ? '#fff' : colour('soft');
      ctx.textAlign = inside ? 'right' : 'left';
      ctx.fillText(label, bar.x + (inside ? -6 : 6), bar.y);
    });
    ctx.restore();
  },
};

const kShownRows = 10;
// describe(items) → {head, rows}; rows carry y, the pixel that tells which is nearest to the pointer.
function tipFrom(describe) {
  return ({chart, tooltip}) => {
    if (tooltip.opacity === 0 || !tooltip.dataPoints || tooltip.dataPoints.length === 0) return hideTip();
    const {head, rows} = describe(tooltip.dataPoints);
    const pointer = chart.pointerY === undefined ? tooltip.caretY : chart.pointerY;
    let shown = rows;
    if (rows.length > 1 && rows.every((row) => row.y !== undefined)) {
      const near = rows.reduce((a, b) => (Math.abs(b.y - pointer) < Math.abs(a.y - pointer) ? b : a));
      near.near = true;
      shown = [...rows].sort((a, b) => Math.abs(a.y - pointer) - Math.abs(b.y - pointer)).slice(0, kShownRows);
      shown.sort((a, b) => a.y - b.y);
    }
    if (shown.length < rows.length) shown.push({label: `and ${rows.length - shown.length} more`, value: ''});
    const box = chart.canvas.getBoundingClientRect();
    showTip(box.left + tooltip.caretX, box.top + pointer, head, shown);
  };
}

// Makes the chart, or gives an existing one new data.
function setChart(id, type, datasets, labels, options, describe) {
  const canvas = byId(id), existing = Chart.getChart(canvas);
  options = {
    animation: false,
    responsive: true,
    maintainAspectRatio: false,
    normalized: true,
    layout: {padding: {right: 14}},  // half of the last tick's text
    events: ['mousemove', 'mouseout', 'click', 'touchstart', 'touchmove'],
    onHover: (event, _, chart) => {
      chart.pointerY = event.y;
    },
    ...options,
    plugins: {
      legend: {display: false},
      decimation: {enabled: false},
      ...options.plugins,
      tooltip: {enabled: false, external: tipFrom(describe)}
    },
  };
  if (existing) {
    existing.data = {datasets, labels};
    existing.options = options;
    existing.update('none');
  } else {
    new Chart(canvas, {type, data: {datasets, labels}, options, plugins: [crosshair, barValues]});
  }
}
function axis(title, format, more = {}) {
  return {
    border: {display: false},
    grid: {color: colour('grid'), drawBorder: false, tickLength: 4, ...more.grid},
    title: {display: Boolean(title), text: title, color: colour('soft'), font: {size: 12}},
    ...more,
    ticks: {
      color: colour('soft'),
      font: {size: 12},
      maxRotation: 0,
      autoSkipPadding: 14,
      ...(format && {callback: format}),
      ...more.ticks
    },
  };
}
// Of a long line the lowest and the highest point of each of many stretches: it looks the same and is drawn faster.
function thin(points, most) {
  if (points.length <= most) return points;
  const kept = new Set([0, points.length - 1]), stretch = (2 * points.length) / most;
  for (let begin = 0; begin < points.length; begin += stretch) {
    let low = Math.floor(begin), high = low;
    for (let i = low; i < Math.min(begin + stretch, points.length); i++) {
      if (points[i].y < points[low].y) low = i;
      if (points[i].y > points[high].y) high = i;
    }
    kept.add(low).add(high);
  }
  return [...kept].sort((a, b) => a - b).map((i) => points[i]);
}
function lineSet(label, stroke, points, more = {}) {
  const dots = points.length <= 40 ? 2 : 0;
  return {
    label,
    data: points,
    parsing: false,
    borderColor: stroke,
    backgroundColor: stroke,
    borderWidth: 1.8,
    pointRadius: points.length === 1 ? 4 : dots,
    pointHoverRadius: 4,
    pointHitRadius: 0,
    tension: 0,
    spanGaps: true,
    ...more,
  };
}
function setLines(id, datasets, {x, y, xTip, yTip, more}) {
  setChart(
      id, 'line', datasets, undefined,
      {interaction: {mode: 'column', intersect: false}, scales: {x: {type: 'linear', ...x}, y}, ...more},
      (items) => ({
        head: xTip(items[0].raw.x),
        rows: items.map((item) => ({
                          colour: item.dataset.borderColor,
                          label: item.dataset.label,
                          value: yTip(item.raw.y),
                          y: item.element.y
                        })),
      }));
}

// A grid of squares. cells: {rows, columns, share(r, c): 0 … 1 or null, text(r, c), tip(r, c): {head, rows}, labels}
const heatMaps = new Map();
function setHeatMap(id, cells) {
  const canvas = byId(id);
  if (!heatMaps.has(id)) {
    new ResizeObserver(() => drawHeatMap(canvas)).observe(canvas.parentElement);
    canvas.addEventListener('pointermove', (event) => hoverHeatMap(canvas, event));
    canvas.addEventListener('pointerdown', (event) => hoverHeatMap(canvas, event));
    canvas.addEventListener('pointerleave', hideTip);
  }
  heatMaps.set(id, cells);
  drawHeatMap(canvas);
}
function drawHeatMap(canvas) {
  const cells = heatMaps.get(canvas.id), width = canvas.parentElement.clientWidth,
        ratio = Math.max(window.devicePixelRatio || 1, 1);
  if (!cells || width === 0) return;
  canvas.width = canvas.height = Math.round(width * ratio);
  canvas.style.width = canvas.style.height = `${width}px`;
  const pen = canvas.getContext('2d');
  pen.scale(ratio, ratio);
  pen.font = '12px system-ui, "DejaVu Sans", sans-serif';
  let margin = 0;
  if (cells.labels)
    margin =
        Math.min(width / 4, 10 + Math.max(...cells.labels.map((label) => pen.measureText(shorten(label, 14)).width)));
  const top = cells.labels ? 6 : 0;  // half of the first label's height
  const side = (width - margin - top) / Math.max(cells.rows, cells.columns), gap = side > 10 ? 1 : 0;
  cells.place = {margin, side, top};
  pen.translate(0, top);
  for (let r = 0; r < cells.rows; r++) {
    for (let c = 0; c < cells.columns; c++) {
      const share = cells.share(r, c);
      pen.fillStyle = share === null ? colour('empty') : heat(share);
      pen.fillRect(margin + c * side, r * side, side - gap + (gap ? 0 : 0.3), side - gap + (gap ? 0 : 0.3));
      const text = cells.text && cells.text(r, c);
      if (!text || pen.measureText(text).width > side - 6) continue;
      pen.fillStyle = (share > 0.45) !== isDark() ? '#fff' : isDark() && share > 0.6 ? '#0b1a33' : colour('soft');
      pen.textAlign = 'center';
      pen.textBaseline = 'middle';
      pen.fillText(text, margin + (c + 0.5) * side, (r + 0.5) * side);
    }
  }
  if (!cells.labels) return;
  pen.fillStyle = colour('soft');
  pen.textBaseline = 'middle';
  const every = Math.ceil(12 / side);  // as many as can be read
  cells.labels.forEach((label, i) => {
    if (i % every !== 0) return;
    pen.textAlign = 'right';
    pen.fillText(shorten(label, 14), margin - 6, (i + 0.5) * side, margin - 8);
    pen.save();
    pen.translate(margin + (i + 0.5) * side, cells.rows * side + 6);
    pen.rotate(-Math.PI / 2);
    pen.fillText(shorten(label, 14), 0, 0, margin - 8);
    pen.restore();
  });
}
function hoverHeatMap(canvas, event) {
  const cells = heatMaps.get(canvas.id), box = canvas.getBoundingClientRect();
  if (!cells || !cells.place) return;
  const c = Math.floor((event.clientX - box.left - cells.place.margin) / cells.place.side);
  const r = Math.floor((event.clientY - box.top - cells.place.top) / cells.place.side);
  if (r < 0 || c < 0 || r >= cells.rows || c >= cells.columns) return hideTip();
  const {head, rows} = cells.tip(r, c);
  showTip(event.clientX, event.clientY, head, rows);
}
