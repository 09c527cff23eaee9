'use strict';
// Shows /status.json and refreshes it. All text is set with
// textContent, so nothing that a task reports is interpreted as markup.

const POLL_MS = 2000;
const ROWS_MAX = 50;
const STATE_CLASS = {connected: 'good', lost: 'bad', connecting: 'warn', ended: 'dim'};

const byId = (id) => document.getElementById(id);

function element(name, text, className) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

function shape(name, attributes, text) {
  const made = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

function number(value) {
  if (value === null || value === undefined) return '-';
  const size = Math.abs(value);
  if (Number.isInteger(value)) return value.toLocaleString('en-US');
  if (size >= 100) return value.toLocaleString('en-US', {maximumFractionDigits: 0});
  return Number(value.toPrecision(4)).toString();
}

function bytes(value) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) { value /= 1024; ++unit; }
  return `${Number(value.toPrecision(3))} ${units[unit]}`;
}

function duration(seconds) {
  if (seconds < 1e-3) return `${Number((seconds * 1e6).toPrecision(3))} us`;
  if (seconds < 1) return `${Number((seconds * 1e3).toPrecision(3))} ms`;
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 10) return `${minutes} min ${Math.floor(seconds % 60)} s`;
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

function clockTime(seconds) {
  return new Date(seconds * 1000).toLocaleString();
}

function tilesOf(status) {
  const tiles = [];
  const training = status.training;
  if (training) {
    const target = training.steps_per_epoch ? ` of ${number(training.steps_per_epoch)}` : '';
    tiles.push(['epoch', `${training.epoch} / ${training.epochs}`,
                `step ${number(training.step_in_epoch)}${target}`]);
    if (training.seconds_left > 0) {
      tiles.push(['time left', duration(training.seconds_left), 'at the pace so far']);
    }
    tiles.push(['steps', number(training.steps), `${number(training.steps_per_second)} per second`]);
    tiles.push(['examples', number(training.examples),
                `${number(training.examples_per_second)} per second`]);
    for (const [name, value] of Object.entries(training.values)) tiles.push([name, number(value)]);
  }
  if (status.queue) {
    tiles.push(['queued closures', number(status.queue.queued),
                `${number(status.queue.in_flight)} in flight`]);
    tiles.push(['finished closures', number(status.queue.done),
                `${number(status.queue.retried)} retried`]);
  }
  if (status.tasks.length) {
    const connected = status.tasks.filter((task) => task.state === 'connected').length;
    tiles.push(['connected tasks', `${connected} of ${status.tasks.length}`]);
  }
  if (status.timeline && status.timeline.elapsed_seconds > 0) {
    tiles.push(['goodput', `${number(Math.round(status.timeline.goodput * 1000) / 10)}%`,
                `${number(status.timeline.event_count)} events`]);
  }
  const newest = status.checkpoints.newest;
  if (newest) {
    tiles.push(['newest checkpoint', `${duration(newest.age_seconds)} ago`,
                `written in ${duration(newest.duration_seconds)}`]);
  }
  for (const gpu of status.gpus ?? []) {
    tiles.push([`memory of ${gpu.device}`, bytes(gpu.memory_bytes),
                `of ${bytes(gpu.memory_limit_bytes)}, peak ${bytes(gpu.memory_peak_bytes)}`]);
  }
  const problems = status.problems;
  if (problems.errors + problems.warnings > 0) {
    tiles.push(['errors', number(problems.errors), `${number(problems.warnings)} warnings`]);
  }
  return tiles;
}

function showTiles(status) {
  byId('tiles').replaceChildren(...tilesOf(status).map(([name, value, note]) => {
    const tile = element('div');
    const content = element('dd', value);
    if (note) content.append(element('span', note, 'note'));
    // Long names of metrics may break after an underscore.
    tile.append(element('dt', name.replaceAll('_', '_\u200b')), content);
    return tile;
  }));
}

