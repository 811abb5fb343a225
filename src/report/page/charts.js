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
const xAxisOptions = (which) =>
    (which === 'epoch' ?
         axis('epoch', undefined, {min: 0, bounds: 'data', ticks: {precision: 0}, grid: {display: false}}) :
         axis(
             'seconds of training', (value) => figure(value),
             {min: 0, bounds: 'data', ticks: {includeBounds: false}, grid: {display: false}}));
const xTip = (which) => (which === 'epoch' ? (x) => `epoch ${count(x)}` : (x) => `after ${duration(x)} of training`);
function drawLearning() {
  const runs = shownRuns(), one = runs.length === 1, dashed = {borderDash: [5, 4], borderWidth: 1.5, pointRadius: 0};
  const f1 = runs.map((run) => lineSet(one ? 'micro F1' : run.name, colourOf(run), points(run, 'f1')));
  const loss = runs.map((run) => lineSet(one ? 'training' : run.name, colourOf(run), points(run, 'loss')));
  if (one) {
    f1.push(lineSet('macro F1', colour('faint'), points(runs[0], 'macro_f1'), dashed));
    loss.push(lineSet('validation', colour('faint'), points(runs[0], 'validation_loss'), dashed));
  }
  const legend = {
    display: one,
    position: 'bottom',
    labels: {color: colour('soft'), boxWidth: 22, boxHeight: 0, font: {size: 12}}
  };
  const none = runs.length === 0 ? 'No run is shown.' : 'No epoch is done yet.';
  setMissing(
      'chart-f1',
      f1.some((set) => set.data.length > 0)        ? '' :
          runs.length > 0 && epochsOf(runs[0]) > 0 ? 'No validation has been made.' :
                                                     none);
  setMissing('chart-loss', loss.some((set) => set.data.length > 0) ? '' : none);
  const x = xAxisOptions(xAxis), best = Math.max(0, ...runs.map((run) => (bestOf(run) || {f1: 0}).f1));
  const closeUp = byId('close-up').checked ? Math.floor(90 * best) / 100 : 0;
  setLines('chart-f1', f1, {
    x,
    y: axis('', (v) => figure(100 * v), closeUp > 0 ? {min: closeUp} : {beginAtZero: true}),
    xTip: xTip(xAxis),
    yTip: (v) => percent(v),
    more: {plugins: {legend}}
  });
  setLines('chart-loss', loss, {
    x,
    y: {
      type: byId('log-loss').checked ? 'logarithmic' : 'linear',
      ...axis('', (v) => figure(v), {ticks: {maxTicksLimit: 7}})
    },
    xTip: xTip(xAxis),
    yTip: figure,
    more: {plugins: {legend}}
  });
}

// Seconds by stage: a bar a stage for one run, a stacked bar a run for several.
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
  setMissing('chart-stages', stages.length > 0 ? '' : 'No time has been recorded.');
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
        plugins: {
          legend: {
            display: !one,
            position: 'bottom',
            labels: {color: colour('soft'), boxWidth: 11, boxHeight: 11, font: {size: 12}}
          }
        },
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
    const resident = points(run, 'resident', 'seconds'), peak = points(run, 'peak', 'seconds');
    lines.push(lineSet(runs.length === 1 ? 'resident' : run.name, colourOf(run), resident));
    if (runs.length <= 4)
      lines.push(lineSet(
          runs.length === 1 ? 'peak so far' : `${run.name}, peak so far`, colourOf(run), peak,
          {borderDash: [4, 4], borderWidth: 1.2, pointRadius: 0}));
    top = Math.max(top, peakOf(run) || 0);
    end = Math.max(end, trainedFor(run));
  }
  setMissing(
      'chart-memory',
      lines.some((line) => line.data.length > 0) ? '' :
          runs.length === 0                      ? 'No run is shown.' :
                                                   'No memory has been recorded.');
  if (!ceilingChosen) byId('show-ceiling').checked = ceiling > 0 && top > ceiling / 4;
  if (byId('show-ceiling').checked && ceiling > 0)
    lines.push(lineSet(
        budgeted ? 'the budget, --memory' : 'the machine’s limit', colour('warn'), [{x: 0, y: ceiling}, {x: end, y: ceiling}],
        {pointRadius: 0, borderWidth: 1.5, silent: true}));
  setLines('chart-memory', lines, {
    x: xAxisOptions('seconds'),
    y: axis(
        '', (v) => bytes(v),
        {min: 0, ticks: {stepSize: byteStep(Math.max(top, byId('show-ceiling').checked ? ceiling : 0) / 5)}}),
    xTip: xTip('seconds'),
    yTip: bytes
  });
  byId('memory-note').textContent = top > 0 && ceiling > 0 ?
      `At most ${bytes(top)}: ${percent(top / ceiling, 1)} of the ${
          bytes(ceiling)} that ${budgeted ? '--memory' : 'the machine, or its control group,'} allows.` :
      '';
}

