// usage: node tfrecord_client.mjs read FILE | write FILE
// A third-party TFRecord library: prints the examples of FILE as JSON, one per line, or writes three. NODE_PATH is
// the folder of the library.
import { createRequire } from "node:module";
import { join } from "node:path";

const [action, file] = process.argv.slice(2);
const require = createRequire(join(process.env.NODE_PATH, "index.js"));
const tfrecord = require("tfrecord");

if (action === "read") {
  const reader = await tfrecord.createReader(file);
  for (let example; (example = await reader.readExample()); ) console.log(JSON.stringify(example.toJSON()));
} else {
  const writer = await tfrecord.createWriter(file);
  for (let i = 0; i < 3; ++i) {
    const builder = tfrecord.createBuilder();
    builder.setIntegers("label", [i]);
    builder.setFloats("features", [i + 0.5, -i]);
    builder.setBinary("name", new Uint8Array([97 + i]));
    await writer.writeExample(builder.releaseExample());
  }
  await writer.close();
}
