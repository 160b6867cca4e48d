// Arranges a model's graph in columns: training tasks, layers with their variables, devices.
import type { Graph, GraphNode } from '../../api.ts';

export interface Variable {
  name: string;
  // Its nodes: one, or one a part.
  nodes: GraphNode[];
  bytes: number;
}

export interface Layer {
  name: string;
  variables: Variable[];
  operations: GraphNode[];
  bytes: number;
}

export interface Device {
  device: string;
  label: string;
  bytes: number;
}

export interface Model {
  layers: Layer[];
  devices: Device[];
  // Tasks that compute, without variables of their own.
  tasks: string[];
}

// Operations of a task have its name as prefix, if there are several: chief_0/fc1/addmm.
const TASK_PREFIX = /^(chief|master|worker|evaluator)_\d+\//;

export const isVariable = (node: GraphNode): boolean => /^(Variable|VariableV2|VarHandleOp)$/.test(node.op);

export function layerOf(name: string): string {
  const path = name.replace(TASK_PREFIX, '').replace(/^(train|gradients)\//, '');
  return path.includes('/') ? path.slice(0, path.indexOf('/')) : path;
}

const variableOf = (name: string): string => name.replace(/\/part_\d+$/, '');

export function deviceLabel(device: string): string {
  const match = /\/job:([^/]+)\/(?:replica:\d+\/)?task:(\d+)/.exec(device);
  return match ? `${match[1]}:${match[2]}` : device || 'none';
}

export function modelOf(graph: Graph): Model {
  const layers = new Map<string, Layer>();
  const computing = new Set<string>();
  const layerNamed = (name: string): Layer => {
    let layer = layers.get(name);
    if (!layer) layers.set(name, (layer = { name, variables: [], operations: [], bytes: 0 }));
    return layer;
  };
  const withVariables = new Set(graph.nodes.filter(isVariable).map((node) => layerOf(node.name)));
  for (const node of graph.nodes) {
    if (isVariable(node)) {
      addVariable(layerNamed(layerOf(node.name)), node);
      continue;
    }
    const prefix = TASK_PREFIX.exec(node.name);
    if (prefix) computing.add(prefix[0].slice(0, -1).replace(/_(\d+)$/, ':$1'));
    else if (/\/job:(chief|master|worker)\//.test(node.device)) computing.add(deviceLabel(node.device));
    if (withVariables.has(layerOf(node.name))) layerNamed(layerOf(node.name)).operations.push(node);
  }
  const known = new Map(graph.devices.map((d) => [d.device, { device: d.device, label: d.task ?? deviceLabel(d.device), bytes: d.bytes }]));
  for (const layer of layers.values()) {
    for (const { nodes } of layer.variables) {
      for (const node of nodes) if (!known.has(node.device)) known.set(node.device, { device: node.device, label: deviceLabel(node.device), bytes: 0 });
    }
  }
  const used = new Set([...layers.values()].flatMap((layer) => layer.variables.flatMap((v) => v.nodes.map((n) => n.device))));
  return { layers: [...layers.values()], devices: [...known.values()].filter((d) => used.has(d.device)), tasks: [...computing].sort() };
}

function addVariable(layer: Layer, node: GraphNode): void {
  const name = variableOf(node.name);
  let variable = layer.variables.find((v) => v.name === name);
  if (!variable) layer.variables.push((variable = { name, nodes: [], bytes: 0 }));
  variable.nodes.push(node);
  variable.bytes += node.bytes ?? 0;
  layer.bytes += node.bytes ?? 0;
}

export interface Box {
  id: string;
  kind: 'task' | 'layer' | 'variable' | 'device';
  label: string;
  bytes: number | null;
  x: number;
  y: number;
  width: number;
  open?: boolean;
}

export interface Edge {
  from: string;
  to: string;
  bytes: number;
}

export interface GraphLayout {
  boxes: Box[];
  edges: Edge[];
  width: number;
  height: number;
}

export const BOX_HEIGHT = 26;
const GAP = 8;
const COLUMNS = { task: { x: 10, width: 110 }, layer: { x: 220, width: 270 }, variable: { x: 240, width: 250 }, device: { x: 620, width: 170 } };

// Places the boxes; `open` names the layers whose variables are shown.
export function layoutGraph(model: Model, open: ReadonlySet<string>): GraphLayout {
  const boxes: Box[] = [];
  const edges: Edge[] = [];
  let y = 10;
  const add = (kind: Box['kind'], id: string, label: string, bytes: number | null, top: number): Box => {
    const box = { id, kind, label, bytes, y: top, ...COLUMNS[kind] };
    boxes.push(box);
    return box;
  };
  for (const layer of model.layers) {
    const box = add('layer', `layer ${layer.name}`, layer.name, layer.bytes, y);
    box.open = open.has(layer.name);
    y += BOX_HEIGHT + (box.open ? 4 : GAP);
    if (!box.open) {
      addEdges(edges, box.id, layer.variables.flatMap((v) => v.nodes));
      continue;
    }
    for (const variable of layer.variables) {
      const label = variable.name.slice(layer.name.length + 1) || variable.name;
      const inner = add('variable', `variable ${variable.name}`, label, variable.bytes, y);
      addEdges(edges, inner.id, variable.nodes);
      y += BOX_HEIGHT + 4;
    }
    y += GAP;
  }
  const columns: [Box['kind'], { id: string; label: string; bytes: number | null }[]][] = [
    ['task', model.tasks.map((task) => ({ id: `task ${task}`, label: task, bytes: null }))],
    ['device', model.devices.map((d) => ({ id: `device ${d.device}`, label: d.label, bytes: d.bytes }))],
  ];
  const height = Math.max(y, ...columns.map(([, list]) => list.length * (BOX_HEIGHT + GAP) + 20));
  for (const [kind, list] of columns) {
    const space = Math.min(80, (height - 20) / Math.max(1, list.length));
    const top = Math.max(10, (height - space * list.length) / 2);
    list.forEach((item, i) => add(kind, item.id, item.label, item.bytes, top + i * space));
  }
  return { boxes, edges, width: 800, height };
}

function addEdges(edges: Edge[], from: string, nodes: readonly GraphNode[]): void {
  const bytes = new Map<string, number>();
  for (const node of nodes) bytes.set(node.device, (bytes.get(node.device) ?? 0) + (node.bytes ?? 0));
  for (const [device, size] of bytes) edges.push({ from, to: `device ${device}`, bytes: size });
}
