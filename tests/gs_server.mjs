// usage: node gs_server.mjs [OPTIONS]
// The parts of Google Cloud Storage (JSON API) that the tests need, on loopback, with objects in memory; also the server
// that exchanges keys for tokens, a machine's metadata server, and Vertex AI with Cloud Logging (vertex_api.mjs). Prints its
// port. The official clients check it (e2e/gs_server_test.py, e2e/vertex_api_test.py).
//
// OPTIONS, as JSON: buckets (names; default ["bucket"]), forbidden (names of buckets of other owners), auth
// (true: tokens are required), pageSize (maximum of listings), tokenSeconds (lifetime of a token); project,
// jobsPerPage and entriesPerPage of Vertex AI.
// Requests of tests are below /test/: service_account and authorized_user (files of credentials), state (the requests received so far), revoke (invalidates all tokens), faults (POST a list: see gs_faults.mjs), token (a new one),
// vertex (see vertex_api.mjs), objects (the names in all buckets).
import { createServer } from "node:http";
import { createHash, randomBytes } from "node:crypto";
import { faultOf, setFaults } from "./gs_faults.mjs";
import {
  answerTokenRequest, authorizedUser, isAuthorized, metadataToken, newToken, revokeTokens, serviceAccount, tokenCount,
} from "./gs_tokens.mjs";
import { answerVertex, answerVertexTest, errorOf, isVertex, unauthenticated } from "./vertex_api.mjs";

const options = {
  buckets: ["bucket"], forbidden: [], auth: false, pageSize: 1000, tokenSeconds: 3600,
  ...JSON.parse(process.argv[2] ?? "{}"),
};
const kStep = 256 * 1024; // what an upload keeps is a multiple of it
const buckets = new Map(options.buckets.map((name) => [name, new Map()]));
const sessions = new Map();
const state = { requests: [], cancelled: 0 };
let lastGeneration = 0;

// ---- the metadata of an object

const kCrcTable = Uint32Array.from({ length: 256 }, (_, byte) => {
  for (let bit = 0; bit < 8; ++bit) byte = byte & 1 ? (byte >>> 1) ^ 0x82f63b78 : byte >>> 1;
  return byte;
});

function crc32c(bytes) {
  let crc = 0xffffffff;
  for (let i = 0; i < bytes.length; ++i) crc = (crc >>> 8) ^ kCrcTable[(crc ^ bytes[i]) & 0xff];
  const sum = Buffer.alloc(4);
  sum.writeUInt32BE((crc ^ 0xffffffff) >>> 0);
  return sum.toString("base64");
}

class Refusal extends Error {
  constructor(status, reason, message) {
    super(message);
    Object.assign(this, { status, reason });
  }
}

const invalid = (message) => new Refusal(400, "invalid", message);
const conditionNotMet = () =>
  new Refusal(412, "conditionNotMet", "At least one of the pre-conditions you specified did not hold.");

function bucketOf(name) {
  if (options.forbidden.includes(name)) {
    throw new Refusal(403, "forbidden", `tester@example.com does not have storage.objects.list access to ${name}.`);
  }
  const bucket = buckets.get(name);
  if (!bucket) throw new Refusal(404, "notFound", "The specified bucket does not exist.");
  return bucket;
}

function objectOf(bucketName, name, query) {
  const object = bucketOf(bucketName).get(name);
  const generation = query.get("generation");
  if (!object || (generation && generation !== object.meta.generation)) {
    throw new Refusal(404, "notFound", `No such object: ${bucketName}/${name}`);
  }
  return object;
}

// Throws if a condition of the query does not hold; `object` may be undefined.
function checkConditions(query, object, reading) {
  const generation = object?.meta.generation ?? "0";
  const match = query.get("ifGenerationMatch");
  const notMatch = query.get("ifGenerationNotMatch");
  if (match !== null && match !== generation) throw conditionNotMet();
  if (notMatch !== null && notMatch === generation) throw reading ? new Refusal(304, "", "") : conditionNotMet();
}

