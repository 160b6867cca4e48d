// Draws charts into one picture, with titles and a legend.
import { drawAxes, drawSeries, layoutOf, type PlotColors, type PlotOptions, type PlotSeries } from './plot.ts';

export interface Picture {
  title: string;
  series: readonly PlotSeries[];
  options: PlotOptions;
}

const SCALE = 2;
const WIDTH = 720;
const HEIGHT = 320;
const TITLE = 26;
const LINE = 18;
const MOST_LABELS = 40;

export async function toPng(pictures: readonly Picture[], colors: PlotColors): Promise<Blob> {
  const columns = pictures.length > 1 ? 2 : 1;
  const rows = Math.ceil(pictures.length / columns);
  const labels = legendOf(pictures);
  const legendRows = Math.ceil(labels.length / (columns * 2));
  const canvas = document.createElement('canvas');
  const width = columns * WIDTH;
  const height = rows * (HEIGHT + TITLE) + legendRows * LINE + 16;
  canvas.width = width * SCALE;
  canvas.height = height * SCALE;
  const context = canvas.getContext('2d')!;
  context.scale(SCALE, SCALE);
  context.fillStyle = colors.background;
  context.fillRect(0, 0, width, height);
  pictures.forEach((picture, i) => {
    context.save();
    context.translate((i % columns) * WIDTH, Math.floor(i / columns) * (HEIGHT + TITLE));
    drawOne(context, picture, colors);
    context.restore();
  });
  drawLegend(context, labels, rows * (HEIGHT + TITLE) + 8, columns * 2, colors);
  return new Promise((resolve, reject) => {
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error('the browser cannot write the picture'))), 'image/png');
  });
}

function drawOne(context: CanvasRenderingContext2D, { title, series, options }: Picture, colors: PlotColors): void {
  context.fillStyle = colors.text;
  context.font = '600 13px system-ui, sans-serif';
  context.textAlign = 'left';
  context.textBaseline = 'top';
  context.fillText(title, 12, 8);
  context.translate(0, TITLE);
  const layout = layoutOf(context, WIDTH, HEIGHT, series, options, null);
  if (!layout) return;
  drawAxes(context, layout, options, colors);
  drawSeries(context, layout, series, options, null);
}

function legendOf(pictures: readonly Picture[]): { label: string; color: string }[] {
  const labels = new Map<string, string>();
  for (const { series } of pictures) for (const s of series) if (!s.quiet) labels.set(s.label, s.color);
  return [...labels].slice(0, MOST_LABELS).map(([label, color]) => ({ label, color }));
}

function drawLegend(
  context: CanvasRenderingContext2D, labels: readonly { label: string; color: string }[], top: number, columns: number, colors: PlotColors,
): void {
  context.font = '12px system-ui, sans-serif';
  context.textAlign = 'left';
  context.textBaseline = 'middle';
  labels.forEach(({ label, color }, i) => {
    const x = 12 + (i % columns) * (WIDTH / 2);
    const y = top + Math.floor(i / columns) * LINE;
    context.fillStyle = color;
    context.fillRect(x, y + 3, 10, 10);
    context.fillStyle = colors.text;
    context.fillText(label, x + 16, y + 9, WIDTH / 2 - 30);
  });
}
