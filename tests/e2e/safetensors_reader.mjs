// usage: node safetensors_reader.mjs FOLDER FILE
// Prints FILE (a .safetensors file or an index) of FOLDER as Hugging Face's own client parses it, as JSON. NODE_PATH is
// the folder of the client.
import { createRequire } from "node:module";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [folder, file] = process.argv.slice(2);
const require = createRequire(join(process.env.NODE_PATH, "index.js"));
const { parseSafetensorsMetadata } = await import(pathToFileURL(require.resolve("@huggingface/hub")).href);

// The folder replaces the hub.
async function fetchFromFolder(url, options = {}) {
  const name = decodeURIComponent(new URL(url).pathname.split("/").pop());
  const bytes = await readFile(join(folder, name)).catch(() => null);
  if (!bytes) return new Response("", { status: 404 });
  const range = /bytes=(\d+)-(\d+)/.exec(new Headers(options.headers).get("range") ?? "");
  const [begin, end] = range ? [Number(range[1]), Math.min(Number(range[2]) + 1, bytes.length)] : [0, bytes.length];
  return new Response(options.method === "HEAD" ? null : bytes.subarray(begin, end), {
    status: range ? 206 : 200,
    headers: {
      "content-length": String(end - begin),
      "content-range": `bytes ${begin}-${end - 1}/${bytes.length}`,
      etag: '"local"',
    },
  });
}

const parsed = await parseSafetensorsMetadata({
  repo: "muster/test",
  path: file,
  computeParametersCount: true,
  fetch: fetchFromFolder,
});
console.log(JSON.stringify(parsed));
