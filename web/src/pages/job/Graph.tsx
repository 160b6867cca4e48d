import { useMemo, useState } from 'preact/hooks';
import { api, type GraphNode } from '../../api.ts';
import { bytes, count } from '../../format.ts';
import { useLoad } from '../../parts/hooks.ts';
import { Empty, ErrorBox, Loading } from '../../parts/parts.tsx';
import { BOX_HEIGHT, deviceLabel, layoutGraph, modelOf, type Box, type Edge, type GraphLayout, type Model } from './graphLayout.ts';

const curve = (a: Box, b: Box): string => {
  const [x0, y0, x1, y1] = [a.x + a.width, a.y + BOX_HEIGHT / 2, b.x, b.y + BOX_HEIGHT / 2];
  const middle = (x0 + x1) / 2;
  return `M${x0} ${y0}C${middle} ${y0} ${middle} ${y1} ${x1} ${y1}`;
};

// Wider for more bytes; the largest has 7 px.
const edgeWidth = (edge: Edge, most: number): number => 1 + 6 * Math.sqrt(edge.bytes / Math.max(1, most));

function Drawing({ layout, selected, search, onSelect, zoom, label }: {
  layout: GraphLayout; selected: string | null; search: string; onSelect: (box: Box) => void; zoom: number; label: string;
}) {
  const byId = new Map(layout.boxes.map((box) => [box.id, box]));
  const most = Math.max(...layout.edges.map((edge) => edge.bytes), 1);
  const models = layout.boxes.filter((box) => box.kind === 'layer');
  const touches = (edge: Edge) => selected !== null && (edge.from === selected || edge.to === selected);
  const onKey = (event: KeyboardEvent, box: Box) => {
    if (event.key !== 'Enter' && event.key !== ' ') return;
    event.preventDefault();
    onSelect(box);
  };
  return (
    <svg class="graph" viewBox={`0 0 ${layout.width} ${layout.height}`} width={layout.width * zoom} height={layout.height * zoom} role="group" aria-label={label}>
      {layout.boxes.filter((box) => box.kind === 'task').map((task) => models.map((layer) => (
        <path key={`${task.id} ${layer.id}`} class={`edge edge-task ${selected === task.id || selected === layer.id ? 'edge-on' : ''}`} d={curve(task, layer)} />
      )))}
      {layout.edges.map((edge) => (
        <path key={`${edge.from} ${edge.to}`} class={`edge ${touches(edge) ? 'edge-on' : ''}`} d={curve(byId.get(edge.from)!, byId.get(edge.to)!)} stroke-width={edgeWidth(edge, most)} />
      ))}
      {layout.boxes.map((box) => {
        const found = search !== '' && box.id.toLowerCase().includes(search);
        return (
          <g
            key={box.id} class={`node node-${box.kind} ${selected === box.id ? 'node-on' : ''} ${found ? 'node-found' : ''}`} role="button" tabIndex={0}
            aria-expanded={box.open} onClick={() => onSelect(box)}
            onKeyDown={(event) => onKey(event, box)}
          >
            <title>{`${box.kind} ${box.label}`}</title>
            <rect x={box.x} y={box.y} width={box.width} height={BOX_HEIGHT} rx="4" />
            {box.kind === 'layer' && <path class="node-arrow" d={box.open ? `M${box.x + 9} ${box.y + 11}l4 4l4 -4` : `M${box.x + 11} ${box.y + 9}l4 4l-4 4`} />}
            <text x={box.x + (box.kind === 'layer' ? 24 : 9)} y={box.y + 17}>{box.label.length > 26 ? `${box.label.slice(0, 25)}…` : box.label}</text>
            {box.bytes !== null && <text class="node-bytes" x={box.x + box.width - 9} y={box.y + 17} text-anchor="end">{bytes(box.bytes)}</text>}
          </g>
        );
      })}
    </svg>
  );
}

