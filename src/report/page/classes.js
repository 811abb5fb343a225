// Classes and embeddings of one run.
'use strict';

// Scores per class of one run.
const kManyClasses = 30, kLowestClasses = 25, kCellNumbers = 16;
const isMultiLabel = (run) =>
    Boolean(run.result) && (run.result.multi_label ?? Boolean(run.classes && !run.classes.confusion));
const partName = {test: 'test', validation: 'validation', train: 'training'};
function drawClasses(run) {
  const classes = run.classes, multi = isMultiLabel(run);
  setShown('chart-precision', Boolean(classes) && multi);
  setShown('chart-confusion', Boolean(classes && classes.confusion));
  setShown('confused', Boolean(classes && classes.confusion) && classes.list.length > kCellNumbers);
  setShown('chart-classes', Boolean(classes));
  byId('label-tiles').hidden = !classes || !multi;
  byId('never-predicted').hidden = !run.result || !run.result.never_predicted;
  if (!classes) return;
  byId('never-predicted').textContent = run.result.never_predicted || '';
  byId('classes-part').textContent = `${partName[classes.part]} nodes${
      classes.list.length < classes.total ? `, the ${classes.list.length} largest of ${count(classes.total)}` : ''}`;
  drawClassBars(classes);
  if (multi) {
    drawLabelTiles(run);
    drawPrecision(classes);
  }
  if (classes.confusion) drawConfusion(classes);
}
function drawClassBars(classes) {
  const many = classes.list.length > kManyClasses, all = !many || byId('all-classes').checked;
  const list = all ? classes.list : [...classes.list].sort((a, b) => a.f1 - b.f1).slice(0, kLowestClasses);
  byId('all-classes-choice').hidden = !many;
  byId('classes-order').textContent = all ? '%, largest class first' : `%, the ${kLowestClasses} lowest`;
  byId('plot-classes').style.minHeight = `${Math.max(200, 40 + (list.length > 40 ? 16 : 21) * list.length)}px`;
  setChart(
      'chart-classes', 'bar', [{
        label: 'F1',
        data: list.map((entry) => 100 * entry.f1),
        backgroundColor: kHues[0],
        maxBarThickness: 16,
        borderRadius: 2,
        valueText: (v) => v.toFixed(1)
      }],
      list.map((entry) => shorten(entry.class, narrow() ? 14 : 22)), {
        indexAxis: 'y',
        interaction: {mode: 'index', axis: 'y', intersect: false},
        scales: {
          x: axis('', undefined, {min: 0, max: 100}),
          y: axis('', undefined, {grid: {display: false}, ticks: {autoSkip: false}})
        },
      },
      (items) => classTip(list[items[0].dataIndex]));
}
const classTip = (entry) => ({
  head: `class ${entry.class}`,
  rows: [
    {label: 'F1', value: percent(entry.f1), near: true}, {label: 'precision', value: percent(entry.precision)},
    {label: 'recall', value: percent(entry.recall)}, {label: 'nodes', value: count(entry.nodes)}
  ]
});

// Multi-label: how many labels nodes have and are given, and precision against recall.
function drawLabelTiles(run) {
  const {list, total} = run.classes, score = scoreOf(run), tiles = [];
  const predicted = (entry) => (entry.precision > 0 ? entry.recall * entry.nodes / entry.precision : 0);
  tiles.push(tile('Exact match', percent(score.accuracy), 'nodes with every label right'));
  if (list.length === total) {
    const sum = (of) => list.reduce((all, entry) => all + of(entry), 0) / Math.max(1, score.nodes);
    tiles.push(tile('Labels per node', sum((entry) => entry.nodes).toFixed(2), `predicted: ${sum(predicted).toFixed(2)}`));
  }
  const missed = list.filter((entry) => entry.nodes > 0 && entry.recall === 0).length;
  tiles.push(tile('Classes', count(total), missed > 0 ? `${count(missed)} never predicted right` : 'each predicted right at least once'));
  byId('label-tiles').replaceChildren(...tiles);
}
function drawPrecision({list}) {
  setChart(
      'chart-precision', 'scatter', [{
        label: 'classes',
        data: list.map((entry) => ({x: 100 * entry.recall, y: 100 * entry.precision})),
        backgroundColor: `${kHues[0]}b0`,
        pointRadius: 4,
        pointHoverRadius: 6,
        clip: 8
      }],
      undefined, {
        interaction: {mode: 'nearest', intersect: false},
        scales: {x: axis('recall', undefined, {min: 0, max: 100}), y: axis('precision', undefined, {min: 0, max: 100})}
      },
      (items) => classTip(list[items[0].dataIndex]));
}

