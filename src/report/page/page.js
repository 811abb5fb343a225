// The page: reads the data that stands in it, draws every section, and, while training, asks for news.
'use strict';

let data = JSON.parse(byId('data').textContent);
const hidden = new Set();  // paths of runs that are not shown
let xAxis = 'epoch', detailPath = null, ceilingChosen = false;

const colourOf = (run) => runColour(data.runs.indexOf(run));
const shownRuns = () => data.runs.filter((run) => !hidden.has(run.path));
const detailRun = () => data.runs.find((run) => run.path === detailPath) || data.runs[0];
const stateText = {
  finished: 'finished',
  running: 'in progress',
  stopped: 'stopped before its end'
};

// The score of a run: micro F1, or R² of regression.
const isRegression = (run) => (run.result ? Boolean(run.result.regression) : run.curves.r2.some((value) => value !== null));
const scoreCurve = (run) => (isRegression(run) ? 'r2' : 'f1');
const showScore = (run, value) => (isRegression(run) ? value.toFixed(4) : percent(value));
const scoreName = (runs) => (runs.every(isRegression) ? 'R²' : runs.some(isRegression) ? 'score' : 'F1');
const partTitle = {test: 'Test', validation: 'Validation', train: 'Training'};
function bestOf(run) {  // {score, epoch} of the model that was kept; while training of the best so far
  const {epoch, validation_loss: loss} = run.curves, score = run.curves[scoreCurve(run)];
  const kept = run.result ? epoch.indexOf(run.result.kept_epoch) : -1;
  let best = kept >= 0 && score[kept] !== null ? kept : -1;
  if (best < 0)  // the highest score, of equals the lowest loss
    score.forEach((value, i) => {
      if (value !== null && (best < 0 || value > score[best] || (value === score[best] && loss[i] < loss[best]))) best = i;
    });
  return best < 0 ? null : {score: score[best], epoch: epoch[best]};
}
function scoreOf(run) {  // {part, main, micro_f1 or r2, …} of what was tested, or null
  if (!run.result) return null;
  const regression = isRegression(run);
  if (!regression && !run.classes) return null;
  const part = regression ? ['test', 'validation', 'train'].find((name) => run.result[name].nodes > 0) : run.classes.part;
  return part ? {part, ...run.result[part], main: run.result[part][regression ? 'r2' : 'micro_f1']} : null;
}
function peakOf(run) {
  const peaks = run.curves.peak.filter((value) => value !== null);
  return run.result ? run.result.peak_memory_bytes : peaks.length > 0 ? Math.max(...peaks) : null;
}
const epochsOf = (run) => (run.curves.epoch.length > 0 ? run.curves.epoch[run.curves.epoch.length - 1] : 0);
const trainedFor = (run) => (run.curves.seconds.length > 0 ? run.curves.seconds[run.curves.seconds.length - 1] : 0);
const orDash = (value, format) => (value === null || value === undefined ? '–' : format(value));

