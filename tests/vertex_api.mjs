// Vertex AI's CustomJobs and Cloud Logging's entries, as far as the tests need them: a part of gs_server.mjs. Requests
// are validated against Google's published schema (npm's @google-cloud/aiplatform, if it is installed), and the
// official clients check the responses (e2e/vertex_api_test.py).
//
// Tests set the state of jobs: POST /test/vertex {"job": ID, "set": {"state": "JOB_STATE_RUNNING", …}} or
// {"entries": [{"job": ID, "message": …, "task": …, …}]}; GET returns the created jobs and the requests.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const kProjectNumber = "123456789";
const kPackage = "google.cloud.aiplatform.v1";
const jobs = new Map(); // by number, in the order of creation
const entries = [];
const seen = { filters: [], created: [] };
let lastNumber = 4242424242424242n;
let lastInsert = 0;

class ApiError extends Error {
  constructor(code, status, message, details) {
    super(message);
    Object.assign(this, { code, status, details });
  }
}

const invalid = (message) => new ApiError(400, "INVALID_ARGUMENT", message);
const unknown = (name) => new ApiError(404, "NOT_FOUND", `The resource ${name} was not found.`);

// ---- the schema

const modules = join(dirname(fileURLToPath(import.meta.url)), "../build/npm/node_modules");
let root; // null: not installed

function schema() {
  if (root !== undefined) return root;
  try {
    const require = createRequire(join(modules, "index.js"));
    const protos = readFileSync(join(modules, "@google-cloud/aiplatform/build/protos/protos.json"), "utf8");
    root = require("protobufjs").Root.fromJSON(JSON.parse(protos));
  } catch (error) {
    if (!["MODULE_NOT_FOUND", "ENOENT"].includes(error.code)) throw error;
    root = null;
  }
  return root;
}

// The JSON forms of numbers in protobuf's mapping.
const kIntegers64 = ["int64", "uint64", "sint64", "fixed64", "sfixed64"];
const kIntegers32 = ["int32", "uint32", "sint32", "fixed32", "sfixed32"];

function checkScalar(type, value, where) {
  const good = kIntegers64.includes(type) ? typeof value === "string" && /^-?\d+$/.test(value)
    : kIntegers32.includes(type) ? Number.isInteger(value)
    : type === "bool" ? typeof value === "boolean"
    : type === "double" || type === "float" ? typeof value === "number"
    : typeof value === "string";
  if (!good) throw invalid(`Invalid value at '${where}' (TYPE_${type.toUpperCase()}), ${JSON.stringify(value)}`);
}

function checkValue(field, value, where) {
  const type = field.resolve().resolvedType; // all at once would take seconds
  if (!type) return checkScalar(field.type, value, where);
  if (type.values) {
    if (!(value in type.values)) throw invalid(`Invalid value at '${where}' (${type.name}), "${value}"`);
  } else if (type.fullName === ".google.protobuf.Duration") {
    if (!/^\d+(\.\d+)?s$/.test(value)) throw invalid(`Invalid duration at '${where}': ${value}`);
  } else if (!type.fullName.startsWith(".google.protobuf.")) {
    checkMessage(type, value, where);
  }
}

function checkMessage(type, json, where) {
  if (json === null || typeof json !== "object" || Array.isArray(json)) throw invalid(`'${where}' is no message`);
  for (const [name, value] of Object.entries(json)) {
    const field = Object.values(type.fields).find((other) =>
      other.name.replace(/_(\w)/g, (_, letter) => letter.toUpperCase()) === name);
    const place = where ? `${where}.${name}` : name;
    if (!field) throw invalid(`Invalid JSON payload received. Unknown name "${name}" at '${where}': Cannot find field.`);
    if (field.map) for (const member of Object.values(value)) checkValue(field, member, place);
    else if (field.repeated) value.forEach((member, i) => checkValue(field, member, `${place}[${i}]`));
    else checkValue(field, value, place);
  }
}

// ---- jobs

