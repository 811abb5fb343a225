// The sections with charts; which runs they show, and the state of the switches, is page.js's.
'use strict';

const kStages = ['partition', 'A·X', 'waiting for batches', 'steps', 'validation', 'checkpoints', 'test', 'other'];
const stageColour = (stage) => {
  const i = kStages.indexOf(stage);
  return i < 0          ? colour('faint') :
      stage === 'other' ? colour('faint') :
                          ['#8d6cd1', '#b3941a', '#c0508e', '#3b7dd8', '#2a9d74', '#3fa3b5', '#e07b39'][i];
};

// Loss and F1.
function points(run, name, x = xAxis) {
  const made = [];
  run.curves[name].forEach((y, i) => {
    if (y !== null) made.push({x: run.curves[x][i], y});
  });
  return thin(made, data.runs.length > 12 ? 300 : 4000);
}
// The last tick is the end of the data: it has no text if that would touch the one before it.
const spaced = (format) => (value, i, ticks) =>
    (i > 1 && i === ticks.length - 1 && ticks[i].value - ticks[i - 1].value < 0.6 * (ticks[1].value - ticks[0].value) ?
         '' :
         format(value));
const xAxisOptions = (which) =>
    (which === 'epoch' ?
         axis('epoch', spaced(count), {min: 0, bounds: 'data', ticks: {precision: 0}, grid: {display: false}}) :
         axis(
             'seconds of training', spaced(figure),
             {min: 0, bounds: 'data', ticks: {includeBounds: false}, grid: {display: false}}));
const xTip = (which) => (which === 'epoch' ? (x) => `epoch ${count(x)}` : (x) => `after ${duration(x)} of training`);
const kLegendRuns = 8;  // of more runs the list above the charts is the legend
const noRuns = () => (shownRuns().length === 0 ? 'No run is selected.' : '');
function drawLearning() {
  const runs = shownRuns(), one = runs.length === 1, dashed = {borderDash: [5, 4], borderWidth: 1.5, pointRadius: 0};
  const name = scoreName(runs.length > 0 ? runs : data.runs), regression = name === 'R²';
  byId('score-name').textContent = name;
  byId('score-unit').textContent = {F1: one ? '%' : 'micro, %', 'R²': '', score: 'F1 or R²'}[name];
  const f1 = runs.map((run) => lineSet(one ? (regression ? 'R²' : 'micro F1') : run.name, colourOf(run), points(run, scoreCurve(run))));
  const loss = runs.map((run) => lineSet(one ? 'training' : run.name, colourOf(run), points(run, 'loss')));
  if (one) {
    f1.push(lineSet('macro F1', colour('faint'), points(runs[0], 'macro_f1'), dashed));
    const best = bestOf(runs[0]), at = best ? runs[0].curves.epoch.indexOf(best.epoch) : -1;
    if (best && runs[0].result)
      f1.push(lineSet('model that was kept', colour('good'), [{x: runs[0].curves[xAxis][at], y: best.score}], {
        pointRadius: 5,
        showLine: false,
        silent: true
      }));
    loss.push(lineSet('validation', colour('faint'), points(runs[0], 'validation_loss'), dashed));
  }
  const any = (curve) => data.runs.some((run) => run.curves[curve].some((value) => value !== null));
  setShown('chart-f1', any('f1') || any('r2'));
  setShown('chart-loss', any('loss'));
  for (const id of ['chart-f1', 'chart-loss']) setMissing(id, noRuns());
  byId('colours-note').hidden = runs.length <= kLegendRuns;
  const drawn = (sets) => sets.filter((set) => set.data.length > 0), more = {plugins: {legend: legend(runs.length <= kLegendRuns)}};
  const x = xAxisOptions(xAxis), best = Math.max(0, ...runs.map((run) => (bestOf(run) || {score: 0}).score));
  const range = fittedRange(f1.flatMap((set) => set.data.map((point) => point.y)), name === 'F1' ? 0 : -Infinity, 1), closeUp = Math.floor(90 * best) / 100;
  if (byId('close-up').checked && closeUp > (range.min || 0)) range.min = closeUp;
  setLines('chart-f1', drawn(f1), {
    x,
    y: axis('', (v) => figure(name === 'F1' ? 100 * v : v), {...range, ticks: {maxTicksLimit: 8}}),
    xTip: xTip(xAxis),
    yTip: (v) => (name === 'F1' ? percent(v) : v.toFixed(4)),
    more
  });
  setLines('chart-loss', drawn(loss), {
    x,
    y: {
      type: byId('log-loss').checked ? 'logarithmic' : 'linear',
      ...axis('', (v) => figure(v), {ticks: {maxTicksLimit: 7}})
    },
    xTip: xTip(xAxis),
    yTip: figure,
    more
  });
}

