// usage: node gs_client.mjs ADDRESS
// Google's own client against tests/gs_server.mjs at ADDRESS, which has a bucket "bucket". All assertions also hold
// for Google's servers. NODE_PATH is the folder of the client.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";

const address = process.argv[2];
const require = createRequire(join(process.env.NODE_PATH, "index.js"));
const { Storage } = require("@google-cloud/storage");
const storage = new Storage({ apiEndpoint: address, projectId: "project", useAuthWithCustomEndpoint: false });
const bucket = storage.bucket("bucket");
const folder = await mkdtemp(join(tmpdir(), "muster-gs-"));
// Its parts report an HTTP status in different ways.
const statuses = (error) => [error.code, error.status, error.response?.status];
const fails = (code) => (error) => statuses(error).includes(code) || assert.fail(error.message);
const large = randomBytes(1_500_000);

async function uploads() {
  const metadata = { contentType: "text/plain" };
  await bucket.file("small").save("content", { resumable: false, validation: "crc32c", metadata });
  const [meta] = await bucket.file("small").getMetadata();
  assert.equal(meta.size, "7");
  assert.equal(meta.contentType, "text/plain");
  assert.equal(String((await bucket.file("small").download({ validation: "crc32c" }))[0]), "content");

  // A resumable upload in one request, and in chunks.
  await writeFile(join(folder, "large"), large);
  await bucket.upload(join(folder, "large"), { destination: "large", resumable: true, validation: "crc32c" });
  assert.deepEqual((await bucket.file("large").download())[0], large);
  const options = { resumable: true, chunkSize: 512 * 1024, validation: "crc32c" };
  await pipeline(Readable.from([large]), bucket.file("chunked").createWriteStream(options));
  assert.deepEqual((await bucket.file("chunked").download())[0], large);
}

async function downloads() {
  const [part] = await bucket.file("large").download({ start: 10, end: 19, validation: false });
  assert.deepEqual(part, large.subarray(10, 20));
  await bucket.file("large").download({ destination: join(folder, "back") });
  assert.deepEqual(await readFile(join(folder, "back")), large);
  await assert.rejects(bucket.file("absent").download(), fails(404));
  await assert.rejects(storage.bucket("nowhere").file("x").getMetadata(), fails(404));
  assert.deepEqual(await storage.bucket("nowhere").exists(), [false]);
  assert.deepEqual(await bucket.exists(), [true]);
}

async function lists() {
  const names = ["l/a b", "l/100%", "l/x#y?z", "l/日本", "l/d/1", "l/d/2", "l/e/f/g"];
  for (const name of names) await bucket.file(name).save("x", { resumable: false });
  const [files] = await bucket.getFiles({ prefix: "l/" });
  assert.deepEqual(files.map((file) => file.name).sort(), [...names].sort());
  const [here, , response] = await bucket.getFiles({ prefix: "l/", delimiter: "/", autoPaginate: false });
  assert.deepEqual(here.map((file) => file.name).sort(), names.slice(0, 4).sort());
  assert.deepEqual(response.prefixes, ["l/d/", "l/e/"]);
  const [first, next] = await bucket.getFiles({ prefix: "l/", maxResults: 3, autoPaginate: false });
  assert.equal(first.length, 3);
  assert.ok(next.pageToken);
  const [second] = await bucket.getFiles(next);
  assert.notEqual(second[0].name, first[0].name);
  for (const name of names) assert.equal(String((await bucket.file(name).download())[0]), "x");
}

async function conditions() {
  const file = bucket.file("once");
  await file.save("first", { resumable: false, preconditionOpts: { ifGenerationMatch: 0 } });
  for (const resumable of [false, true]) {
    await assert.rejects(file.save("second", { resumable, preconditionOpts: { ifGenerationMatch: 0 } }), fails(412));
  }
  const [{ generation }] = await file.getMetadata();
  await file.save("third", { resumable: true, preconditionOpts: { ifGenerationMatch: generation } });
  await assert.rejects(bucket.file("once", { generation }).getMetadata(), fails(404));
  await assert.rejects(file.delete({ ifGenerationMatch: generation }), fails(412));
  assert.equal(String((await file.download())[0]), "third");
  await file.delete();
  assert.deepEqual(await file.exists(), [false]);
}

try {
  await uploads();
  await downloads();
  await lists();
  await conditions();
  console.log("all is well");
} finally {
  await rm(folder, { recursive: true });
}