// The machine types of custom training, https://cloud.google.com/vertex-ai/docs/training/configure-compute#machine-types.
const sizes = (family, counts) => counts.map((count) => `${family}-${count}`);
const kMachineTypes = new Set([
  ...sizes("e2-standard", [4, 8, 16, 32]), ...sizes("e2-highmem", [2, 4, 8, 16]), ...sizes("e2-highcpu", [16, 32]),
  ...["standard", "highmem"].flatMap((kind) => sizes(`n2-${kind}`, [4, 8, 16, 32, 48, 64, 80])), ...sizes("n2-highcpu", [16, 32, 48, 64, 80]),
  ...sizes("n1-standard", [4, 8, 16, 32, 64, 96]), ...sizes("n1-highmem", [2, 4, 8, 16, 32, 64, 96]), ...sizes("n1-highcpu", [16, 32, 64, 96]),
  ...sizes("c2-standard", [4, 8, 16, 30, 60]), ...sizes("m1-ultramem", [40, 80, 160]), "m1-megamem-96",
  ...["1g", "2g", "4g", "8g"].flatMap((size) => [`a2-highgpu-${size}`, `a2-ultragpu-${size}`]), "a2-megagpu-16g", "a3-highgpu-8g",
  ...sizes("g2-standard", [4, 8, 12, 16, 24, 32, 48, 96]),
]);
const isRegion = (name) => /^(africa|asia|australia|europe|me|northamerica|southamerica|us)-(north|south|east|west|central)+\d{1,2}$/.test(name);

function checkPools(job) {
  const pools = job.jobSpec?.workerPoolSpecs ?? [];
  if (!job.displayName) throw invalid("Field: display_name; Message: Required field is not set.");
  if (pools.length === 0) throw invalid("List of found errors: job_spec.worker_pool_specs is empty.");
  if (pools[0].replicaCount !== "1") throw invalid("The first worker pool must have exactly one replica.");
  for (const pool of pools.filter((other) => Object.keys(other).length > 0)) {
    const type = pool.machineSpec?.machineType;
    if (!type) throw invalid("machine_spec.machine_type is required.");
    if (!kMachineTypes.has(type)) throw invalid(`machine_spec.machine_type: Machine type "${type}" is not supported.`);
    if (!pool.containerSpec?.imageUri) throw invalid("container_spec.image_uri is required.");
  }
  for (const [key, value] of Object.entries(job.labels ?? {})) {
    if (!/^[a-z][a-z0-9_-]{0,62}$/.test(key) || !/^[a-z0-9_-]{0,63}$/.test(value)) throw invalid("Invalid label.");
  }
}

function create(region, job) {
  if (schema()) checkMessage(schema().lookupType(`${kPackage}.CustomJob`), job, "");
  checkPools(job);
  seen.created.push(job);
  const number = String(++lastNumber);
  const now = new Date().toISOString();
  const made = {
    name: `projects/${kProjectNumber}/locations/${region}/customJobs/${number}`, ...job,
    state: "JOB_STATE_PENDING", createTime: now, updateTime: now,
  };
  jobs.set(number, made);
  return made;
}

function jobOf(number) {
  const job = jobs.get(number);
  if (!job) throw unknown(`customJobs/${number}`);
  // A job that is being cancelled is cancelled at the next read.
  if (job.state === "JOB_STATE_CANCELLING" && job.looks-- <= 0) finish(job, "JOB_STATE_CANCELLED");
  return job;
}

const shown = ({ looks, ...job }) => job;

function finish(job, state) {
  // Sets the end into the past, so that clients do not wait for late output. A test may override it.
  job.endTime = new Date(Date.now() - 600_000).toISOString();
  job.state = state;
}

function page(all, size, token, most) {
  const begin = token ? Number(Buffer.from(token, "base64").toString()) : 0;
  if (!Number.isInteger(begin) || begin < 0 || begin > all.length) throw invalid("page_token is invalid");
  const end = begin + Math.min(size || most, most);
  return { part: all.slice(begin, end), next: end < all.length ? Buffer.from(String(end)).toString("base64") : undefined };
}

function list(region, query, options) {
  let all = [...jobs.values()].reverse().filter((job) => job.name.includes(`/locations/${region}/`));
  const filter = query.get("filter");
  if (filter) {
    const match = /^labels\.(\w+)="?([^"]*)"?$|^state="?(\w+)"?$/.exec(filter);
    if (!match) throw invalid(`Invalid filter: ${filter}`);
    all = all.filter((job) => (match[3] ? job.state === match[3] : job.labels?.[match[1]] === match[2]));
  }
  const { part, next } = page(all, Number(query.get("pageSize")), query.get("pageToken"), options.jobsPerPage ?? 100);
  // The response for a project without jobs is an empty object.
  return { ...(part.length && { customJobs: part.map(shown) }), ...(next && { nextPageToken: next }) };
}

// ---- logs

// With nanoseconds, so that texts sort like times.
function exact(timestamp) {
  const [, seconds, fraction = ""] = /^(.*?)(?:\.(\d+))?Z$/.exec(timestamp);
  return `${seconds}.${fraction.padEnd(9, "0")}Z`;
}