function drawConfusion({confusion: counts, list}) {
  const totals = counts.map((row) => row.reduce((a, b) => a + b, 0)), labels = list.map((entry) => entry.class);
  if (labels.length < counts.length) labels.push('others');
  const share = (r, c) => (totals[r] > 0 ? counts[r][c] / totals[r] : 0);
  byId('confusion-card').classList.toggle('wide', counts.length > kCellNumbers);
  setHeatMap('chart-confusion', {
    rows: counts.length,
    columns: counts.length,
    labels,
    share: (r, c) => (counts[r][c] > 0 ? Math.sqrt(share(r, c)) : null),
    text: (r, c) => (counts.length <= kCellNumbers && share(r, c) >= 0.005 ? (100 * share(r, c)).toFixed(0) : ''),
    tip: (r, c) => ({
      head: r === c ? `${labels[r]}, predicted right` : `${labels[r]}, predicted as ${labels[c]}`,
      rows: [
        {label: 'nodes', value: `${count(counts[r][c])} of ${count(totals[r])}`},
        {label: 'share', value: totals[r] > 0 ? percent(share(r, c), 1) : '–'}
      ]
    }),
  });
  showScale('confusion-scale', ['0', '25 %', '100 % of the class']);
  const pairs = counts.flatMap((row, r) => row.map((n, c) => ({n, r, c}))).filter(({n, r, c}) => n > 0 && r !== c);
  pairs.sort((a, b) => b.n - a.n);
  fillTable(byId('confused'), ['Label', 'Predicted as', 'Nodes', 'Share'], pairs.slice(0, 12).map(({n, r, c}) => [
    labels[r], labels[c], count(n), percent(share(r, c), 1)
  ]));
}

// Regression: the value of a node is its colour. The scale leaves out the lowest and the highest twentieth.
function valueDots({x, y, values}, grey) {
  const known = values.filter((value) => value !== null).sort((a, b) => a - b);
  const at = (part) => known[Math.round(part * (known.length - 1))];
  const low = known.length > 0 ? at(0.05) : 0, high = known.length > 0 ? at(0.95) : 1;
  const share = (value) => (high > low ? Math.min(Math.max((value - low) / (high - low), 0), 1) : 0.5);
  const shade = (at) => heat(0.2 + 0.8 * at);  // the palest would not be seen
  showScale('embeddings-scale', [low, (low + high) / 2, high].map(figure), shade);
  return [{
    label: 'nodes',
    data: x.map((_, i) => ({x: x[i], y: y[i], value: values[i]})),
    backgroundColor: values.map((value) => (value === null ? grey : shade(share(value)))),
    pointRadius: x.length > 600 ? 2.5 : 3.5,
    pointHoverRadius: 5
  }];
}

// The class that comes nearest to half of the nodes: one that nearly all have shows nothing.
function mostDivided({class_names: names = [], classes}) {
  const off = (c) => Math.abs(classes.filter((own) => own.includes(c)).length - classes.length / 2);
  return names.map((_, c) => c).reduce((a, b) => (off(b) < off(a) ? b : a), 0);
}

// The last hidden layer of one run.
function drawEmbeddings(run) {
  const picture = run.embeddings, multi = isMultiLabel(run);
  setShown('chart-embeddings', Boolean(picture));
  if (!picture) return;
  const {x, y, values, classes, class_names: names = []} = picture;
  const asked = names.indexOf(byId('picture-class').value), chosen = asked >= 0 ? asked : mostDivided(picture);
  byId('embeddings-part').textContent = x.length < picture.nodes ?
      `${count(x.length)} of ${count(picture.nodes)} ${partName[picture.part]} nodes` :
      `${count(x.length)} ${partName[picture.part]} nodes`;
  byId('picture-class-choice').hidden = !multi;
  byId('embeddings-scale').hidden = !values;
  if (multi) {
    byId('picture-class').replaceChildren(...names.map((name) => make('option', '', name)));
    byId('picture-class').value = names[chosen];
  }
  const at = (keep) => x.map((_, i) => i).filter(keep).map((i) => ({x: x[i], y: y[i]}));
  const dots = (label, fill, keep) => ({
    label,
    data: at(keep),
    backgroundColor: `${fill}b8`,
    pointRadius: x.length > 600 ? 2.5 : 3.5,
    pointHoverRadius: 5
  });
  const grey = isDark() ? '#727c8c' : '#a9b0bc';
  const sets = values ? valueDots(picture, grey) : multi ?
      [
        dots('without the class', grey, (i) => !classes[i].includes(chosen)),
        dots(`class ${names[chosen]}`, kHues[1], (i) => classes[i].includes(chosen))
      ] :
      [
        dots('other classes', grey, (i) => classes[i].length === 0),
        ...names.map((name, c) => dots(name, classColour(c), (i) => classes[i].includes(c)))
      ];
  const axisOf = (k) => axis(
      `component ${k + 1}: ${percent(picture.share[k], 1)} of the variance`, figure,
      {...fittedRange(k === 0 ? x : y), ticks: {maxTicksLimit: 7}});
  const list = legend(!values, false);
  setChart(
      'chart-embeddings', 'scatter', sets.filter((set) => set.data.length > 0), undefined, {
        interaction: {mode: 'nearest', intersect: true},
        plugins: {legend: {...list, labels: {...list.labels, usePointStyle: true, pointStyle: 'circle', boxWidth: 8, boxHeight: 8}}},
        scales: {x: axisOf(0), y: axisOf(1)}
      },
      (items) => ({
        head: values ? `value ${items[0].raw.value === null ? 'unknown' : figure(items[0].raw.value)}` :
            multi    ? items[0].dataset.label :
                       `class ${items[0].dataset.label}`,
        rows: [
          {label: 'component 1', value: figure(items[0].parsed.x)}, {label: 'component 2', value: figure(items[0].parsed.y)}
        ]
      }));
}