// The head of the page and the overview.
function drawHead() {
  const one = data.runs.length === 1, run = data.runs[0];
  byId('heading').textContent = one ? run.name : `${data.runs.length} runs compared`;
  document.title = `${byId('heading').textContent} – clustergcn`;
  const graphs = [...new Set(data.runs.map((r) => r.graph).filter(Boolean))];
  byId('subheading').textContent =
      `${graphs.length > 0 ? `on ${graphs.slice(0, 3).join(', ')}${graphs.length > 3 ? ' …' : ''} · ` : ''}${
          one ? stateText[run.state] :
                `${data.runs.filter((r) => r.state === 'finished').length} finished`} · ${data.written}`;
  byId('footer').textContent =
      `Written by clustergcn. This file is self-contained. Charts by Chart.js ${
          Chart.version} (MIT licence).`;
  const banner = byId('banner'), going = data.runs.filter((r) => r.state === 'running'),
        stopped = data.runs.filter((r) => r.state === 'stopped');
  banner.className = going.length > 0 || stopped.length === 0 ? '' : 'ended';
  banner.hidden = going.length + stopped.length === 0;
  const parts = [];
  if (going.length > 0)
    parts.push(
        one ? `Training: ${epochsOf(run)} of ${run.epochs_asked} epochs done${
                  data.live ? '; this page updates itself' : ''}.` :
              `${going.length} of these runs are still in progress.`);
  if (stopped.length > 0)
    parts.push(
        one ? `This run was stopped after epoch ${epochsOf(run)} of ${
                  run.epochs_asked}. To continue: ${run.resume_command}` :
              `${stopped.length} of these runs were stopped before their end.`);
  banner.textContent = parts.join(' ');
}
function tile(name, value, more) {
  const box = make('div', 'tile');
  box.append(make('div', 'name', name), make('div', 'value', value), make('div', 'more', more || ''));
  return box;
}
function drawTiles(run) {
  const score = scoreOf(run), best = bestOf(run), peak = peakOf(run), epochs = epochsOf(run), list = [];
  const name = scoreName([run]);
  if (score)
    list.push(tile(
        `${partTitle[score.part]} ${name}`, showScore(run, score.main),
        `${isRegression(run) ? `MAE ${figure(score.mae)}, RMSE ${figure(score.rmse)}` : `macro ${percent(score.macro_f1)}`}, ${
            count(score.nodes)} nodes`));
  if (best) list.push(tile(`Validation ${name}`, showScore(run, best.score), `epoch ${best.epoch}, ${run.result ? 'kept' : 'best so far'}`));
  list.push(tile(
      'Epochs', `${count(epochs)}${epochs < run.epochs_asked ? ` of ${count(run.epochs_asked)}` : ''}`,
      run.result && run.result.stopped_early ? 'stopped early' : stateText[run.state]));
  if (epochs > 0)
    list.push(tile(
        'Time per epoch', duration(trainedFor(run) / epochs),
        run.result ? `${duration(run.result.total_seconds)} in total` : `${duration(trainedFor(run))} of training`));
  if (peak !== null)
    list.push(tile(
        'Peak memory', bytes(peak),
        run.result ? `model ${bytes(run.result.model_bytes)}, step ${bytes(run.result.workspace_bytes)}` : ''));
  if (run.result)
    list.push(tile(
        'Weights', count(run.result.weights),
        `${count(run.result.parts)} clusters, ${count(run.result.per_batch)} per batch`));
  const tiles = make('div', 'tiles');
  tiles.append(...list);
  byId('overview').replaceChildren(tiles);
}

// The settings in which the runs differ: [name, value of a run]. Those left at the default have it.
function differences() {
  const settings = new Map();
  for (const run of data.runs)
    for (const entry of run.settings) settings.set(entry.name, entry);
  const valueOf = (run, entry) => (run.settings.find((other) => other.name === entry.name) || {value: entry.default}).value;
  const differs = (of) => new Set(data.runs.map(of)).size > 1, list = [];
  if (differs((run) => run.graph)) list.push(['graph', (run) => run.graph]);
  for (const entry of settings.values())
    if (differs((run) => valueOf(run, entry))) list.push([entry.name, (run) => valueOf(run, entry) || '–']);
  return list;
}
const kShownDifferences = 6;
function drawTable() {
  const scores = data.runs.map((run) => scoreOf(run)), differing = differences();
  const main = scores.map((score) => (score ? score.main : -Infinity)), top = Math.max(...main);
  const order = data.runs.map((_, i) => i).sort((a, b) => (main[a] === main[b] ? a - b : main[b] - main[a]));
  const regression = data.runs.every(isRegression), name = scoreName(data.runs);
  const nameOf = (i) => {
    const name = make('td'), dot = make('span', 'dot'), run = data.runs[i];
    dot.style.background = runColour(i);
    name.append(dot, make('span', '', run.name));
    if (run.state !== 'finished')
      name.append(make('span', `state ${run.state}`, run.state === 'running' ? 'in progress' : run.state));
    name.title = run.path;
    return name;
  };
  const first = differing.slice(0, kShownDifferences), rest = differing.slice(kShownDifferences);
  const box = make('div', 'table'), table = make('table'), parts = [box];
  box.append(table);
  if (rest.length > 0) {
    const more = make('details'), inner = make('div', 'table'), others = make('table');
    more.append(make('summary', '', `${rest.length} more settings differ`), inner);
    inner.append(others);
    more.ontoggle = () => foldTable(others);
    fillTable(others, ['Run', ...rest.map(([name]) => name)], order.map((i) => [
      nameOf(i), ...rest.map(([, of]) => of(data.runs[i]))
    ]), true);
    parts.push(more);
  }
  byId('overview').replaceChildren(...parts);
  fillTable(table, [
    'Run', ...first.map(([setting]) => setting), `Test ${name}`, regression ? 'MAE' : 'Macro F1',
    `Validation ${name} (epoch)`, 'Epochs', 'Time per epoch', 'Total time', 'Peak memory'
  ], order.map((i) => {
    const run = data.runs[i], score = scores[i], best = bestOf(run), epochs = epochsOf(run);
    return [
      nameOf(i), ...first.map(([, of]) => make('td', 'setting', of(run))),
      make(
          'td', score && score.main === top ? 'best' : '',
          score ? showScore(run, score.main) + (score.part === 'test' ? '' : ` (${score.part})`) : '–'),
      score ? (regression ? figure(score.mae) : isRegression(run) ? '–' : percent(score.macro_f1)) : '–',
      best ? `${showScore(run, best.score)} (${best.epoch})` : '–', count(epochs),
      epochs > 0 ? duration(trainedFor(run) / epochs) : '–', run.result ? duration(run.result.total_seconds) : '–',
      orDash(peakOf(run), bytes)
    ];
  }), true);
}