// Seconds by stage: one bar per stage for one run, one stacked bar per run for several.
function drawStages() {
  const runs = shownRuns(), one = runs.length === 1, plot = byId('chart-stages').parentElement;
  const of = (run, stage) =>
      run.stages.filter((entry) => entry.stage === stage).reduce((sum, entry) => sum + entry.seconds, 0);
  const known = [
    ...kStages,
    ...new Set(
        runs.flatMap((run) => run.stages.map((entry) => entry.stage)).filter((stage) => !kStages.includes(stage)))
  ];
  const stages = known.filter((stage) => runs.some((run) => of(run, stage) > 0));
  plot.style.height = !one && runs.length > 8 ? `${90 + 24 * runs.length}px` : '';
  setShown('chart-stages', data.runs.some((run) => kStages.some((stage) => of(run, stage) > 0)));
  setMissing('chart-stages', noRuns());
  const bars = {maxBarThickness: 22, borderRadius: 2};
  const datasets = one ?
      [{
        data: stages.map((stage) => of(runs[0], stage)),
        backgroundColor: stages.map(stageColour),
        valueText: duration,
        ...bars
      }] :
      stages.map(
          (stage) =>
              ({label: stage, data: runs.map((run) => of(run, stage)), backgroundColor: stageColour(stage), ...bars}));
  setChart(
      'chart-stages', 'bar', datasets, one ? stages : runs.map((run) => shorten(run.name, 18)), {
        indexAxis: 'y',
        interaction: {mode: 'index', axis: 'y', intersect: false},
        plugins: {legend: legend(!one, false)},
        scales: {
          x: axis('', (v) => figure(v), {stacked: !one}),
          y: axis('', undefined, {stacked: !one, grid: {display: false}, ticks: {autoSkip: false}})
        },
      },
      (items) => {
        if (one)
          return {
            head: '',
            rows:
                items.map((item) => ({
                            colour: stageColour(stages[item.dataIndex]),
                            label: stages[item.dataIndex],
                            value: `${duration(item.raw)}  (${
                                percent(item.raw / runs[0].stages.reduce((sum, entry) => sum + entry.seconds, 0), 1)})`
                          }))
          };
        return {
          head: runs[items[0].dataIndex].name,
          rows: items.filter((item) => item.raw > 0).map((item) => ({
                                                           colour: item.dataset.backgroundColor,
                                                           label: item.dataset.label,
                                                           value: duration(item.raw)
                                                         }))
        };
      });
}

function drawMemory() {
  const runs = shownRuns(), lines = [], budgeted = runs.every((run) => run.environment.memory_budget_bytes > 0);
  const limit = budgeted ? 'memory_budget_bytes' : 'memory_bytes';
  const ceiling = Math.max(0, ...runs.map((run) => run.environment[limit] || 0));
  let top = 0, end = 0;
  for (const run of runs) {
    lines.push(lineSet(runs.length === 1 ? 'resident' : run.name, colourOf(run), points(run, 'resident', 'seconds')));
    if (runs.length === 1)
      lines.push(lineSet(
          'peak so far', colour('faint'), points(run, 'peak', 'seconds'),
          {borderDash: [4, 4], borderWidth: 1.5, pointRadius: 0}));
    top = Math.max(top, peakOf(run) || 0);
    end = Math.max(end, trainedFor(run));
  }
  setShown('chart-memory', data.runs.some((run) => run.curves.resident.some((value) => value !== null)));
  setMissing('chart-memory', noRuns());
  if (!ceilingChosen) byId('show-ceiling').checked = ceiling > 0 && top > ceiling / 4;
  if (byId('show-ceiling').checked && ceiling > 0)
    lines.push(lineSet(
        budgeted ? 'budget (--memory)' : 'limit of the machine', colour('warn'),
        [{x: 0, y: ceiling}, {x: end, y: ceiling}], {pointRadius: 0, borderWidth: 1.5, silent: true}));
  setLines('chart-memory', lines, {
    x: xAxisOptions('seconds'),
    y: axis(
        '', (v) => bytes(v),
        {min: 0, ticks: {stepSize: byteStep(Math.max(top, byId('show-ceiling').checked ? ceiling : 0) / 5)}}),
    xTip: xTip('seconds'),
    yTip: bytes,
    more: {plugins: {legend: legend(runs.length <= kLegendRuns)}}
  });
  byId('memory-note').textContent = top > 0 && ceiling > 0 ?
      `Peak ${bytes(top)}: ${percent(top / ceiling, 1)} of the ${
          bytes(ceiling)} that ${budgeted ? '--memory' : 'the machine, or its control group,'} allows.` :
      '';
}