function store(bucketName, name, content, given, query) {
  if (!name || Buffer.byteLength(name) > 1024 || /[\r\n]/.test(name) || name === "." || name === "..") {
    throw invalid(`Invalid object name: ${JSON.stringify(name)}`);
  }
  const bucket = bucketOf(bucketName);
  checkConditions(query, bucket.get(name), false);
  const sums = { crc32c: crc32c(content), md5Hash: createHash("md5").update(content).digest("base64") };
  for (const [key, word] of [["crc32c", "CRC32C"], ["md5Hash", "MD5 hash"]]) {
    if (given[key] && given[key] !== sums[key]) {
      throw invalid(`Provided ${word} "${given[key]}" doesn't match calculated ${word} "${sums[key]}".`);
    }
  }
  lastGeneration = Math.max(lastGeneration + 1, Date.now() * 1000);
  const now = new Date().toISOString();
  const meta = {
    kind: "storage#object", id: `${bucketName}/${name}/${lastGeneration}`, name, bucket: bucketName,
    generation: String(lastGeneration), metageneration: "1", timeCreated: now, updated: now, storageClass: "STANDARD",
    contentType: given.contentType ?? "application/octet-stream", size: String(content.length), ...sums,
    etag: randomBytes(6).toString("base64"), ...(given.metadata && { metadata: given.metadata }),
  };
  bucket.set(name, { meta, content });
  return meta;
}

// Parses "a,b(c,d)" to a tree.
function parseFields(text) {
  const tree = {};
  for (const [, name, inner] of text.matchAll(/([^,()]+)(?:\(([^)]*)\))?/g)) {
    tree[name] = inner ? parseFields(inner) : null;
  }
  return tree;
}

function select(value, tree) {
  if (!tree || value === null || typeof value !== "object") return value;
  if (Array.isArray(value)) return value.map((element) => select(element, tree));
  const wanted = Object.entries(value).filter(([key]) => key in tree);
  return Object.fromEntries(wanted.map(([key, member]) => [key, select(member, tree[key])]));
}

function reply(res, status, value, headers = {}) {
  const fields = res.query?.get("fields");
  const body = value === null ? "" : JSON.stringify(fields && status < 300 ? select(value, parseFields(fields)) : value);
  const type = "application/json; charset=UTF-8";
  res.writeHead(status, { "content-type": type, "content-length": Buffer.byteLength(body), ...headers });
  res.end(body);
}

function refuse(res, { status, reason, message }) {
  const body = { error: { code: status, message, errors: [{ message, domain: "global", reason }] } };
  reply(res, status, status === 304 ? null : body);
}

// ---- reading

function list(res, bucketName, query) {
  const prefix = query.get("prefix") ?? "";
  const delimiter = query.get("delimiter");
  const after = Buffer.from(query.get("pageToken") ?? "", "base64").toString();
  const most = Math.min(options.pageSize, Number(query.get("maxResults") ?? 1000));
  const order = (a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b));
  const items = [], prefixes = [];
  let last = "", nextPageToken;
  const names = [...bucketOf(bucketName).keys()].filter((name) => name.startsWith(prefix));
  for (const name of names.sort(order)) {
    const cut = delimiter ? name.indexOf(delimiter, prefix.length) : -1;
    const entry = cut < 0 ? name : name.slice(0, cut + delimiter.length);
    if ((after && order(entry, after) <= 0) || entry === last) continue;
    if (items.length + prefixes.length === most) {
      nextPageToken = Buffer.from(last).toString("base64");
      break;
    }
    last = entry;
    if (cut < 0) items.push(buckets.get(bucketName).get(name).meta);
    else prefixes.push(entry);
  }
  const page = { kind: "storage#objects", nextPageToken };
  if (prefixes.length) page.prefixes = prefixes;
  if (items.length) page.items = items;
  reply(res, 200, page);
}

// Returns [begin, end) of a Range header; null if the range does not overlap the object.
function rangeOf(header, size) {
  const match = /^bytes=(\d*)-(\d*)$/.exec(header ?? "");
  if (!match) return { begin: 0, end: size, status: 200 };
  const [, first, last] = match;
  const begin = first === "" ? Math.max(0, size - Number(last)) : Number(first);
  const end = first === "" || last === "" ? size : Math.min(size, Number(last) + 1);
  return begin < end ? { begin, end, status: 206 } : null;
}

