// The page: reads the data that stands in it, draws every section, and, while training, asks for news.
'use strict';

let data = JSON.parse(byId('data').textContent);
const hidden = new Set();  // paths of runs that are switched off
let xAxis = 'epoch', detailPath = null, ceilingChosen = false;

const colourOf = (run) => runColour(data.runs.indexOf(run));
const shownRuns = () => data.runs.filter((run) => !hidden.has(run.path));
const detailRun = () => data.runs.find((run) => run.path === detailPath) || data.runs[0];
const stateText = {
  finished: 'finished',
  running: 'in progress',
  stopped: 'stopped before its end'
};

function bestOf(run) {
  const {f1, epoch, validation_loss: loss} = run.curves;
  let best = -1;  // as training chooses: the highest F1, of equals the lowest loss
  f1.forEach((value, i) => {
    if (value !== null && (best < 0 || value > f1[best] || (value === f1[best] && loss[i] < loss[best]))) best = i;
  });
  return best < 0 ? null : {f1: f1[best], epoch: epoch[best]};
}
function scoreOf(run) {  // {part, micro_f1, …} of what was tested, or null
  if (!run.result || !run.classes) return null;
  return {part: run.classes.part, ...run.result[run.classes.part]};
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
      `Written by clustergcn. Everything is in this file: it loads nothing. Charts by Chart.js ${
          Chart.version} (MIT licence).`;
  const banner = byId('banner'), going = data.runs.filter((r) => r.state === 'running'),
        stopped = data.runs.filter((r) => r.state === 'stopped');
  banner.className = going.length > 0 || stopped.length === 0 ? '' : 'ended';
  banner.hidden = going.length + stopped.length === 0;
  const parts = [];
  if (going.length > 0)
    parts.push(
        one ? `Training is going on: epoch ${epochsOf(run)} of ${run.epochs_asked} is done${
                  data.live ? '; this page follows it' : ''}.` :
              `${going.length} of these runs are still going on.`);
  if (stopped.length > 0)
    parts.push(
        one ? `This run was stopped after epoch ${epochsOf(run)} of ${
                  run.epochs_asked}. To go on: ${run.resume_command}` :
              `${stopped.length} of these runs were stopped before their end.`);
  banner.textContent = parts.join(' ');
}
function tile(name, value, more) {
  const box = make('div', 'tile');
  box.append(make('div', 'name', name), make('div', 'value', value), make('div', 'more', more || ''));
  return box;
}
function drawTiles(run) {
  const score = scoreOf(run), best = bestOf(run), peak = peakOf(run), epochs = epochsOf(run),
        tiles = make('div', 'tiles');
  const part = score ? {test: 'Test', validation: 'Validation', train: 'Training'}[score.part] : 'Test';
  tiles.append(
      tile(
          `${part} F1`, score ? percent(score.micro_f1) : '–',
          score ? `macro ${percent(score.macro_f1)}, ${count(score.nodes)} nodes` : 'comes at the end of the run'),
      tile('Best validation F1', best ? percent(best.f1) : '–', best ? `in epoch ${best.epoch}` : 'no validation yet'),
      tile(
          'Epochs', `${count(epochs)}${epochs < run.epochs_asked ? ` of ${count(run.epochs_asked)}` : ''}`,
          run.result && run.result.stopped_early ? 'stopped early' : stateText[run.state]),
      tile(
          'Time an epoch', epochs > 0 ? duration(trainedFor(run) / epochs) : '–',
          run.result ? `${duration(run.result.total_seconds)} in all` : `${duration(trainedFor(run))} of steps`),
      tile(
          'Peak memory', orDash(peak, bytes),
          run.result ? `model ${bytes(run.result.model_bytes)}, a step ${bytes(run.result.workspace_bytes)}` : ''),
      tile(
          'Weights', run.result ? count(run.result.weights) : '–',
          run.result ? `p = ${count(run.result.parts)}, q = ${count(run.result.per_batch)}` : ''));
  byId('overview').replaceChildren(tiles);
}
function drawTable() {
  const table = make('table'), box = make('div', 'table'), head = make('tr');
  for (const title
           of ['Run', 'State', 'Test F1', 'Macro F1', 'Best validation F1', 'Epochs', 'An epoch', 'In all',
               'Peak memory'])
    head.append(make('th', '', title));
  table.append(head);
  const scores = data.runs.map((run) => scoreOf(run)),
        top = Math.max(...scores.map((score) => (score ? score.micro_f1 : -1)));
  const order = data.runs.map((_, i) => i)
                    .sort((a, b) => (scores[b] ? scores[b].micro_f1 : -1) - (scores[a] ? scores[a].micro_f1 : -1));
  for (const i of order) {
    const run = data.runs[i], score = scores[i], best = bestOf(run), epochs = epochsOf(run), row = make('tr'),
          name = make('td');
    const dot = make('span', 'dot');
    dot.style.background = runColour(i);
    name.append(dot, document.createTextNode(run.name));
    name.title = run.path;
    const state = make('td');
    state.append(make('span', `state ${run.state}`, run.state === 'running' ? 'in progress' : run.state));
    const f1 = make(
        'td', score && score.micro_f1 === top ? 'best' : '',
        score ? percent(score.micro_f1) + (score.part === 'test' ? '' : ` (${score.part})`) : '–');
    row.append(
        name, state, f1, make('td', '', score ? percent(score.macro_f1) : '–'),
        make('td', '', best ? `${percent(best.f1)} (${best.epoch})` : '–'), make('td', '', count(epochs)),
        make('td', '', epochs > 0 ? duration(trainedFor(run) / epochs) : '–'),
        make('td', '', run.result ? duration(run.result.total_seconds) : '–'),
        make('td', '', orDash(peakOf(run), bytes)));
    table.append(row);
  }
  box.append(table);
  byId('overview').replaceChildren(box);
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
  const all = make('button', 'all', hidden.size === 0 ? 'None' : 'All');
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

// How to make the run again.
function drawAgain(run) {
  byId('command').textContent = run.command;
  byId('config').textContent = run.config;
  const fill = (id, entries) => byId(id).replaceChildren(...entries.flatMap(([name, value, title]) => {
    const term = make('dt', '', name);
    if (title) term.title = title;
    return [term, make('dd', '', value)];
  }));
  fill('settings', run.settings.length > 0 ? run.settings.map((entry) => [entry.name, entry.value, entry.help]) : [
    ['none', 'all settings are the defaults']
  ]);
  const machine = run.environment;
  fill('environment', [
    ['Run', run.path], ['Graph', run.store], ['Started', machine.started],
    ['Processor', `${machine.processor}, ${machine.threads} threads`], ['Memory', orDash(machine.memory_bytes, bytes)],
    ['System', machine.system], ['Compiler', machine.compiler]
  ].filter((entry) => entry[1]));
}

function drawDetailChoice() {
  byId('detail-choice').hidden = data.runs.length < 2;
  if (detailPath === null && data.runs.length > 0) {
    const score = (run) => (scoreOf(run) || {micro_f1: -1}).micro_f1;
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
  drawClusters(detailRun());
  drawClasses(detailRun());
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

// While training: ask every second, until the run is at its end or the program is gone.
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
  byId('banner').textContent = `The program has ended. The run’s report is in ${data.runs[0].path}/report.html`;
}

applyTheme(currentTheme());
drawAll();
if (data.live) setTimeout(follow, 1000);