// Clusters of one run.
function drawClusters(run) {
  const clusters = run.clusters;
  for (const id of ['chart-sizes', 'chart-blocks']) setShown(id, Boolean(clusters));
  setShown('chart-entropy', Boolean(clusters && clusters.label_entropy));
  if (!clusters) return;
  const entropy = clusters.label_entropy, batch = clusters.batch;
  byId('cluster-tiles')
      .replaceChildren(
          tile(
              'Clusters', count(clusters.clusters),
              `${count(batch.clusters)} per batch, ${count(batch.batches)} batches per epoch`),
          tile(
              'Edges within clusters', percent(clusters.links_kept_share, 1),
              `${count(clusters.links_cut)} of ${count(clusters.links)} cut`),
          tile(
              'Edges within batches', percent(batch.entries_share, 1),
              `${count(Math.round(batch.mean_nodes))} nodes per batch`),
          tile(
              'Balance', clusters.balance.toFixed(3),
              `largest / mean; ${count(clusters.smallest_cluster)} to ${count(clusters.largest_cluster)} nodes`),
          ...(entropy ? [tile(
                            'Label entropy', `${entropy.mean.toFixed(2)} bits`,
                            `random clusters: ${entropy.random_mean.toFixed(2)} bits`)] :
                        []),
          ...(clusters.levels ? [tile(
                                    'Levels', count(clusters.levels.length),
                                    clusters.levels.map((level) => count(level.nodes)).join(' → ') + ' nodes')] :
                                []));
  const sizes = clusters.sizes, low = (i) => sizes.low + i * sizes.width;
  const range = (i) => (sizes.width === 1 ? count(low(i)) : `${count(low(i))} – ${count(low(i + 1) - 1)}`);
  const bars = {categoryPercentage: 0.94, barPercentage: 1, maxBarThickness: 60, borderRadius: 2};
  const whole = axis('clusters', undefined, {ticks: {precision: 0}, beginAtZero: true});
  setChart(
      'chart-sizes', 'bar', [{label: 'clusters', data: sizes.counts, backgroundColor: kHues[0], ...bars}],
      sizes.counts.map((_, i) => count(low(i))), {
        interaction: {mode: 'index', intersect: false},
        scales: {x: axis('nodes', undefined, {grid: {display: false}}), y: whole}
      },
      (items) => ({
        head: `${range(items[0].dataIndex)} nodes`,
        rows: [{colour: kHues[0], label: 'clusters', value: count(items[0].raw)}]
      }));
  if (entropy) {
    const random = isDark() ? '#5b6576' : '#b9c0cb', edge = (i) => (i * entropy.width).toFixed(2);
    setChart(
        'chart-entropy', 'bar',
        [
          {label: 'clusters', data: entropy.own, backgroundColor: kHues[0], grouped: false, ...bars, barPercentage: 0.55, maxBarThickness: 33},
          {label: 'random clusters of the same sizes', data: entropy.random, backgroundColor: random, grouped: false, ...bars}
        ],
        entropy.own.map((_, i) => edge(i)), {
          interaction: {mode: 'index', intersect: false},
          scales: {x: axis('bits', undefined, {grid: {display: false}}), y: whole},
          plugins: {legend: legend(true, false)},
        },
        (items) => ({
          head: `${edge(items[0].dataIndex)} – ${edge(items[0].dataIndex + 1)} bits`,
          rows: items.map(
              (item) => ({colour: item.dataset.backgroundColor, label: item.dataset.label, value: count(item.raw)}))
        }));
  }
  drawBlocks(clusters.blocks);
}
function drawBlocks(blocks) {
  const n = blocks.nodes.length,
        density = (r, c) => blocks.entries[r * n + c] / Math.max(1, blocks.nodes[r] * blocks.nodes[c]);
  let least = Infinity, most = 0;
  for (let r = 0; r < n; r++)
    for (let c = 0; c < n; c++)
      if (density(r, c) > 0) {
        least = Math.min(least, density(r, c));
        most = Math.max(most, density(r, c));
      }
  const span = Math.log(most / least) || 1;
  const group = (g) =>
      (blocks.first_cluster[g + 1] - blocks.first_cluster[g] === 1 ?
           `${blocks.first_cluster[g]}` :
           `${blocks.first_cluster[g]}–${blocks.first_cluster[g + 1] - 1}`);
  setHeatMap('chart-blocks', {
    rows: n,
    columns: n,
    share: (r, c) => (density(r, c) > 0 ? (n === 1 ? 1 : Math.log(density(r, c) / least) / span) : null),
    tip: (r, c) => ({
      head: r === c ? `within cluster ${group(r)}` : `clusters ${group(r)} and ${group(c)}`,
      rows: [
        {label: 'entries of A', value: count(blocks.entries[r * n + c])},
        {label: 'of all possible', value: `${figure(100 * density(r, c))} %`}
      ]
    }),
  });
  if (most > 0)
    showScale('blocks-scale', [`${(100 * least).toPrecision(2)} %`, `${(100 * most).toPrecision(2)} %, logarithmic`]);
  else
    byId('blocks-scale').hidden = true;
}