function download(req, res, object, fault) {
  const { meta, content } = object;
  const range = rangeOf(req.headers.range, content.length);
  if (!range) throw new Refusal(416, "requestedRangeNotSatisfiable", "Request range not satisfiable");
  let body = content.subarray(range.begin, range.end);
  if (fault?.kind === "damage") body = damaged(body);
  res.writeHead(range.status, {
    "content-type": meta.contentType, "content-length": body.length, etag: meta.etag,
    "x-goog-generation": meta.generation, "x-goog-metageneration": meta.metageneration,
    "x-goog-hash": `crc32c=${meta.crc32c},md5=${meta.md5Hash}`,
    "x-goog-stored-content-encoding": "identity", "x-goog-stored-content-length": content.length,
    "last-modified": new Date(meta.updated).toUTCString(),
    ...(range.status === 206 && { "content-range": `bytes ${range.begin}-${range.end - 1}/${content.length}` }),
  });
  if (fault?.kind === "cutResponse" || fault?.kind === "stallResponse") {
    res.write(body.subarray(0, fault.bytes ?? 1), () => fault.kind === "cutResponse" && res.socket.destroy());
  } else {
    res.end(body);
  }
}

// ---- writing

function damaged(bytes) {
  const copy = Buffer.from(bytes);
  if (copy.length) copy[copy.length >> 1] ^= 1;
  return copy;
}

// Returns the body of a request. After `limit` bytes it closes the connection and sets `cut` on the bytes received.
async function bodyOf(req, limit = Infinity) {
  const chunks = [];
  let size = 0;
  let cut = false;
  try {
    for await (const chunk of req) {
      chunks.push(chunk);
      size += chunk.length;
      if (size >= limit) {
        cut = true;
        break; // ends the stream, and with it the connection
      }
    }
  } catch {
    cut = true;
  }
  const body = Buffer.concat(chunks);
  return Object.assign(cut ? body.subarray(0, Math.min(limit, body.length)) : body, { cut });
}

function sumsOf(header) {
  const sums = {};
  for (const [, kind, sum] of (header ?? "").matchAll(/(crc32c|md5)=([^,\s]+)/g)) {
    sums[kind === "md5" ? "md5Hash" : kind] = sum;
  }
  return sums;
}

function parseMultipart(body, contentType) {
  const boundary = /boundary="?([^";]+)"?/.exec(contentType ?? "")?.[1];
  if (!boundary) throw invalid("Missing boundary.");
  const parts = [];
  const fence = Buffer.from(`--${boundary}`);
  for (let at = body.indexOf(fence); at >= 0; ) {
    const begin = at + fence.length;
    const next = body.indexOf(fence, begin);
    if (next < 0) break;
    const head = body.indexOf("\r\n\r\n", begin);
    parts.push(body.subarray(head + 4, next - 2));
    at = next;
  }
  if (parts.length !== 2) throw invalid(`Expected two parts, found ${parts.length}.`);
  return { given: JSON.parse(parts[0].toString() || "{}"), content: parts[1] };
}

async function upload(req, res, bucketName, query, fault) {
  const kind = query.get("uploadType");
  const body = await bodyOf(req, fault?.kind === "cutRequest" ? fault.bytes : Infinity);
  if (body.cut) return;
  if (kind === "resumable") {
    const given = {
      contentType: req.headers["x-upload-content-type"], ...JSON.parse(body.toString() || "{}"),
      ...sumsOf(req.headers["x-goog-hash"]),
    };
    const name = query.get("name") ?? given.name;
    checkConditions(query, bucketOf(bucketName).get(name), false);
    const id = randomBytes(16).toString("hex");
    sessions.set(id, { bucketName, name, given, query, content: Buffer.alloc(0), done: null });
    const folder = `http://${req.headers.host}/upload/storage/v1/b/${encodeURIComponent(bucketName)}/o`;
    const location = `${folder}?uploadType=resumable&upload_id=${id}`;
    return reply(res, 200, null, { location, "x-guploader-uploadid": id });
  }
  let given = { contentType: req.headers["content-type"] };
  let content = body;
  if (kind === "multipart") ({ given, content } = parseMultipart(body, req.headers["content-type"]));
  Object.assign(given, sumsOf(req.headers["x-goog-hash"]));
  if (fault?.kind === "damageOnTheWay") content = damaged(content);
  if (fault?.kind === "damage") [content, given] = [damaged(content), {}];
  finish(res, store(bucketName, query.get("name") ?? given.name, content, given, query), fault);
}