function Nodes({ nodes }: { nodes: readonly GraphNode[] }) {
  return (
    <table>
      <thead><tr><th>Node</th><th>Op</th><th>Place</th><th>Shape</th><th class="num">Bytes</th></tr></thead>
      <tbody>
        {nodes.slice(0, 200).map((node) => (
          <tr key={node.name}>
            <td class="mono wrap">{node.name}</td><td>{node.op}</td><td>{deviceLabel(node.device)}</td>
            <td class="mono">{node.shape ? `[${node.shape.join(', ')}]` : '–'}</td><td class="num">{bytes(node.bytes)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function nodesOf(model: Model, id: string): GraphNode[] {
  const name = id.slice(id.indexOf(' ') + 1);
  const variables = model.layers.flatMap((layer) => layer.variables);
  if (id.startsWith('layer ')) {
    const layer = model.layers.find((l) => l.name === name);
    return layer ? [...layer.variables.flatMap((v) => v.nodes), ...layer.operations] : [];
  }
  if (id.startsWith('variable ')) return variables.find((v) => v.name === name)?.nodes ?? [];
  if (id.startsWith('device ')) return variables.flatMap((v) => v.nodes).filter((node) => node.device === name);
  return model.layers.flatMap((l) => l.operations).filter((node) => deviceLabel(node.device) === name);
}

export function GraphTab({ id }: { id: string }) {
  const { data, error, reload } = useLoad((signal) => api.graph(id, signal), [id]);
  const model = useMemo(() => (data ? modelOf(data) : null), [data]);
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const [selected, setSelected] = useState<string | null>(null);
  const [search, setSearch] = useState('');
  const [zoom, setZoom] = useState(1);
  if (error && !data) return <ErrorBox message={error} retry={reload} />;
  if (!model) return <Loading what="the graph" />;
  if (model.layers.length === 0) return <Empty title="No graph"><p class="muted">The built-in trainer writes the graph of its model when it starts.</p></Empty>;
  const text = search.toLowerCase();
  const matching = text === '' ? [] : model.layers.filter((l) => l.name.toLowerCase().includes(text) || l.variables.some((v) => v.name.toLowerCase().includes(text)));
  const shownOpen = new Set([...open, ...matching.filter((l) => l.variables.some((v) => v.name.toLowerCase().includes(text))).map((l) => l.name)]);
  const layout = layoutGraph(model, shownOpen);
  const select = (box: Box) => {
    setSelected(box.id);
    if (box.kind !== 'layer') return;
    const next = new Set(open);
    if (!next.delete(box.label)) next.add(box.label);
    setOpen(next);
  };
  const total = model.layers.reduce((sum, layer) => sum + layer.bytes, 0);
  return (
    <>
      <div class="controls">
        <input type="search" data-search placeholder="Search layers and variables" aria-label="Search layers and variables" value={search} onInput={(event) => setSearch(event.currentTarget.value)} />
        <button type="button" aria-label="Zoom out" onClick={() => setZoom(Math.max(0.4, zoom / 1.25))}>−</button>
        <button type="button" aria-label="Zoom in" onClick={() => setZoom(Math.min(4, zoom * 1.25))}>+</button>
        <button type="button" onClick={() => setOpen(open.size > 0 ? new Set() : new Set(model.layers.map((l) => l.name)))}>{open.size > 0 ? 'Collapse all' : 'Expand all'}</button>
        <span class="muted">{count(model.layers.length, 'layer')}, {bytes(total)} on {count(model.devices.length, 'device')}{text && `, ${matching.length} found`}</span>
      </div>
      <div class="graph-page">
        <div class="graph-wrap" tabIndex={0} role="region" aria-label="Graph">
          <Drawing layout={layout} selected={selected} search={text} onSelect={select} zoom={zoom} label="Layers, their variables and the devices that hold them" />
        </div>
        <div class="graph-side">
          {selected ? <><h2>{selected.replace(/^device .*$/, deviceLabel(selected.slice(7)))}</h2><Nodes nodes={nodesOf(model, selected)} /></>
            : <p class="muted">Select a layer, variable or device for its shape, place and size. The lines are as wide as the bytes that they stand for.</p>}
        </div>
      </div>
    </>
  );
}