function accepts(filter) {
  const tests = [];
  let rest = filter;
  const take = (pattern, test) => {
    rest = rest.replace(pattern, (...match) => {
      tests.push(test(...match.slice(1)));
      return "";
    });
  };
  const text = `"((?:[^"\\\\]|\\\\.)*)"`;
  take(/resource\.type="ml_job"/, () => (entry) => entry.resource.type === "ml_job");
  take(new RegExp(`resource\\.labels\\.job_id=${text}`), (id) => (entry) => entry.resource.labels.job_id === id);
  take(new RegExp(`resource\\.labels\\.task_name=${text}`), (task) => (entry) => entry.resource.labels.task_name === task);
  take(new RegExp(`timestamp>=${text}`), (time) => (entry) => exact(entry.timestamp) >= exact(time));
  take(new RegExp(`timestamp<${text}`), (time) => (entry) => exact(entry.timestamp) < exact(time));
  if (rest.replace(/ AND /g, "").trim() !== "") throw invalid(`Unparseable filter: ${rest}`);
  return (entry) => tests.every((test) => test(entry));
}

function listEntries(body, options) {
  if (!body.resourceNames?.length) throw invalid("resource_names is required");
  if (!["timestamp asc", "timestamp desc", undefined].includes(body.orderBy)) throw invalid("order_by");
  seen.filters.push(body.filter);
  const order = (a, b) => (exact(a.timestamp) + a.insertId < exact(b.timestamp) + b.insertId ? -1 : 1);
  const all = entries.filter(accepts(body.filter ?? "")).sort(order);
  if (body.orderBy === "timestamp desc") all.reverse();
  const { part, next } = page(all, body.pageSize, body.pageToken, options.entriesPerPage ?? 1000);
  return { ...(part.length && { entries: part }), ...(next && { nextPageToken: next }) };
}

function addEntry(project, { job, message, task = "workerpool0-0", severity = "INFO", timestamp, insertId, text }) {
  ++lastInsert;
  entries.push({
    logName: `projects/${project}/logs/${task}`,
    resource: { type: "ml_job", labels: { job_id: job, task_name: task, project_id: project } },
    timestamp: timestamp ?? new Date(Date.now() - 30_000).toISOString(), severity,
    insertId: insertId ?? `id${String(lastInsert).padStart(8, "0")}`,
    ...(text ? { textPayload: message } : { jsonPayload: { message, levelname: severity } }),
    labels: { "ml.googleapis.com/trial_id": "1" },
  });
}

// ---- routing

export const isVertex = (path) => /^\/v1\/projects\/|^\/v2\/entries:list$/.test(path);

export async function answerVertex(req, path, query, readBody, options) {
  const body = await readBody();
  const json = body.length ? JSON.parse(body.toString()) : {};
  if (path === "/v2/entries:list" && req.method === "POST") return listEntries(json, options);
  const match = /^\/v1\/projects\/([^/]+)\/locations\/([^/]+)\/customJobs(?:\/(\d+))?(:cancel)?$/.exec(path);
  if (!match) throw unknown(path);
  const [, project, region, number, cancel] = match;
  if (![options.project ?? "project", kProjectNumber].includes(decodeURIComponent(project))) {
    throw new ApiError(403, "PERMISSION_DENIED", `Permission denied on resource project ${project}.`);
  }
  if (!isRegion(region)) throw unknown(`projects/${project}/locations/${region}`);
  if (!number) return req.method === "POST" ? create(region, json) : list(region, query, options);
  const job = jobOf(number);
  if (!cancel) return shown(job);
  if (req.method !== "POST") throw unknown(path);
  if (/PENDING|RUNNING|QUEUED/.test(job.state)) Object.assign(job, { state: "JOB_STATE_CANCELLING", looks: 1 });
  return {};
}

export function errorOf(error) {
  if (!(error instanceof ApiError)) throw error;
  const { code, status, message, details } = error;
  return { code, body: { error: { code, message, status, ...(details && { details }) } } };
}

export const unauthenticated = () => new ApiError(401, "UNAUTHENTICATED",
  "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other valid credential.");

// Requests of tests.
export function answerVertexTest(command, options) {
  if (command?.job !== undefined && command.set) {
    const job = jobs.get(command.job) ?? [...jobs.values()].find((other) => other.displayName === command.job);
    const { state, ...rest } = command.set;
    if (state && /SUCCEEDED|FAILED|CANCELLED|EXPIRED/.test(state)) finish(job, state);
    else if (state) Object.assign(job, { state, startTime: job.startTime ?? new Date().toISOString() });
    Object.assign(job, rest);
  }
  for (const made of command?.jobs ?? []) create(made.region ?? "us-central1", made.job);
  for (const entry of command?.entries ?? []) addEntry(options.project ?? "project", entry);
  for (const number of command?.removed ?? []) jobs.delete(number);
  return { jobs: [...jobs.values()].map(shown), schema: schema() !== null, ...seen };
}