function finish(res, meta, fault) {
  if (fault?.kind === "loseResponse") res.socket.destroy();
  else reply(res, 200, meta);
}

function goOn(res, session) {
  const size = session.content.length;
  reply(res, 308, null, size ? { range: `bytes=0-${size - 1}` } : {});
}

// Parses Content-Range to {begin, end, total}; -1 for an absent number.
function contentRange(header, size) {
  if (!header) return { begin: 0, end: size - 1, total: size };
  const match = /^bytes (?:\*|(\d+)-(\d+|\*))\/(\d+|\*)$/.exec(header);
  if (!match) throw invalid(`Failed to parse Content-Range header: ${header}`);
  const number = (text) => (text === undefined || text === "*" ? -1 : Number(text));
  const range = { begin: number(match[1]), end: number(match[2]), total: number(match[3]) };
  // "bytes 5-*/*": all of the body, which is the last part.
  if (match[2] === "*") range.total = range.begin + size;
  return range;
}

async function continueUpload(req, res, id, fault) {
  const session = sessions.get(id);
  if (!session) throw new Refusal(410, "gone", "The upload session is not known.");
  if (req.method === "DELETE") {
    sessions.delete(id);
    state.cancelled += session.done ? 0 : 1;
    return reply(res, 499, null);
  }
  let body = await bodyOf(req, fault?.kind === "cutRequest" ? fault.bytes : Infinity);
  if (session.done) return body.cut || reply(res, 200, session.done);
  const range = contentRange(req.headers["content-range"], body.length);
  const cut = body.cut;
  const wanted = range.end < 0 ? body.length : range.end - range.begin + 1;
  if (!cut && body.length !== wanted) throw invalid("The body's size is not that of Content-Range.");
  if (!cut && range.total < 0 && body.length % kStep !== 0) throw invalid("Chunks are multiples of 262144 bytes.");
  if (body.length && range.begin > session.content.length) throw invalid("There is a gap before these bytes.");
  if (fault?.kind === "damageOnTheWay" || fault?.kind === "damage") body = damaged(body);
  const news = body.subarray(Math.max(0, session.content.length - Math.max(range.begin, 0)));
  let keep = fault?.kind === "keepHalf" ? news.length / 2 : news.length;
  if (cut || fault?.kind === "keepHalf") keep = Math.floor(keep / kStep) * kStep;
  session.content = Buffer.concat([session.content, news.subarray(0, keep)]);
  if (cut) return;
  if (range.total < 0 || session.content.length < range.total) {
    return fault?.kind === "loseResponse" ? res.socket.destroy() : goOn(res, session);
  }
  const given = { ...session.given, ...sumsOf(req.headers["x-goog-hash"]) };
  if (fault?.kind === "damage") given.crc32c = given.md5Hash = undefined;
  session.done = store(session.bucketName, session.name, session.content, given, session.query);
  finish(res, session.done, fault);
}

// ---- routing

async function answerTest(req, res, path) {
  const address = `http://${req.headers.host}`;
  if (path === "/test/service_account") reply(res, 200, serviceAccount(address));
  else if (path === "/test/authorized_user") reply(res, 200, authorizedUser(address));
  else if (path === "/test/revoke") reply(res, 200, revokeTokens());
  else if (path === "/test/faults") reply(res, 200, setFaults(JSON.parse((await bodyOf(req)).toString())));
  else if (path === "/test/token") reply(res, 200, newToken(options));
  else if (path === "/test/objects") reply(res, 200, [...buckets].flatMap(([b, all]) => [...all.keys()].map((o) => `${b}/${o}`)));
  else if (path === "/test/vertex") {
    reply(res, 200, answerVertexTest(JSON.parse((await bodyOf(req)).toString() || "{}"), options));
  } else if (path === "/test/state") {
    const open = [...sessions.values()].filter((session) => !session.done).length;
    reply(res, 200, { ...state, openUploads: open, tokens: tokenCount() });
  } else refuse(res, new Refusal(404, "notFound", "Not Found"));
}