// Returns the alerts, most urgent first. Names at most ten tasks of each kind.
function alertsOf(status) {
  const alerts = [];
  const named = 10;
  const group = (tasks, className, text) => {
    for (const task of tasks.slice(0, named)) alerts.push([text(task), className]);
    if (tasks.length > named) alerts.push([`... and ${tasks.length - named} more`, className]);
  };
  const because = (task) => task.problem ? `: ${task.problem}` : '';
  group(status.tasks.filter((task) => task.state === 'lost'), 'bad', (task) =>
    `${task.task} has been lost for ${duration(task.in_state_seconds)}${because(task)}`);
  group(status.tasks.filter((task) => task.state === 'connecting'), 'warn', (task) =>
    `waiting for ${task.task} for ${duration(task.in_state_seconds)}${because(task)}`);
  group(status.tasks.filter((task) => task.state === 'connected' && task.problem), 'warn',
        (task) => `${task.task} cannot work: ${task.problem}`);
  group(status.waits.filter((wait) => wait.seconds >= 1), 'warn', (wait) =>
    `${wait.waiter} has waited ${duration(wait.seconds)} for ${wait.awaited} in ${wait.what}`);
  group(status.tasks.filter((task) => task.is_straggler), 'warn', (task) =>
    task.waited_share !== undefined
      ? `${task.task} delays the others: ${number(task.waited_share * 100)}% of the time is ` +
        'spent waiting for it'
      : `${task.task} is slow: its closures take ${duration(task.closure_seconds)}`);
  if (status.checkpoints.failures > 0) {
    alerts.push([`${status.checkpoints.failures} checkpoints could not be written`, 'bad']);
  }
  if (!status.ready) alerts.push([`not ready: ${status.not_ready_because}`, 'warn']);
  return alerts;
}

function showAlerts(status) {
  const alerts = alertsOf(status);
  byId('attention').hidden = alerts.length === 0;
  byId('alerts').replaceChildren(
    ...alerts.map(([text, className]) => element('li', text, className)));
}

// Returns a chart of one or two curves {label, className, points}.
function chartOf(name, curves) {
  const [left, right, top, bottom] = [72, 352, 10, 150];
  const points = curves.flatMap((curve) => curve.points);
  const values = points.map((point) => point.value);
  const low = Math.min(...values);
  const high = Math.max(...values);
  const steps = points.map((point) => point.step);
  const first = Math.min(...steps);
  const last = Math.max(...steps);
  const x = (step) => last > first ? left + (right - left) * (step - first) / (last - first) : right;
  const y = (value) => high > low ? bottom - (bottom - top) * (value - low) / (high - low)
                                  : (top + bottom) / 2;
  const picture = shape('svg', {viewBox: '0 0 360 174', role: 'img',
                                'aria-label': `${name} by step`});
  picture.append(shape('path', {class: 'axis', d: `M${left},${top}V${bottom}H${right}`}));
  const label = (px, py, anchor, text) =>
    picture.append(shape('text', {x: px, y: py, 'text-anchor': anchor}, text));
  label(left - 6, y(high) + 4, 'end', number(high));
  if (high > low) label(left - 6, y(low) + 4, 'end', number(low));
  label(left, bottom + 16, 'start', number(first));
  if (last > first) label(right, bottom + 16, 'end', `step ${number(last)}`);
  const caption = element('figcaption');
  for (const {label, className, points} of curves) {
    const path = points.map((point, i) =>
      `${i ? 'L' : 'M'}${x(point.step).toFixed(1)},${y(point.value).toFixed(1)}`);
    picture.append(shape('path', {class: `curve ${className}`, d: path.join('')}));
    const end = points[points.length - 1];
    picture.append(shape('circle',
                         {class: `end ${className}`, cx: x(end.step), cy: y(end.value), r: 3}));
    if (caption.hasChildNodes()) caption.append(', ');
    caption.append(element('span', `${label} ${number(end.value)}`, className));
  }
  const figure = element('figure');
  figure.append(caption, picture);
  return figure;
}

function showCharts(training) {
  const series = training ? training.series : [];
  const names = new Set(series.flatMap((point) => Object.keys(point.values)));
  const pointsOf = (name) => series.filter((point) => Number.isFinite(point.values[name]))
    .map((point) => ({step: point.step, value: point.values[name]}));
  const charts = [];
  for (const name of names) {
    // Validation values are drawn in the chart of the training values.
    if (name.startsWith('val_') && names.has(name.slice(4))) continue;
    const curves = [{label: name, className: 'trained', points: pointsOf(name)},
                    {label: 'validation', className: 'validated', points: pointsOf(`val_${name}`)}]
      .filter((curve) => curve.points.length > 0);
    if (curves.length) charts.push(chartOf(name, curves));
  }
  byId('training').hidden = charts.length === 0;
  byId('charts').replaceChildren(...charts);
}