// The buttons that show and hide runs.
function drawRunButtons() {
  const box = byId('runs');
  box.hidden = data.runs.length < 2;
  if (box.hidden) return;
  const at = box.scrollTop, buttons = data.runs.map((run) => {
    const button = make('button'), dot = make('span', 'dot');
    button.type = 'button';
    button.setAttribute('aria-pressed', String(!hidden.has(run.path)));
    button.title = run.path;
    dot.style.background = colourOf(run);
    button.append(dot, make('span', '', run.name));
    button.onclick = () => {
      if (!hidden.delete(run.path)) hidden.add(run.path);
      drawRunButtons();
      drawCharts();
    };
    return button;
  });
  const all = make('button', 'all', hidden.size === 0 ? 'Hide all' : 'Show all');
  all.type = 'button';
  all.onclick = () => {
    const hide = hidden.size === 0;
    hidden.clear();
    if (hide) data.runs.forEach((run) => hidden.add(run.path));
    drawRunButtons();
    drawCharts();
  };
  box.replaceChildren(all, ...buttons);
  box.scrollTop = at;
}

// Of a run under mpirun: where the steps' time went on each host, and the memory of its processes.
function drawProcesses(run) {
  const ranks = run.result && run.result.ranks ? run.result.ranks : [];
  byId('processes').hidden = ranks.length === 0;
  if (ranks.length === 0) return;
  const sum = (list, name) => list.reduce((total, rank) => total + rank[name], 0);
  const hosts = [...new Set(ranks.map((rank) => rank.host))];
  byId('processes-part').textContent =
      `${count(ranks.length)} on ${hosts.length === 1 ? '1 host' : `${count(hosts.length)} hosts`}, ${
          count(run.result.batches_per_step)} batches per step`;
  fillTable(byId('hosts'), ['Host', 'Ranks', 'Computing', 'Waiting', 'Communicating', 'Sent', 'Peak memory'], hosts.map((host) => {
    const own = ranks.filter((rank) => rank.host === host);
    const parts = ['compute_seconds', 'waiting_seconds', 'communication_seconds'].map((name) => sum(own, name));
    const all = Math.max(1e-9, parts[0] + parts[1] + parts[2]);
    return [
      host, own.map((rank) => rank.rank).join(', '), ...parts.map((seconds) => percent(seconds / all)),
      bytes(sum(own, 'bytes_sent')), bytes(sum(own, 'peak_memory_bytes'))
    ];
  }));
}

// How to reproduce the run.
function drawAgain(run) {
  byId('command').textContent = run.command;
  byId('config').textContent = run.config;
  const fill = (id, entries) => byId(id).replaceChildren(...entries.flatMap(([name, value, title]) => {
    const term = make('dt', '', name);
    if (title) term.title = title;
    return [term, make('dd', '', value)];
  }));
  byId('trials').hidden = !run.trials;
  byId('trials').textContent = run.trials || '';
  const valueOf = (entry) => entry.reason ? `${entry.value} (${entry.reason})` : entry.value;
  fill('settings', run.settings.length > 0 ? run.settings.map((entry) => [entry.name, valueOf(entry), entry.help]) : [
    ['none', 'all settings are the defaults']
  ]);
  const machine = run.environment;
  fill('environment', [
    ['Run', run.path], ['Graph', run.store], ['Started', machine.started],
    ['Processor', `${machine.processor}, ${machine.threads} thread${machine.threads === 1 ? '' : 's'}`],
    ['Memory', orDash(machine.memory_bytes, bytes)], ['System', machine.system], ['Compiler', machine.compiler]
  ].filter((entry) => entry[1]));
}