// Creates a bucket, unless another owner has the name.
async function makeBucket(req, res) {
  const { name, location } = JSON.parse((await bodyOf(req)).toString());
  if (options.forbidden.includes(name) || buckets.has(name)) {
    throw new Refusal(409, "conflict", "The requested bucket name is not available.");
  }
  if (!/^[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]$/.test(name)) throw invalid(`Invalid bucket name: '${name}'`);
  buckets.set(name, new Map());
  reply(res, 200, { kind: "storage#bucket", name, id: name, location: location.toUpperCase() });
}

async function answerGoogle(req, res, path, query) {
  try {
    if (options.auth && !isAuthorized(req.headers.authorization)) throw unauthenticated();
    reply(res, 200, await answerVertex(req, path, query, () => bodyOf(req), options));
  } catch (error) {
    req.resume();
    const { code, body } = errorOf(error);
    reply(res, code, body);
  }
}

async function answerStorage(req, res, path, query, fault) {
  const session = query.get("upload_id");
  if (session && path.startsWith("/upload/")) return continueUpload(req, res, session, fault);
  if (options.auth && !isAuthorized(req.headers.authorization)) {
    const anonymous = !req.headers.authorization;
    if (anonymous) throw new Refusal(401, "required", "Anonymous caller does not have storage.objects.get access.");
    throw new Refusal(401, "authError", "Invalid Credentials");
  }
  if (path === "/storage/v1/b" && req.method === "POST") return makeBucket(req, res);
  const match = /^(\/upload|\/download)?\/storage\/v1\/b\/([^/]+)(\/o(?:\/([^/]+))?)?$/.exec(path);
  if (!match) throw new Refusal(404, "notFound", "Not Found");
  const [, kind, rawBucket, objects, rawName] = match;
  const bucketName = decodeURIComponent(rawBucket);
  if (kind === "/upload" && req.method === "POST") return upload(req, res, bucketName, query, fault);
  if (!objects) {
    bucketOf(bucketName);
    return reply(res, 200, { kind: "storage#bucket", name: bucketName, id: bucketName });
  }
  if (rawName === undefined) return list(res, bucketName, query);
  const name = decodeURIComponent(rawName);
  const object = objectOf(bucketName, name, query);
  checkConditions(query, object, req.method === "GET");
  if (req.method === "DELETE") {
    buckets.get(bucketName).delete(name);
    return reply(res, 204, null);
  }
  if (req.method !== "GET") throw new Refusal(405, "methodNotAllowed", "Method Not Allowed");
  if (query.get("alt") === "media" || kind === "/download") return download(req, res, object, fault);
  reply(res, 200, object.meta);
}

async function answer(req, res) {
  const [path, text] = req.url.split("?", 2);
  decodeURIComponent(text ?? ""); // throws when a name is no UTF-8
  const query = new URLSearchParams(text ?? "");
  res.query = query;
  if (path.startsWith("/test/")) return answerTest(req, res, path);
  state.requests.push(`${req.method} ${path} ${req.headers["content-range"] ?? ""}`.trim());
  const fault = faultOf(req);
  if (fault?.kind === "stall") return;
  if (fault?.kind === "status") {
    await bodyOf(req);
    const errors = [{ reason: fault.reason ?? "backendError" }];
    const plain = { error: { code: fault.status, message: "a test's fault", errors } };
    return reply(res, fault.status, fault.body ?? plain, fault.headers);
  }
  if (path === "/token") return answerTokenRequest(res, reply, (await bodyOf(req)).toString(), options);
  if (path.startsWith("/computeMetadata/")) return metadataToken(req, res, reply, path, options);
  if (isVertex(path)) {
    if (fault?.kind === "loseResponse") {
      await answerVertex(req, path, query, () => bodyOf(req), options);
      return res.socket.destroy();
    }
    return answerGoogle(req, res, path, query);
  }
  return answerStorage(req, res, path, query, fault);
}

const server = createServer((req, res) => {
  answer(req, res).catch((error) => {
    if (res.headersSent || res.destroyed || res.socket?.destroyed) return;
    req.resume();
    if (error instanceof URIError) error = invalid("A name that is no UTF-8.");
    refuse(res, error instanceof Refusal ? error : new Refusal(500, "internalError", String(error)));
  });
});
server.keepAliveTimeout = 0;
server.requestTimeout = 0;
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