function showCollectives(collectives = []) {
  byId('collectives').hidden = collectives.length === 0;
  byId('latencies').tBodies[0].replaceChildren(...collectives.map((collective) => {
    const row = element('tr');
    row.append(element('td', collective.operation.replaceAll('_', '-')),
               element('td', number(collective.count)),
               element('td', duration(collective.median_seconds)),
               element('td', duration(collective.percentile_99_seconds)));
    return row;
  }));
}

// A column is shown if any task has a value for it.
const COLUMNS = [
  ['task', (task) => task.task],
  ['state', (task) => `${task.state} for ${duration(task.in_state_seconds)}`],
  ['address', (task) => task.address],
  ['in flight', (task) => task.closures_in_flight, number],
  ['done', (task) => task.closures_done, number],
  ['per closure', (task) => task.closure_seconds || undefined, duration],
  ['updates', (task) => task.updates, number],
  ['received', (task) => task.bytes_received, bytes],
  ['sent', (task) => task.bytes_sent, bytes],
  ['variables', (task) => task.variable_bytes, bytes],
  ['waited for', (task) => task.waited_share,
   (share) => `${number(Math.round(share * 1000) / 10)}%`],
  ['incarnation', (task) => task.incarnation],
  ['problem', (task) => task.problem || (task.is_straggler ? 'slow' : undefined)],
];

function classOf(task) {
  if (task.state === 'connected' && (task.is_straggler || task.problem)) return 'warn';
  return STATE_CLASS[task.state];
}

const URGENCY = {bad: 0, warn: 1, good: 2, dim: 3};
let latest = null;
let showsAll = false;

function showTasks(status) {
  const tasks = status.tasks;
  byId('cluster').hidden = tasks.length === 0;
  if (!tasks.length) return;
  const counts = {};
  for (const task of tasks) counts[task.state] = (counts[task.state] || 0) + 1;
  byId('states').textContent =
    Object.entries(counts).map(([state, count]) => `${number(count)} ${state}`).join(', ');
  byId('map').hidden = tasks.length <= 12;
  byId('map').replaceChildren(...tasks.map((task) => {
    const cell = element('span', undefined, classOf(task));
    cell.title = `${task.task}: ${task.state}`;
    return cell;
  }));
  const wanted = byId('filter').value.trim().toLowerCase();
  const shown = tasks.filter((task) =>
    `${task.task} ${task.state} ${task.address} ${task.problem || ''} ` +
    `${task.is_straggler ? 'slow' : ''}`.toLowerCase().includes(wanted));
  shown.sort((a, b) => URGENCY[classOf(a)] - URGENCY[classOf(b)]);
  const columns = COLUMNS.filter(([, read]) => tasks.some((task) => read(task) !== undefined));
  const head = element('tr');
  head.append(...columns.map(([name]) => element('th', name)));
  byId('tasks').tHead.replaceChildren(head);
  const rows = showsAll ? shown : shown.slice(0, ROWS_MAX);
  byId('tasks').tBodies[0].replaceChildren(...rows.map((task) => {
    const row = element('tr');
    for (const [name, read, format] of columns) {
      const value = read(task);
      const text = value === undefined ? '' : format ? format(value) : value;
      const cell = element('td', text);
      if (name === 'state' || name === 'problem') cell.classList.add(classOf(task));
      if (name === 'address' || name === 'problem') cell.classList.add('wraps');
      cell.dataset.label = name;
      row.append(cell);
    }
    return row;
  }));
  byId('more').hidden = showsAll || shown.length <= ROWS_MAX;
  byId('more').textContent = `Show all ${number(shown.length)} tasks`;
}

// Returns a bar of the time of training with a mark for each event, as wide as its cost.
function timelineChart(timeline, now) {
  const [width, height] = [720, 34];
  const x = (time) => width * Math.min(1, Math.max(0, (time - timeline.begin_time) /
                                                      Math.max(1e-9, now - timeline.begin_time)));
  const picture = shape('svg', {viewBox: `0 0 ${width} ${height}`, role: 'img',
                                'aria-label': 'events by time'});
  picture.append(shape('rect', {class: 'run', x: 0, y: 0, width, height: 16}));
  for (const event of timeline.events) {
    const left = x(event.time - event.cost_seconds);
    const mark = shape('rect', {class: 'lost', x: left, y: 0, height: 16,
                                width: Math.max(1.5, x(event.time) - left)});
    mark.append(shape('title', {}, `${clockTime(event.time)} ${event.text}`));
    picture.append(mark);
  }
  picture.append(shape('text', {x: 0, y: 30}, clockTime(timeline.begin_time)),
                 shape('text', {x: width, y: 30, 'text-anchor': 'end'}, 'now'));
  return picture;
}

