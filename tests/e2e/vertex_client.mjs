// usage: node vertex_client.mjs ADDRESS TOKEN
// Google's own clients against the Vertex AI and the Cloud Logging of our tests. All assertions also hold for Google's servers.
import assert from "node:assert/strict";
import { createRequire } from "node:module";

const require = createRequire(`${process.env.NODE_PATH}/index.js`);
const { JobServiceClient } = require("@google-cloud/aiplatform");
const { v2 } = require("@google-cloud/logging");

const address = new URL(process.argv[2]);
// The authentication library, in the version that the client's own transport uses.
const signerOf = (name, token) => {
  const transport = createRequire(require.resolve(name)).resolve("google-gax");
  const signer = new (createRequire(transport)("google-auth-library").OAuth2Client)();
  signer.setCredentials({ access_token: token, expiry_date: Date.now() + 3_600_000 });
  return signer;
};
const options = (name, token) => ({
  fallback: true, protocol: "http", apiEndpoint: address.hostname, port: Number(address.port), projectId: "project",
  authClient: signerOf(name, token),
});
const test = async (command) => (await fetch(`${address}test/vertex`, { method: "POST", body: JSON.stringify(command) })).json();

const parent = "projects/project/locations/us-central1";
const client = new JobServiceClient(options("@google-cloud/aiplatform", process.argv[3]));
const container = { imageUri: "gcr.io/project/image:1", command: ["python3"], args: ["--epochs=3"] };
const pool = { machineSpec: { machineType: "n1-standard-4" }, replicaCount: 1, containerSpec: container };

// A created job is read back unchanged.
const customJob = { displayName: "job1", jobSpec: { workerPoolSpecs: [pool, {}, { ...pool, replicaCount: 2 }] } };
const [made] = await client.createCustomJob({ parent, customJob });
assert.match(made.name, /^projects\/123456789\/locations\/us-central1\/customJobs\/\d+$/);
assert.equal(made.state, "JOB_STATE_PENDING");
assert.equal(String(made.jobSpec.workerPoolSpecs[2].replicaCount), "2");
const [found] = await client.getCustomJob({ name: made.name });
assert.equal(found.displayName, "job1");

// Invalid requests are rejected.
const refused = (promise, code) => assert.rejects(promise, (error) => {
  assert.ok([error.code, error.status].includes(code), error);
  return true;
});
await refused(client.createCustomJob({ parent, customJob: { displayName: "none", jobSpec: {} } }), 400);
await refused(client.getCustomJob({ name: `${parent}/customJobs/1` }), 404);
await refused(client.createCustomJob({ parent: "projects/another/locations/us-central1", customJob }), 403);
await refused(new JobServiceClient(options("@google-cloud/aiplatform", "stolen")).getCustomJob({ name: made.name }), 401);

// Lists all jobs in pages, or those with a label.
for (let i = 0; i < 5; ++i) {
  await client.createCustomJob({ parent, customJob: { ...customJob, displayName: `more${i}`, labels: { kind: `k${i % 2}` } } });
}
const names = async (request) => (await client.listCustomJobs({ parent, ...request }))[0].map((job) => job.displayName);
assert.deepEqual(await names({}), ["more4", "more3", "more2", "more1", "more0", "job1"]);
assert.deepEqual(await names({ filter: 'labels.kind="k1"' }), ["more3", "more1"]);
assert.deepEqual(await names({ filter: 'labels.kind="none"' }), []);

// A cancelled job ends a moment later.
await client.cancelCustomJob({ name: made.name });
assert.equal((await client.getCustomJob({ name: made.name }))[0].state, "JOB_STATE_CANCELLING");
assert.equal((await client.getCustomJob({ name: made.name }))[0].state, "JOB_STATE_CANCELLED");

// The log is in order across pages, also for equal times.
const job = made.name.split("/").pop();
const timestamp = "2026-01-01T00:00:31.000000001Z";
await test({ entries: [
  { job, message: "later", timestamp: "2026-01-01T00:00:32Z", text: true, task: "service" },
  ...["a", "b", "c", "d"].map((id) => ({ job, message: id, timestamp, insertId: id })),
  { job: "7", message: "of another", timestamp },
] });
const logging = new v2.LoggingServiceV2Client(options("@google-cloud/logging-api", process.argv[3]));
const filter = `resource.type="ml_job" AND resource.labels.job_id="${job}"`;
const read = async (more, orderBy = "timestamp asc") => (await logging.listLogEntries(
  { resourceNames: ["projects/project"], filter: filter + more, orderBy, pageSize: 2 }))[0];
const messages = (entries) => entries.map((entry) => entry.textPayload || entry.jsonPayload.fields.message.stringValue);
assert.deepEqual(messages(await read("")), ["a", "b", "c", "d", "later"]);
assert.deepEqual(messages(await read(' AND timestamp<"2026-01-01T00:00:32Z"')), ["a", "b", "c", "d"]);
assert.deepEqual(messages(await read("", "timestamp desc")), ["later", "d", "c", "b", "a"]);
assert.deepEqual(messages(await read(' AND timestamp>="2026-01-01T00:00:32Z"')), ["later"]);
assert.deepEqual(messages(await read(' AND resource.labels.task_name="service"')), ["later"]);
await refused(read(" AND nonsense"), 400);

console.log("all is well");