// Clusters of one run.
function drawClusters(run) {
  const clusters = run.clusters, none = 'There are no clusters recorded for this run.';
  for (const id of ['chart-sizes', 'chart-blocks']) setMissing(id, clusters ? '' : none);
  setMissing('chart-entropy', !clusters ? none : clusters.label_entropy ? '' : 'The graph has no labels.');
  byId('blocks-scale').hidden = !clusters;
  byId('cluster-tiles').hidden = !clusters;
  if (!clusters) return;
  const entropy = clusters.label_entropy, batch = clusters.batch;
  byId('cluster-tiles')
      .replaceChildren(
          tile(
              'Clusters', count(clusters.clusters),
              `${count(batch.clusters)} a batch, ${count(batch.batches)} batches an epoch`),
          tile(
              'Links kept in clusters', percent(clusters.links_kept_share, 1),
              `${count(clusters.links_cut)} of ${count(clusters.links)} cut`),
          tile(
              'Links seen in batches', percent(batch.entries_share, 1),
              `${count(Math.round(batch.mean_nodes))} nodes a batch`),
          tile(
              'Balance', clusters.balance.toFixed(3),
              `largest over mean; ${count(clusters.smallest_cluster)} to ${count(clusters.largest_cluster)} nodes`),
          ...(entropy ? [tile(
                            'Label entropy', `${entropy.mean.toFixed(2)} bits`,
                            `${entropy.random_mean.toFixed(2)} bits at random`)] :
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
          {label: 'clusters', data: entropy.own, backgroundColor: kHues[0], grouped: false, ...bars},
          {label: 'at random, same sizes', data: entropy.random, backgroundColor: random, grouped: false, ...bars}
        ],
        entropy.own.map((_, i) => edge(i)), {
          interaction: {mode: 'index', intersect: false},
          scales: {x: axis('bits', undefined, {grid: {display: false}}), y: whole},
          plugins: {
            legend: {
              display: true,
              position: 'bottom',
              labels: {color: colour('soft'), boxWidth: 11, boxHeight: 11, font: {size: 12}}
            }
          },
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
    showScale('blocks-scale', `${(100 * least).toPrecision(2)} %`, `${(100 * most).toPrecision(2)} %, logarithmic`);
  else
    byId('blocks-scale').hidden = true;
}

// Scores by class of one run.
function drawClasses(run) {
  const classes = run.classes,
        none = run.state === 'finished' ? 'Not recorded for this run.' : 'Comes with the test at the end of the run.';
  setMissing('chart-classes', classes ? '' : none);
  setMissing(
      'chart-confusion',
      !classes              ? none :
          classes.confusion ? '' :
                              'A node may have many classes: there is no confusion matrix.');
  byId('confusion-scale').hidden = !classes || !classes.confusion;
  byId('classes-part').textContent = classes ?
      `${{test: 'test', validation: 'validation', train: 'training'}[classes.part]} nodes${
          classes.list.length < classes.total ? `, the ${classes.list.length} largest of ${count(classes.total)}` :
                                                ''}` :
      '';
  const plot = byId('plot-classes');
  plot.style.minHeight = classes ? `${Math.max(200, 40 + 21 * classes.list.length)}px` : '';
  if (!classes) return;
  const list = classes.list, names = list.map((entry) => entry.class);
  setChart(
      'chart-classes', 'bar', [{
        label: 'F1',
        data: list.map((entry) => 100 * entry.f1),
        backgroundColor: kHues[0],
        maxBarThickness: 16,
        borderRadius: 2,
        valueText: (v) => v.toFixed(1)
      }],
      names.map((name) => shorten(name)), {
        indexAxis: 'y',
        interaction: {mode: 'index', axis: 'y', intersect: false},
        scales: {
          x: axis('', undefined, {min: 0, max: 100}),
          y: axis('', undefined, {grid: {display: false}, ticks: {autoSkip: false}})
        },
      },
      (items) => {
        const entry = list[items[0].dataIndex];
        return {
          head: `class ${entry.class}`,
          rows: [
            {label: 'F1', value: percent(entry.f1), near: true}, {label: 'precision', value: percent(entry.precision)},
            {label: 'recall', value: percent(entry.recall)}, {label: 'nodes', value: count(entry.nodes)}
          ]
        };
      });
  if (!classes.confusion) return;
  const counts = classes.confusion, totals = counts.map((row) => row.reduce((a, b) => a + b, 0)), labels = [...names];
  if (labels.length < counts.length) labels.push('others');
  setHeatMap('chart-confusion', {
    rows: counts.length,
    columns: counts.length,
    labels: labels.length <= 30 ? labels : null,
    share: (r, c) => (counts[r][c] > 0 ? counts[r][c] / totals[r] : null),
    text: (r, c) =>
        (counts.length <= 16 && counts[r][c] >= 0.005 * totals[r] && counts[r][c] > 0 ?
             (100 * counts[r][c] / totals[r]).toFixed(0) :
             ''),
    tip: (r, c) => ({
      head: r === c ? `${labels[r]}, predicted right` : `${labels[r]}, predicted as ${labels[c]}`,
      rows: [
        {label: 'nodes', value: `${count(counts[r][c])} of ${count(totals[r])}`},
        {label: 'share', value: totals[r] > 0 ? percent(counts[r][c] / totals[r], 1) : '–'}
      ]
    }),
  });
  showScale('confusion-scale', '0', '100 % of the class');
}