function showTimeline(status) {
  const timeline = status.timeline;
  byId('timeline').hidden = !timeline || timeline.event_count === 0;
  if (byId('timeline').hidden) return;
  byId('goodput').textContent =
    `goodput ${number(Math.round(timeline.goodput * 1000) / 10)}%: of ` +
    `${duration(timeline.elapsed_seconds)} of training, losses have cost ` +
    `${duration(timeline.lost_seconds)}; ${number(timeline.event_count)} events`;
  byId('timeline_chart').replaceChildren(
    ...(timeline.begin_time ? [timelineChart(timeline, status.time)] : []));
  byId('events').replaceChildren(...timeline.events.slice().reverse().map((event) => {
    const line = element('li');
    line.append(element('span', `${clockTime(event.time)} `, 'dim'), event.text);
    if (event.cost_seconds >= 1e-3) {
      line.append(element('span', ` cost ${duration(event.cost_seconds)}`, 'warn'));
    }
    return line;
  }));
}

function showProblems(problems) {
  byId('problems').hidden = problems.latest.length === 0;
  byId('log').replaceChildren(...problems.latest.slice().reverse().map((record) => {
    const line = element('li');
    line.append(element('span', `${clockTime(record.time)} `, 'dim'),
                element('span', `${record.severity} `, record.severity === 'error' ? 'bad' : 'warn'),
                record.message);
    return line;
  }));
}

function showProcess(status) {
  const process = status.process;
  const rows = [['task', process.task], ['job', process.job], ['address', process.address],
                ['host', process.host], ['process', process.process_id],
                ['incarnation', process.incarnation],
                ['started', `${clockTime(process.start_time)}, ` +
                            `${duration(process.uptime_seconds)} ago`],
                ['Muster', process.version]];
  byId('process').tBodies[0].replaceChildren(
    ...rows.filter(([, value]) => value !== undefined).map(([name, value]) => {
      const row = element('tr');
      row.append(element('th', name), element('td', value));
      return row;
    }));
}

function show(status) {
  latest = status;
  const name = [status.process.job, status.process.task].filter(Boolean).join(' - ');
  document.title = `${name} - Muster`;
  byId('title').textContent = name;
  byId('ready').textContent = status.ready ? 'ready' : 'not ready';
  byId('ready').className = `pill ${status.ready ? 'good' : 'warn'}`;
  byId('main').hidden = false;
  byId('login').hidden = true;
  showTiles(status);
  showAlerts(status);
  showCharts(status.training);
  showCollectives(status.collectives);
  showTasks(status);
  showTimeline(status);
  showProblems(status.problems);
  showProcess(status);
}

let token = sessionStorage.getItem('muster_token') || '';
let answeredAt = null;

async function poll() {
  const note = byId('updated');
  try {
    const headers = token ? {Authorization: `Bearer ${token}`} : {};
    const answer = await fetch('status.json', {headers, cache: 'no-store',
                                               signal: AbortSignal.timeout(5 * POLL_MS)});
    if (answer.status === 401) {
      byId('login').hidden = false;
      note.textContent = token ? 'This token is not accepted.' : '';
      return;  // Polling continues when a token is entered.
    }
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    show(await answer.json());
    answeredAt = Date.now();
    note.textContent = `updated ${new Date().toLocaleTimeString()}`;
    note.className = 'dim';
  } catch (error) {
    const since = answeredAt === null ? ''
                                      : ` for ${duration((Date.now() - answeredAt) / 1000)}`;
    note.textContent = `no answer${since}: the process has ended or cannot be reached`;
    note.className = 'bad';
  }
  setTimeout(poll, POLL_MS);
}

byId('filter').addEventListener('input', () => latest && showTasks(latest));
byId('more').addEventListener('click', () => { showsAll = true; showTasks(latest); });
byId('enter').addEventListener('click', () => {
  token = byId('token').value.trim();
  sessionStorage.setItem('muster_token', token);
  poll();
});
byId('token').addEventListener('keydown', (event) => {
  if (event.key === 'Enter') byId('enter').click();
});
poll();