function drawDetailChoice() {
  byId('detail-choice').hidden = data.runs.length < 2;
  if (detailPath === null && data.runs.length > 0) {
    const score = (run) => (scoreOf(run) || {main: -Infinity}).main;
    detailPath = data.runs.reduce((a, b) => (score(b) > score(a) ? b : a)).path;
  }
  byId('detail').replaceChildren(...data.runs.map((run) => {
    const option = make('option', '', run.name);
    option.value = run.path;
    return option;
  }));
  byId('detail').value = detailPath;
}
function drawDetails() {
  drawClasses(detailRun());
  drawEmbeddings(detailRun());
  drawClusters(detailRun());
  drawProcesses(detailRun());
  drawAgain(detailRun());
}
function drawCharts() {
  drawLearning();
  drawStages();
  drawMemory();
}
function drawAll() {
  hideTip();
  drawHead();
  if (data.runs.length === 1)
    drawTiles(data.runs[0]);
  else
    drawTable();
  drawRunButtons();
  drawDetailChoice();
  drawCharts();
  drawDetails();
}

// Theme: the system's, until the button is used.
const systemDark = window.matchMedia('(prefers-color-scheme: dark)');
let chosenTheme = null;
try {
  chosenTheme = localStorage.getItem('clustergcn-theme');
} catch { /* a page from a file may have no storage */
}
function applyTheme(theme) {
  document.documentElement.dataset.theme = theme;
  byId('theme').textContent = theme === 'dark' ? '☀' : '☾';
}
const currentTheme = () => chosenTheme || (systemDark.matches ? 'dark' : 'light');
byId('theme').onclick = () => {
  chosenTheme = currentTheme() === 'dark' ? 'light' : 'dark';
  try {
    localStorage.setItem('clustergcn-theme', chosenTheme);
  } catch { /* kept for this view only */
  }
  applyTheme(chosenTheme);
  drawAll();
};
systemDark.addEventListener('change', () => {
  applyTheme(currentTheme());
  drawAll();
});
// On paper always light, and as wide as the paper.
window.addEventListener('beforeprint', () => {
  applyTheme('light');
  drawAll();
  Object.values(Chart.instances).forEach((chart) => chart.resize());
});
window.addEventListener('afterprint', () => {
  applyTheme(currentTheme());
  drawAll();
  Object.values(Chart.instances).forEach((chart) => chart.resize());
});

for (const button of document.querySelectorAll('[data-axis]')) {
  button.onclick = () => {
    xAxis = button.dataset.axis;
    for (const other of document.querySelectorAll('[data-axis]'))
      other.setAttribute('aria-pressed', String(other === button));
    drawLearning();
  };
}
byId('log-loss').onchange = byId('close-up').onchange = drawLearning;
byId('show-ceiling').onchange = () => {
  ceilingChosen = true;
  drawMemory();
};
byId('detail').onchange = () => {
  detailPath = byId('detail').value;
  drawDetails();
};
byId('all-classes').onchange = () => drawClassBars(detailRun().classes);
byId('picture-class').onchange = () => drawEmbeddings(detailRun());
window.addEventListener('resize', () => document.querySelectorAll('.table table').forEach((table) => tables.has(table) && foldTable(table)));
byId('copy').onclick = async () => {
  try {
    await navigator.clipboard.writeText(byId('command').textContent);
  } catch {
    const range = document.createRange();
    range.selectNodeContents(byId('command'));
    getSelection().removeAllRanges();
    getSelection().addRange(range);
    document.execCommand('copy');
  }
  byId('copy').textContent = 'Copied';
  setTimeout(() => {
    byId('copy').textContent = 'Copy';
  }, 1500);
};
window.addEventListener('scroll', hideTip, {passive: true});

// While training: ask every second, until the run has ended or the program is gone.
let failures = 0;
async function follow() {
  try {
    const answer = await fetch('data.json', {cache: 'no-cache'});
    const text = await answer.text();
    if (!answer.ok) throw new Error(text);
    failures = 0;
    if (text !== follow.last) {
      follow.last = text;
      data = {...JSON.parse(text), live: true};
      drawAll();
    }
  } catch {
    failures++;
  }
  const over = data.runs.every((run) => run.state === 'finished');
  if (!over && failures < 3) return void setTimeout(follow, document.hidden ? 3000 : 1000);
  if (over) return;
  byId('banner').hidden = false;
  byId('banner').className = 'ended';
  byId('banner').textContent = `Training has ended. The report is in ${data.runs[0].path}/report.html`;
}

applyTheme(currentTheme());
drawAll();
if (data.live) setTimeout(follow, 1000);
